"""Pictures of failures: which are named, and that the page shows what was signed."""

import shutil

import pytest

from owa_bench.canonical import sha256
from owa_bench.errors import UsageError
from owa_bench.records.events import Evidence
from owa_bench.records.layout import RunLayout
from owa_bench.records.packs import PackEncoder, PackReader, pack_paths
from owa_bench.reports import statement, verify
from owa_bench.reports.read import pictures
from owa_bench.reports.read.bundle import read
from owa_bench.reports.read.pictures import caption, select_pictures
from owa_bench.runs.store import directory
from tests.builders.episodes import drift
from tests.builders.run_directory import KEY, make_plan, make_run

PIXELS = [b"\xff\xd8 not a real picture %02d" % i for i in range(40)]


def pictured(plan_entry, made):
    """Give every episode two pictures; the last is its own."""
    own = PIXELS[plan_entry.index % len(PIXELS)]
    shots = [
        Evidence(step=step, name="picture", media="image/jpeg", blob=sha256(data))
        for step, data in ((1, b"earlier"), (4, own))
    ]
    return [*made[:-1], *shots, made[-1]]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    layout = make_run(tmp_path_factory.mktemp("run") / "r", edit=pictured)
    for path in pack_paths(layout):
        repack(path, (*PIXELS, b"earlier"))
    statement.write(layout.root, KEY)
    return layout


def repack(path, blobs, without=""):
    """Write a pack again with further blobs, without one of its own."""
    reader, encoder = PackReader(path), PackEncoder()
    for blob in (*map(reader.read, reader.places.keys() - {without}), *blobs):
        encoder.add(blob)
    path.write_bytes(encoder.finish())


def shots(layout):
    bundle = read(layout.root)
    return select_pictures(bundle.traces(), transcripts=bundle.plan.transcripts)


def test_each_agent_shows_the_first_failure_of_each_kind(run):
    found = shots(run)
    assert 0 < len(found.pictures) <= pictures._MOST < found.pictured
    assert found.failures == found.pictured
    kinds = [(p.arm, p.drift, p.magnitude) for p in found.pictures]
    assert len(set(kinds)) == len(kinds)
    assert all(p.quality < 0.95 and p.step == 4 for p in found.pictures)
    assert {p.arm for p in found.pictures[:2]} == {"agentic", "fixed"}
    for picture in found.pictures:
        index = int(picture.attempt.partition(".")[0])
        assert picture.blob == sha256(PIXELS[index % len(PIXELS)])


def test_the_page_holds_them_and_is_made_again(run):
    page = run.page.read_text()
    assert page.count('<img src="data:image/jpeg;base64,') == len(shots(run).pictures)
    assert "img-src data:" in page
    assert all(check.ok for check in verify.verify(run.root))
    assert all(check.ok for check in verify.recompute(run.root))


def test_a_picture_that_is_not_its_digest_is_not_shown(run, tmp_path):
    layout = RunLayout(shutil.copytree(run.root, tmp_path / "r"))
    for path in pack_paths(layout):
        repack(path, (b"another picture",), without=shots(layout).pictures[0].blob)
    shown = pictures.page_images(layout, shots(layout))
    assert shown[0].missing == "the run holds no such blob"
    assert shown[0].uri == ""
    failed = {c.name for c in verify.verify(layout.root) if not c.ok}
    assert failed == {"blobs"}
    assert {c.name for c in verify.recompute(layout.root) if not c.ok} == {"page"}


def test_pictures_are_capped_in_size(run, monkeypatch):
    found = shots(run)
    size = len(PIXELS[0])
    monkeypatch.setattr(pictures, "_PAGE_LIMIT", 2 * size)
    texts = [one.missing for one in pictures.page_images(run, found)]
    assert [bool(text) for text in texts[:3]] == [False, False, True]
    assert "too large" in texts[2]
    monkeypatch.setattr(pictures, "_LARGEST", size - 1)
    assert all("too large" in one.missing for one in pictures.page_images(run, found))


def test_without_pictures_it_says_why(tmp_path):
    plain = select_pictures(read(make_run(tmp_path / "a").root).traces(), transcripts=True)
    assert plain.pictures == ()
    assert (plain.failures > 0, plain.pictured) == (True, 0)
    assert plain.note == "No failed episode left a picture."
    off = make_run(tmp_path / "b", make_plan(transcripts=False), edit=pictured)
    assert shots(off).pictures == ()
    assert "kept no transcripts" in shots(off).note
    fine = select_pictures((), transcripts=True)
    assert fine.note == "No counted episode failed."


def test_a_caption_says_what_drifted(run):
    picture = next(p for p in shots(run).pictures if p.magnitude)
    words = caption(picture)
    assert f"all operators at {picture.magnitude:g}" in words
    assert picture.attempt in words


def test_operators_are_named_once():
    theme = drift("web/theme", "D0")
    assert pictures.operator_names([theme, theme]) == ("web/theme",)


def test_pruned_run_passes_and_says_so(run, tmp_path):
    layout = RunLayout(shutil.copytree(run.root, tmp_path / "r"))
    size = sum(path.stat().st_size for path in pack_paths(layout))
    dropped = directory.prune(layout)
    assert (dropped.packs, dropped.size) == (2, size)
    assert [path.name for path in layout.blobs.iterdir()] == ["pruned.json"]
    checks = {check.name: check for check in verify.verify(layout.root)}
    assert all(check.ok for check in checks.values())
    assert "transcripts pruned" in checks["blobs"].detail
    again = {check.name: check for check in verify.recompute(layout.root)}
    assert all(check.ok for check in again.values())
    assert again["page"].skipped
    assert again["recompute"].ok
    with pytest.raises(UsageError, match="no transcripts to prune"):
        directory.prune(layout)
    layout.pruned.unlink()
    assert {c.name for c in verify.verify(layout.root) if not c.ok} == {"blobs"}
