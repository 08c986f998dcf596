"""A campaign with a frozen control: series, counterfactual, delegation, optional."""

from functools import cache

import msgspec
import numpy as np
import pytest

from owa_bench.records.events import Intervention, Revision
from owa_bench.records.plan import Arm, Plan
from owa_bench.records.score import AgentVerdict, CellTable
from owa_bench.records.trace import Trace
from owa_bench.scoring.improvement.continuous_score import cut_point_table
from owa_bench.scoring.improvement.curvature import Curvature
from owa_bench.scoring.improvement.tables import optional_gates
from owa_bench.scoring.pipeline import judge
from tests.builders.campaign import judged
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, episode, plan_of

DAYS, TASKS = 10, 4
CONTROL = "agent (frozen)"


def campaign(gain: float, *, helped: bool = False) -> list[Trace]:
    """Return days of practice and checkpoints at two budgets, the control beside."""
    traces: list[Trace] = []
    adopted = Revision(step=1, proposal="p", decision="adopted")
    help_ = Intervention(step=1, kind="hint", minutes=2.0)
    paid = ("supervisor_min", 2.0, "human")
    for day in range(DAYS):
        traces.append(
            episode(
                index=len(traces),
                pair=f"practice{day}",
                day=day,
                delta=None,
                phase="practice",
                costs=(("api_calls", 40.0, "agent"), *((paid,) if helped else ())),
                extra=(adopted, *((help_,) if helped else ())) if day == 3 else (),
            )
        )
        for arm, more in (("agent", gain * day), (CONTROL, 0.0)):
            for k in range(TASKS):
                for budget in (0, 2):
                    traces.append(
                        episode(
                            index=len(traces),
                            arm=arm,
                            pair=f"p{k}",
                            day=day,
                            delta=None,
                            phase="checkpoint",
                            interventions=budget,
                            q_state=min(0.3 + more + 0.1 * budget + 0.01 * k, 0.94),
                            stated=0.0,
                            costs=(("api_calls", 10.0, "evaluation"),),
                        )
                    )
    return traces


def with_control(traces: list[Trace]) -> Plan:
    """Return the plan in which the second arm is the frozen control of the first."""
    arms = (
        Arm(name="agent", agent="agent", fingerprint="f"),
        Arm(name=CONTROL, agent="agent", fingerprint="f", frozen=True),
    )
    return msgspec.structs.replace(plan_of(traces), arms=arms)


@cache
def verdicts(gain: float, *, helped: bool = False) -> tuple[AgentVerdict, ...]:
    traces = campaign(gain, helped=helped)
    plan = with_control(traces)
    found = judge(plan, traces, PROTOCOL, PRICES, evidence_root="", replay_root=ROOT)
    return found.verdicts


def table(found: AgentVerdict, title: str) -> CellTable:
    return next(t for t in found.tables if t.title.startswith(title))


def test_the_counterfactual_is_flat_where_the_agent_rises() -> None:
    agent, control = verdicts(0.02)
    rows = {row[0]: row for row in table(agent, "Counterfactual").rows}
    family = rows["toolquest/reconcile"]
    own, *frozen, gap, low = family[1:7]
    assert own > 0
    assert frozen == [0.0, 0.0, 0.0]
    assert gap == pytest.approx(own)
    assert low == pytest.approx(own, rel=1e-3)
    assert rows["AAI_dyn"][10] == "not measured at each checkpoint"
    assert "bandwidth" in table(agent, "Counterfactual").note
    assert not any(t.title.startswith("Counterfactual") for t in control.tables)


def test_delegation_has_a_slope_on_resources() -> None:
    rows = dict(table(verdicts(0.02)[0], "Delegability over").rows)
    slope = rows["delegation slope, AUF per kappa unit"]
    assert slope > 0
    first, last = rows["AUF, first checkpoint"], rows["AUF, last checkpoint"]
    shift = rows["shift of the frontier (integral of the difference)"]
    assert shift == pytest.approx(last - first, abs=1e-6)
    assert rows["progress: F fell at no demand"] == "yes"
    still = dict(table(verdicts(0.0)[0], "Delegability over").rows)
    assert still["delegation slope, AUF per kappa unit"] == 0.0


@pytest.mark.slow
def test_checkpoints_stand_in_order_with_both_indices() -> None:
    found = table(judged(0.01), "Checkpoints in order")
    assert found.columns[:4] == ("day", "R, kappa units", "AAI", "AAI_dyn")
    assert [row[0] for row in found.rows] == list(range(14))
    assert all(row[2] is None and row[3] > 0 for row in found.rows)  # no R in the run
    names = {curve.name for curve in judged(0.01).curves}
    assert "AAI_dyn over agent-initiated resources" in names


@pytest.mark.slow
def test_axes_answer_and_the_theorem_reads_the_weakest() -> None:
    found = judged(0.01)
    responses = {row[0]: row for row in table(found, "Axis responses").rows}
    assert responses["A"][2] == 0.9
    assert responses["G"][3] is not None
    lines = {row[0]: row for row in table(found, "Theorem 3.1").rows}
    assert lines["(iii)"][2] is not None
    assert lines["(vi)"][5] == "NO EVIDENCE"
    assert "no bound" in table(found, "Theorem 3.1").note


def test_margins_over_experts_enter_the_theorem() -> None:
    rules = msgspec.structs.replace(PROTOCOL.norms, experts={"toolquest/reconcile": (0.9, 0.02)})
    protocol = msgspec.structs.replace(PROTOCOL, norms=rules)
    traces = campaign(0.02)
    found = judge(
        with_control(traces), traces, protocol, PRICES, evidence_root="", replay_root=ROOT
    ).verdicts[0]
    row = table(found, "Superhuman margins").rows[0]
    assert row[0] == "toolquest/reconcile"
    assert row[3] > 0
    lines = {line[0]: line for line in table(found, "Theorem 3.1").rows}
    assert lines["(vi)"][2] == row[3]
    assert lines["(vi)"][5] == "HOLDS"


def bends(*lows: float) -> dict[str, Curvature]:
    from owa_bench.records.score import Interval

    def band(low: float) -> Interval:
        return Interval(low=low, high=1.0, method="m")

    return {
        f"f{i}": Curvature("logit", 0.1, band(0.1), low + 0.1, band(low))
        for i, low in enumerate(lows)
    }


def test_optional_gates_know_their_counts() -> None:
    rules = PROTOCOL.improvement
    fast = optional_gates(bends(0.01, 0.02), (), {}, 2, rules)
    met = {(x.level, x.gate): x.met for x in fast}
    assert met[3, "acceleration"] is True
    assert met[3, "link step"] is met[4, "link steps"] is True
    assert met[4, "diminishing returns bounded"] is True
    assert met[2, "kappa"] is None
    slow = optional_gates(bends(0.01, -0.2), (), {}, 1, rules)
    met = {(x.level, x.gate): x.met for x in slow}
    assert met[3, "acceleration"] is False
    assert met[4, "diminishing returns bounded"] is False
    assert met[4, "link steps"] is False
    assert table(verdicts(0.02)[0], "Optional gates").rows


def test_human_costs_behind_a_revision_are_flagged() -> None:
    fed = verdicts(0.02, helped=True)[0].warnings
    assert any("4 episodes feed 1 episodes with adopted" in text for text in fed)
    assert not any("feed" in text for text in verdicts(0.02)[0].warnings)


def test_cut_points_need_an_exemplar_and_rise() -> None:
    assert cut_point_table([(0.4, None), (None, 2), (0.3, 0)]) is None
    found = cut_point_table([(0.4, 1), (0.6, 2), (0.5, 2), (None, 3)])
    assert found is not None
    assert found.rows == (("AAI-1", 0.4, 3), ("AAI-2", 0.5, 2))
    assert np.all(np.diff([row[1] for row in found.rows]) >= 0)
