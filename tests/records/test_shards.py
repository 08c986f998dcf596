import pytest
import zstandard

from owa_bench.errors import TraceError
from owa_bench.records import shards


def frame(attempt: str, part: int, *rows: str) -> bytes:
    head = f'{{"attempt_id":"{attempt}","part":{part}}}'
    body = "".join(f"{row}\n" for row in (head, *rows)).encode()
    return zstandard.ZstdCompressor(write_checksum=True).compress(body)


def test_interleaved_frames_are_found_with_their_places(tmp_path):
    pieces = [frame("000000.0", 0, "a"), frame("000001.0", 0, "b"), frame("000000.0", 1, "c", "d")]
    (tmp_path / "00000.jsonl.zst").write_bytes(b"".join(pieces))
    found = shards.index_shard(tmp_path / "00000.jsonl.zst")
    assert [(f.attempt_id, f.part) for f in found.frames] == [
        ("000000.0", 0),
        ("000001.0", 0),
        ("000000.0", 1),
    ]
    assert shards.frame_lines(tmp_path, found.frames[2]) == [b"c", b"d"]
    assert (found.torn, found.faults) == (0, ())


@pytest.mark.parametrize("cut", [1, 5, 17])
def test_an_open_frame_at_the_end_is_torn_and_no_fault(tmp_path, cut):
    whole = frame("000000.0", 0, "a")
    path = tmp_path / "00000.jsonl.zst"
    path.write_bytes(whole + frame("000001.0", 0, "b" * 200)[:cut])
    found = shards.index_shard(path)
    assert len(found.frames) == 1
    assert found.torn == cut
    assert found.faults == ()


def test_a_damaged_frame_is_named_and_the_next_is_still_read(tmp_path):
    first = bytearray(frame("000000.0", 0, "a" * 500))
    first[-1] ^= 1  # the checksum
    path = tmp_path / "00000.jsonl.zst"
    path.write_bytes(bytes(first) + frame("000001.0", 0, "b"))
    found = shards.index_shard(path)
    assert [f.attempt_id for f in found.frames] == ["000001.0"]
    assert "00000.jsonl.zst: the frame at 0 does not read" in found.faults[0]


def test_a_frame_longer_than_what_is_fed_at_once(tmp_path):
    rows = [str(i) * 7 for i in range(90_000)]
    path = tmp_path / "00000.jsonl.zst"
    path.write_bytes(frame("000000.0", 0, *rows) + frame("000001.0", 0, "b"))
    found = shards.index_shard(path)
    assert len(found.frames) == 2
    assert shards.frame_lines(tmp_path, found.frames[0])[-1].decode() == rows[-1]


def test_a_frame_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "LARGEST_FRAME", 1000)
    path = tmp_path / "00000.jsonl.zst"
    path.write_bytes(frame("000000.0", 0, "a" * 100_000))
    found = shards.index_shard(path)
    assert found.frames == ()
    assert "at most 1000 bytes" in found.faults[0]


def test_a_frame_that_ends_inside_a_line_does_not_read(tmp_path):
    body = b'{"attempt_id":"000000.0","part":0}\nhalf'
    path = tmp_path / "00000.jsonl.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(body))
    with pytest.raises(TraceError, match="ends inside a line"):
        shards.frame_lines(tmp_path, shards.index_shard(path).frames[0])
