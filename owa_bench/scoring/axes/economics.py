"""Axis $: economic throughput, tasks at quality per USD against an expert's."""

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.axis import Anchors, Axis, Coverage, Diagnostics, FloatsByName, check_shapes
from owa_bench.scoring.observe.expert_time import expert_minutes
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.statistics_table import StatisticsTable, Totals

_MICRO = 10**6  # micro-USD a USD
_SECONDS = 3600.0
_COST_PARTS = 10**9  # parts of a USD kept of an episode's cost
_MINUTE_PARTS = 10**6  # parts of a minute


def throughput(done: Floats, spent: Floats) -> Floats:
    """Return tasks at quality per USD; hours cancel.

    Formula:
        v = (tasks per hour at quality >= q*) / (USD per hour) = tasks / USD
        $ = clip(ln(v / v_lo) / ln(v_hi / v_lo), 0, 1) min(1, s / .5)
        s = share of episodes with q_state >= q*
        v_lo = v_expert / 100, v_hi = sqrt(10) v_expert: parity reads .80
    Shapes: two arrays (resamples,), sums over the same episodes; result the same.
    Units: `spent` in USD of the agent and human streams; result tasks per USD.
    Missing: NaN where nothing was spent: zero or unknown cost is missing, not 1;
        NaN in gives NaN out. No success at a cost is 0.
    Errors: ScoringError if shapes differ, an array is empty or a sum is negative.
    Source: [R] eq 11 of the AAI paper; q* = theta, s, v_hi, v_lo [D] in the protocol.

    >>> throughput(np.array([30.0]), np.array([12.0]))
    array([2.5])
    """
    check_shapes("throughput", done, spent)
    if (done < 0).any() or (spent < 0).any():
        raise ScoringError("Tasks done and money spent cannot be negative.")
    return np.divide(done, spent, out=np.full_like(spent, np.nan), where=spent > 0)


def _collect(sample: Sample, statistics: StatisticsTable) -> Coverage:
    """Add success, the agent and human streams' cost, and the expert's minutes."""
    table, base = sample.table, sample.base
    cells = int(base.sum())
    # The harness books both streams of a checkpoint under evaluation.
    evaluation = np.where(table.phase == "checkpoint", table.cost_evaluation, 0.0)
    cost = table.cost_agent + table.cost_human + evaluation  # micro-USD
    unknown = int(np.isnan(cost[base]).sum())
    minutes = expert_minutes(table, sample.protocol.economics)
    reason = None
    if not cells:
        reason = "no counted episode"
    elif unknown:
        gaps = table.take(base).usage_gaps()
        reason = f"the price card leaves the cost of {unknown} episodes unknown"
        reason = f"the cost of {unknown} episodes is unknown: {gaps}" if gaps else reason
    elif not cost[base].any():
        reason = "nothing that was used has a price above 0"
    elif not sample.prices.price("supervisor_min"):
        reason = "the price card has no price for a supervisor's minute"
    elif (silent := np.isnan(minutes) & base).any():
        suites = ", ".join(sorted(set(table.suite[silent].tolist())))
        reason = f"no episode of {suites} says what work it is: the card has no `work`"
    if reason:
        return Coverage(cells - unknown, cells, reason)
    statistics.add_mean("$:done", table.u, base)
    statistics.add_mean("$:spent", cost / _MICRO, base, scale=_COST_PARTS)
    statistics.add_mean("$:minutes", minutes, base, scale=_MINUTE_PARTS)
    return Coverage(cells, cells)


def _raw(totals: Totals, sample: Sample) -> Floats:
    return throughput(totals.overall_mean("$:done"), totals.overall_mean("$:spent"))


def _anchors(totals: Totals, sample: Sample) -> Anchors:
    """Return multiples of the expert, whose minutes are priced as the supervisor's."""
    rules, expert = sample.protocol.economics, _expert(totals, sample)
    return Anchors(rules.low * expert, rules.high * expert)


def _expert(totals: Totals, sample: Sample) -> Floats:
    """Return the expert's tasks per USD (resamples,)."""
    minute = (sample.prices.price("supervisor_min") or 0) / _MICRO / _MICRO
    expert: Floats = 1.0 / (totals.overall_mean("$:minutes") * minute)
    return expert


def _factor(totals: Totals, sample: Sample) -> Floats:
    """Return min(1, s / .5), s the share of successful episodes."""
    share = totals.overall_mean("$:done") / sample.protocol.economics.success_share
    return np.minimum(share, 1.0)


def _secondary(totals: Totals, sample: Sample) -> FloatsByName:
    """Return the cost of an episode, the expert's minutes, and v / v_expert unclipped."""
    return {
        "USD an episode": totals.overall_mean("$:spent"),
        "expert minutes an episode": totals.overall_mean("$:minutes"),
        "v / v_expert": _raw(totals, sample) / _expert(totals, sample),
    }


def _hourly(sample: Sample) -> Diagnostics:
    """Return tasks at quality per hour, simulated and by the wall clock."""
    table, base = sample.table, sample.base
    done = float(table.u[base].sum())
    hours = {
        "simulated": float(table.simulated_s[base].sum()) / _SECONDS,
        "wall": float(table.wall_s[base].sum()) / _SECONDS,
    }
    return {
        f"tasks per {name} hour": done / spent if spent > 0 else None
        for name, spent in hours.items()
    }


AXIS = Axis(
    "$",
    "economic throughput",
    formula=throughput,
    collect=_collect,
    raw=_raw,
    anchors=_anchors,
    log_scale=True,
    factor=_factor,
    secondary=_secondary,
    amounts=("USD an episode", "expert minutes an episode", "v / v_expert"),
    diagnostics=_hourly,
)
