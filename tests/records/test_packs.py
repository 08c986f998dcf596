import os
import tracemalloc

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from owa_bench.canonical import sha256
from owa_bench.errors import RunDirectoryError, TraceError
from owa_bench.records import frames, packs
from owa_bench.records.layout import RunLayout
from owa_bench.records.packs import PackEncoder, PackReader, Transcripts

BLOBS = [b"", b"a", b"page " * 50, bytes(range(256)) * 3]


def packed(*groups: list[bytes]) -> bytes:
    """Return a pack whose blobs were flushed group by group."""
    encoder, data = PackEncoder(), b""
    for group in groups:
        for blob in group:
            encoder.add(blob)
        data += encoder.flush()
    return data + encoder.finish()


def squeezed(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


def reader(tmp_path, data: bytes) -> PackReader:
    path = tmp_path / "00000.pack"
    path.write_bytes(data)
    return PackReader(path)


def test_every_blob_reads_back_by_its_digest(tmp_path):
    pack = reader(tmp_path, packed(BLOBS[:2], BLOBS[2:]))
    assert [pack.read(sha256(blob)) for blob in BLOBS] == BLOBS
    assert (len(pack.places), pack.torn, pack.fault) == (4, 0, "")


def test_frames_end_where_they_are_full(tmp_path, monkeypatch):
    monkeypatch.setattr(packs, "FRAME_BYTES", 300)
    pack = reader(tmp_path, packed(*([blob] for blob in BLOBS[::-1])))
    assert len({place.frame for place in pack.places.values()}) > 1
    assert [pack.read(sha256(blob)) for blob in BLOBS] == BLOBS


def test_nothing_added_is_nothing_written():
    encoder = PackEncoder()
    assert (encoder.flush(), encoder.finish()) == (b"", b"")


def test_pack_torn_at_any_byte_gives_whole_blobs_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(packs, "FRAME_BYTES", 700)
    encoder, data, ends = PackEncoder(), b"", []
    for number in range(40):
        encoder.add(b"%d " % number * 30)
        data += encoder.flush()
        ends.append(len(data))
    names = [sha256(b"%d " % number * 30) for number in range(40)]
    for cut in range(len(data) + 1):
        pack = reader(tmp_path, data[:cut])
        flushed = sum(end <= cut for end in ends)
        assert list(pack.places)[:flushed] == names[:flushed]
        assert set(pack.places) <= set(names)
        assert pack.fault == ""


@pytest.mark.parametrize("place", range(4, 60, 5))
def test_flipped_byte_is_a_fault_and_gives_no_other_bytes_for_a_name(tmp_path, place, monkeypatch):
    monkeypatch.setattr(packs, "padding", lambda length, weight: b"")
    data = bytearray(packed([b"kept"]) + packed([b"first page", b"second page"]))
    data[-place % len(data)] ^= 4
    pack = reader(tmp_path, bytes(data))
    names = {sha256(blob) for blob in (b"kept", b"first page", b"second page")}
    assert pack.fault or not names <= set(pack.places)
    for name in pack.places:
        assert sha256(pack.read(name)) == name


def test_pack_swapped_after_it_was_opened_gives_no_other_blob(tmp_path):
    pack = reader(tmp_path, packed([b"one"]))
    pack.path.write_bytes(packed([b"two"]))
    with pytest.raises(TraceError, match="does not hash to its name"):
        pack.read(sha256(b"one"))


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"no frame at all", "the frame at byte 0: no frame begins there"),
        (packed([b"x"]) + b"more", "no frame begins there"),
        (squeezed(b"\x05\0\0\0abc"), "ends inside a blob"),
        (squeezed(b"\xff\xff\xff\xff"), "ends inside a blob"),
        (squeezed(b"\0\0"), "ends inside a blob"),
    ],
)
def test_what_is_no_pack_is_a_fault(tmp_path, data, fault):
    assert fault in reader(tmp_path, data).fault


def test_pack_that_unpacks_without_end_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "FLOOR", 1 << 20)
    stream = zstandard.ZstdCompressor().compressobj()
    zeros = bytes(1 << 24)
    bomb = b"".join(stream.compress(zeros) for _ in range(64)) + stream.flush()
    assert len(bomb) < 1 << 17
    tracemalloc.start()
    try:
        pack = reader(tmp_path, bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "must unpack to at most" in pack.fault
    assert peak < 1 << 29


def test_many_frames_share_one_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "FLOOR", 1000)
    monkeypatch.setattr(frames, "DENSEST", 1)
    frame = squeezed(b"\x90\x01\0\0" + bytes(400))
    pack = reader(tmp_path, b"".join([frame] * 5))
    assert "must unpack to at most 1,000 bytes" in pack.fault
    assert reader(tmp_path, packed(*[[bytes(400)]] * 5)).fault == ""


@given(st.lists(st.tuples(st.binary(max_size=9), st.integers(0, 1 << 20)), max_size=9))
@settings(deadline=None, max_examples=40)
def test_the_densest_blobs_that_are_written_read_back(tmp_path_factory, parts):
    blobs = [text * count for text, count in parts if len(text) * count < 1 << 22]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "FLOOR", 0)
        pack = reader(tmp_path_factory.mktemp("pack"), packed(*([b] for b in blobs)))
    assert (pack.fault, pack.torn) == ("", 0)
    assert [pack.read(sha256(blob)) for blob in blobs] == blobs


def test_pipe_or_folder_is_no_pack(tmp_path):
    os.mkfifo(tmp_path / "pipe.pack")
    (tmp_path / "folder.pack").mkdir()
    for name in ("pipe.pack", "folder.pack"):
        with pytest.raises(TraceError, match="must be a regular file"):
            PackReader(tmp_path / name)
    with pytest.raises(TraceError, match="cannot be read"):
        PackReader(tmp_path / "none.pack")


def test_run_says_why_a_blob_is_not_there(tmp_path):
    layout = RunLayout(tmp_path)
    with pytest.raises(TraceError, match="may have been off"):
        Transcripts(layout).read("0" * 64)
    layout.blobs.mkdir()
    layout.pruned.write_text('{"packs":{"00000.pack":7}}')
    with pytest.raises(TraceError, match="were pruned"):
        Transcripts(layout).read("0" * 64)
    layout.pruned.write_text("[")
    with pytest.raises(RunDirectoryError, match="must name the packs"):
        Transcripts(layout).read("0" * 64)
