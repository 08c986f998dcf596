"""Attempts from the lines of their frames: order, closing line, what does not read."""

from types import SimpleNamespace

import pytest

from owa_bench.errors import TraceError
from owa_bench.reports.read import attempts

CLOSING = b'{"closing":"000000.0","status":"complete","count":2,"head":"h","replay":"r"}'


def frame(part, shard="s0"):
    return SimpleNamespace(part=part, shard=shard)


def test_frames_lie_in_order_in_one_shard(monkeypatch):
    def lines(folder, one):
        if one.part == 9:
            raise TraceError("torn")
        return [f"{one.part}".encode()]

    monkeypatch.setattr(attempts, "frame_lines", lines)
    assert attempts._rows("", [frame(0), frame(1)]) == ([b"0", b"1"], [])
    rows, faults = attempts._rows("", [frame(0), frame(2), frame(2, "s1"), frame(9)])
    assert rows == [b"0", b"2", b"2"]
    assert faults == [
        "frame 1 says that it is part 2",
        "frames lie in s0 and in s1",
        "frame 3 says that it is part 9",
        "torn",
    ]


@pytest.mark.parametrize(
    ("rows", "count", "faults"),
    [
        ([b"a", b"b", CLOSING], 2, []),
        ([CLOSING], 0, []),
        ([b"a", CLOSING, b"b"], 2, ["1 lines stand behind its closing line"]),
        ([CLOSING, b"a", b"b"], 2, ["2 lines stand behind its closing line"]),
        ([b"a", b"b"], 2, []),
    ],
)
def test_the_closing_line_is_the_last(rows, count, faults):
    closing, events, found = attempts._split(rows)
    assert events == [b"a", b"b"][:count]
    assert found == faults
    if CLOSING in rows:
        assert closing.closing == "000000.0"
    else:
        assert closing is None


def test_a_closing_line_that_does_not_read_ends_the_events():
    broken = CLOSING.replace(b'"count":2', b'"count":"x"')
    closing, events, faults = attempts._split([b"a", broken, b"b"])
    assert (closing, events) == (None, [b"a"])
    assert faults[0].startswith("its closing line does not read: ")


def test_a_line_that_is_no_event_is_numbered_and_ends_the_events():
    events, faults = attempts._decode([b"{}", b"x"])
    assert events == ()
    assert [fault.partition(" is no event")[0] for fault in faults] == ["line 0"]
