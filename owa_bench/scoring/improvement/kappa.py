"""Self-improvement coefficient kappa: capability gained per resource spent.

Source: the AAI paper, sections 3.3 and 3.7; `docs/scoring.md#kappa`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats
from owa_bench.records.protocol import Improvement, Protocol
from owa_bench.records.score import Interval, KappaScore
from owa_bench.scoring.improvement.checkpoints import CheckpointSeries
from owa_bench.scoring.improvement.curvature import on_link
from owa_bench.scoring.improvement.gain import total_gain
from owa_bench.scoring.statistics.bootstrap import block_bootstrap, figure, rounded
from owa_bench.scoring.statistics.distributions import t_quantile
from owa_bench.scoring.statistics.slopes import METHOD, LagMixture, slope

_SMALL = 1e-12
_LEAST = 4.0  # degrees of freedom: with fewer r1 is noise, and power goes for nothing


class Slope(NamedTuple):
    """A Theil-Sen slope with Sen's interval; infinite bounds say nothing."""

    value: float
    low: float
    high: float


def inversions(size: int) -> Floats:
    """Return the law of the number of inversions of a random order of `size` values.

    >>> inversions(3)
    array([0.16666667, 0.33333333, 0.33333333, 0.16666667])
    """
    law = np.ones(1)
    for k in range(2, size + 1):
        law = np.convolve(law, np.full(k, 1 / k))
    return law


def theil_sen(x: Floats, y: Floats, level: float) -> Slope:
    """Return the median slope with Sen's exact (Kendall) interval.

    Formula:
        slope = median of (y_j - y_i) / (x_j - x_i) over i < j
        interval = the M-th smallest and M-th largest slope, P(inversions <= M - 1)
        = (1 - level) / 2 under random order, interpolated between whole M; then both
        arms times `widening` of the residuals
    Shapes: two arrays (points,), x rising. Units: y per x.
    Missing: bounds are infinite where no whole M exists (fewer than 4 points).
    Errors: ScoringError unless x rises, both are finite and there are 2 points.
    Source: [R] `docs/scoring.md#kappa`; Sen (1968).

    >>> theil_sen(np.arange(5.0), 2.0 * np.arange(5.0), 0.95).value
    2.0
    """
    if x.shape != y.shape or x.ndim != 1 or len(x) < 2 or (np.diff(x) <= 0).any():
        raise ScoringError(f"A slope needs two rising points at least, got {x} and {y}.")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ScoringError("A slope cannot read NaN or infinity.")
    first, second = np.triu_indices(len(x), k=1)
    slopes = np.sort((y[second] - y[first]) / (x[second] - x[first]))
    value, tail = float(np.median(slopes)), (1 - level) / 2
    law = np.cumsum(inversions(len(x)))
    rank = int((law <= tail + _SMALL).sum())
    if not rank:
        return Slope(value, -math.inf, math.inf)
    part = (tail - law[rank - 1]) / (law[rank] - law[rank - 1])
    place = rank - 1 + max(0.0, float(part))
    order, wider = np.arange(len(slopes)), widening(y - value * x, level)
    low = float(np.interp(place, order, slopes))
    high = float(np.interp(len(slopes) - 1 - place, order, slopes))
    return Slope(value, value - wider * (value - low), value + wider * (high - value))


def widening(residuals: Floats, level: float) -> float:
    """Return by what an interval widens when neighbouring residuals are alike.

    Formula:
        sqrt((1 + r1) / (1 - r1)) t(m - 2) / t(n - 2), m = n (1 - r1) / (1 + r1),
        m - 2 at least 4, r1 = max(0, (n lag + 2) / (n - 4)), lag the residuals' own
        autocorrelation
    Shapes: `residuals` (points,) about a line. Units: a factor >= 1.
    Missing: 1 for residuals of 0 or not autocorrelated.
    Errors: none. Source: [R] `docs/scoring.md#kappa`; the bias about a fitted
        line is -(2 + 4 r1) / n to first order (about a mean: Marriott and Pope
        1954); m is how many independent points n such are worth.

    >>> widening(np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), 0.95)
    1.0
    """
    centred = residuals - residuals.mean()
    power = float((centred**2).sum())
    if power <= _SMALL * max(float((residuals**2).sum()), 1.0):
        return 1.0
    size = len(residuals)
    lag = float((centred[1:] * centred[:-1]).sum()) / power
    corrected = (size * lag + 2) / (size - 4) if size > 4 else lag
    r1 = min(max(corrected, 0.0), 1 - 1 / size)
    alike = (1 + r1) / (1 - r1)
    full = max(size - 2.0, 1.0)
    left = max(size / alike - 2, min(_LEAST, full))
    side = (1 + level) / 2
    wider = t_quantile(side, left) / t_quantile(side, full)
    return math.sqrt(alike) * wider


class WindowPace(NamedTuple):
    """One window: mean slope per resource, spend rate, and their product over time."""

    kappa: float
    spend_rate: float
    time_slope: float


def differences(spent: Floats, values: Floats) -> Floats:
    """Return the slope between neighbouring checkpoints.

    Formula:
        (A_{j+1} - A_j) / (R_{j+1} - R_j)
    Shapes: two arrays (checkpoints,); result one shorter. Units: per kappa unit.
    Missing: NaN where nothing was spent in between: left out, not divided.
    Errors: ScoringError if shapes differ. Source: [S] section 3.3 of the AAI paper.

    >>> differences(np.array([0.0, 1.0, 1.0]), np.array([0.5, 0.6, 0.7])).round(6)
    array([0.1, nan])
    """
    if spent.shape != values.shape or spent.ndim != 1:
        raise ScoringError(f"Checkpoints differ: {spent.shape} and {values.shape}.")
    gap, rise = np.diff(spent), np.diff(values)
    return np.divide(rise, gap, out=np.full_like(rise, np.nan), where=gap > 0)


def window_pace(days: Floats, spent: Floats, values: Floats) -> WindowPace:
    """Return a window's mean slope, spend rate and time slope.

    Formula:
        kappa = dA / dR, rate = dR / dt, dA / dt = kappa dR/dt
    Shapes: three arrays (checkpoints,). Units: per kappa unit, units a day, per day.
    Missing: NaN where dR = 0 (undefined, the window is left out).
    Errors: ScoringError unless days rise and there are two.
    Source: [S] section 3.3 of the AAI paper.

    >>> window_pace(np.array([0.0, 2.0]), np.array([0.0, 4.0]), np.array([0.1, 0.3]))
    WindowPace(kappa=0.05, spend_rate=2.0, time_slope=0.1)
    """
    if len(days) < 2 or not days[-1] > days[0]:
        raise ScoringError(f"A window needs two rising days, got {days}.")
    rise, cost = float(values[-1] - values[0]), float(spent[-1] - spent[0])
    length = float(days[-1] - days[0])
    slope = round(rise / cost, 12) if cost > 0 else float("nan")
    return WindowPace(slope, cost / length, round(slope * cost / length, 12))


def per_resource(slope: float, bend: float, spend_rate: float) -> tuple[float, float]:
    """Return time-based slope and curvature converted to resources: A'/r and A''/r^2.

    Args:
        slope: capability a day.
        bend: its curvature, per day^2.
        spend_rate: kappa units a day.
    Returns: Slope per kappa unit and curvature per its square.
    Raises: ScoringError: the spend rate is not above 0.
    Source: [S] section 3.7 of the AAI paper, time-based alternative.

    >>> per_resource(0.1, 0.04, 2.0)
    (0.05, 0.01)
    """
    if not spend_rate > 0:
        raise ScoringError(f"The spend rate must be above 0, got {spend_rate}.")
    return slope / spend_rate, bend / spend_rate**2


_MICRO = 10**6  # micro-USD a USD
_LOST = 0.05  # share of resamples that may be undefined


def after_spending(spent: Floats) -> Flags:
    """Return which checkpoints follow new spending; the first does.

    Args:
        spent: (checkpoints,) cumulative kappa units.
    Returns: (checkpoints,) flags.
    """
    return np.concatenate((spent[:1] >= 0, np.diff(spent) > 0))


def kappa(
    family: str | None,
    points: CheckpointSeries,
    values: Floats,
    rules: Improvement,
    *,
    level: float,
    missing: str | None = None,
    root: str = "",
    frozen: CheckpointSeries | None = None,
) -> KappaScore:
    """Return the self-improvement slope of a family, or of the agent (family None).

    A family has its total gain over the frozen control too, which gates read.

    Formula:
        kappa = slope of C_k (AAI_dyn for the agent) on R in kappa units over the
        longest run of consecutive days that count, by the AR(1) mixture of `slopes`, of
        a family with the error over tasks in it; p one-sided, of "the slope is not
        above 0"
    Shapes: `values` (checkpoints,), as the series. Units: per kappa unit.
    Missing: below the protocol's number of days 'too few days'.
    Errors: none of its own. Source: [S] section 3.7 of the AAI paper.
    """
    place = list(points.counted)
    reason = missing or _missing_reason(points, values[place], rules)
    score = KappaScore(
        family=family,
        slope=None,
        interval=Interval(low=None, high=None, method=METHOD, reason=reason),
        checkpoints=len(place),
        reason=reason,
        points=() if missing or points.reason else _points(points.spent, values),
        human=points.human,
    )
    if reason is not None:
        return score
    spent, capability = points.spent[place], values[place]
    days = np.array(points.days, dtype=np.float64)[place]
    cells = None if family is None else points.cells[family].without_each
    left = None if cells is None else cells[:, place]
    fitted, g = _slope_of(spent, capability, days, left), None
    on_logit = on_link(capability, "logit", rules.link_clip)
    on_left = None if left is None else on_link(left, "logit", rules.link_clip)
    if not np.isnan(on_logit).any():  # NaN where a capability is 0
        g = _slope_of(spent, on_logit, days, on_left)
    return structs.replace(
        score,
        slope=figure(float(fitted.value)),
        interval=_interval(fitted, level),
        p=rounded(float(fitted.p_above())),
        logit=None if g is None else figure(float(g.value)),
        logit_interval=None if g is None else _interval(g, level),
        logit_p=None if g is None else rounded(float(g.p_above())),
        floor=None if family is None else figure(points.floor.get(family, math.nan)),
        gain=None if family is None else total_gain(family, points, frozen, rules),
        details=_details(points, values, float(fitted.value), level, root),
    )


def _slope_of(spent: Floats, values: Floats, days: Floats, left: Floats | None) -> LagMixture:
    """Return the slope of `values`, with the error over tasks where `left` is known.

    Args:
        spent: (days,) kappa units.
        values: (days,) capabilities.
        days: (days,).
        left: (tasks, days) capabilities without each task.
    """
    found = slope(spent, values, days)
    if left is None or np.isnan(left).any():
        return found
    steps, count = slope(spent, left, days).estimates, len(left)
    gaps = steps - steps.mean(axis=1, keepdims=True)
    error = np.sqrt((count - 1) / count * (gaps**2).sum(axis=1))
    return found.with_error(error, count - 1)


def _interval(fitted: LagMixture, level: float) -> Interval:
    low, high = fitted.interval(level)
    return Interval(low=figure(float(low)), high=figure(float(high)), method=METHOD)


def _details(
    points: CheckpointSeries, values: Floats, value: float, level: float, root: str
) -> dict[str, Any]:
    """Return the figures printed beside kappa."""
    place = list(points.counted)
    days = np.array(points.days, dtype=np.float64)[place]
    spent, values = points.spent[place], values[place]
    window = window_pace(days, spent, values)
    low, high = block_interval(spent, values, level, root)
    return {
        "days": [points.days[place[0]], points.days[place[-1]]],
        "kappa unit, USD": figure(points.unit / _MICRO),
        "per USD": figure(value / points.unit * _MICRO),
        "kappa_total, agent and human": figure(
            float(slope(points.total[place], values, days).value)
        ),
        "Theil-Sen": figure(theil_sen(spent, values, level).value),
        "spend rate a day": figure(window.spend_rate),
        "pace, kappa times spend rate": figure(value * window.spend_rate),
        "window mean": figure(window.kappa),
        "finite differences": [figure(x) for x in differences(spent, values).tolist()],
        "interval by bootstrap over checkpoints": [figure(low), figure(high)],
    }


def block_interval(
    spent: Floats, values: Floats, level: float, root: str, resamples: int = 1000
) -> tuple[float, float]:
    """Return the AAI paper's own interval: Theil-Sen over resampled checkpoints.

    Printed beside; gates read Sen's.

    Args:
        spent: (checkpoints,) kappa units.
        values: (checkpoints,) capabilities.
        level: two-sided level.
        root: seed of the resamples.
        resamples: their number.
    Returns: Both bounds, NaN where too many resamples hold one level of R.
    """
    rows = block_bootstrap(len(spent), resamples, root, "kappa")
    first, second = np.triu_indices(len(spent), k=1)
    x, y = spent[rows], values[rows]
    gap, rise = x[:, second] - x[:, first], y[:, second] - y[:, first]
    slopes = np.divide(rise, gap, out=np.full_like(rise, np.nan), where=gap != 0)
    known = slopes[(~np.isnan(slopes)).any(axis=1)]
    if len(known) < (1 - _LOST) * resamples:
        return math.nan, math.nan
    ends = np.quantile(np.nanmedian(known, axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(ends[0]), float(ends[1])


def _missing_reason(points: CheckpointSeries, values: Floats, rules: Improvement) -> str | None:
    """Return why a series has no slope; `values` are those of the days that count."""
    if points.reason is not None:
        return points.reason
    if len(values) < rules.checkpoints_min:
        return (
            f"too few days: {len(values)} consecutive with {rules.practice_min} "
            f"practice episodes and new spending, of {rules.checkpoints_min}"
        )
    if np.isnan(values).any():
        return "a checkpoint holds no counted episode"
    return None


def _points(spent: Floats, values: Floats) -> tuple[tuple[float, float], ...]:
    pairs = zip(spent.tolist(), values.tolist(), strict=True)
    return tuple((rounded(x), rounded(y)) for x, y in pairs if not math.isnan(y))


def kappas(
    points: CheckpointSeries,
    dynamic: Floats,
    protocol: Protocol,
    missing: tuple[str, ...],
    root: str,
    frozen: CheckpointSeries | None = None,
) -> tuple[KappaScore, ...]:
    """Return the agent's kappa, then each family's.

    Args:
        points: the checkpoints.
        dynamic: (checkpoints,) AAI_dyn, which the agent's kappa reads.
        protocol: the protocol with its rules.
        missing: axes without evidence in the run, named where AAI_dyn lacks a day; a run may lack
            an axis that each checkpoint has, as that of a frozen control lacks what is played once.
        root: seed of the resamples.
        frozen: the checkpoints of the frozen control.
    Returns: Nothing without checkpoints.
    """
    if points.reason and not points.days:
        return ()
    reason = None
    if np.isnan(dynamic).any():
        reason = "not computable: AAI_dyn is not measured at each checkpoint"
        if missing:
            reason = f"not computable: no evidence on {', '.join(missing)}"
    elif not (dynamic > 0).all():
        reason = "not computable: an axis stands at 0 at a checkpoint"
    rules, level = protocol.improvement, protocol.statistics.level
    settings: dict[str, Any] = {"rules": rules, "level": level, "root": root}
    agent = kappa(None, points, dynamic, missing=reason, **settings)
    settings["frozen"] = frozen
    families = points.quality.items()
    return (agent, *(kappa(name, points, v, **settings) for name, v in families))
