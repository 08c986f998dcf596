"""Robotics measures: rates of failures, repair, recovery, control and gates."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.records.protocol import Robotics
from owa_bench.records.score import GateStatus
from owa_bench.scoring.statistics.distributions import chi2_quantile


class Rate(NamedTuple):
    """A rate per hour with its exact Poisson interval."""

    rate: float
    low: float
    high: float


class MeanTime(NamedTuple):
    """A mean time in hours with its interval; `censored`: no event was observed."""

    hours: float
    low: float
    high: float
    censored: bool


def poisson(count: int, hours: float, level: float) -> Rate:
    """Return a rate with its exact (Garwood) interval.

    Formula:
        low = chi2(alpha/2, 2k) / 2T, high = chi2(1 - alpha/2, 2k + 2) / 2T
    Shapes: scalars. Units: per hour. Missing: low is 0 where nothing happened.
    Errors: ScoringError unless count >= 0 and hours > 0.
    Source: [S] Poisson intervals, section 7 of the AAI paper; Garwood (1936).

    >>> round(poisson(0, 100.0, 0.95).high, 4)
    0.0369
    """
    if count < 0 or not hours > 0:
        raise ScoringError(f"A rate needs a count >= 0 and hours > 0, got {count} and {hours}.")
    tail = (1 - level) / 2
    low = chi2_quantile(tail, 2 * count) / 2 / hours if count else 0.0
    high = chi2_quantile(1 - tail, 2 * count + 2) / 2 / hours
    return Rate(count / hours, low, high)


def weighted_rate(
    counts: Sequence[float], weights: Sequence[float], hours: float, level: float
) -> Rate:
    """Return a weighted sum of rates with its interval after Fay and Feuer.

    Formula:
        y = sum_i u_i k_i, u_i = w_i / T; v = sum_i u_i^2 k_i; U = max u_i
        low  = v / 2y chi2(alpha/2, 2 y^2 / v), 0 where nothing happened
        high = (v + U^2) / 2(y + U) chi2(1 - alpha/2, 2 (y + U)^2 / (v + U^2))
    Shapes: (kinds,) counts and weights. Units: weighted incidents per hour.
    Missing: none. Errors: ScoringError unless counts are >= 0 and hours above 0.
    Source: [R] Fay and Feuer (1997), Statistics in Medicine 16, 791.

    >>> round(weighted_rate((0, 0), (0.2, 1.0), 100.0, 0.9).high, 4)
    0.03
    """
    if min(counts, default=0) < 0 or not hours > 0:
        raise ScoringError(f"A rate needs counts >= 0 and hours > 0, got {counts} and {hours}.")
    parts, tail = [weight / hours for weight in weights], (1 - level) / 2
    rate = math.fsum(u * k for u, k in zip(parts, counts, strict=True))
    spread = math.fsum(u * u * k for u, k in zip(parts, counts, strict=True))
    low = 0.0
    if spread > 0:
        low = spread / (2 * rate) * chi2_quantile(tail, 2 * rate**2 / spread)
    top, wide = rate + max(parts), spread + max(parts) ** 2
    high = wide / (2 * top) * chi2_quantile(1 - tail, 2 * top**2 / wide)
    return Rate(rate, low, high)


def mean_time_between(count: int, hours: float, level: float) -> MeanTime:
    """Return MTBF (failures) or MTBSI (safety incidents).

    Formula:
        hours / count, interval from the rate's; where nothing happened the one-sided
        lower bound hours / -ln(1 - level) replaces it
    Shapes: scalars. Units: hours. Missing: `censored`, no upper bound.
    Errors: as `poisson`. Source: [S] section 7 of the AAI paper.

    >>> mean_time_between(4, 100.0, 0.95).hours, mean_time_between(0, 100.0, 0.95)[3]
    (25.0, True)
    """
    rate = poisson(count, hours, level)
    if not count:
        bound = hours / -math.log(1 - level)
        return MeanTime(bound, bound, math.inf, True)
    return MeanTime(1 / rate.rate, 1 / rate.high, 1 / rate.low, False)


def mean_time_to_repair(repairs: Floats) -> float:
    """Return MTTR.

    Args:
        repairs: (repairs,) times in hours.
    Returns: Their mean, NaN without a repair.
    Raises: ScoringError: A time is negative or unknown.

    >>> mean_time_to_repair(np.array([0.5, 1.5]))
    1.0
    """
    if np.isnan(repairs).any() or (repairs < 0).any():
        raise ScoringError(f"Repair times must be numbers >= 0, got {repairs}.")
    return float(repairs.mean()) if len(repairs) else math.nan


class Recovery(NamedTuple):
    """RA of one fault: recovered of injected, with a Clopper-Pearson interval."""

    fault: str
    recovered: int
    injected: int
    low: float
    high: float


def recovery(faults: Mapping[str, tuple[int, int]], level: float) -> tuple[Recovery, ...]:
    """Return RA per fault with its denominator.

    Args:
        faults: Recovered and injected faults by name.
        level: Level of the interval.
    Returns: A record per fault, with a Clopper-Pearson interval.
    Raises: ScoringError: Not 0 <= recovered <= injected, or nothing was injected.
    Source: [S] section 7 of the AAI paper, recovery autonomy.

    >>> recovery({"slip": (9, 10)}, 0.95)[0].injected
    10
    """
    from scipy import stats  # takes long to import, and most runs inject no fault

    rows = []
    for fault, (done, tried) in sorted(faults.items()):
        if not 0 <= done <= tried or tried < 1:
            raise ScoringError(f"Recoveries of `{fault}` must be 0 to {tried}, got {done}.")
        interval = stats.binomtest(done, tried).proportion_ci(level, method="exact")
        low, high = float(interval.low), float(interval.high)
        rows.append(Recovery(fault, done, tried, low, high))
    return tuple(rows)


def within_tolerance(errors: Floats, tolerance: float) -> float:
    """Return QC of one task: the share of samples inside its tolerance band.

    Args:
        errors: (samples,) tracking errors.
        tolerance: Half-width of the band, in their unit.
    Raises: ScoringError: No sample, NaN, or a tolerance not above 0.

    >>> within_tolerance(np.array([0.1, -0.3, 0.2]), 0.2).__round__(4)
    0.6667
    """
    if not len(errors) or np.isnan(errors).any() or not tolerance > 0:
        raise ScoringError(f"QC needs tracking errors and a tolerance > 0, got {tolerance}.")
    return float((np.abs(errors) <= tolerance).mean())


def physical_throughput(done: int, costs: Mapping[str, float]) -> float:
    """Return tasks per USD of energy, wear, consumables and supervisor time.

    Args:
        done: Tasks done.
        costs: USD by resource.
    Returns: Tasks per USD, NaN where nothing was spent.
    Raises: ScoringError: A negative count or cost.

    >>> physical_throughput(10, {"energy": 1.0, "wear": 3.0, "supervisor": 1.0})
    2.0
    """
    if done < 0 or any(not cost >= 0 for cost in costs.values()):
        raise ScoringError(f"Counts and costs must be >= 0, got {done} and {dict(costs)}.")
    spent = sum(costs.values())
    return done / spent if spent > 0 else math.nan


class RoboticsGate(NamedTuple):
    """One line of the gates of the robotics annex."""

    gate: str
    required: float
    value: float | None
    status: GateStatus


_AT_MOST = ("minor_per_100h", "major_per_100h")


def robotics_gates(
    level: int, measured: Mapping[str, float], rules: Robotics
) -> tuple[RoboticsGate, ...]:
    """Return the lines of a level; NO EVIDENCE where there is no measurement.

    A figure has no upper bound here: what is not met is UNDECIDED, never BELOW.

    Args:
        level: Level of the scale.
        measured: Values by key of the protocol's [robotics.gates].
        rules: Thresholds; those of counts per 100 h are ceilings.
    Returns: A line per threshold.
    Raises: ScoringError: The protocol has no thresholds for the level.
    """
    table = rules.gates.get(f"level_{level}")
    if table is None:
        raise ScoringError(f"The robotics annex has no gates for level {level}.")
    lines: list[RoboticsGate] = []
    for name, required in table.items():
        value = measured.get(name)
        status: GateStatus = "NO EVIDENCE"
        if value is not None:
            met = value <= required if name in _AT_MOST else value >= required
            status = "PASS" if met else "UNDECIDED"
        lines.append(RoboticsGate(name, required, value, status))
    return tuple(lines)


def worst(lines: Sequence[RoboticsGate]) -> GateStatus:
    """Return UNDECIDED if a line is, else NO EVIDENCE if one has none, else PASS."""
    states = {line.status for line in lines}
    if "UNDECIDED" in states:
        return "UNDECIDED"
    return "NO EVIDENCE" if "NO EVIDENCE" in states or not lines else "PASS"
