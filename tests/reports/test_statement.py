import json
import shutil
import subprocess

import pytest

from owa_bench.canonical import canonical_json, peek, public_bytes, unseal
from owa_bench.errors import CheckFailure, FieldError, RunDirectoryError
from owa_bench.records.layout import STATEMENT_TYPE
from owa_bench.reports import statement
from owa_bench.reports.page.render_html import openssl_lines
from tests.builders.run_directory import KEY, OTHER_KEY, make_plan, make_run

PUBLIC = public_bytes(KEY.public_key())


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    layout = make_run(tmp_path_factory.mktemp("written") / "run", make_plan(1))
    return layout, statement.write(layout.root, KEY)


def test_statement_is_in_toto_over_roots_plan_and_shards(written):
    layout, judgement = written
    payload = json.loads(unseal(layout.report_envelope.read_bytes(), PUBLIC, STATEMENT_TYPE))
    assert payload["_type"] == "https://in-toto.io/Statement/v1"
    digests = {s["name"]: s["digest"]["sha256"] for s in payload["subject"]}
    assert digests["evidence root"] == judgement.evidence_root
    assert digests["replay root"] == judgement.replay_root
    assert digests["plan"] == judgement.plan_digest
    shards = {f"trace/{path.name}" for path in layout.shards.iterdir()}
    assert digests.keys() == {"evidence root", "replay root", "plan"} | shards
    assert payload["predicate"]["judgement"]["replay_root"] == judgement.replay_root


def test_report_json_is_the_predicate_in_canonical_form(written):
    layout, _ = written
    predicate = json.loads(peek(layout.report_envelope.read_bytes()))["predicate"]
    assert layout.report.read_bytes() == canonical_json(predicate) + b"\n"
    assert predicate["environment"] == [["python", "3.11"], ["owa_bench", "0.1.0"]]
    assert predicate["assurance"]["level"] == 2


def test_writing_again_changes_no_byte(written):
    layout, _ = written
    names = ("report.json", "report.dsse.json", "report.html")
    before = {name: (layout.root / name).read_bytes() for name in names}
    statement.write(layout.root, KEY)
    assert {name: (layout.root / name).read_bytes() for name in names} == before


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_openssl_lines_of_the_page_check_signature_page_and_shards(written, tmp_path):
    layout, _ = written
    lines = openssl_lines(PUBLIC.hex())
    root = shutil.copytree(layout.root, tmp_path / "run")

    def shell() -> str:
        done = subprocess.run(
            ["sh", "-c", lines], cwd=root, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    good = shell()
    assert "Signature Verified Successfully" in good
    assert good.count(": as signed") == 3
    assert "NOT AS SIGNED" not in good
    (root / "report.html").write_text("<p>AAI-4</p>")
    assert "report.html: NOT AS SIGNED" in shell()
    envelope = (root / "report.dsse.json").read_text()
    (root / "report.dsse.json").write_text(envelope.replace('"sig": "', '"sig": "AAAA'))
    assert "Signature Verified Successfully" not in shell()


def test_a_key_that_is_not_the_plans_is_refused(tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1))
    with pytest.raises(FieldError, match="must be the plan's key"):
        statement.write(layout.root, OTHER_KEY)
    assert not layout.report_envelope.exists()


def test_a_run_half_played_is_not_signed_but_may_be_drafted(tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1), entries=slice(0, 10))
    with pytest.raises(RunDirectoryError, match="14 of 24 planned episodes"):
        statement.write(layout.root, KEY)
    statement.write(layout.root, None)
    assert "this run is not whole" in layout.page.read_text()
    assert json.loads(layout.report.read_bytes())["assurance"]["level"] == 0


def test_evidence_that_does_not_hold_is_not_signed(tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1))
    layout.price_card.write_bytes(layout.price_card.read_bytes() + b"# cheaper\n")
    with pytest.raises(CheckFailure, match="price card"):
        statement.write(layout.root, KEY)
    assert not layout.report.exists()


def test_a_write_that_fails_leaves_no_half_file(tmp_path, monkeypatch):
    layout = make_run(tmp_path / "run", make_plan(1))

    def broken(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(statement.os, "fsync", broken)
    with pytest.raises(OSError, match="No space"):
        statement.write(layout.root, KEY)
    left = {path.name for path in layout.root.iterdir()}
    assert not {name for name in left if name.startswith((".report", "report"))}
