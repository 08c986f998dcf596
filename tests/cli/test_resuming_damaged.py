"""Runs with a damaged file: the message names the file and a way out that works."""

import shutil

import pytest

pytestmark = pytest.mark.part(2)

FLAGS = "--suite toolquest --family restock --tier 1 --delta 0 --agent noop"


@pytest.fixture
def played(owa, place):
    assert owa(f"run --out x {FLAGS} --episodes 1 --sandbox none").code == 0
    assert owa("report x").code == 0
    return place / "x"


def test_a_plans_signature_is_made_again_by_its_own_key(owa, played):
    (played / "plan.dsse.json").write_text("{")
    assert "plan signature" in owa("report x").err
    assert owa("run --out x --resume").code == 0
    assert owa("report x").code == 0
    assert owa("verify x").code == 0


def test_without_the_key_a_copy_is_asked_for(owa, played, place):
    (played / "plan.dsse.json").unlink()
    shutil.rmtree(place / "home", ignore_errors=True)
    assert owa("keygen other").code == 0
    said = owa("run --out x --resume --key other")
    assert said.code == 2
    assert "put back a copy of the file" in said.err


def test_a_damaged_lease_can_be_removed(owa, played):
    (played / "lease.json").write_text("{")
    said = owa("run --out x --resume")
    assert said.code == 2
    assert "remove it; then resume" in said.err
    (played / "lease.json").unlink()
    assert owa("run --out x --resume").code == 0


def test_a_folder_in_place_of_the_leaves_can_be_moved_away(owa, played):
    (played / "leaves.jsonl").unlink()
    (played / "leaves.jsonl").mkdir()
    for verb in ("verify x", "report x", "run --out x --resume"):
        said = owa(verb)
        assert said.code == 1
        assert "leaves.jsonl must be a file, it is a folder: move it away" in said.err
    (played / "leaves.jsonl").rmdir()
    assert owa("run --out x --resume").code == 0
    assert owa("verify x").code == 0


def test_an_empty_signed_report_is_made_anew(owa, played):
    (played / "report.dsse.json").write_text("")
    said = owa("verify x")
    assert said.code == 1
    assert "makes it anew" in said.err
    assert ".." not in said.err
    assert owa("report x").code == 0
    assert owa("verify x").code == 0
