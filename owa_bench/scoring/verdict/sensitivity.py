"""Sensitivity of a judgement to its anchors and to prices."""

from collections.abc import Mapping, Sequence

import numpy as np

from owa_bench.records.score import CellTable
from owa_bench.scoring.axis import Anchors, Axis
from owa_bench.scoring.estimate.composites import composite
from owa_bench.scoring.estimate.statistic_key import StatisticKey, StatisticKind
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.bootstrap import figure

_MICRO = 10**6


def moved_anchors(
    axis: Axis, raw: float, anchors: Anchors, change: float, factor: float = 1.0
) -> dict[str, float]:
    """Return an axis' value with either anchor moved by a share of their distance.

    Formula:
        lo' = lo -/+ c (hi - lo), hi' = hi -/+ c (hi - lo); on a log axis, factors
    Shapes: scalars; anchors of one resample. Units: values in [0, 1]; `factor` is
        what the axis multiplies its calibrated value by.
    Missing: none. Errors: ScoringError if the anchors meet.
    Source: [S] eq 32 of the AAI paper; c [D].
    """
    shift, values = change * (anchors.high - anchors.low), {}
    for name, sign in (("lo -", -1), ("lo +", 1), ("hi -", -1), ("hi +", 1)):
        place = ("lo", "hi").index(name[:2])
        ends = list(anchors)
        if axis.log_scale:
            ends[place] = ends[place] * (1 + sign * change)
        else:
            ends[place] = ends[place] + sign * shift
        values[name] = factor * float(axis.value(np.array([raw]), Anchors(*ends))[0])
    return values


def anchor_table(
    sample: Sample, axes: Sequence[Axis], point: Mapping[StatisticKey, float]
) -> CellTable:
    """Return AAI under moved anchors, or the axis alone where AAI is missing.

    Args:
        sample: Counted episodes of one agent.
        axes: Axes with evidence.
        point: Point estimates.
    Returns: A row per axis.
    """
    rules = sample.protocol.index
    weights = {str(s): w for s, w in rules.weights.items() if w > 0}
    whole = StatisticKey("AAI") in point
    rows = []
    for axis in axes:
        if np.isnan(point.get(StatisticKey(axis.symbol), np.nan)):
            continue
        raw, low, high, factor = _calibration(point, axis.symbol)
        ends = Anchors(np.array([low]), np.array([high]))
        values = moved_anchors(axis, raw, ends, rules.anchor_change, factor)
        if whole and axis.symbol in weights:
            values = {
                name: _index(point, weights, {axis.symbol: new}) for name, new in values.items()
            }
        rows.append((axis.symbol, *(figure(value) for value in values.values())))
    columns = ("axis", "lo -", "lo +", "hi -", "hi +")
    note = (
        f"{'AAI' if whole else 'the axis alone (AAI is not computable)'} with one "
        f"anchor moved by {rules.anchor_change:.0%} of the distance between them"
    )
    return CellTable("Sensitivity to the anchors", columns, tuple(rows), note)


def _calibration(
    point: Mapping[StatisticKey, float], symbol: str
) -> tuple[float, float, float, float]:
    """Return the raw statistic of an axis, its two anchors and its factor."""
    kinds: tuple[StatisticKind, ...] = ("raw", "low", "high", "factor")
    raw, low, high, factor = (point[StatisticKey(symbol, kind)] for kind in kinds)
    return raw, low, high, factor


def _index(
    point: Mapping[StatisticKey, float], weights: Mapping[str, float], new: Mapping[str, float]
) -> float:
    values = [np.array([new.get(s, point[StatisticKey(s)])]) for s in weights]
    return float(composite(values, list(weights.values()))[0])


def price_table(
    sample: Sample, axes: Sequence[Axis], point: Mapping[StatisticKey, float]
) -> CellTable | None:
    """Return $ under a price card with one meter dearer or cheaper.

    A supervisor's minute prices the expert too. Rate limits change hours, and hours cancel in $:
    they show in tasks per hour alone.

    Args:
        sample: Counted episodes of one agent.
        axes: Axes with evidence.
        point: Point estimates.
    Returns: A row per meter, None where $ is missing.
    """
    axis = next((axis for axis in axes if axis.symbol == "$"), None)
    if axis is None or np.isnan(point.get(StatisticKey("$"), np.nan)):
        return None
    spent = _by_meter(sample)
    whole = sum(spent.values())
    change, rows = sample.protocol.index.anchor_change, []
    raw, low, high, value_factor = _calibration(point, "$")
    for meter, usd in sorted(spent.items()):
        values = []
        for factor in (1 - change, 1 + change):
            cost = (whole + (factor - 1) * usd) / whole
            expert = factor if meter == "supervisor_min" else 1.0
            ends = Anchors(np.array([low / expert]), np.array([high / expert]))
            value = float(axis.value(np.array([raw / cost]), ends)[0])
            values.append(figure(value * value_factor))
        rows.append((meter, figure(usd / whole), *values))
    columns = ("meter", "share of the cost", f"-{change:.0%}", f"+{change:.0%}")
    note = "rate limits change hours, which cancel in $: see tasks per hour"
    return CellTable("Sensitivity of $ to prices", columns, tuple(rows), note)


def _by_meter(sample: Sample) -> dict[str, float]:
    """Return USD by meter over the base rows, agent and human streams."""
    table = sample.table
    costs: dict[str, float] = {}
    for place, (stream, meter) in enumerate(table.spent_by):
        price = sample.prices.price(meter)
        counted = sample.base
        if stream == "evaluation":
            counted = counted & (table.phase == "checkpoint")
        amount = float(table.spent[counted, place].sum())
        if price and amount > 0:
            usd = amount * price / _MICRO / _MICRO
            costs[meter] = costs.get(meter, 0.0) + usd
    if sample.prices.price("supervisor_min"):
        costs.setdefault("supervisor_min", 0.0)
    return costs
