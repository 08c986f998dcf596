"""Maintenance closure: AAI_dyn under drift over AAI_dyn of drift-free days."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import NO_DAY, Floats, Observables
from owa_bench.records.protocol import Closures
from owa_bench.records.score import ClosureResult, ClosureStatus
from owa_bench.scoring.bootstrap import BootstrapEstimate, Sampling

NAME = "maintenance"


class Ratios(NamedTuple):
    """AAI_dyn over its drift-free baseline: the mean over days, and day by day."""

    mean: Floats
    days: Floats


def ratios(drifted: Floats, baseline: Floats) -> Ratios:
    """Return how much of the baseline is kept.

    Formula:
        ratio_d = AAI_dyn(d) / mean over baseline days; mean ratio = mean_d ratio_d
    Shapes: drifted (resamples, days), baseline (resamples, drift-free days), the
        same weights in each row; results (resamples,) and (resamples, days).
    Units: a share of the baseline, above 1 where drift did good.
    Missing: NaN where the baseline is 0.
    Errors: ScoringError if the resamples differ or a value lies outside [0, 1].
    Source: [S] section 3.4 of the AAI paper, [R] decision.

    >>> ratios(np.array([[0.38, 0.40]]), np.array([[0.40, 0.40]])).mean.round(6)
    array([0.975])
    """
    if drifted.ndim != 2 or baseline.ndim != 2 or len(drifted) != len(baseline):
        raise ScoringError(
            f"Days need equal resamples, got {drifted.shape}, {baseline.shape}."
        )
    for values in (drifted, baseline):
        known = values[~np.isnan(values)]
        if ((known < 0) | (known > 1)).any():
            raise ScoringError("AAI_dyn must lie in [0, 1].")
    base = baseline.mean(axis=1)
    safe = np.where(base > 0, base, np.nan)
    each = drifted / safe[:, None]
    return Ratios(each.mean(axis=1), each)


def decide(lower: float | None, uppers: Sequence[float | None], rho: float) -> bool:
    """Return whether maintenance holds.

    Formula:
        PASS iff lower bound of the mean ratio >= rho and no day's upper bound < rho
        (one-sided 95 percent bounds)
    Shapes: a scalar and one per day. Units: shares of the baseline.
    Missing: none: ScoringError. Errors: ScoringError without a bound.
    Source: [R] docs/scoring.md#closures.

    >>> decide(0.96, [1.0, 0.97], 0.95), decide(0.96, [1.0, 0.90], 0.95)
    (True, False)
    """
    if lower is None or any(upper is None for upper in uppers):
        raise ScoringError("Maintenance needs a bound for the mean and for every day.")
    return lower >= rho and all(upper >= rho for upper in uppers if upper is not None)


class CheckpointDays(NamedTuple):
    """Drift-free days, and the longest run of consecutive days under drift."""

    free: tuple[int, ...]
    drifted: tuple[int, ...]


def checkpoint_days(table: Observables) -> CheckpointDays:
    """Return the drift-free checkpoint days, and the consecutive ones under drift.

    A day's drift is what its practice, and its checkpoints without a magnitude of
    their own, were played under.
    """
    checkpoints = table.phase == "checkpoint"
    led = (table.phase == "practice") | (checkpoints & np.isnan(table.delta))
    free: list[int] = []
    drifted: list[int] = []
    for day in sorted(set(table.day[checkpoints & (table.day != NO_DAY)].tolist())):
        drift = table.realised[led & (table.day == day)]
        if not len(drift):
            continue
        (drifted if drift.max() > 0 else free).append(int(day))
    return CheckpointDays(tuple(free), _longest_run(drifted))


def _longest_run(days: list[int]) -> tuple[int, ...]:
    """Return the longest run of consecutive days, the last of equal ones."""
    best: list[int] = []
    run: list[int] = []
    for day in days:
        run = [*run, day] if run and day == run[-1] + 1 else [day]
        best = run if len(run) >= len(best) else best
    return tuple(best)


class Day(NamedTuple):
    """AAI_dyn of one day: point estimate, resamples, scheme and resampled units."""

    point: float
    draws: Floats
    sampling: Sampling
    units: tuple[str, ...]


def maintenance(
    table: Observables,
    missing: tuple[str, ...],
    rules: Closures,
    gate_level: float,
    of_day: Callable[[int], Day | None],
) -> ClosureResult:
    """Return PASS, FAIL, or NOT TESTED with the reason.

    Args:
        table: Counted episodes of one agent.
        missing: Axes for lack of which AAI_dyn is not computable.
        rules: Constants of the closures.
        gate_level: Level of one-sided bounds.
        of_day: AAI_dyn of a checkpoint day; its resamples have the same weights as
            those of every other day on the same instances.

    Returns:
        The record of the closure.
    """
    window = checkpoint_days(table)
    lacks = _lacks(window, missing, rules)
    if lacks:
        return _not_passed("NOT TESTED", lacks)
    patched = table.patched[np.isin(table.day, window.drifted)]
    if patched.sum():
        return _not_passed("FAIL", f"{int(patched.sum())} human patches in the window")
    every_day = [of_day(day) for day in (*window.free, *window.drifted)]
    days = [day for day in every_day if day is not None]
    if len(days) < len(every_day):
        return _not_passed("NOT TESTED", "AAI_dyn is not computable on every day")
    if len({day.units for day in days}) > 1:
        return _not_passed(
            "NOT TESTED", "the days were not played on the same instances"
        )
    return _decided(days, window, table, rules, gate_level)


def _decided(
    days: list[Day],
    window: CheckpointDays,
    table: Observables,
    rules: Closures,
    level: float,
) -> ClosureResult:
    """Return the closure over days that can be compared."""
    free = len(window.free)
    draws = np.stack([np.concatenate(([d.point], d.draws)) for d in days], axis=1)
    found = ratios(draws[:, free:], draws[:, :free])
    how = days[0].sampling
    whole = BootstrapEstimate(float(found.mean[0]), found.mean[1:], how, bounded=False)
    lower = whole.lower(level)
    uppers = [
        BootstrapEstimate(float(day[0]), day[1:], how, bounded=False).upper(level)
        for day in found.days.T
    ]
    if lower is None or None in uppers:
        return _not_passed("NOT TESTED", "the ratio to the baseline has no interval")
    status: ClosureStatus = "PASS" if decide(lower, uppers, rules.rho) else "FAIL"
    worst = min(upper for upper in uppers if upper is not None)
    words = (
        f"mean ratio {whole.point:.3f}, lower bound {lower:.3f}, worst day's upper "
        f"bound {worst:.3f}, against {rules.rho:g} on {len(uppers)} days"
    )
    rows = np.isin(table.day, window.drifted) & (table.phase == "checkpoint")
    names = table.attempt[rows].tolist()
    seen, days_kept = (f"{names[0]} to {names[-1]}",), len(window.drifted)
    return ClosureResult(
        name=NAME, status=status, reason=words, evidence=seen, days=days_kept
    )


def _lacks(window: CheckpointDays, missing: tuple[str, ...], rules: Closures) -> str:
    lacks = []
    if missing:
        lacks.append(f"AAI_dyn is not computable: no evidence on {', '.join(missing)}")
    if len(window.drifted) < rules.days:
        count = len(window.drifted)
        lacks.append(f"{count} consecutive checkpoint days under drift of {rules.days}")
    if len(window.free) < rules.days:
        lacks.append(f"{len(window.free)} drift-free checkpoint days of {rules.days}")
    return "; ".join(lacks)


def _not_passed(status: ClosureStatus, reason: str) -> ClosureResult:
    return ClosureResult(name=NAME, status=status, reason=reason)
