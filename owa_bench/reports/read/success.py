"""Success of counted episodes: the interval over tasks, and which episodes it pools.

Episodes of one task are not independent: they differ in drift, help, repeat or day alone. Source:
docs/scoring.md#intervals.
"""

from collections import Counter
from collections.abc import Sequence

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


def pooled_words(starts: Sequence[EpisodeStart]) -> str:
    """Return in words which episodes are pooled: their kinds, and what differs.

    Args:
        starts: The first event of each counted episode of an agent.
    Returns: Such as "24 episodes of 6 tasks; 2 drift magnitudes, 2 repeats".
    """
    kinds = Counter(_kind(start) for start in starts)
    words = f"{_number(len(starts), 'episode')} of "
    words += _number(len({task_of(start.pair) for start in starts}), "task")
    if set(kinds) != {"holdout"} and kinds:
        words += ": " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    varied: dict[str, set[object]] = {
        "suites": {start.instance.suite for start in starts},
        "drift magnitudes": {start.delta for start in starts},
        "help budgets": {(start.priced, start.interventions) for start in starts},
        "repeats": {start.repeat for start in starts},
        "ceilings on roles": {(start.role_cap, start.muted) for start in starts},
        "days": {start.day for start in starts},
    }
    differs = [f"{len(seen)} {noun}" for noun, seen in varied.items() if len(seen) > 1]
    return "; ".join((words, ", ".join(differs))) if differs else words


def _kind(start: EpisodeStart) -> str:
    if start.honeypot:
        return "of infeasible tasks"
    return start.condition or ("control" if start.control else start.phase)


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
