"""Work items: what is still to be played of a plan, and what is left of it."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Plan
from owa_bench.records.trace import Leaf
from owa_bench.run.play.history import NO_HISTORY, EntryHistory, read_history
from owa_bench.run.store.memory import lane_key
from owa_bench.run.store.memory_folder import EMPTY
from owa_bench.seeding import instance_seed

# `Plan.attempt_rule`: attempts of an entry that the harness may fail before it is left.
MAX_FAILURES = 3


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt still to be made at a plan entry.

    `failures` are attempts before it that the harness failed; attempts that a kill left
    unfinished are not among them. `seed` is that of the entry's pair, `day` the
    entry's (0 outside campaigns), `keeps` whether its memory is kept. `died`: the
    worker of the attempt before died, by itself and not with its machine. `history` is
    read when the item is dispatched.
    """

    index: int
    number: int
    seed: int
    day: int = 0
    keeps: bool = True
    failures: int = 0
    died: bool = False
    history: EntryHistory = NO_HISTORY

    def again(self) -> "Attempt | None":
        """Return the attempt after the harness failed this one; None: no more."""
        failures = self.failures + 1
        if failures >= MAX_FAILURES:
            return None
        return replace(self, number=self.number + 1, failures=failures, died=False)


class WorkItem(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts that one thread makes in order: at one entry, or at all of a lane.

    `memory` is the digest of the snapshot a lane goes on from, `lane_key` the key of
    its snapshots; `spent` what the run had used when the item was dispatched.
    `wanted` are the days whose morning's memory is needed again, `mornings` the digests
    of those that the first attempt knows.
    """

    number: int
    attempts: tuple[Attempt, ...]
    lane: str | None = None
    lane_key: bytes = b""
    memory: str | None = None
    spent: Mapping[str, float] = {}
    wanted: tuple[int, ...] = ()
    mornings: Mapping[int, str] = {}

    def after(self, leaf: Leaf) -> "WorkItem":
        """Return what is left of the item when its first attempt has closed."""
        first, *rest = self.attempts
        again = None if leaf.status == "complete" else first.again()
        left = (again, *rest) if again else tuple(rest)
        memory = (leaf.memory if first.keeps else None) or self.memory
        day = left[0].day if left else 0
        mornings = _mornings(self.wanted, self.mornings, day, memory)
        return replace(self, attempts=left, memory=memory, mornings=mornings)

    def after_exit(self, *, died: bool) -> "WorkItem":
        """Return what is left when its worker, or its machine, died at the first."""
        first, *rest = self.attempts
        again = replace(first, number=first.number + 1, died=died)
        return replace(self, attempts=(again, *rest))

    def dispatched(self, layout: RunLayout, spent: Mapping[str, float]) -> "WorkItem":
        """Return the item as it is given to a worker.

        Args:
            layout: The run directory, where the histories of its entries are read.
            spent: What the run has used so far.

        Returns:
            The item.
        """
        attempts = tuple(_with_history(each, layout) for each in self.attempts)
        return replace(self, attempts=attempts, spent=dict(spent))


def _with_history(attempt: Attempt, layout: RunLayout) -> Attempt:
    if attempt.number == 0:
        return attempt
    index, number = attempt.index, attempt.number
    history = read_history(layout, index, number, died=attempt.died)
    return replace(attempt, history=history)


def _mornings(
    wanted: Iterable[int], known: Mapping[int, str], day: int, memory: str | None
) -> Mapping[int, str]:
    """Return the known mornings and those that are due by `day` with this memory."""
    due = {m: memory or EMPTY for m in wanted if m <= day and m not in known}
    return {**known, **due}


def pending(plan: Plan, leaves: Iterable[Leaf], root: bytes) -> tuple[WorkItem, ...]:
    """Return what is still to be played, in plan order of the first entry.

    Args:
        plan: The plan.
        leaves: The attempts on record.
        root: The master, any verifier's nonce mixed in.

    Returns:
        An item per entry or lane that is not complete.
    """
    numbers = Counter[int]()
    failures = Counter[int]()
    complete: dict[int, Leaf] = {}
    for leaf in leaves:
        numbers[leaf.index] = max(numbers[leaf.index], leaf.attempt + 1)
        failures[leaf.index] += leaf.status == "infrastructure"
        if leaf.status == "complete":
            complete[leaf.index] = leaf
    attempts: dict[tuple[str | None, int | None], list[Attempt]] = {}
    memories: dict[str | None, str | None] = {}
    wanted: dict[str | None, set[int]] = {}
    mornings: dict[str | None, Mapping[int, str]] = {}
    for entry in plan.entries:
        wanted.setdefault(entry.lane, set()).update(entry.mornings)
    for entry in plan.entries:
        index, lane = entry.index, entry.lane
        if (lane, None) not in attempts:
            day, known = entry.day or 0, mornings.get(lane, {})
            mornings[lane] = _mornings(wanted[lane], known, day, memories.get(lane))
        if index in complete:
            if lane is not None and entry.kept:
                memories[lane] = complete[index].memory
        elif failures[index] < MAX_FAILURES:
            item = (None, index) if lane is None else (lane, None)
            attempts.setdefault(item, []).append(
                Attempt(
                    index=index,
                    number=numbers[index],
                    seed=instance_seed(root, entry.pair),
                    day=entry.day or 0,
                    keeps=entry.kept,
                    failures=failures[index],
                )
            )
    return tuple(
        WorkItem(
            number=number,
            attempts=tuple(waiting),
            lane=lane,
            lane_key=b"" if lane is None else lane_key(root, lane),
            memory=memories.get(lane),
            wanted=() if lane is None else tuple(sorted(wanted[lane])),
            mornings={} if lane is None else mornings[lane],
        )
        for number, ((lane, _), waiting) in enumerate(attempts.items())
    )
