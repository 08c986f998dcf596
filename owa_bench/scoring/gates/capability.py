"""Gates on axes, tools, core score, cognitive micro-batteries and norms."""

from owa_bench.records.protocol import GateRule, Protocol
from owa_bench.records.score import GateResult, GateStatus, Interval
from owa_bench.scoring import gate
from owa_bench.scoring.axis import NO_GATE, SOURCE

_TOLD: dict[GateStatus, str] = {"BELOW": "below:", "UNDECIDED": "undecided:"}


def _axis(rule: GateRule, findings: gate.Findings) -> GateResult:
    """Judge whether an axis reaches its threshold, or lies below it.

    Reads `of` (the symbol) and `required`. S is read net of the muted crew (S_net).
    """
    required, axis = rule.required or 0.0, findings.axes[rule.of]
    read = gate.gated_statistic(axis)
    status = gate.gate_status(read, required, findings.protocol)
    interval, name = axis.tasks_like_these, rule.of
    if axis.gated is not None and axis.value is not None:
        name, table = axis.gated, axis.details["beside"][axis.gated]
        interval = Interval(low=table["low"], high=table["high"], method=interval.method)
    reason, why = gate.status_reason(status, read, required), str(axis.details.get(NO_GATE, ""))
    if read.value is None:
        reason = axis.reason or why or f"{axis.gated} has no evidence"
    elif status == "NO EVIDENCE":
        reason = why or axis.tasks_like_these.reason or reason
    reason = reason or str(axis.details.get(SOURCE, ""))
    return gate.gate_result(
        rule,
        rule.of,
        status,
        required=f"{name} >= {required:.2f}",
        measured="nothing" if read.value is None else f"{read.value:.3f}",
        interval=interval,
        evidence=() if read.value is None else findings.evidence,
        reason=reason,
    )


def _tools(rule: GateRule, findings: gate.Findings) -> GateResult:
    """Judge whether enough tools are used, and work under mild drift.

    Reads `count` (kinds of tool used) and `required` (success at mild drift). A count has no bound:
    too few kinds leave the gate UNDECIDED, and BELOW rests on success alone. Where the tasks that
    were played need fewer kinds, nobody could use enough: no evidence.
    """
    required, mild = rule.required or 0.0, findings.protocol.drift.mild
    asked = f"{rule.count} kinds of tool, success >= {required:g} at drift {mild:g}"
    axis = findings.axes["T"]
    table = axis.details.get("beside", {})
    used, success = table.get("categories used"), table.get(f"success at {mild:g}")
    known = used is not None and success is not None and success["value"] is not None
    if axis.value is None or not known:
        why = "the kinds of tool used and their success are not known"
        why = (axis.reason or "") if axis.value is None else why
        return gate.gate_result(rule, "T", "NO EVIDENCE", asked, reason=why)
    tools = int(used["value"])
    read = gate.beside_reading(success)
    status = gate.gate_status(read, required, findings.protocol)
    reasons, needed = [gate.status_reason(status, read, required)], axis.details.get("categories")
    if tools < rule.count:
        status = "UNDECIDED" if status == "PASS" else status
        reasons.insert(0, f"{tools} kinds of tool against {rule.count}")
    measured, seen = f"{tools} kinds of tool, success {read.value:.3f}", findings.evidence
    reason = ", success ".join(filter(None, reasons))
    if len(needed or ()) < rule.count and status != "BELOW":
        status = "NO EVIDENCE"
        reason = f"the tasks played need {len(needed or ())} of {rule.count} kinds of tool"
    return gate.gate_result(rule, "T", status, asked, measured, reason=reason, evidence=seen)


def _core(rule: GateRule, findings: gate.Findings) -> GateResult:
    """Judge the core score (equal weights on G, P, M, W) against tau_AGI."""
    required, score = findings.protocol.norms.core, findings.indices["core"]
    read = findings.core._replace(value=score.value)
    status = gate.gate_status(read, required, findings.protocol)
    return gate.gate_result(
        rule,
        "core score",
        status,
        required=f"geometric mean of G, P, M, W >= {required:g}",
        measured="nothing" if score.value is None else f"{score.value:.3f}",
        interval=score.tasks_like_these,
        reason=score.reason or gate.status_reason(status, read, required),
        evidence=() if score.value is None else findings.evidence,
    )


def _cognitive(rule: GateRule, findings: gate.Findings) -> GateResult:
    """Judge the cognitive micro-batteries (eq 33 of the AAI paper).

    Reads `numbers` (VRP@5, HR@5) and the norms (span, delayed recall). BELOW where a part is tested
    to lie below, else UNDECIDED where one is undecided, else NO EVIDENCE where one has none. A span
    is a count of which no error is known: it has no slack, and one under its norm is undecided,
    because the accuracy at each length that ends it is itself a share of some 40 trials. Fidelity
    is shown, not judged.
    """
    norms, numbers, read = findings.protocol.norms, rule.numbers, findings.cognition
    nothing = gate.GateReading()
    parts = {
        "VRP@5": (read.get("vrp", nothing), numbers.get("vrp", 0.0)),
        "1 - HR@5": (read.get("truthful", nothing), 1.0 - numbers.get("hallucination", 0.0)),
        "span": (read.get("span", nothing), norms.span),
        "delayed recall": (read.get("delayed", nothing), norms.delayed_recall),
    }
    named: dict[GateStatus, list[str]] = {}
    for name, (part, required) in parts.items():
        status = gate.gate_status(part, required, findings.protocol)
        words = f" {part.against(required)}" if status in _TOLD else ""
        named.setdefault(status, []).append(name + words)
    lacking = named.get("NO EVIDENCE", [])
    reasons = [
        f"{words} {', '.join(named[status])}" for status, words in _TOLD.items() if status in named
    ]
    reasons += [f"no evidence on {', '.join(lacking)}"] if lacking else []
    shown = {name: part for name, (part, _) in parts.items()}
    shown["fidelity"] = read.get("fidelity", nothing)
    figures = [f"{name} {part.value:.3g}" for name, part in shown.items() if part.value is not None]
    mark = gate.norms_mark(rule.level, findings.protocol)
    reasons += [f"{mark} norms"] if mark and figures else []
    return gate.gate_result(
        rule,
        "cognitive",
        next(status for status in (*_TOLD, "NO EVIDENCE", "PASS") if status in named),
        required=(
            f"VRP@5 >= {numbers.get('vrp', 0):g}, "
            f"HR@5 <= {numbers.get('hallucination', 0):g}, "
            f"span >= {norms.span:g}, delayed recall >= {norms.delayed_recall:g}"
        ),
        measured=", ".join(figures) or "nothing",
        reason="; ".join(reasons),
        evidence=findings.evidence if not lacking else (),
    )


def _norms(rule: GateRule, findings: gate.Findings) -> GateResult:
    """Judge whether every family has experts, their threshold and `count` instances.

    A family's threshold of G must be declared, and not lie below its experts' mean.
    """
    details, norms = findings.axes["G"].details, findings.protocol.norms
    fewest = int(details.get("fewest tasks a family", 0))
    recorded = "experts" in norms.measured
    lacks = [] if recorded or not norms.provisional else ["no human norms are recorded"]
    lacks += _norm_gaps(tuple(details.get("thresholds", {})), findings.protocol)
    if fewest < rule.count:
        lacks.append(f"a family holds {fewest} instances")
    status: GateStatus = "NO EVIDENCE" if lacks else "PASS"
    asked = (
        f"thresholds per family from >= {norms.experts_min} experts, {rule.count} instances each"
    )
    measured, why = f"{fewest} instances", "; ".join(lacks)
    return gate.gate_result(rule, "human-pro norms", status, asked, measured, reason=why)


def _norm_gaps(families: tuple[str, ...], protocol: Protocol) -> list[str]:
    """Return what the families lack of norms; one sentence per kind of gap."""
    norms, limits = protocol.norms, protocol.generality.families
    decimals = protocol.statistics.gate_decimals
    few = [f for f in families if norms.expert_counts.get(f, 0) < norms.experts_min]
    experts = {f: norms.experts[f] for f in families if f in norms.experts}
    open_ = [f for f in families if f not in experts or f not in limits]
    low = [
        f for f in experts if f in limits and not gate.reaches(limits[f], experts[f][0], decimals)
    ]
    words = (
        (few, f"fewer than {norms.experts_min} experts"),
        (open_, "no threshold from experts"),
        (low, "a threshold below its experts' mean"),
    )
    gaps = [f"{why}: {', '.join(names)}" for names, why in words if names]
    return gaps if families else ["no family has evidence on G"]


GATES = (
    gate.Gate("axis", _axis),
    gate.Gate("tools", _tools),
    gate.Gate("core", _core),
    gate.Gate("cognitive", _cognitive),
    gate.Gate("norms", _norms),
)
