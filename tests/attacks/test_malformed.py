"""Files that were made to break the reader: each is named, none stops it otherwise."""

import json
import tracemalloc

import msgspec
import pytest
import zstandard

from owa_bench.canonical import canonical_json, seal, unseal
from owa_bench.errors import CheckFailure, OwaError, RunDirectoryError, TraceError
from owa_bench.records import shards
from owa_bench.records.events import ENCODER
from owa_bench.records.layout import PLAN_TYPE, RECEIPT_TYPE, RunLayout
from owa_bench.records.shards import index_shard
from owa_bench.records.trace import Segment
from owa_bench.reports import statement, verify
from owa_bench.reports.read import bundle
from owa_bench.runs import replay
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store import files
from tests.attacks.tampering import failing, inside, resign_plan
from tests.builders.run_directory import KEY

pytestmark = pytest.mark.part(3)

DEEP = b"[" * 200_000
READERS = (bundle.read, lambda root: read_plan(RunLayout(root)))
DIGEST = (lambda root: files.plan_digest(RunLayout(root)),)


@pytest.mark.parametrize("read", READERS)
def test_an_entry_of_the_plan_that_stands_twice(run, read):
    entries = bundle.read(run.root).plan.entries
    twice = (entries[0], *entries[:-1])
    resign_plan(run, entries=twice)
    with pytest.raises(RunDirectoryError, match="entry 0 must stand at its place"):
        read(run.root)


@pytest.mark.parametrize("read", READERS)
def test_a_key_that_is_none(run, read):
    resign_plan(run, public_key="no key")
    with pytest.raises(RunDirectoryError, match="`public_key` must be 64 hex digits"):
        read(run.root)


@pytest.mark.parametrize("read", [*READERS, *DIGEST])
def test_a_plan_nested_without_end(run, read):
    run.plan.write_bytes(DEEP)
    with pytest.raises(RunDirectoryError):
        read(run.root)


def test_a_number_that_json_does_not_have(run):
    text = run.plan.read_bytes().replace(b'"delta":0.5', b'"delta":NaN', 1)
    assert b"NaN" in text
    run.plan.write_bytes(text)
    with pytest.raises(RunDirectoryError, match="JSON is malformed"):
        bundle.read(run.root)


@pytest.mark.parametrize("read", [bundle.read, lambda r: files.plan_digest(RunLayout(r))])
def test_a_number_that_canonical_json_does_not_have(run, read):
    text = run.plan.read_bytes().replace(b'"tier":1', b'"tier":1' + b"0" * 30, 1)
    run.plan.write_bytes(text)
    with pytest.raises(OwaError):
        read(run.root)


@pytest.mark.parametrize(
    "envelope",
    [
        DEEP,
        b"[]",
        b"{}",
        b'{"payloadType": 1, "payload": "e30=", "signatures": []}',
        b'{"payloadType": "t", "payload": "e30=", "signatures": [1]}',
        b'{"payloadType": "t", "payload": "W1tb", "signatures": []}',
    ],
)
def test_envelopes_that_are_none(run, envelope):
    signed = run.report_envelope.read_bytes()
    run.report_envelope.write_bytes(envelope)
    with pytest.raises(CheckFailure, match="must be a signed report"):
        verify.verify(run.root)
    run.report_envelope.write_bytes(signed)
    run.plan_envelope.write_bytes(envelope)
    assert "plan signature" in failing(run.root)
    run.receipts.mkdir()
    (run.receipts / "replay-a.dsse.json").write_bytes(envelope)
    assert "witness" in failing(run.root)


def test_what_was_signed_as_something_else_is_no_plan(run):
    payload = canonical_json(bundle.read(run.root).plan)
    run.plan_envelope.write_bytes(seal(RECEIPT_TYPE, payload, KEY))
    assert "plan signature" in failing(run.root)
    public = bytes.fromhex(bundle.read(run.root).plan.public_key)
    with pytest.raises(CheckFailure, match="what was signed is of"):
        unseal(run.plan_envelope.read_bytes(), public, PLAN_TYPE)


def test_a_report_without_signatures_is_a_draft_or_no_report(run):
    document = json.loads(run.report_envelope.read_bytes())
    del document["signatures"]
    run.report_envelope.write_bytes(json.dumps(document).encode())
    assert "signature" in failing(run.root)


@pytest.mark.part(2)
@pytest.mark.parametrize("name", ["0.0", "000000.00", "٠٠٠٠٠٠.0", "x", "1", "-1.0", ""])
def test_an_attempt_under_another_spelling_of_its_name(run, name):
    inside(run, lambda lines: None)
    row = ENCODER.encode(Segment(attempt_id=name, part=0)) + b"\n"
    with run.shard(0).open("ab") as shard:
        shard.write(zstandard.ZstdCompressor(write_checksum=True).compress(row))
    assert "frames" in failing(run.root)
    with pytest.raises(TraceError, match="names no attempt"):
        files.leaves_of_shards(run)


def test_a_complete_attempt_without_start_or_end_is_not_judged(run):
    def cut(lines):
        name = next(iter(lines))
        lines[name] = lines[name][2:-2] + lines[name][-1:]

    inside_without_signing(run, cut)
    assert "episode id" in failing(run.root)
    with pytest.raises(TraceError, match=r"does not (begin|close) with episode_"):
        statement.write(run.root, None)
    with pytest.raises(OwaError):
        replay.replay_run(run)


def inside_without_signing(run, edit):
    """Edit the lines and hash them anew; the report stays as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.attacks.tampering.sign", lambda layout: None)
        inside(run, edit)


def test_a_frame_that_unpacks_without_end_takes_little_memory(run):
    squeeze = zstandard.ZstdCompressor().compressobj()
    zeros = bytes(1 << 24)
    bomb = b"".join(squeeze.compress(zeros) for _ in range(64)) + squeeze.flush()
    assert len(bomb) < 1 << 17
    run.shard(7).write_bytes(bomb)
    tracemalloc.start()
    try:
        found = index_shard(run.shard(7))
        whole = list(shards.scan(run.shard(7)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "must unpack to at most" in found.faults[0]
    assert whole == []
    assert peak < 1 << 29


def test_shards_by_other_names_stop_nothing(run):
    for name in ("x.jsonl.zst", "0x.jsonl.zst", "5.jsonl.zst"):
        (run.shards / name).write_bytes(b"")
    assert files.next_shard(run) == 2
    assert "trace files" in failing(run.root)


def test_a_witness_that_is_another_document(run):
    run.witness.mkdir()
    for number, text in enumerate((b"{}", DEEP, b"\xff", b"null")):
        (run.witness / f"{number}.json").write_bytes(text)
    assert "witness" in failing(run.root)


def test_days_of_another_document(run):
    path = run.receipts / "day-0000.dsse.json"
    run.receipts.mkdir()
    path.write_bytes(seal(RECEIPT_TYPE, msgspec.json.encode([]), KEY))
    assert failing(run.root) == set()  # a run without days reads no day


def test_folders_in_place_of_files(run):
    (run.shards / "00009.jsonl.zst").mkdir()
    for folder, name in ((run.witness, "a.json"), (run.receipts, "replay-a.dsse.json")):
        (folder / name).mkdir(parents=True)
    assert {"frames", "witness"} <= failing(run.root)
    (run.shards / "00010.jsonl.zst").symlink_to("nowhere")
    with pytest.raises(CheckFailure, match="must be no link"):
        verify.verify(run.root)
