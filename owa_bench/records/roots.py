"""Which attempt counts, and the two roots over a run's attempts.

*Evidence root*: every attempt, scored or not, in plan order, then attempt number; one
of a kind for a run. *Replay root*: the replay digests of the counted attempts in plan
order, those under a wall or CPU limit left out; equal under any worker count,
transport, order and resume.

Source: `traces-and-audit.md` section 2.
"""

from collections.abc import Iterable

from owa_bench.canonical import tree_root
from owa_bench.errors import TraceError
from owa_bench.records.plan import Plan
from owa_bench.records.trace import Leaf, leaf_bytes


def counted(plan: Plan, leaves: Iterable[Leaf]) -> tuple[Leaf | None, ...]:
    """Return the last complete attempt at each plan entry, None where there is none.

    Errors: TraceError for an attempt that the plan does not know.
    """
    last: dict[int, Leaf] = {}
    for leaf in plan_order(plan, leaves):
        if leaf.status == "complete":
            last[leaf.index] = leaf
    return tuple(last.get(entry.index) for entry in plan.entries)


def plan_order(plan: Plan, leaves: Iterable[Leaf]) -> tuple[Leaf, ...]:
    """Return all attempts in plan order, then by attempt number.

    Errors: TraceError for an attempt that the plan does not know.
    """
    place = {entry.index: i for i, entry in enumerate(plan.entries)}
    kept = tuple(leaves)
    for leaf in kept:
        if leaf.index not in place:
            raise TraceError(f"Attempt {leaf.attempt_id} is of no entry of the plan.")
    return tuple(sorted(kept, key=lambda leaf: (place[leaf.index], leaf.attempt)))


def evidence_root(plan: Plan, leaves: Iterable[Leaf]) -> str:
    """Return the tree root over every attempt, in hex."""
    return tree_root([leaf_bytes(leaf) for leaf in plan_order(plan, leaves)])


def replay_root(plan: Plan, leaves: Iterable[Leaf]) -> str:
    """Return the tree root over what must be equal in every replay, in hex."""
    return tree_root(
        [
            bytes.fromhex(leaf.replay)
            for leaf in counted(plan, leaves)
            if leaf is not None and not leaf.timed
        ]
    )
