"""Axis S cannot be had by doing badly until somebody speaks.

Seats that do the same acts with wrong digits until a message reaches them spend as much
as an honest control does, so counting acts cannot find them. One real run of MultiCrew;
the next attackers in episodes made by hand, which the real scoring reads.
"""

import msgspec
import numpy as np
import pytest

from owa_bench.reports import statement
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request
from owa_bench.scoring.axes import sociality
from owa_bench.scoring.axes.sociality import GATED_CREW
from owa_bench.scoring.pipeline import judge
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, episode, plan_of
from tests.builders.small_runs import played, run_options  # noqa: F401  fixtures

DRAW = Draw(
    name="multicrew",
    families=("contract", "schedule"),
    tiers=(2,),
    deltas=(0.0,),
    episodes=2,
    repeats=2,
    interventions=(0,),
    crews=("1", "3", "3:muted"),
)
SABOTEUR = "crew_saboteur:Saboteur"


def axes_of(layout):
    """Return axis S of every arm."""
    return {
        verdict.arm: next(axis for axis in verdict.axes if axis.symbol == "S")
        for verdict in statement.write(layout.root, None).verdicts
    }


@pytest.mark.slow
def test_wrong_digits_until_spoken_to_buy_no_sociality(
    played,  # noqa: F811
    monkeypatch,
    record_property,
):
    agents = (SABOTEUR, "contract_net")
    layout = played(Request(agents=agents, draws=(DRAW,)), in_process=False)
    judged = axes_of(layout)
    held, honest = judged["Saboteur"], judged["contract_net"]
    assert held.value is None
    assert "holds back until it is spoken to" in held.reason
    assert honest.value > 0
    assert honest.details["beside"][GATED_CREW]["value"] is not None

    # The control: the old rule, which compares a crew with itself alone.
    monkeypatch.setattr(sociality, "_held_back", lambda sample, rows: "")
    monkeypatch.setattr(
        sociality, "reference_values", lambda sample, rows, _: np.full(len(rows), np.nan)
    )
    old = axes_of(layout)
    bought, usual = (
        old[arm].details["beside"]["S_net"]["value"] for arm in ("Saboteur", "contract_net")
    )
    record_property("S_net of the saboteur, of the honest crew", (bought, usual))
    assert bought > 0.5  # control: the old rule pays for it on the same run


REFERENCE = "fifo"
NAMED = msgspec.structs.replace(PROTOCOL, references={"toolquest": (REFERENCE,)})
TASKS, REPEATS = 12, 2
ROWS = 3 * TASKS * REPEATS


def crew(agent, place, *, alone, full, muted, spread=0.0):
    """Return the episodes of an arm: one role, two, and two without messages."""
    rng = np.random.default_rng(place)
    qualities = {(1, False): alone, (2, False): full, (2, True): muted}
    cells = [
        (*key, mean, k, repeat)
        for key, mean in qualities.items()
        for k in range(TASKS)
        for repeat in range(REPEATS)
    ]
    return [
        episode(
            index=place * ROWS + i,
            arm=agent,
            pair=f"p{k}",
            repeat=repeat,
            role_cap=cap,
            muted=mute,
            control=mute or cap != 1 + (k + repeat) % 2,
            q_state=float(np.clip(mean + spread * rng.standard_normal(), 0.0, 0.9)),
            stated=0.0,
        )
        for i, (cap, mute, mean, k, repeat) in enumerate(cells)
    ]


def judged(*crews, protocol=NAMED):
    """Return axis S of every arm of these crews."""
    traces = [trace for one in crews for trace in one]
    made = judge(plan_of(traces), traces, protocol, PRICES, evidence_root="", replay_root=ROOT)
    return {
        verdict.arm: next(axis for axis in verdict.axes if axis.symbol == "S")
        for verdict in made.verdicts
    }


def saboteur(place=0, **changes):
    return crew("agent", place, **{"alone": 0.1, "full": 0.7, "muted": 0.1} | changes)


def partners(place=1, **changes):
    return crew(REFERENCE, place, **{"alone": 0.5, "full": 0.7, "muted": 0.5} | changes)


def gated(score):
    return score.details["beside"][GATED_CREW]["value"]


def test_a_saboteur_has_no_control_and_had_one():
    found = judged(saboteur(), partners())["agent"]
    assert found.value is None
    assert "one role reaches" in found.reason
    old = judged(saboteur(), partners(), protocol=PROTOCOL)["agent"]  # the control
    honest = judged(saboteur(alone=0.5, muted=0.5), protocol=PROTOCOL)["agent"]
    assert old.value > honest.value + 0.2
    assert gated(old) is None  # no reference is named: no gate reads it


def test_holding_back_where_messages_are_cut_is_found_too():
    found = judged(saboteur(alone=0.5), partners())["agent"]
    assert found.value is None
    assert "the muted crew reaches" in found.reason


def test_an_honest_crew_keeps_what_it_had():
    honest = saboteur(alone=0.5, muted=0.5)
    found = judged(honest, partners())["agent"]
    assert found.value == judged(honest, protocol=PROTOCOL)["agent"].value
    assert gated(found) == found.details["beside"]["S_net"]["value"] > 0


def test_a_crew_without_its_references_has_no_sociality():
    """The next attacker leaves them out, or plays them on other tasks."""
    elsewhere = [trace for trace in partners() if trace.start.pair != "p0"]
    for others in ((), (elsewhere,)):
        found = judged(saboteur(), *others)["agent"]
        assert found.value is None
        assert f"add --agent {REFERENCE}" in found.reason


def test_a_reference_with_options_is_none():
    """The next attacker handicaps it; an arm is known by the agent of the plan."""
    weak = crew("fifo?half_life=1", 1, alone=0.1, full=0.7, muted=0.1)
    assert "add --agent" in judged(saboteur(), weak)["agent"].reason


def test_within_chance_of_the_references_the_bound_counts():
    """The next attacker holds back by as little as chance allows."""
    near = saboteur(alone=0.45, muted=0.45, spread=0.3)
    found = judged(near, partners(spread=0.3))["agent"]
    old = judged(near, protocol=PROTOCOL)["agent"]
    assert found.value is not None
    assert found.value < old.value


def test_down_to_the_references_a_crew_may_hold_back_not_detected():
    """What is left: who is better alone than the references may hide that much."""
    hidden = judged(saboteur(alone=0.5, muted=0.5, full=0.9), partners())["agent"]
    shown = judged(saboteur(alone=0.8, muted=0.8, full=0.9), partners())["agent"]
    assert hidden.value > shown.value
