import pytest

from owa_bench.errors import TraceError
from owa_bench.records.events import Resource, Subgoal
from owa_bench.records.trace import Leaf, Trace, attempt_id, leaf_bytes

LEAF = Leaf(
    attempt_id="000012.3",
    index=12,
    attempt=3,
    status="complete",
    count=1,
    head="a" * 64,
    replay="b" * 64,
    shard="00000.jsonl.zst",
    frames=((0, 9),),
)


def test_attempt_is_named_by_index_and_number() -> None:
    assert attempt_id(12, 3) == LEAF.attempt_id


def test_tree_hashes_identity_status_count_head_and_memory() -> None:
    assert leaf_bytes(LEAF) == b"000012.3|complete|1|" + b"a" * 64 + b"|"


def test_trace_that_is_cut_says_so() -> None:
    event = Subgoal(step=1, node="rows", depth=1)
    trace = Trace(LEAF, (event,))
    with pytest.raises(TraceError, match=r"Attempt 000012\.3 does not begin"):
        _ = trace.start
    with pytest.raises(TraceError, match=r"Attempt 000012\.3 does not close"):
        _ = trace.end
    assert list(trace.of(Subgoal)) == [event]
    assert list(trace.of(Resource)) == []
