"""The checkpoints of a campaign in order: indices, responses, margins, frontier."""

from collections.abc import Mapping, Sequence

import numpy as np

from owa_bench.records.observables import Floats
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import CellTable, Curve
from owa_bench.scoring.bootstrap import figure
from owa_bench.scoring.composites import composite, needed
from owa_bench.scoring.improvement.days import AREA, DYNAMIC
from owa_bench.scoring.improvement.responses import Response, margins, response
from owa_bench.scoring.improvement.window import Window

_PLAIN = "AAI"
_FLOW = "R"


def plain(window: Window) -> Floats:
    """Return the plain AAI at each checkpoint, NaN where an axis is missing.

    Formula:
        AAI(t) = prod_i a_i(t)^(w_i) with R, a flow over the window, at its value of
        the run at every t
    Shapes: (checkpoints,). Units: a share.
    Missing: NaN where an axis in use has no evidence at that checkpoint.
    Errors: none. Source: [S] section 3.7 of the AAI paper; R's part [D].
    """
    rules, count = window.protocol.index, len(window.points.days)
    flow = np.full(count, np.nan if window.flow is None else window.flow)
    values = {**window.daily.values, _FLOW: flow}
    symbols = needed(rules)[_PLAIN]
    blank = np.full(count, np.nan)
    weights = [rules.weights[symbol] for symbol in symbols]  # type: ignore[index]
    return composite([values.get(symbol, blank) for symbol in symbols], weights)


def checkpoint_table(window: Window) -> CellTable:
    """Return AAI, AAI_dyn and every axis, a row a checkpoint."""
    whole, points = plain(window), window.points
    symbols = [s for s in window.daily.values if s not in (DYNAMIC, AREA)]
    rows = []
    for i, day in enumerate(points.days):
        each = [figure(float(window.daily.values[s][i])) for s in symbols]
        totals = [figure(float(v[i])) for v in (points.spent, whole)]
        rows.append((day, *totals, figure(float(window.daily.dynamic[i])), *each))
    return CellTable(
        title="Checkpoints in order",
        columns=("day", "R, kappa units", _PLAIN, DYNAMIC, *symbols),
        rows=tuple(rows),
        note="AAI holds the run's axis R, a flow; slopes read AAI_dyn, without it",
    )


def checkpoint_curves(window: Window) -> tuple[Curve, ...]:
    """Return AAI and AAI_dyn over resources, each where it is computable at all."""
    series = {_PLAIN: plain(window), DYNAMIC: window.daily.dynamic}
    spent = window.points.spent
    if not np.isfinite(spent).all():
        return ()
    return tuple(
        Curve(
            name=f"{name} over agent-initiated resources",
            x_label="R, kappa units",
            y_label=name,
            x=tuple(figure(x) or 0.0 for x in spent.tolist()),
            y=tuple(figure(y) for y in values.tolist()),
            low=(None,) * len(values),
            high=(None,) * len(values),
            used=(1,) * len(values),
            note="a point a checkpoint; no band",
        )
        for name, values in series.items()
        if np.isfinite(values).any()
    )


def axis_responses(window: Window) -> tuple[Response, ...]:
    """Return how each axis of AAI_dyn answers to resources, targets those of AAI-4."""
    targets = thresholds(window.protocol)
    symbols = needed(window.protocol.index)[DYNAMIC]
    return _responses(
        window,
        {s: window.daily.values[s] for s in symbols if s in window.daily.values},
        {s: targets.get(s) for s in symbols},
    )


def thresholds(protocol: Protocol, level: int = 4) -> Mapping[str, float]:
    """Return what a level's axis gates ask for, by symbol."""
    return {
        rule.of: rule.required
        for rule in protocol.gates
        if rule.gate == "axis" and rule.level == level and rule.required is not None
    }


def margin_responses(window: Window) -> tuple[Response, ...]:
    """Return how each margin over experts answers; nothing without norms."""
    rules = window.protocol
    found = margins(window.daily.families, rules.norms.experts)
    return _responses(window, found, dict.fromkeys(found, rules.superhuman.z))


def _responses(
    window: Window, series: Mapping[str, Floats], targets: Mapping[str, float | None]
) -> tuple[Response, ...]:
    least = window.protocol.improvement.checkpoints_min
    return tuple(
        response(
            name,
            window.points.spent,
            values,
            targets[name],
            least=least,
            level=window.level,
        )
        for name, values in series.items()
    )


def response_table(title: str, found: Sequence[Response], note: str) -> CellTable:
    """Return responses, a row each."""
    return CellTable(
        title=title,
        columns=("of", "last", "target", "slope", "low", "high", "why"),
        rows=tuple(
            (r.name, figure(r.last), r.target, *(figure(x) for x in r.slope), r.reason)
            for r in found
        ),
        note=note,
    )


def delegation_table(window: Window) -> CellTable | None:
    """Return AUF per resource and the shift, None without a frontier a day."""
    areas, fits = window.daily.values[AREA], window.daily.frontier
    if not np.isfinite(areas).any():
        return None
    found = _responses(window, {AREA: areas}, {AREA: None})[0]
    first, last = np.array(fits[0]), np.array(fits[-1])
    same = len(first) == len(last) > 0
    never = bool((last >= first).all()) if same else None
    shift = figure(float(areas[-1] - areas[0]))
    return CellTable(
        title="Delegability over the campaign",
        columns=("figure", "value"),
        rows=(
            ("AUF, first checkpoint", figure(float(areas[0]))),
            ("AUF, last checkpoint", figure(float(areas[-1]))),
            ("shift of the frontier (integral of the difference)", shift),
            ("progress: F fell at no demand", {True: "yes", False: "no"}.get(never)),  # type: ignore[arg-type]
            ("delegation slope, AUF per kappa unit", figure(found.slope.value)),
            ("its lower bound", figure(found.slope.low)),
            ("its upper bound", figure(found.slope.high)),
        ),
        note=found.reason or "the slope is Theil-Sen over checkpoints",
    )
