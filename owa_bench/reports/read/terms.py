"""Terms of a run: whose its battery and protocol are, and a checklist of them."""

import json
from collections import Counter, defaultdict
from functools import cache
from importlib.resources import files

import numpy as np

from owa_bench.canonical import sha256
from owa_bench.records.people import HumanNorms
from owa_bench.records.plan import Plan, arm_role, arm_terms
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import AgentVerdict, CellTable, Judgement
from owa_bench.scoring.estimate.composites import composite, needed
from owa_bench.scoring.statistics.bootstrap import figure

# --- own terms and those of this package ----------------------------------------------
# Anybody can write a battery of easy tasks and a protocol whose gates ask for nothing.
# Their results are judged and shown, and give no level. The digests stand in the signed
# plan, and what the plan asks of each arm must be what the shipped battery asks:
# whoever patches the program can write any digest into a plan of easy tasks. A run of
# another version of the package may have had that version's own terms.


@cache
def _shipped(folder: str) -> dict[str, str]:
    """Return the SHA-256 of each TOML file in a folder of the package, by its stem."""
    entries = (files("owa_bench") / folder).iterdir()
    return {
        file.name.removesuffix(".toml"): sha256(file.read_bytes())
        for file in entries
        if file.name.endswith(".toml")
    }


@cache
def _asked_by_role() -> dict[str, dict[str, str]]:
    """Return what each battery of the package asks of an arm, by its role."""
    path = files("owa_bench") / "batteries" / "digests.json"
    digests: dict[str, dict[str, str]] = json.loads(path.read_text())
    return digests


def own_terms(plan: Plan) -> str:
    """Return what of a plan's terms is the submitter's own, "" where nothing is.

    Args:
        plan: The plan; one without a battery gives no level anyway.
    Returns: Words for the report.
    """
    if plan.battery is None:
        return ""
    theirs = []
    if plan.protocol_digest not in _shipped("protocols").values():
        theirs.append("protocol")
    if plan.battery_digest != _shipped("batteries").get(plan.battery):
        theirs.append(f"battery {plan.battery}")
    elif other := _other_entries(plan, _asked_by_role().get(plan.battery, {})):
        theirs.append(f"what is asked under the name of battery {plan.battery}: {other}")
    return " and ".join(theirs)


def _other_entries(plan: Plan, asked: dict[str, str]) -> str:
    """Return which arm plays something else than the battery asks, "" for none."""
    agents: dict[str, Counter[str]] = defaultdict(Counter)
    for arm in plan.arms:
        role = arm_role(arm)
        if role == "reference":  # no level is given for it, whatever it is asked
            continue
        if asked.get(role) != arm_terms(plan, arm):
            return (
                f"arm {arm.name} is asked for other entries, or under other terms "
                "(budgets, deadlines, prices, worlds of another run), than the "
                "package's"
            )
        agents[role][arm.fingerprint] += 1
    for role in ("frozen", "placebo"):
        if role in asked and agents["learner"] != agents[role]:
            return f"an agent has no {role} control"
    if "baseline" in asked and not agents["baseline"]:
        return "no baseline plays the lanes of maintenance"
    return ""


# --- checklist of reproducibility -----------------------------------------------------
# See AAI paper, section 4.5, the five items of its pre-registration template.


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
    Returns: A row an item.
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
    indices = "; ".join(
        f"{verdict.arm}: {_both_weightings(verdict, protocol)}" for verdict in judgement.verdicts
    )
    return f"{weights}; gamma {rules.gamma:g}. AAI published, equal: {indices}"


def _both_weightings(verdict: AgentVerdict, protocol: Protocol) -> str:
    """Return AAI by the protocol's weights and by equal ones."""
    axes = {axis.symbol: axis.value for axis in verdict.axes}
    used = needed(protocol.index)["AAI"]
    missing = [symbol for symbol in used if axes.get(symbol) is None]
    if missing:
        return f"not computable ({', '.join(missing)})"
    values = [np.array([axes[symbol]], dtype=float) for symbol in used]
    published = [w for w in protocol.index.weights.values() if w > 0]
    one, equal = (
        figure(float(composite(values, weights)[0])) for weights in (published, [1.0] * len(used))
    )
    return f"{one}, {equal}"


def _ablations(plan: Plan) -> str:
    budgets = [f"{meter} {most:g}" for meter, most in plan.budget.episode_meters]
    tools = sorted({tool for entry in plan.entries for tool in entry.tools_off})
    parts = []
    if budgets:
        parts.append(f"ceilings an episode {', '.join(budgets)}")
    if tools:
        parts.append(f"without tools {', '.join(tools)}")
    on_tools = "; ".join(parts) or "not ablated here: `owa-bench validate`"
    return f"T: {on_tools}. M: not ablated here: docs/tables/recall_memory.md"
