"""Success of counted episodes: the interval over tasks, and which episodes it pools.

Episodes of one task are not independent: they differ in drift, help, repeat or day alone. Source:
docs/scoring.md#intervals.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.records.events import EpisodeStart
from owa_bench.records.score import Interval
from owa_bench.scoring.statistics.task_means import estimate_over_tasks, task_of


def success_over_tasks(pairs: Sequence[str], won: Sequence[bool]) -> Interval:
    """Return the 95 percent interval of the share of episodes that succeed.

    Args:
        pairs: The plan's name of the world of each counted episode of an agent.
        won: Whether each succeeded.
    Returns: The jackknife over tasks; none for one task, whatever its episodes.
    """
    if not won:
        return Interval(method="over tasks", reason="no counted episode")
    tasks = np.array([task_of(pair) for pair in pairs])
    return estimate_over_tasks(np.array(won, dtype=np.float64), tasks)


class PooledTerms(NamedTuple):
    """What of an episode's terms tells pooled episodes apart: a small part of its first event."""

    pair: str
    suite: str
    kind: str
    delta: float | None
    priced: bool
    interventions: int | None
    repeat: int
    role_cap: int | None
    muted: bool
    day: int | None
    side: str
    unit: int | None


def pooled_terms(start: EpisodeStart) -> PooledTerms:
    """Return the terms of an episode by its first event."""
    return PooledTerms(
        pair=start.pair,
        suite=sys.intern(start.instance.suite),
        kind=sys.intern(_kind(start)),
        delta=start.delta,
        priced=start.priced,
        interventions=start.interventions,
        repeat=start.repeat,
        side=sys.intern(start.side),
        unit=start.unit,
        role_cap=start.role_cap,
        muted=start.muted,
        day=start.day,
    )


def pooled_words(episodes: Sequence[PooledTerms]) -> str:
    """Return in words which episodes are pooled: their kinds, and what differs.

    Args:
        episodes: The terms of each counted episode of an agent.
    Returns: Such as "24 episodes of 6 tasks; 2 drift magnitudes, 2 repeats".
    """
    kinds = Counter(one.kind for one in episodes)
    words = f"{_number(len(episodes), 'episode')} of "
    words += _number(len({task_of(one.pair) for one in episodes}), "task")
    if set(kinds) != {"holdout"} and kinds:
        words += ": " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    varied: dict[str, set[object]] = {
        "suites": {one.suite for one in episodes},
        "drift magnitudes": {one.delta for one in episodes},
        "help budgets": {(one.priced, one.interventions) for one in episodes},
        "repeats": {one.repeat for one in episodes},
        "ceilings on roles": {(one.role_cap, one.muted) for one in episodes},
        "days": {one.day for one in episodes},
        "sides": {one.side for one in episodes},
    }
    differs = [f"{len(seen)} {noun}" for noun, seen in varied.items() if len(seen) > 1]
    return "; ".join((words, ", ".join(differs))) if differs else words


def _kind(start: EpisodeStart) -> str:
    if start.honeypot:
        return "of infeasible tasks"
    return start.condition or ("control" if start.control else start.phase)


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
