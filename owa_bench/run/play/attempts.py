"""What is still to be played of a plan: entries with attempt numbers, lanes whole."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from owa_bench.records.events import EpisodeEnd
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.trace import Leaf

# `Plan.attempt_rule`: attempts of an entry that the harness may fail before it is left.
MOST_FAILURES = 3


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One entry still to be played: the attempt's number, and failures before it.

    `failures` are attempts that the harness failed; an entry has a few of them, while
    attempts that a kill left unfinished do not use it up.
    """

    index: int
    attempt: int
    failures: int = 0

    def again(self) -> "Attempt | None":
        """Return the turn after the harness failed this one, None if none is left."""
        failures = self.failures + 1
        if failures >= MOST_FAILURES:
            return None
        return Attempt(index=self.index, attempt=self.attempt + 1, failures=failures)


class WorkItem(msgspec.Struct, frozen=True, kw_only=True):
    """What one thread of a worker plays in order: one entry, or all of a lane.

    `memory` is the digest of the snapshot a lane goes on from; `spent` what the run
    had used when the job was given out.
    """

    number: int
    attempts: tuple[Attempt, ...]
    lane: str | None = None
    memory: str | None = None
    spent: Mapping[str, float] = {}

    def after(self, done: "Done") -> "WorkItem":
        """Return what is left of the job when an attempt of it has closed."""
        attempt, *rest = self.attempts
        if done.leaf.status != "complete":
            again = attempt.again()
            rest = [again, *rest] if again else rest
        memory = done.leaf.memory or self.memory
        return msgspec.structs.replace(self, attempts=tuple(rest), memory=memory)

    def after_death(self) -> "WorkItem":
        """Return what is left when the worker died in the first turn."""
        attempt, *rest = self.attempts
        again = attempt.again()
        attempts = (again, *rest) if again else tuple(rest)
        return msgspec.structs.replace(self, attempts=attempts)


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that was closed."""

    job: int
    leaf: Leaf
    end: EpisodeEnd
    spent: Mapping[str, float] = {}


def pending(plan: Plan, leaves: Iterable[Leaf]) -> tuple[WorkItem, ...]:
    """Return the jobs that are left of a plan, in plan order of their first entry."""
    kept = tuple(leaves)
    last = Counter[int]()
    failures = Counter(leaf.index for leaf in kept if leaf.status == "infrastructure")
    for leaf in kept:
        last[leaf.index] = max(last[leaf.index], leaf.attempt + 1)
    complete = {leaf.index: leaf for leaf in kept if leaf.status == "complete"}
    attempts: dict[str | int, list[Attempt]] = {}
    memories: dict[str, str | None] = {}
    lanes: dict[str | int, str | None] = {}
    for entry in plan.entries:
        if entry.index in complete:
            if entry.lane is not None and entry.phase != "checkpoint":
                memories[entry.lane] = complete[entry.index].memory
            continue
        if failures[entry.index] >= MOST_FAILURES:
            continue
        key = entry.index if entry.lane is None else entry.lane
        lanes[key] = entry.lane
        attempts.setdefault(key, []).append(_turn(entry, last, failures))
    return tuple(
        WorkItem(
            number=number,
            attempts=tuple(waiting),
            lane=lanes[key],
            memory=memories.get(lanes[key] or ""),
        )
        for number, (key, waiting) in enumerate(attempts.items())
    )


def _turn(entry: PlanEntry, last: Counter[int], failures: Counter[int]) -> Attempt:
    return Attempt(
        index=entry.index, attempt=last[entry.index], failures=failures[entry.index]
    )
