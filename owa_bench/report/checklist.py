"""The checklist of reproducibility, filled in from the signed terms of a run.

Source: AAI paper, section 4.5, the five items of its pre-registration template.
"""

import numpy as np

from owa_bench.records.norms import HumanNorms
from owa_bench.records.plan import Plan
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import AgentVerdict, CellTable, Judgement
from owa_bench.scoring.bootstrap import figure
from owa_bench.scoring.composites import composite, needed

_COLUMNS = ("item", "asked for", "in this run")
_MEMORY_SUITE = "recall"


def checklist_table(
    plan: Plan, protocol: Protocol, judgement: Judgement, norms: HumanNorms | None
) -> CellTable:
    """Return the five items of the checklist with what the run's terms say of each.

    Args:
        plan: The signed plan.
        protocol: The protocol that it pins.
        judgement: The judgement of the run.
        norms: Figures of persons, None where thresholds are provisional.

    Returns:
        A row an item.
    """
    rows = (
        (1, "anchors with human reference distributions", _anchors(protocol, norms)),
        (2, "micro-battery: items, scoring, distractors", _battery(plan)),
        (3, "thresholds and promotion criteria", _thresholds(judgement, protocol)),
        (4, "weights, gamma, equal against published", _weights(judgement, protocol)),
        (5, "ablations: tools on T, memory policy on M", _ablations(plan)),
    )
    note = "A row that says `not` names what this run does not show."
    return CellTable("checklist of reproducibility", _COLUMNS, rows, note)


def _anchors(protocol: Protocol, norms: HumanNorms | None) -> str:
    low_high = ", ".join(
        f"{symbol} {anchor.low:g} to {_end(anchor.high)}"
        for symbol, anchor in protocol.anchors.items()
    )
    if norms is None:
        people = "not measured on people: thresholds are provisional"
    elif norms.synthetic:
        people = f"not measured on people: {len(norms.runs)} programs (synthetic norms)"
    else:
        people = f"{len(norms.runs)} persons, in the table of norms"
    return f"{low_high}; {people}"


def _end(high: float | str) -> str:
    return high if isinstance(high, str) else f"{high:g}"


def _battery(plan: Plan) -> str:
    for suite in plan.suites:
        if suite.name == _MEMORY_SUITE:
            return (
                f"{suite.name} v{suite.version}, source {suite.source_digest[:16]}, "
                f"families {', '.join(suite.families)}; seeds committed in the plan; "
                "docs/recall.md"
            )
    return f"not played: no {_MEMORY_SUITE} in this run"


def _thresholds(judgement: Judgement, protocol: Protocol) -> str:
    return (
        f"{len(protocol.gates)} lines of gates in protocol {protocol.name}, digest "
        f"{judgement.protocol_digest[:16]}, fixed in the plan before episode 0"
    )


def _weights(judgement: Judgement, protocol: Protocol) -> str:
    rules = protocol.index
    weights = ", ".join(f"{s} {w:.3g}" for s, w in rules.weights.items())
    found = "; ".join(
        f"{verdict.arm}: {_both(verdict, protocol)}" for verdict in judgement.verdicts
    )
    return f"{weights}; gamma {rules.gamma:g}. AAI published, equal: {found}"


def _both(verdict: AgentVerdict, protocol: Protocol) -> str:
    """Return AAI by the protocol's weights and by equal ones."""
    axes = {axis.symbol: axis.value for axis in verdict.axes}
    used = needed(protocol.index)["AAI"]
    missing = [symbol for symbol in used if axes[symbol] is None]
    if missing:
        return f"not computable ({', '.join(missing)})"
    values = [np.array([axes[symbol]], dtype=float) for symbol in used]
    published = [w for w in protocol.index.weights.values() if w > 0]
    one, equal = (
        figure(float(composite(values, weights)[0]))
        for weights in (published, [1.0] * len(used))
    )
    return f"{one}, {equal}"


def _ablations(plan: Plan) -> str:
    budgets = [f"{meter} {most:g}" for meter, most in plan.budget.episode_meters]
    tools = sorted({tool for entry in plan.entries for tool in entry.tools_off})
    said = []
    if budgets:
        said.append(f"ceilings an episode {', '.join(budgets)}")
    if tools:
        said.append(f"without tools {', '.join(tools)}")
    on_tools = "; ".join(said) or "not ablated here: `owa-bench validate`"
    return f"T: {on_tools}. M: not ablated here: docs/tables/recall_memory.md"
