"""Gates of AAI-3 and AAI-4 that read projects and the logit link."""

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from owa_bench.records.score import ClosureResult, TotalGain
from owa_bench.records.trace import Trace
from owa_bench.scoring.estimate.gate_statistics import ProjectOutcomes
from owa_bench.scoring.gate import _NORMS_READ, GateReading, judge_gates, norms_mark
from owa_bench.scoring.gates.campaign import improving
from owa_bench.scoring.gates.capability import _norm_gaps
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import verdict
from tests.scoring.test_levels import findings, gained, status


def projects(delivered: int, *, days: float = 30, spend: float = 1.0) -> list[Trace]:
    return [
        episode(
            index=k,
            pair=f"p{k}",
            suite="projforge",
            family="service",
            days=days,
            q_state=1.0 if k < delivered else 0.5,
            costs=(("supervisor_min", spend, "agent"),),
        )
        for k in range(20)
    ]


@pytest.mark.parametrize(
    ("traces", "level", "expected"),
    [
        (projects(19), 3, "PASS"),
        (projects(8), 3, "UNDECIDED"),
        (projects(0), 3, "BELOW"),
        (projects(19, days=29), 3, "NO EVIDENCE"),
        (projects(19), 4, "PASS"),
        (projects(19, spend=200.0), 4, "PASS"),  # an expert: 8 decisions of 30 minutes
        (projects(19, spend=300.0), 4, "UNDECIDED"),
        ([episode()], 3, "NO EVIDENCE"),
    ],
)
def test_project_gate(traces: list[Trace], level: int, expected: str) -> None:
    gates = verdict(traces).gates
    found = next(g for g in gates if g.gate == "project" and g.level == level)
    assert found.status == expected, found.reason


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "PASS"),
        ({"gain": gained(logit_per_unit=0.019)}, "UNDECIDED"),
        ({"gain": gained(p=0.03)}, "UNDECIDED"),
        ({"checkpoints": 29}, "NO EVIDENCE"),
        ({"gain": gained(logit_per_unit=None)}, "NO EVIDENCE"),
        (
            {"gain": gained(logit_per_unit=None), "floor": 0.96},
            "PASS",
        ),  # saturated families are exempt
    ],
)
def test_logit_slope_of_level_four(change: dict[str, Any], expected: str) -> None:
    fit = {"checkpoints": 30, "floor": 0.7}
    score = msgspec.structs.replace(findings().kappas[0], **(fit | change))
    assert status(findings(kappas=(score,)), "kappa", 4).status == expected


@pytest.mark.parametrize(("days", "expected"), [(30, "PASS"), (29, "NO EVIDENCE")])
def test_closures_of_level_four_are_sustained(days: int, expected: str) -> None:
    held = ClosureResult(name="maintenance", status="PASS", reason="", days=days)
    found = findings(closures={"maintenance": held})
    assert status(found, "maintenance closure", 4).status == expected


@pytest.mark.parametrize(
    ("name", "gate"), [("axis", "A"), ("kappa", "kappa"), ("expansion", "expansion")]
)
def test_a_gate_whose_interval_covers_too_little_is_no_evidence(name: str, gate: str) -> None:
    rules = msgspec.structs.replace(PROTOCOL.statistics, uncovered=(name,))
    uncovered = msgspec.structs.replace(PROTOCOL, statistics=rules)
    plain, changed = findings(), findings(protocol=uncovered)
    pairs = list(zip(judge_gates(plain), judge_gates(changed), strict=True))
    moved = [after for before, after in pairs if before != after]
    assert moved
    assert {result.status for result in moved} == {"NO EVIDENCE"}
    assert all(gate in result.gate for result in moved if name != "axis")
    assert all("interval_coverage.md" in result.reason for result in moved)


def test_the_protocol_names_the_gates_that_the_table_finds_below() -> None:
    table = Path(__file__).parents[2] / "docs" / "tables" / "interval_coverage.md"
    line = next(x for x in table.read_text().splitlines() if x.startswith("Gates with"))
    named = line.partition(": ")[2]
    below = () if named == "none" else tuple(named.split(", "))
    assert tuple(sorted(PROTOCOL.statistics.uncovered)) == below


def reading(
    value: float | None, lower: float | None = None, highest: float | None = None
) -> GateReading:
    low, high = (value if end is None else end for end in (lower, highest))
    return GateReading(value, low, high)


def span(value: float) -> GateReading:
    return GateReading(value, value, math.inf)


NORMS = PROTOCOL.norms
RIGHT = {
    "vrp": reading(0.85),
    "truthful": reading(0.95),
    "span": span(NORMS.span),
    "delayed": reading(NORMS.delayed_recall),
}


@pytest.mark.parametrize(
    ("change", "expected", "words"),
    [
        ({}, "PASS", ""),
        ({"vrp": reading(0.79)}, "BELOW", "below: VRP@5 0.790 [0.790, 0.790] against 0.80;"),
        (
            {"vrp": reading(0.79, 0.7, 0.81)},
            "UNDECIDED",
            "undecided: VRP@5 0.790 [0.700, 0.810] against 0.80;",
        ),
        (
            {"vrp": reading(0.85, 0.7, 0.9)},
            "UNDECIDED",
            "undecided: VRP@5 0.850 [0.700, 0.900] against 0.80;",
        ),
        ({"truthful": reading(0.89)}, "BELOW", "below: 1 - HR@5 0.890"),
        ({"truthful": reading(0.95, 0.8)}, "UNDECIDED", "undecided: 1 - HR@5 0.950 [0.800,"),
        ({"span": span(NORMS.span - 1)}, "UNDECIDED", "undecided: span 4 against 5;"),
        ({"delayed": reading(0.0)}, "BELOW", "below: delayed recall 0.000"),
        ({"span": None}, "NO EVIDENCE", "no evidence on span"),
        (
            {"span": None, "vrp": reading(0.1)},
            "BELOW",
            "below: VRP@5 0.100 [0.100, 0.100] against 0.80; no evidence on span",
        ),
        (
            {"span": span(4), "vrp": reading(0.1), "delayed": None},
            "BELOW",
            "below: VRP@5 0.100 [0.100, 0.100] against 0.80; undecided: span 4 against 5; "
            "no evidence on delayed recall",
        ),
        (
            {"span": span(4), "delayed": None},
            "UNDECIDED",
            "undecided: span 4 against 5; no evidence on delayed recall",
        ),
    ],
)
def test_the_cognitive_gate_reads_four_parts(
    change: dict[str, Any], expected: str, words: str
) -> None:
    parts = {k: v for k, v in (RIGHT | change).items() if v is not None}
    found = status(findings(cognition=parts), "cognitive", 2)
    assert found.status == expected
    assert found.reason.startswith(words)
    assert bool(found.evidence) == ("no evidence" not in words)
    shown = f"VRP@5 {parts['vrp'].value:.3g}, 1 - HR@5 "
    assert found.measured.startswith(shown)


def test_the_cognitive_gate_without_any_probe_measured_nothing() -> None:
    found = status(findings(cognition={}), "cognitive", 2)
    assert (found.status, found.measured) == ("NO EVIDENCE", "nothing")
    parts = "VRP@5, 1 - HR@5, span, delayed recall"
    assert found.reason == f"no evidence on {parts}"
    fidelity = findings(cognition=RIGHT | {"fidelity": reading(0.125)})
    assert status(fidelity, "cognitive", 2).measured.endswith(", fidelity 0.125")


def tools(used: Any, success: Any, value: float | None = 0.66, needed: int = 3) -> Any:
    beside = {"categories used": used, "success at 0.25": success}
    axes = dict(findings().axes)
    details = {
        "beside": {k: v for k, v in beside.items() if v is not None},
        "categories": ["browser", "files", "http_api"][:needed],
    }
    changed = msgspec.structs.replace(axes["T"], value=value, details=details)
    return status(findings(axes=axes | {"T": changed}), "T", 1)


def test_the_gate_of_tools_asks_for_three_and_their_success() -> None:
    three, enough = {"value": 3.0}, {"value": 0.6, "lower": 0.55, "highest": 0.65}
    assert PROTOCOL.drift.mild == 0.25
    found = tools(three, enough)
    assert (found.status, found.measured) == ("PASS", "3 kinds of tool, success 0.600")
    short = {"value": 0.5, "lower": 0.4, "highest": 0.599}
    for used, success, expected, why in (
        (2.0, enough, "UNDECIDED", "2 kinds of tool against 3"),
        (3.0, enough | {"lower": 0.54}, "UNDECIDED", "0.600 [0.540, 0.650] against 0.60"),
        (3.0, short | {"highest": 0.6}, "UNDECIDED", "0.500 [0.400, 0.600] against 0.60"),
        (3.0, short, "BELOW", "0.500 [0.400, 0.599] against 0.60"),
        (
            2.0,
            short,
            "BELOW",
            "2 kinds of tool against 3, success 0.500 [0.400, 0.599] against 0.60",
        ),
        (
            2.0,
            enough | {"lower": None},
            "NO EVIDENCE",
            "2 kinds of tool against 3, success without a bound",
        ),
    ):
        line = tools({"value": used}, success)
        assert (line.status, line.reason) == (expected, why)
    for used, success in ((None, enough), (three, None), (three, {"value": None})):
        unknown = tools(used, success)
        assert unknown.status == "NO EVIDENCE"
        assert unknown.reason == "the kinds of tool used and their success are not known"
    assert tools(three, enough, None).status == "NO EVIDENCE"


def test_tasks_that_need_two_kinds_of_tool_cannot_show_three() -> None:
    found = tools({"value": 2.0}, {"value": 1.0, "lower": 1.0, "highest": 1.0}, needed=2)
    why = "the tasks played need 2 of 3 kinds of tool"
    assert (found.status, found.reason) == ("NO EVIDENCE", why)
    assert found.measured == "2 kinds of tool, success 1.000"


@pytest.mark.parametrize(
    ("value", "lower", "highest", "expected", "reason"),
    [
        (0.5, 0.45, 0.55, "PASS", ""),
        (0.49, 0.49, 0.49, "BELOW", "0.490 [0.490, 0.490] against 0.50"),
        (0.49, 0.49, 0.5, "UNDECIDED", "0.490 [0.490, 0.500] against 0.50"),
        (0.5, 0.44, 0.55, "UNDECIDED", "0.500 [0.440, 0.550] against 0.50"),
        (0.0, 0.0, 0.0, "BELOW", "0.000 [0.000, 0.000] against 0.50"),
        (0.5, None, None, "NO EVIDENCE", "without a bound"),
    ],
)
def test_the_core_is_held_against_its_norm(
    value: float, lower: float | None, highest: float | None, expected: str, reason: str
) -> None:
    assert NORMS.core == 0.5
    plain = findings()
    core = msgspec.structs.replace(plain.indices["core"], value=value)
    level = next(rule.level for rule in PROTOCOL.gates if rule.gate == "core")
    found = findings(indices={"core": core}, core=GateReading(value, lower, highest))
    result = status(found, "core score", level)
    assert (result.status, result.measured) == (expected, f"{value:.3f}")
    assert result.reason == reason


def test_norms_that_families_lack_are_named() -> None:
    counts = {"a": NORMS.experts_min, "b": NORMS.experts_min - 1}
    experts = {"a": (0.7, 0.1), "b": (0.7, 0.1), "c": (0.7, 0.1)}
    norms = msgspec.structs.replace(NORMS, expert_counts=counts, experts=experts)
    families = {"a": 0.7, "b": 0.69}
    generality = msgspec.structs.replace(PROTOCOL.generality, families=families)
    protocol = msgspec.structs.replace(PROTOCOL, norms=norms, generality=generality)
    assert _norm_gaps(("a",), protocol) == []
    assert _norm_gaps((), protocol) == ["no family has evidence on G"]
    assert _norm_gaps(("a", "b", "c", "d"), protocol) == [
        f"fewer than {NORMS.experts_min} experts: b, c, d",
        "no threshold from experts: c, d",
        "a threshold below its experts' mean: b",
    ]


def test_an_axis_without_evidence_or_bound_says_which() -> None:
    axes = dict(findings().axes)
    bare = msgspec.structs.replace(axes["A"], value=None, reason="why")
    found = status(findings(axes=axes | {"A": bare}), "A", 1)
    assert (found.status, found.measured, found.reason) == ("NO EVIDENCE", "nothing", "why")
    assert found.evidence == ()
    assert found.required == "A >= 0.50"
    unbounded = msgspec.structs.replace(axes["A"], lower=None)
    line = status(findings(axes=axes | {"A": unbounded}), "A", 1)
    assert (line.status, line.reason) == ("NO EVIDENCE", "without a bound")
    assert status(findings(), "A", 1).measured == "0.660"


def test_norms_ask_for_instances_in_every_family() -> None:
    rule = next(rule for rule in PROTOCOL.gates if rule.gate == "norms")
    axes = dict(findings().axes)
    for fewest, words in (
        (rule.count, None),
        (rule.count - 1, f"a family holds {rule.count - 1} instances"),
        (None, "a family holds 0 instances"),
    ):
        details = {} if fewest is None else {"fewest tasks a family": fewest}
        changed = msgspec.structs.replace(axes["G"], details=details)
        found = status(findings(axes=axes | {"G": changed}), "human-pro norms", rule.level)
        assert found.measured == f"{fewest or 0} instances"
        assert (words in found.reason) if words else ("a family holds" not in found.reason)


def test_norms_that_nobody_measured_are_provisional() -> None:
    read = {
        name
        for rule in PROTOCOL.gates
        if rule.level <= 2
        for name in _NORMS_READ.get(rule.gate, ())
    }
    assert read

    def mark(level: int, **changes: Any) -> str:
        fields = {"provisional": True, "synthetic": False, "measured": ()} | changes
        norms = msgspec.structs.replace(NORMS, **fields)
        return norms_mark(level, msgspec.structs.replace(PROTOCOL, norms=norms))

    some, every = tuple(sorted(read)[1:]), tuple(sorted(read))
    assert mark(2) == mark(2, measured=some, synthetic=True) == "provisional"
    assert mark(2, measured=every) == mark(2, provisional=False) == ""
    assert mark(2, measured=every, synthetic=True) == "synthetic"
    assert mark(2, measured=(*every, "experts"), synthetic=True) == "synthetic"
    assert mark(0) == mark(0, synthetic=True) == ""


def families(*scores: dict[str, Any]) -> Any:
    """Return findings with a kappa of each of these families, g0, g1, .."""
    good = findings().kappas[0]
    kappas = tuple(
        msgspec.structs.replace(good, **({"family": f"g{i}"} | changes))
        for i, changes in enumerate(scores)
    )
    whole = msgspec.structs.replace(good, family=None, slope=None, reason="whole")
    return findings(kappas=(whole, *kappas))


def test_enough_families_improve_and_are_named() -> None:
    none = {"gain": gained(value=0.0, per_unit=0.0)}
    three = status(families({}, none, {}, {}), "kappa", 3)
    assert (three.status, three.measured) == ("PASS", "3 of 4 families: g0, g2, g3")
    assert three.evidence == ("000000.0",)
    two = status(families({}, none, {}), "kappa", 3)
    assert (two.status, two.measured) == ("UNDECIDED", "2 of 3 families: g0, g2")
    assert two.reason == "not reached; no test says BELOW"
    worse = {"gain": gained(value=-0.1, per_unit=-0.1)}
    assert status(families(worse), "kappa", 2).measured == "0 of 1 families: none"


def test_every_family_that_is_not_saturated_is_asked_for_on_a_link() -> None:
    rises = {"checkpoints": 30, "floor": 0.7}
    limit = PROTOCOL.improvement.saturated
    found = status(families(rises, rises), "kappa", 4)
    assert (found.status, found.measured) == ("PASS", "2 of 2 families: g0, g1")
    assert found.required == (
        "over the frozen control >= 0.02 gained, >= 0.02 a kappa unit on the logit link, "
        "on every family, 30 days with spending"
    )
    still = rises | {"gain": gained(logit_per_unit=0.0)}
    assert status(families(rises, still), "kappa", 4).status == "UNDECIDED"
    for floor, expected in ((limit, "PASS"), (limit - 1e-6, "UNDECIDED"), (None, "UNDECIDED")):
        found = status(families(rises, still | {"floor": floor}), "kappa", 4)
        assert found.status == expected
    assert status(families(still | {"floor": limit}), "kappa", 4).status == "PASS"


def test_a_family_without_a_slope_says_why_there_is_no_evidence() -> None:
    gone = {"gain": None, "reason": "gone"}
    odd = {"gain": TotalGain(reason="odd")}
    found = status(families({}, {}, gone, odd), "kappa", 3)
    assert (found.status, found.reason) == ("NO EVIDENCE", "gone; odd")
    short = status(families({}, {}, {"checkpoints": 6}), "kappa", 3)
    assert short.reason == "2 families with a gain over 7 days"
    helped = status(families({"human": "b"}, {"human": "a"}, {"human": "b"}), "kappa", 3)
    assert (helped.status, helped.reason) == ("UNDECIDED", "human cost: a; b")


def test_a_short_series_counts_as_no_evidence_in_holm() -> None:
    """Its p of .0001 counts as 1, and the other three need alpha / 4 of four."""
    alpha = PROTOCOL.improvement.alpha
    fit = {"gain": gained(p=alpha / 4)}
    short = {"gain": gained(p=1e-4), "checkpoints": 6}
    assert status(families(fit, fit, fit, short), "kappa", 3).status == "PASS"
    wide = {"gain": gained(p=alpha / 3.9)}
    assert status(families(wide, wide, wide, short), "kappa", 3).status == "UNDECIDED"


def test_improving_families_reach_the_slope_in_fixed_decimals() -> None:
    alpha = PROTOCOL.improvement.alpha
    enough, least = [0.5] * 3, PROTOCOL.improvement.gain_min
    found = improving([0.01, 0.01 - 1e-9, 0.009], enough, [0.0] * 3, 0.01, PROTOCOL)
    assert found == (True, True, False)
    found = improving([0.1, 0.1], [0.5, 0.5], [alpha / 2, 1.0], 0.01, PROTOCOL)
    assert found == (True, False)
    found = improving([9.0] * 3, [least, least - 1e-9, 0.9 * least], [0.0] * 3, 0.01, PROTOCOL)
    assert found == (True, True, False)


@pytest.mark.parametrize(
    ("closure", "level", "expected", "reason"),
    [
        (("PASS", 30, False), 4, "PASS", "why"),
        (("PASS", 29, False), 4, "NO EVIDENCE", "tested on 29 consecutive days of 30"),
        (("FAIL", 30, False), 4, "UNDECIDED", "why"),
        (("FAIL", 29, True), 4, "UNDECIDED", "why"),
        (("FAIL", 30, True), 4, "BELOW", "why"),
        (("NO EVIDENCE", 40, True), 4, "NO EVIDENCE", "why"),
        (None, 4, "NO EVIDENCE", "no such closure is tested"),
    ],
)
def test_a_closure_stands_with_its_own_words(closure, level, expected, reason) -> None:
    held = {}
    if closure:
        state, days, below = closure
        held["maintenance"] = ClosureResult(
            name="maintenance", status=state, reason="why", days=days, below=below, evidence=("e",)
        )
    found = status(findings(closures=held), "maintenance closure", level)
    assert (found.status, found.reason) == (expected, reason)
    assert found.required == "PASS, sustained 30 days"
    assert found.evidence == (("e",) if closure else ())


@pytest.mark.parametrize(
    ("number", "days", "read", "cost", "level", "expected"),
    [
        (20, 30, (0.95, 0.9), None, 3, ("PASS", "")),
        (20, 29, (0.95, 0.9), None, 3, ("NO EVIDENCE", "no project of 30 days")),
        (0, 30, (0.95, 0.9), None, 3, ("NO EVIDENCE", "no project of 30 days")),
        (20, 30, (0.95, None), None, 3, ("NO EVIDENCE", "without a bound")),
        (20, 30, (0.95, 0.9), 1.0, 4, ("PASS", "")),
        (20, 30, (0.95, 0.9), 1.001, 4, ("UNDECIDED", "dearer than an expert")),
        (20, 30, (0.95, 0.9), None, 4, ("NO EVIDENCE", "the cost is unknown")),
        (20, 30, (0.1, 0.05, 0.2), 5.0, 4, ("BELOW", "0.100 [0.050, 0.200] against 0.60")),
        (20, 30, (0.5, 0.4, 0.6), 5.0, 4, ("UNDECIDED", "0.500 [0.400, 0.600] against 0.60")),
    ],
)
def test_projects_are_delivered_at_an_experts_cost(
    number, days, read, cost, level, expected
) -> None:
    outcomes = ProjectOutcomes(number=number, days=days, cost=cost, attempts=("a",))
    found = status(findings(projects=outcomes, delivered=GateReading(*read)), "project", level)
    assert found.status == expected[0]
    assert found.reason.startswith(expected[1])
    assert bool(found.reason) == bool(expected[1])
    if expected[0] == "PASS":
        words = "" if cost is None else f", {cost:.3g} of the expert's cost"
        assert found.measured == f"20 projects, 0.950 delivered{words}"
        assert found.evidence == ("a",)


def net(value: float | None, lower: float | None, highest: float | None = None) -> dict[str, Any]:
    """Return axes whose S is .66 before and `value` after the muted crew is taken."""
    table = {"value": value, "low": 0.1, "high": 0.9, "lower": lower, "highest": highest}
    changes = {"gated": "S_net", "details": {"beside": {"S_net": table}}}
    axes = dict(findings().axes)
    return axes | {"S": msgspec.structs.replace(axes["S"], **changes)}


@pytest.mark.parametrize(
    ("bounds", "expected", "measured"),
    [
        ((0.5, 0.4, 0.6), "PASS", "0.500"),
        ((0.1, 0.0, 0.2), "UNDECIDED", "0.100"),
        ((0.1, 0.0, 0.199), "BELOW", "0.100"),
        ((None, None, None), "NO EVIDENCE", "nothing"),
    ],
)
def test_the_gate_of_s_reads_what_is_left_of_it_net_of_a_muted_crew(
    bounds: tuple[float | None, ...], expected: str, measured: str
) -> None:
    found = status(findings(axes=net(*bounds)), "S")
    assert (found.status, found.measured) == (expected, measured)
    assert found.required == "S_net >= 0.20"
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (0.1, 0.9)


def test_the_gate_of_an_axis_without_a_value_shows_the_axis_and_its_reason() -> None:
    found = status(findings(row={"S": None}), "S")
    assert (found.status, found.measured) == ("NO EVIDENCE", "nothing")
    assert (found.required, found.reason) == ("S >= 0.20", "nothing seen")
    axes = net(None, None)
    axes["S"] = msgspec.structs.replace(axes["S"], value=None)
    assert status(findings(axes=axes), "S").required == "S >= 0.20"
