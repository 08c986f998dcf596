from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owa_bench.canonical import sha256, tree_root
from owa_bench.errors import TraceError
from owa_bench.records import events, suite_events
from owa_bench.records.events import Resource, Subgoal
from owa_bench.records.plan import Arm, Budget, Plan, PlanEntry
from owa_bench.records.trace import (
    SKETCH_BITS,
    Leaf,
    Trace,
    attempt_id,
    counted_leaves,
    evidence_root,
    leaf_bytes,
    plan_order,
    replay_root,
    sketch,
    sketch_distance,
)

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


def test_every_kind_of_event_can_be_read_back() -> None:
    kinds = {
        kind
        for module in (events, suite_events)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, events.Event)
    } - {events.Event}
    assert kinds == set(get_args(events.AnyEvent))
    assert {kind.__name__ for kind in kinds} <= set(events.__all__)


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


# --- roots ----------------------------------------------------------------------------

ORDER = (2, 0, 1)


def planned() -> Plan:
    """A plan whose order is not that of its indices."""
    return Plan(
        name="toy",
        battery=None,
        suites=(),
        arms=(Arm(name="a", agent="noop", fingerprint=""),),
        entries=tuple(
            PlanEntry(index=index, arm="a", pair="p", suite="s", version=1, family="f", tier=1)
            for index in ORDER
        ),
        budget=Budget(),
        commitment="",
        protocol_digest="",
        price_digest="",
        calendar="nested",
    )


def leaf(index: int, attempt: int = 0, **changes: object) -> Leaf:
    name = attempt_id(index, attempt)
    made = Leaf(
        attempt_id=name,
        index=index,
        attempt=attempt,
        status="complete",
        count=5,
        head=sha256(name.encode()),
        replay=sha256(b"%d" % index),
        shard="00000.jsonl.zst",
        frames=((0, 9),),
    )
    return msgspec.structs.replace(made, **changes)


LEAVES = (
    leaf(0, 0, status="infrastructure"),
    leaf(0, 1),
    leaf(1, 0, status="unfinished"),
    leaf(2, 0),
)


def test_last_complete_attempt_counts() -> None:
    assert counted_leaves(planned(), LEAVES) == (LEAVES[3], LEAVES[1], None)
    twice = (*LEAVES, leaf(0, 2), leaf(0, 3, status="unfinished"))
    assert counted_leaves(planned(), twice)[1].attempt == 2


def test_evidence_root_is_over_every_attempt_in_plan_order() -> None:
    expected = [leaf_bytes(LEAVES[i]) for i in (3, 0, 1, 2)]
    assert evidence_root(planned(), LEAVES) == tree_root(expected)
    assert [x.attempt_id for x in plan_order(planned(), LEAVES)] == [
        "000002.0",
        "000000.0",
        "000000.1",
        "000001.0",
    ]


@given(st.permutations(LEAVES))
def test_roots_do_not_depend_on_who_wrote_first(leaves) -> None:
    assert evidence_root(planned(), leaves) == evidence_root(planned(), LEAVES)
    assert replay_root(planned(), leaves) == replay_root(planned(), LEAVES)


def test_replay_root_is_over_counted_attempts_only() -> None:
    expected = [bytes.fromhex(LEAVES[i].replay) for i in (3, 1)]
    assert replay_root(planned(), LEAVES) == tree_root(expected)


def test_replay_root_survives_resume_and_repacking_and_the_evidence_does_not() -> None:
    resumed = (leaf(0, 0), leaf(2, 0, shard="00007.jsonl.zst", frames=((5, 5),)))
    assert replay_root(planned(), resumed) == replay_root(planned(), LEAVES)
    assert evidence_root(planned(), resumed) != evidence_root(planned(), LEAVES)


def test_timed_attempt_is_exempt_from_the_replay_root() -> None:
    timed = (*LEAVES[:3], leaf(2, 0, timed=True))
    expected = [bytes.fromhex(LEAVES[1].replay)]
    assert replay_root(planned(), timed) == tree_root(expected)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "infrastructure"},
        {"count": 6},
        {"head": "0" * 64},
        {"memory": "0" * 64},
        {"attempt_id": "000002.1", "attempt": 1},
    ],
)
def test_evidence_root_sees_every_change_of_a_leaf(change) -> None:
    changed = (*LEAVES[:3], msgspec.structs.replace(LEAVES[3], **change))
    assert evidence_root(planned(), changed) != evidence_root(planned(), LEAVES)


def test_dropped_attempt_changes_the_evidence_root() -> None:
    for i in range(len(LEAVES)):
        left = LEAVES[:i] + LEAVES[i + 1 :]
        assert evidence_root(planned(), left) != evidence_root(planned(), LEAVES)


def test_attempt_of_no_entry_is_refused() -> None:
    with pytest.raises(TraceError, match=r"000009\.0"):
        evidence_root(planned(), (leaf(9),))


# --- sketches -------------------------------------------------------------------------

SAID = "I am still waiting for the reply of the second fetcher"


@pytest.mark.parametrize("again", [SAID + "!", SAID.upper(), SAID.replace("fetcher", "fetchers")])
def test_a_letter_more_is_a_near_duplicate(again: str) -> None:
    assert sketch_distance(sketch(SAID), sketch(again)) <= 10


@pytest.mark.parametrize(
    "other", ["Vendor 12: fetched 340 rows of invoices", "We need to synchronise the board", ""]
)
def test_other_words_are_far(other: str) -> None:
    assert sketch_distance(sketch(SAID), sketch(other)) > 16


def test_a_missing_sketch_is_near_nothing() -> None:
    assert sketch_distance("", sketch(SAID)) == sketch_distance("", "") == SKETCH_BITS
