"""What a campaign's verdict prints beside kappa; levels 1 to 4 read none of it."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from owa_bench.records.observables import Floats
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import CellTable
from owa_bench.scoring.bootstrap import figure
from owa_bench.scoring.improvement.counterfactual import counterfactual_table
from owa_bench.scoring.improvement.curvature import (
    Curvature,
    local_quadratic,
    meta_elasticity,
    window_tests,
)
from owa_bench.scoring.improvement.escape import (
    Measured,
    Theorem,
    normalised_rate,
    rate_constant,
    theorem,
)
from owa_bench.scoring.improvement.levers import innovation, levers, milestones
from owa_bench.scoring.improvement.links import LINKS, on_link, steps_made
from owa_bench.scoring.improvement.optional import optional_gates, optional_table
from owa_bench.scoring.improvement.pace import per_resource
from owa_bench.scoring.improvement.progress import (
    axis_responses,
    checkpoint_curves,
    checkpoint_table,
    delegation_table,
    margin_responses,
    response_table,
)
from owa_bench.scoring.improvement.responses import Response, weakest
from owa_bench.scoring.improvement.telemetry import Parts, parts, telemetry_table
from owa_bench.scoring.improvement.window import Dynamics, Window, closed, said

_MONTH = 30.0  # days
_TIMED = "AAI_dyn by time: A'/r, A''/r^2"
_WINDOW = 7  # days of the windows of meta-elasticity and of the rate


def dynamics(window: Window) -> Dynamics:
    """Return the dynamics of one arm over its checkpoints."""
    if not window.points.days:
        return Dynamics()
    rules, values = window.protocol.improvement, window.daily.dynamic
    bends = {link: window.bent(values, link) for link in LINKS}
    quality = window.points.quality.items()
    each = {name: window.bent(v, rules.link) for name, v in quality}
    pace, steps = _innovation(window), _steps(values, window.protocol)
    found = parts(window, bends[rules.link])
    axes, ahead = axis_responses(window), margin_responses(window)
    proved = _theorem(window, found, axes, ahead, pace)
    optional = optional_gates(each, window.kappas, window.closures, steps, rules)
    stone = milestones(
        list(each.values()),
        closures=closed(window.closures),
        most=rules.curvature_max,
        elasticity=_elasticity(window.points.spent, values, window.protocol),
    )
    made = (
        checkpoint_table(window),
        _curvatures(bends, each, window),
        counterfactual_table(window),
        telemetry_table(found, pace, stone, window.points.unit),
        response_table("Axis responses", axes, "target: what AAI-4 asks for"),
        response_table("Superhuman margins", ahead, "in standard errors of the lead")
        if ahead
        else None,
        delegation_table(window),
        optional_table(optional),
        theorem_table(proved),
    )
    return Dynamics(
        bends=bends,
        innovation=pace,
        link_steps=steps,
        score=found.score,
        responses={r.name: r.slope.value for r in axes if r.slope.value is not None},
        tables=tuple(table for table in made if table is not None),
        curves=checkpoint_curves(window),
    )


def _steps(values: Floats, protocol: Protocol) -> int | None:
    """Return the link steps made between the first and the last checkpoint."""
    rules = protocol.improvement
    if len(values) < 2 or not ((values > 0) & (values < 1)).all():
        return None
    return steps_made(float(values[0]), float(values[-1]), rules.step, rules.link)


def _innovation(window: Window) -> float | None:
    """Return the innovation index of the window's adopted, confirmed revisions."""
    rules, events = window.protocol.telemetry, window.table.revisions
    days = window.points.days
    months = (days[-1] - days[0] + 1) / _MONTH
    known = ~np.isnan(events.capability).any(axis=1)
    if not len(events.row) or not known.any():
        return None
    cap = events.capability
    useful = known & (events.decision == "adopted")
    useful &= (cap[:, 1] - cap[:, 0]) - (cap[:, 3] - cap[:, 2]) > 0
    tools = len({str(name) for name in events.family[useful] if name})
    return innovation(
        tools / months,
        float(useful.sum()) / months,
        rules.tools_a_month,
        rules.revisions_a_month,
    )


def _elasticity(spent: Floats, values: Floats, protocol: Protocol) -> float | None:
    """Return the meta-elasticity over rolling windows, None without two."""
    ends = range(_WINDOW, len(values) + 1)
    found = _rates(spent, values, protocol, [slice(e - _WINDOW, e) for e in ends])
    if found is None or len(ends) < 2:
        return None
    result = meta_elasticity(*found)
    return None if math.isnan(result) else result


def _rates(
    spent: Floats, values: Floats, protocol: Protocol, windows: Sequence[slice]
) -> tuple[Floats, Floats] | None:
    """Return mean spending and link slope of each window, None where unknown."""
    rules = protocol.improvement
    g = on_link(values, rules.link, rules.link_clip)
    if np.isnan(spent).any() or np.isnan(g).any():
        return None
    slopes = [local_quadratic(spent[w], g[w]).slope for w in windows]
    return np.array([spent[w].mean() for w in windows]), np.array(slopes)


def _escape(window: Window) -> Measured:
    """Return c of rate escape over disjoint weeks."""
    spent, values, rules = window.points.spent, window.daily.dynamic, window.protocol
    starts = range(len(values) % _WINDOW, len(values), _WINDOW)
    found = _rates(spent, values, rules, [slice(s, s + _WINDOW) for s in starts])
    if found is None:
        return Measured()
    normal, power = rules.telemetry.rate_normaliser, rules.telemetry.escape_power
    known = [
        math.nan if math.isnan(s) else normalised_rate(s, normal) for s in found[1]
    ]
    return rate_constant(found[0], np.array(known), power, window.level)


def _theorem(
    window: Window,
    found: Parts,
    axes: Sequence[Response],
    ahead: Sequence[Response],
    pace: float | None,
) -> Theorem:
    """Return theorem 3.1's assumptions with what was measured of each."""
    points, state = window.points, closed(window.closures)
    persists = {True: Measured(1.0, 1.0, 1.0), False: Measured(0.0), None: Measured()}
    rates = np.diff(points.spent) / np.diff(np.array(points.days, dtype=float))
    least = float(rates.min()) if len(rates) and not np.isnan(rates).any() else None
    return theorem(
        (
            _escape(window),
            Measured(least, least, None),
            weakest(axes),
            persists[state],
            Measured(pace, pace, None),
            weakest(ahead),
        ),
        k=found.k,
        power=window.protocol.telemetry.escape_power,
    )


def theorem_table(found: Theorem) -> CellTable:
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
            (
                r.name,
                r.statement,
                *(figure(x) for x in (r.measured, r.low, r.high)),
                r.status,
            )
            for r in found.rows
        ),
        note=f"{bounds}; (i) over disjoint weeks, (iii) and (vi) the weakest response",
    )


def _curvatures(
    bends: Mapping[str, Curvature], each: Mapping[str, Curvature], window: Window
) -> CellTable:
    most = window.protocol.improvement.curvature_max
    rows = [(f"AAI_dyn, {link}", bend) for link, bend in bends.items()]
    cells = [
        (
            name,
            bend.slope,
            bend.curvature,
            bend.interval.low,
            bend.interval.high,
            *(said(mark) for mark in window_tests(bend, most)),
            bend.reason,
        )
        for name, bend in (*rows, *each.items())
    ]
    by_time = (_TIMED, *timed(window), None, None, "", "", None)
    return CellTable(
        title="Curvature of self-improvement",
        columns=("of", "slope", "c_g", "low", "high", "accelerates", "bounded", "why"),
        rows=(*cells, by_time),
        note=f"per kappa unit and its square; bounded: c_g >= -{most:g}",
    )


def timed(window: Window) -> tuple[float | None, float | None]:
    """Return slope and curvature over days brought to resources: A'/r and A''/r^2.

    None below the days that curvature needs, or where nothing was spent.
    """
    days = np.array(window.points.days, dtype=np.float64)
    spent, values = window.points.spent, window.daily.dynamic
    least = window.protocol.improvement.curvature_days_min
    if len(days) < least or not np.isfinite(values + spent).all():
        return None, None
    pace = (spent[-1] - spent[0]) / (days[-1] - days[0])
    if not pace > 0:
        return None, None
    bend = local_quadratic(days, values)
    slope, curve = per_resource(bend.slope, bend.curvature, float(pace))
    return figure(slope), figure(curve)


def lever_table(
    index: float | None,
    axes: Mapping[str, float | None],
    protocol: Protocol,
    responses: Mapping[str, float],
) -> CellTable | None:
    """Return marginal returns of every axis, None where the index is 0 or unknown."""
    weights = {str(symbol): w for symbol, w in protocol.index.weights.items() if w > 0}
    known = {s: a for s, a in axes.items() if s in weights and a}
    if not index or set(known) != set(weights):
        return None
    rows = levers(index, known, weights, responses)
    return CellTable(
        title="Marginal returns",
        columns=("axis", "AAI per unit of the axis", "response e_i", "w_i e_i / a_i"),
        rows=tuple(
            (
                row.symbol,
                figure(row.marginal),
                figure(responses.get(row.symbol)),
                figure(row.lever),
            )
            for row in rows
        ),
        note="AAI w_i / a_i; e_i = da_i / dR over checkpoints, where it is measured",
    )
