"""Dynamics of a campaign: figures and tables beside kappa. AAI-1 to AAI-4 read none.

Source: the AAI paper, sections 3.7 to 3.13.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from owa_bench.records.observables import Floats
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import CellTable
from owa_bench.scoring.improvement import continuous_score, curvature, tables, theorem
from owa_bench.scoring.improvement.checkpoints import (
    CampaignWindow,
    Dynamics,
    closures_hold,
    yes_or_no,
)
from owa_bench.scoring.improvement.curvature import Curvature
from owa_bench.scoring.improvement.kappa import per_resource
from owa_bench.scoring.statistics.bootstrap import figure

_MONTH = 30.0  # days
_WEEK = 7  # days of the windows of meta-elasticity and of the rate


def dynamics(window: CampaignWindow) -> Dynamics:
    """Return the dynamics of one arm over its checkpoints."""
    if not window.points.days:
        return Dynamics()
    rules, values = window.protocol.improvement, window.daily.dynamic
    quality = window.points.quality.items()
    bends = {link: window.curvature_of(values, link) for link in curvature.LINKS}
    families = {name: window.curvature_of(v, rules.link) for name, v in quality}
    index, steps = _innovation(window), _link_steps(values, window.protocol)
    parts = continuous_score.score_parts(window, bends[rules.link])
    axes, leads = tables.axis_responses(window), tables.margin_responses(window)
    closures = closures_hold(window.closures)
    reached = continuous_score.milestones(
        list(families.values()),
        closures=closures,
        most=rules.curvature_max,
        elasticity=_elasticity(window),
    )
    optional = tables.optional_gates(families, window.kappas, window.closures, steps, rules)
    persists = {
        True: theorem.Estimate(1.0, 1.0, 1.0),
        False: theorem.Estimate(0.0),
        None: theorem.Estimate(),
    }
    constants = (
        _escape_constant(window),
        _spend_rate(window),
        theorem.weakest(axes),
        persists[closures],
        theorem.Estimate(index, index, None),
        theorem.weakest(leads),
    )
    power = window.protocol.telemetry.escape_power
    lead = "in standard errors of the lead"
    candidates = (
        tables.checkpoint_table(window),
        _curvature_table(bends, families, window),
        tables.counterfactual_table(window),
        continuous_score.telemetry_table(parts, index, reached, window.points.unit),
        tables.response_table("Axis responses", axes, "target: what AAI-4 asks for"),
        tables.response_table("Superhuman margins", leads, lead) if leads else None,
        tables.delegation_table(window),
        tables.optional_table(optional),
        theorem_table(theorem.theorem(constants, k=parts.k, power=power)),
    )
    return Dynamics(
        bends=bends,
        innovation=index,
        link_steps=steps,
        score=parts.score,
        responses={r.name: r.slope.value for r in axes if r.slope.value is not None},
        tables=tuple(table for table in candidates if table is not None),
        curves=tables.checkpoint_curves(window),
    )


def _link_steps(values: Floats, protocol: Protocol) -> int | None:
    """Return the link steps between the first and the last checkpoint."""
    rules = protocol.improvement
    if len(values) < 2 or not ((values > 0) & (values < 1)).all():
        return None
    return curvature.steps_made(float(values[0]), float(values[-1]), rules.step, rules.link)


def _innovation(window: CampaignWindow) -> float | None:
    """Return the innovation index of the window's revisions that brought a gain.

    Counted are revisions whose attempt sets show it, and the tool families that they installed.
    """
    rules, days, revision = window.protocol.telemetry, window.points.days, window.practised
    if revision is None or revision.reason is not None:
        return None
    useful = [
        sets
        for sets, gain in zip(revision.sets, revision.gains, strict=True)
        if gain.counted and gain.gain > 0 and gain.autonomy > 0
    ]
    tools = len({name for sets in useful for name in sets.installed})
    months = (days[-1] - days[0] + 1) / _MONTH
    rates = (tools / months, len(useful) / months)
    references = (rules.tools_a_month, rules.revisions_a_month)
    return continuous_score.innovation(*rates, *references)


def _elasticity(window: CampaignWindow) -> float | None:
    """Return the meta-elasticity over rolling weeks, None without two."""
    ends = range(_WEEK, len(window.points.days) + 1)
    rates = _link_rates(window, [slice(end - _WEEK, end) for end in ends])
    if rates is None or len(ends) < 2:
        return None
    result = curvature.meta_elasticity(*rates)
    return None if math.isnan(result) else result


def _link_rates(window: CampaignWindow, weeks: Sequence[slice]) -> tuple[Floats, Floats] | None:
    """Return mean spending and link slope of each week, None where unknown."""
    spent, rules = window.points.spent, window.protocol.improvement
    g = curvature.on_link(window.daily.dynamic, rules.link, rules.link_clip)
    if np.isnan(spent).any() or np.isnan(g).any():
        return None
    slopes = [curvature.local_quadratic(spent[week], g[week]).slope for week in weeks]
    return np.array([spent[week].mean() for week in weeks]), np.array(slopes)


def _escape_constant(window: CampaignWindow) -> theorem.Estimate:
    """Return c of rate escape over disjoint weeks."""
    rules, count = window.protocol.telemetry, len(window.points.days)
    starts = range(count % _WEEK, count, _WEEK)
    weeks = _link_rates(window, [slice(start, start + _WEEK) for start in starts])
    if weeks is None:
        return theorem.Estimate()
    spent, slopes = weeks
    rates = [
        math.nan if math.isnan(slope) else theorem.normalised_rate(slope, rules.rate_normaliser)
        for slope in slopes
    ]
    return theorem.rate_constant(spent, np.array(rates), rules.escape_power, window.level)


def _spend_rate(window: CampaignWindow) -> theorem.Estimate:
    """Return the least kappa units a day between neighbouring checkpoints."""
    days = np.array(window.points.days, dtype=float)
    rates = np.diff(window.points.spent) / np.diff(days)
    if not len(rates) or np.isnan(rates).any():
        return theorem.Estimate()
    return theorem.Estimate(float(rates.min()), float(rates.min()), None)


def theorem_table(found: theorem.Theorem) -> CellTable:
    """Return the assumptions, and the bounds where every one of them holds."""
    bounds = "no bound: an assumption fails or has no evidence"
    if found.resource is not None and found.time is not None:
        bounds = (
            f"normalised rate 1 after {found.resource:.3g} kappa units at most, "
            f"{found.time:.3g} days"
        )
    return CellTable(
        title="Theorem 3.1: what its assumptions measure here",
        columns=("assumption", "says", "measured", "low", "high", "status"),
        rows=tuple(
            (r.name, r.statement, *map(figure, (r.measured, r.low, r.high)), r.status)
            for r in found.rows
        ),
        note=f"{bounds}; (i) over disjoint weeks, (iii) and (vi) the weakest response",
    )


def _curvature_table(
    bends: Mapping[str, Curvature], families: Mapping[str, Curvature], window: CampaignWindow
) -> CellTable:
    most = window.protocol.improvement.curvature_max
    named = {f"AAI_dyn, {link}": bend for link, bend in bends.items()}
    rows: list[tuple[str | float | None, ...]] = []
    for name, bend in (*named.items(), *families.items()):
        ends = bend.interval.low, bend.interval.high
        marks = map(yes_or_no, curvature.window_tests(bend, most))
        rows.append((name, bend.slope, bend.curvature, *ends, *marks, bend.reason))
    by_time = time_based_curvature(window)
    rows.append(("AAI_dyn by time: A'/r, A''/r^2", *by_time, None, None, "", "", None))
    columns = ("of", "slope", "c_g", "low", "high", "accelerates", "bounded", "why")
    note = f"per kappa unit and its square; bounded: c_g >= -{most:g}"
    return CellTable("Curvature of self-improvement", columns, tuple(rows), note)


def time_based_curvature(window: CampaignWindow) -> tuple[float | None, float | None]:
    """Return slope and curvature over days converted to resources: A'/r and A''/r^2.

    None below the days that curvature needs, or where nothing was spent.
    """
    days = np.array(window.points.days, dtype=np.float64)
    spent, values = window.points.spent, window.daily.dynamic
    least = window.protocol.improvement.curvature_days_min
    if len(days) < least or not np.isfinite(values + spent).all():
        return None, None
    rate = (spent[-1] - spent[0]) / (days[-1] - days[0])
    if not rate > 0:
        return None, None
    bend = curvature.local_quadratic(days, values)
    slope, curve = per_resource(bend.slope, bend.curvature, float(rate))
    return figure(slope), figure(curve)


def marginal_return_table(
    index: float | None,
    axes: Mapping[str, float | None],
    protocol: Protocol,
    responses: Mapping[str, float],
) -> CellTable | None:
    """Return the marginal return of every axis.

    Args:
        index: the AAI.
        axes: value of each axis by symbol.
        protocol: the protocol with the index weights.
        responses: slope of each axis on resources, where it is measured.
    Returns: A row an axis, None where the index is 0 or unknown.
    """
    weights = {str(symbol): w for symbol, w in protocol.index.weights.items() if w > 0}
    known = {s: a for s, a in axes.items() if s in weights and a}
    if not index or set(known) != set(weights):
        return None
    returns = continuous_score.marginal_returns(index, known, weights, responses)
    columns = ("axis", "AAI per unit of the axis", "response e_i", "w_i e_i / a_i")
    rows = tuple(
        (x.symbol, *map(figure, (x.marginal, responses.get(x.symbol), x.growth))) for x in returns
    )
    note = "AAI w_i / a_i; e_i = da_i / dR over checkpoints, where it is measured"
    return CellTable("Marginal returns", columns, rows, note)
