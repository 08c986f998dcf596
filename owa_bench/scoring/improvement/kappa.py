"""kappa: how much capability an agent gains per resource it spends by itself."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from owa_bench.records.observables import NO_DAY, Flags, Floats, Observables
from owa_bench.records.protocol import Improvement
from owa_bench.records.score import Interval, KappaScore
from owa_bench.scoring.bootstrap import block_bootstrap, figure, rounded
from owa_bench.scoring.improvement.links import on_link
from owa_bench.scoring.improvement.pace import differences, window_pace
from owa_bench.scoring.improvement.slope import METHOD, Slope, theil_sen

_MICRO = 10**6  # micro-USD a USD
_LOST = 0.05  # share of resamples that may be undefined


class Series(NamedTuple):
    """Checkpoints of one agent in order of days.

    `spent` is cumulative agent-initiated cost in kappa units, `quality` maps a family
    to its mean quality at each checkpoint. `total` is agent and human cost in kappa
    units, `floor` a family's lower bound at the last checkpoint.
    """

    days: tuple[int, ...]
    spent: Floats
    unit: float
    quality: Mapping[str, Floats]
    reason: str | None = None
    total: Floats = np.zeros(0)
    floor: Mapping[str, float] = {}


def series(
    table: Observables, families: tuple[str, ...], gate_level: float = 0.95
) -> Series:
    """Return the checkpoints that a campaign's table holds.

    Only the agent stream counts; one kappa unit is the cheapest cost, help left out,
    at which the frozen snapshot was run once.
    """
    marks = table.phase == "checkpoint"
    days = sorted(set(table.day[marks & (table.day != NO_DAY)].tolist()))
    if not days:
        return Series((), np.zeros(0), 0.0, {}, "no checkpoints: not a campaign")
    quality = {family: _means(table, marks, days, family) for family in families}
    own = table.cost_agent + table.cost_evaluation - table.cost_checked_help
    passes = [float(own[marks & (table.day == day)].sum()) for day in days]
    spent = np.array([float(table.cost_agent[table.day <= d].sum()) for d in days])
    unit = min(passes)
    reason = None
    if np.isnan(spent).any() or np.isnan(passes).any():
        reason = "the price card leaves a cost unknown"
    elif unit <= 0:
        reason = "a checkpoint costs nothing under this price card: no kappa unit"
    scaled = spent if reason else spent / unit
    human = np.array([float(table.cost_human[table.day <= d].sum()) for d in days])
    both = scaled if reason else scaled + human / unit
    last = marks & (table.day == days[-1])
    floor = {family: _floor(table, last, family, gate_level) for family in families}
    return Series(tuple(days), scaled, unit, quality, reason, both, floor)


def _floor(table: Observables, rows: Flags, family: str, level: float) -> float:
    """Return the one-sided lower bound of a family's mean over tasks, NaN without."""
    here = rows & (table.family == family)
    pairs, code = np.unique(table.pair[here], return_inverse=True)
    if len(pairs) < 2:
        return math.nan
    means = np.bincount(code, table.q[here]) / np.bincount(code)
    error = float(means.std(ddof=1)) / math.sqrt(len(pairs))
    return float(means.mean()) - float(stats.t.ppf(level, len(pairs) - 1)) * error


def _means(table: Observables, marks: Flags, days: list[int], family: str) -> Floats:
    rows = [marks & (table.day == day) & (table.family == family) for day in days]
    return np.array([table.q[r].mean() if r.any() else math.nan for r in rows])


def kappa(
    family: str | None,
    points: Series,
    values: Floats,
    rules: Improvement,
    *,
    level: float,
    missing: str | None = None,
    root: str = "",
) -> KappaScore:
    """Return the self-improvement slope of a family, or of the agent (family None).

    Formula:
        kappa = Theil-Sen slope of C_k (AAI_dyn for the agent) on R in kappa units
    Shapes: `values` (checkpoints,), as the series. Units: per kappa unit.
    Missing: below the protocol's number of checkpoints 'too few checkpoints'; a
        window with dR = 0 is left out, not divided by.
    Errors: none of its own. Source: [S] section 3.7 of the AAI paper.
    """
    fresh = np.concatenate((points.spent[:1] >= 0, np.diff(points.spent) > 0))
    reason = missing or _lack(points, values, int(fresh.sum()), rules)
    shown = () if missing or points.reason else _points(points.spent, values)
    if reason is not None:
        empty = Interval(low=None, high=None, method=METHOD, reason=reason)
        return KappaScore(
            family=family,
            slope=None,
            interval=empty,
            checkpoints=len(points.days),
            reason=reason,
            points=shown,
        )
    slope = theil_sen(points.spent[fresh], values[fresh], level)
    logit = _on_logit(points.spent[fresh], values[fresh], rules, level)
    return KappaScore(
        family=family,
        slope=figure(slope.value),
        interval=_interval(slope),
        checkpoints=len(points.days),
        reason=None,
        points=shown,
        logit=None if logit is None else figure(logit.value),
        logit_interval=None if logit is None else _interval(logit),
        floor=None if family is None else figure(points.floor.get(family, math.nan)),
        details=_details(points, values, slope, level, root),
    )


def _interval(slope: Slope) -> Interval:
    return Interval(low=figure(slope.low), high=figure(slope.high), method=METHOD)


def _on_logit(
    spent: Floats, values: Floats, rules: Improvement, level: float
) -> Slope | None:
    """Return the slope on the logit link, None where a capability is 0."""
    g = on_link(values, "logit", rules.link_clip)
    return None if np.isnan(g).any() else theil_sen(spent, g, level)


def _details(
    points: Series, values: Floats, slope: Slope, level: float, root: str
) -> dict[str, Any]:
    """Return what is printed beside: differences, time slope, total, bootstrap."""
    days = np.array(points.days, dtype=np.float64)
    pace = window_pace(days, points.spent, values)
    fresh = np.concatenate((points.total[:1] >= 0, np.diff(points.total) > 0))
    total = theil_sen(points.total[fresh], values[fresh], level).value
    low, high = block_interval(points.spent, values, level, root)
    return {
        "per USD": figure(slope.value / points.unit * _MICRO),
        "kappa_total, agent and human": figure(total),
        "spend rate a day": figure(pace.spend_rate),
        "pace, kappa times spend rate": figure(slope.value * pace.spend_rate),
        "window mean": figure(pace.kappa),
        "finite differences": [
            figure(x) for x in differences(points.spent, values).tolist()
        ],
        "interval by bootstrap over checkpoints": [figure(low), figure(high)],
    }


def block_interval(
    spent: Floats, values: Floats, level: float, root: str, resamples: int = 1000
) -> tuple[float, float]:
    """Return the seed's own interval: Theil-Sen over resampled checkpoints.

    Printed beside; gates read Sen's. NaN where the resamples hold one level of R.
    """
    rows = block_bootstrap(len(spent), resamples, root, "kappa")
    first, second = np.triu_indices(len(spent), k=1)
    x, y = spent[rows], values[rows]
    gap, rise = x[:, second] - x[:, first], y[:, second] - y[:, first]
    slopes = np.divide(rise, gap, out=np.full_like(rise, np.nan), where=gap != 0)
    known = slopes[(~np.isnan(slopes)).any(axis=1)]
    if len(known) < (1 - _LOST) * resamples:
        return math.nan, math.nan
    medians = np.nanmedian(known, axis=1)
    ends = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(ends[0]), float(ends[1])


def _lack(points: Series, values: Floats, fresh: int, rules: Improvement) -> str | None:
    """Return why a series has no slope; `fresh` checkpoints follow new spending."""
    count, least = len(points.days), rules.checkpoints_min
    if points.reason is not None:
        return points.reason
    if count < least:
        return f"too few checkpoints: {count} of {least}"
    if np.isnan(values).any():
        return "a checkpoint holds no counted episode"
    if fresh < least:
        return f"too few checkpoints with new spending: {fresh} of {least}"
    return None


def _points(spent: Floats, values: Floats) -> tuple[tuple[float, float], ...]:
    pairs = zip(spent.tolist(), values.tolist(), strict=True)
    return tuple((rounded(x), rounded(y)) for x, y in pairs if not math.isnan(y))


def kappas(
    points: Series,
    dynamic: Floats,
    rules: Improvement,
    missing: tuple[str, ...],
    *,
    level: float,
    root: str,
) -> tuple[KappaScore, ...]:
    """Return the agent's kappa, then each family's.

    The agent's reads `dynamic`, AAI_dyn at each checkpoint; without evidence on an
    axis that it needs it is not computable and names the axes; nor where it is 0.
    """
    if points.reason and not points.days:
        return ()
    lacking = None
    if missing:
        lacking = f"not computable: no evidence on {', '.join(missing)}"
    elif np.isnan(dynamic).any():
        lacking = "not computable: AAI_dyn is not measured at each checkpoint"
    elif not (dynamic > 0).all():
        lacking = "not computable: an axis stands at 0 at a checkpoint"
    whole = kappa(None, points, dynamic, rules, level=level, missing=lacking, root=root)
    each = (
        kappa(family, points, values, rules, level=level, root=root)
        for family, values in points.quality.items()
    )
    return (whole, *each)
