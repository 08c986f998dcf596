"""Expansion closure: the gain of the tool families that a revision installed.

A tool family is a folder below `families/` in the agent's memory folder that the harness saw come
or change. It takes it away for the ablated set; all sets are its own. Families that an agent
shipped with and unlocks come in the placebo lane too, so the gain must be one over that lane.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats, Observables
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import ClosureResult
from owa_bench.scoring.observe.attempt_sets import PLACEBO, REVISION, RevisionSets, morning_digest
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.statistics.distributions import normal_share, t_quantile, t_tail
from owa_bench.scoring.statistics.jackknife import standard_error
from owa_bench.scoring.statistics.slopes import end_level, mean_level
from owa_bench.scoring.statistics.task_means import without_each_task

NAME = "expansion"
_SMALL = 1e-12


class Capabilities(NamedTuple):
    """Quality of each task that needs the family, under the six conditions."""

    before: Floats
    after: Floats
    control_before: Floats
    control_after: Floats
    ablated: Floats
    placebo: Floats


class Expansion(NamedTuple):
    """Paired test of one family; `p` one-sided, before Holm, of both gains."""

    gain: float
    over_placebo: float
    gain_error: float
    gain_low: float
    p: float
    lost_low: float
    fallen_low: float
    equivalence_p: float
    equivalence_power: float
    tasks: int

    @property
    def ablated(self) -> bool:
        """Whether the ablation takes the gain away, and not more than the gain."""
        return self.lost_low > 0 >= self.fallen_low


def _check(conditions: Capabilities) -> None:
    shapes = {part.shape for part in conditions}
    if len(shapes) != 1 or conditions.before.ndim != 1 or len(conditions.before) < 2:
        raise ScoringError(f"Expansion needs six arrays of 2 tasks at least, got {sorted(shapes)}.")
    for part in conditions:
        if np.isnan(part).any() or ((part < 0) | (part > 1)).any():
            raise ScoringError("Capabilities must be numbers in [0, 1].")


def expansion_test(found: Capabilities, protocol: Protocol) -> Expansion:
    """Return the paired test of one tool family.

    Formula:
        gain = mean((after - before) - (control after - control before)), paired
        over_placebo = mean(after - placebo), what the agent brings where its practice
        had nothing to do with the tasks
        error s / sqrt(tasks), t with tasks - 1 degrees of freedom; p the larger of both
        lost = (after - ablated) - 0.5 (after - before): lower bound > 0
        fallen = (after - gain - ablated) - 0.5 gain: lower bound not > 0, else the
        ablation disabled something beside the family; after - gain is what before
        would be in the later world
        beside: |ablated - before| < half the gain (TOST) and its power
    Shapes: six arrays (tasks,). Units: capability.
    Missing: none. Errors: ScoringError if shapes differ, a value is NaN or outside
        [0, 1], or there are fewer than two tasks.
    Source: [S] section 3.4 of the AAI paper; the test [R].
    """
    _check(found)
    rules, gain_lost = protocol.statistics, protocol.closures.gain_lost
    gains = (found.after - found.before) - (found.control_after - found.control_before)
    lost = (found.after - found.ablated) - gain_lost * (found.after - found.before)
    left = found.ablated - found.before
    fallen = found.after - found.ablated - (1 + gain_lost) * gains
    learned = found.after - found.placebo
    table, free = np.stack([gains, lost, left, learned, fallen], axis=1), len(gains) - 1
    means = table.mean(axis=0)
    errors = np.maximum(table.std(axis=0, ddof=1) / math.sqrt(len(gains)), _SMALL)
    reach = t_quantile((1 + rules.level) / 2, free)
    once = t_quantile(rules.gate_level, free)
    half = means[0] / 2
    p_left = max(
        float(t_tail((half - means[2]) / errors[2], free)),
        float(t_tail((half + means[2]) / errors[2], free)),
    )
    power = 2 * normal_share(half / errors[2] - once) - 1
    return Expansion(
        gain=float(means[0]),
        over_placebo=float(means[3]),
        gain_error=float(errors[0]),
        gain_low=float(means[0] - reach * errors[0]),
        p=float(t_tail((means / errors)[[0, 3]], free).max()),
        lost_low=float(means[1] - once * errors[1]),
        fallen_low=float(means[4] - once * errors[4]),
        equivalence_p=p_left,
        equivalence_power=max(0.0, power),
        tasks=len(gains),
    )


def holm(values: Sequence[float], alpha: float) -> tuple[bool, ...]:
    """Return which hypotheses Holm's procedure rejects.

    Args:
        values: A p-value per hypothesis.
        alpha: Family-wise level.

    >>> holm([0.001, 0.04, 0.03], 0.05)
    (True, False, False)
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    rejected = [False] * len(values)
    for rank, place in enumerate(order):
        if values[place] > alpha / (len(values) - rank):
            break
        rejected[place] = True
    return tuple(rejected)


def expansion(
    sets: Sequence[RevisionSets], table: Observables, protocol: Protocol
) -> ClosureResult:
    """Return PASS if the families that a revision installed expand, else why not.

    Args:
        sets: The attempt sets of the agent's revisions.
        table: Counted episodes of the agent.
        protocol: Published numbers.
    Returns: The record of the closure.
    """
    installed = [revision for revision in sets if revision.installed and not revision.fault]
    if not installed:
        faults = "; ".join(revision.fault for revision in sets if revision.fault)
        why = faults or "no tool family was installed in a revision that was tested"
        return ClosureResult(name=NAME, status="NOT TESTED", reason=why)
    if any(revision.tasks < 2 for revision in installed):
        why = "the five sets are not of the same 2 tasks or more"
        return ClosureResult(name=NAME, status="NOT TESTED", reason=why)
    if any(PLACEBO not in revision.q for revision in installed):
        why = "no placebo lane was played: learned and unlocked cannot be told apart"
        return ClosureResult(name=NAME, status="NO EVIDENCE", reason=why)
    tests = [expansion_test(_capabilities(revision), protocol) for revision in installed]
    # A revision that installed nothing was planned too: it counts with p = 1.
    planned = [test.p for test in tests] + [1.0] * (len(sets) - len(tests))
    real = holm(planned, (1 - protocol.statistics.level) / 2)[: len(tests)]
    words, days = [], []
    for revision, test, significant in zip(installed, tests, real, strict=True):
        expands = significant and test.ablated
        verb = "expands" if expands else "does not expand"
        words.append(f"{', '.join(revision.installed)} {verb}: {_words(test)}")
        if expands:
            kept = sustained(revision, table, test, protocol)
            words.append(kept.words)
            days.append(kept.days)
    return ClosureResult(
        name=NAME,
        status="PASS" if days else "FAIL",
        reason="; ".join(words),
        evidence=tuple(
            f"{name}: {revision.attempts[name][0]} to {revision.attempts[name][-1]}"
            for revision in installed
            for name in (*REVISION, PLACEBO)
        ),
        days=max(days, default=0),
    )


def _capabilities(sets: RevisionSets) -> Capabilities:
    """Return the six conditions; under one law the controls enter no gain."""
    parts = {name: sets.q[name] for name in (*REVISION, PLACEBO)}
    if sets.one_law:
        parts["control_after"] = parts["control_before"]
    return Capabilities(**parts)


class KeptGain(NamedTuple):
    """What is left beyond half of a gain, with lower bounds; one per series."""

    mean: Floats
    lower: Floats
    last: Floats
    lasts: Flags


def kept_gain(
    gaps: Floats,
    days: Floats,
    gain: float | Floats,
    gain_error: float | Floats,
    protocol: Protocol,
    *,
    task_error: float | Floats = 0.0,
) -> KeptGain:
    """Return whether what a family adds day by day lasts.

    Formula:
        x_d = gap_d - .5 gain_0; lasts iff the one-sided lower bound of mean_d x_d > 0
        (`slopes.mean_level`), and that of the line through x on the last day, plus
        .25 gain_0, > 0. Either bound holds its share of gain_0's error, which is at
        least the spread of gap_d: gain_0 is the gap of one day, with a shock of its own;
        and the error over tasks of mean_d gap_d, since every day plays the same tasks
    Shapes: `gaps` (.., days), after minus ablated; `days` (days,), rising; `gain`,
        `gain_error` and `task_error` scalars or (..); result (..).
    Units: capability. Missing: none.
    Errors: ScoringError as `slopes.end_level`. Source: docs/scoring.md#closures.
    """
    rules, level = protocol.closures, protocol.statistics.gate_level
    once, error = np.asarray(gain), np.maximum(gain_error, gaps.std(axis=-1, ddof=1))
    least = rules.gain_lost - rules.sustained_loss  # of gain_0, on the last day
    mean = mean_level(gaps - (rules.gain_lost * once)[..., None], days)
    end = end_level(gaps - (least * once)[..., None], days)
    lower = mean.with_error(np.hypot(rules.gain_lost * error, task_error)).lower(level)
    last = end.with_error(np.hypot(least * error, task_error)).lower(level)
    return KeptGain(mean.value, lower, last, (lower > 0) & (last > 0))


class SustainedGain(NamedTuple):
    """On how many days a gain was shown to last, and the test in words."""

    days: int
    words: str


def sustained(
    found: RevisionSets, table: Observables, test: Expansion, protocol: Protocol
) -> SustainedGain:
    """Return whether a gain lasted over the days after its adoption.

    Formula: `kept_gain` of the means over tasks of (after - ablated)_d.
    Shapes: a table of episodes; a count of days. Units: capability.
    Missing: 0 days below the protocol's number.
    Errors: none. Source: docs/scoring.md#closures.
    """
    gaps = _daily_gaps(found, table)
    if len(gaps) < protocol.closures.sustained_days:
        return SustainedGain(0, f"played again on {len(gaps)} later days")
    days = np.array(sorted(gaps), dtype=np.float64)
    values = np.array([gaps[day].mean for day in sorted(gaps)])
    error = _error_over_tasks([gaps[day] for day in sorted(gaps)])
    left = kept_gain(values, days, test.gain, test.gain_error, protocol, task_error=error)
    words = (
        f"over {len(days)} days the gain beyond half is {figure(float(left.mean))} "
        f"(lower bound {left.lower:.3f}), on the last day beyond "
        f"{protocol.closures.gain_lost - protocol.closures.sustained_loss:g} of it at "
        f"least {left.last:.3f}"
    )
    return SustainedGain(len(days) if left.lasts else 0, words)


class _DayGap(NamedTuple):
    """After minus ablated on one day, and the episodes of both in order of tasks."""

    after: Observables
    ablated: Observables

    @property
    def mean(self) -> float:
        return float(self.after.q.mean() - self.ablated.q.mean())


def _daily_gaps(sets: RevisionSets, table: Observables) -> dict[int, _DayGap]:
    """Return after and ablated of each later day that began with its own memory."""
    practice = table.take(table.phase == "practice")
    since = morning_digest(practice, sets.window[0])
    own = (table.since == sets.window[0]) & (table.day > sets.window[1])
    gaps = {}
    for day in np.unique(table.day[own]).tolist():
        today = own & (table.day == day)
        after = table.take(today & (table.condition == "after"))
        ablated = table.take(today & (table.condition == "ablated"))
        morning, changes = morning_digest(practice, day), ablated.changes
        honest = (after.memory == morning).all() and len(changes.row) == len(ablated)
        honest = honest and (changes.after == morning).all()
        honest = honest and (changes.before == since).all()
        if honest and len(after) and sorted(after.pair) == sorted(ablated.pair):
            gaps[int(day)] = _DayGap(after, ablated)
    return gaps


def _error_over_tasks(gaps: Sequence[_DayGap]) -> float:
    """Return the error over tasks of the gap over all days, NaN for one task."""
    left = [
        without_each_task(
            np.concatenate([part.q for part in parts]), np.concatenate([p.pair for p in parts])
        )
        for parts in zip(*gaps, strict=True)
    ]
    without = left[0] - left[1]
    return standard_error(without, np.zeros(len(without), dtype=np.int64))


def _words(test: Expansion) -> str:
    return (
        f"gain {test.gain:.3f} (lower bound {test.gain_low:.3f}) on "
        f"{test.tasks} tasks, over the placebo {test.over_placebo:.3f}, "
        f"p of both {test.p:.4f}, "
        f"lower bound of what ablation removes beyond half {test.lost_low:.3f}, "
        f"of what it removes below before, less half, {test.fallen_low:.3f}; "
        f"ablated equals before within half the gain p = {test.equivalence_p:.3f}, "
        f"power {test.equivalence_power:.2f}"
    )
