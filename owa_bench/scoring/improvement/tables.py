"""Tables of a campaign: checkpoints, responses, delegation, control, optional gates.

Source: the AAI paper, sections 3.7, 3.9, 3.11 and 6.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.records.protocol import Improvement, Protocol
from owa_bench.records.score import CellTable, ClosureResult, Curve, KappaScore
from owa_bench.scoring.estimate.composites import composite, needed
from owa_bench.scoring.improvement.checkpoints import AREA, DYNAMIC, CampaignWindow, yes_or_no
from owa_bench.scoring.improvement.continuous_score import at_least
from owa_bench.scoring.improvement.curvature import Curvature, window_tests
from owa_bench.scoring.improvement.theorem import Response, margins, response
from owa_bench.scoring.statistics.bootstrap import figure

_PLAIN = "AAI"
_FLOW = "R"
_PAIR = 2  # families that must accelerate (AAI-3), steps that must follow (AAI-4)


def plain(window: CampaignWindow) -> Floats:
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


def checkpoint_table(window: CampaignWindow) -> CellTable:
    """Return AAI, AAI_dyn and every axis, a row a checkpoint."""
    daily = window.daily.values
    symbols = [symbol for symbol in daily if symbol not in (DYNAMIC, AREA)]
    series = [window.points.spent, plain(window), daily[DYNAMIC]]
    series += [daily[symbol] for symbol in symbols]
    figures = (map(figure, values.tolist()) for values in series)
    rows = zip(window.points.days, *figures, strict=True)
    columns = ("day", "R, kappa units", _PLAIN, DYNAMIC, *symbols)
    note = "AAI holds the run's axis R, a flow; slopes read AAI_dyn, without it"
    return CellTable("Checkpoints in order", columns, tuple(rows), note)


def checkpoint_curves(window: CampaignWindow) -> tuple[Curve, ...]:
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
            y=tuple(map(figure, values.tolist())),
            low=(None,) * len(values),
            high=(None,) * len(values),
            used=(1,) * len(values),
            note="a point a checkpoint; no band",
        )
        for name, values in series.items()
        if np.isfinite(values).any()
    )


def axis_responses(window: CampaignWindow) -> tuple[Response, ...]:
    """Return the response of each axis of AAI_dyn to resources, targets of AAI-4."""
    targets = axis_thresholds(window.protocol)
    symbols = needed(window.protocol.index)[DYNAMIC]
    known = {s: window.daily.values[s] for s in symbols if s in window.daily.values}
    return _responses(window, known, targets)


def axis_thresholds(protocol: Protocol, level: int = 4) -> Mapping[str, float]:
    """Return the thresholds of a level's axis gates.

    Args:
        protocol: the protocol with its gates.
        level: the AAI level.
    Returns: The threshold by symbol of the axis.
    """
    return {
        rule.of: rule.required
        for rule in protocol.gates
        if rule.gate == "axis" and rule.level == level and rule.required is not None
    }


def margin_responses(window: CampaignWindow) -> tuple[Response, ...]:
    """Return the response of each margin over experts; nothing without norms."""
    rules = window.protocol
    leads = margins(window.daily.families, rules.norms.experts)
    return _responses(window, leads, dict.fromkeys(leads, rules.superhuman.z))


def _responses(
    window: CampaignWindow, series: Mapping[str, Floats], targets: Mapping[str, float]
) -> tuple[Response, ...]:
    return tuple(
        _response(window, name, values, targets.get(name)) for name, values in series.items()
    )


def _response(
    window: CampaignWindow, name: str, values: Floats, target: float | None = None
) -> Response:
    least, level = window.protocol.improvement.checkpoints_min, window.level
    return response(name, window.points.spent, values, target, least=least, level=level)


def response_table(title: str, found: Sequence[Response], note: str) -> CellTable:
    """Return responses as a table.

    Args:
        title: title of the table.
        found: the responses.
        note: text below the table.
    Returns: A row a response.
    """
    columns = ("of", "last", "target", "slope", "low", "high", "why")
    rows = tuple((r.name, figure(r.last), r.target, *map(figure, r.slope), r.reason) for r in found)
    return CellTable(title, columns, rows, note)


def delegation_table(window: CampaignWindow) -> CellTable | None:
    """Return AUF per resource and the shift, None without a frontier a day."""
    areas, fits = window.daily.values[AREA], window.daily.frontier
    if not np.isfinite(areas).any():
        return None
    growth = _response(window, AREA, areas)
    first, last = np.array(fits[0]), np.array(fits[-1])
    progress = None
    if len(first) == len(last) > 0:
        progress = "yes" if (last >= first).all() else "no"
    shift = figure(float(areas[-1] - areas[0]))
    columns = ("figure", "value")
    rows = (
        ("AUF, first checkpoint", figure(float(areas[0]))),
        ("AUF, last checkpoint", figure(float(areas[-1]))),
        ("shift of the frontier (integral of the difference)", shift),
        ("progress: F fell at no demand", progress),
        ("delegation slope, AUF per kappa unit", figure(growth.slope.value)),
        ("its lower bound", figure(growth.slope.low)),
        ("its upper bound", figure(growth.slope.high)),
    )
    note = growth.reason or "the slope is Theil-Sen over checkpoints"
    return CellTable("Delegability over the campaign", columns, rows, note)


class Counterfactual(NamedTuple):
    """Slopes of an agent, of its frozen control, and of the gap between both."""

    agent: Response
    frozen: Response
    gap: Response


def counterfactual(
    name: str, spent: Floats, agent: Floats, frozen: Floats, *, least: int, level: float
) -> Counterfactual:
    """Return the slope on resources with learning, without it, and of the gap.

    Formula:
        slope of A(R), of A_frozen(R) and of A - A_frozen, each Theil-Sen on the
        *agent's* R: the control spends nothing that could move it
    Shapes: three arrays (checkpoints,). Units: per kappa unit.
    Missing: as `response`. Errors: ScoringError if the shapes differ.
    Source: [S] section 3.9 of the AAI paper (ablations that freeze self-revision and
        tool discovery); the gap [R].

    >>> x = np.arange(8.0)
    >>> lanes = counterfactual("A", x, 0.3 + 0.02 * x, 0.3 - 0.01 * x, least=7,
    ...     level=0.95)
    >>> round(lanes.gap.slope.value, 6)
    0.03
    """
    if agent.shape != frozen.shape:
        raise ScoringError(f"A control plays the same checkpoints: {agent.shape}, {frozen.shape}.")
    series = (agent, frozen, agent - frozen)
    slopes = (response(name, spent, v, None, least=least, level=level) for v in series)
    return Counterfactual(*slopes)


def counterfactual_table(window: CampaignWindow) -> CellTable | None:
    """Return the table of every series, None where no control played along."""
    frozen, rules = window.frozen, window.protocol.improvement
    if frozen is None or frozen.points.days != window.points.days:
        return None
    pairs = {DYNAMIC: (window.daily.dynamic, frozen.daily.dynamic)}
    for family, values in window.points.quality.items():
        pairs[family] = (values, frozen.points.quality[family])
    rows, least = [], rules.checkpoints_min
    for name, pair in pairs.items():
        spent, level = window.points.spent, window.level
        pair_slopes = counterfactual(name, spent, *pair, least=least, level=level)
        slopes = (pair_slopes.agent.slope.value, *pair_slopes.frozen.slope, *pair_slopes.gap.slope)
        bends = [window.curvature_of(v, rules.link).curvature for v in pair]
        rows.append((name, *map(figure, slopes), *bends, pair_slopes.gap.reason))
    days = window.points.days
    return CellTable(
        title="Counterfactual: the same checkpoints with learning frozen",
        columns=(
            *("of", "slope", "slope frozen", "frozen low", "frozen high"),
            *("slope of the gap", "low", "high"),
            *(f"c_g ({rules.link})", "c_g frozen", "why"),
        ),
        rows=tuple(rows),
        note=(
            "the control keeps no memory, so no self-revision and no discovered tool; "
            f"window: days {days[0]} to {days[-1]}, bandwidth of the local quadratic: "
            "the whole window; per kappa unit of the agent's own spending"
        ),
    )


class OptionalGate(NamedTuple):
    """One optional gate; `met` None: no evidence."""

    level: int
    gate: str
    required: str
    measured: str
    met: bool | None


def optional_gates(
    families: Mapping[str, Curvature],
    kappas: Sequence[KappaScore],
    closures: Mapping[str, ClosureResult],
    steps: int | None,
    rules: Improvement,
) -> tuple[OptionalGate, ...]:
    """Return the optional gates of AAI-2, AAI-3 and AAI-4. No level rests on them.

    Formula:
        AAI-2: kappa >= kappa_min, lower bound > 0, on 1 family; maintenance
        AAI-3: the same on 3 families; lower bound of mean c_g > 0 on 2; expansion;
            one link step since the first checkpoint
        AAI-4: lower bound of c_g >= -c_max on every family; two link steps
    Shapes: mappings by family. Units: as each.
    Missing: None where an interval, a closure or the steps are unknown.
    Errors: none. Source: [S] section 3.9 of the AAI paper; numbers [D].
    """
    slopes = [_rises(k, rules.kappa_min) for k in kappas if k.family is not None]
    tests = [window_tests(bend, rules.curvature_max) for bend in families.values()]
    kappa = f"kappa >= {rules.kappa_min:g}, lower bound > 0"
    bounded = "diminishing returns bounded", f"c_g >= -{rules.curvature_max:g} on all"
    bends, bound = [t.accelerates for t in tests], [t.bounded for t in tests]
    most = max(len(bound), 1)

    def step(level: int, gate: str, least: int) -> OptionalGate:
        counted = "unknown" if steps is None else f"{steps}"
        required = f"{least} of {rules.step:.4g} on the {rules.link} link"
        met = None if steps is None else steps >= least
        return OptionalGate(level, gate, required, counted, met)

    return (
        OptionalGate(2, "kappa", f"{kappa}, 1 family", *_count(slopes, 1)),
        _closure(2, "maintenance", closures),
        OptionalGate(3, "kappa", f"{kappa}, 3 families", *_count(slopes, 3)),
        OptionalGate(3, "acceleration", "c_g > 0 on 2 families", *_count(bends, _PAIR)),
        _closure(3, "expansion", closures),
        step(3, "link step", 1),
        OptionalGate(4, *bounded, *_count(bound, most)),
        step(4, "link steps", _PAIR),
    )


def _rises(score: KappaScore, least: float) -> bool | None:
    if score.slope is None or score.interval.low is None:
        return None
    return score.slope >= least and score.interval.low > 0


def _count(marks: Sequence[bool | None], least: int) -> tuple[str, bool | None]:
    """Return how many marks hold, and whether they are enough."""
    known = len(marks) - marks.count(None)
    text = f"{marks.count(True)} of {known} measured, {len(marks)} families"
    return text, at_least(marks, least) if marks else None


def _closure(level: int, name: str, closures: Mapping[str, ClosureResult]) -> OptionalGate:
    closure = closures.get(name)
    status = closure.status if closure else "NOT TESTED"
    met = {"PASS": True, "FAIL": False}.get(status)
    return OptionalGate(level, f"{name} closure", "PASS", status, met)


def optional_table(gates: Sequence[OptionalGate]) -> CellTable:
    """Return the optional gates as a table."""
    columns = ("level", "gate", "required", "measured", "met")
    rows = tuple((*gate[:-1], yes_or_no(gate.met)) for gate in gates)
    note = "no level rests on them; steps are counted from the first checkpoint"
    return CellTable("Optional gates of section 3.9", columns, rows, note)
