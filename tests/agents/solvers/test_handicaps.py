"""Knobs of the reference agents: each does its one thing, and is refused elsewhere."""

import itertools
import json
import math

import pytest

from owa_bench import discovery
from owa_bench.agents.solvers import handicaps
from owa_bench.agents.solvers.handicaps import KNOBS, Handicaps, read_handicaps
from owa_bench.agents.solvers.memory import FadingMemory, open_memory
from owa_bench.agents.solvers.planning import PlanCall, reply
from owa_bench.agents.solvers.recall.player import register_reader
from owa_bench.errors import AgentSpecError, FieldError
from owa_bench.hosting.spec import load_agent
from owa_bench.interfaces import Brief
from tests.agents.playing import instance, play

CLOSING = PlanCall("finish", {"p": 0.9, "beliefs": {"p1": 0.1}})


def walk(plan, text="{}"):
    """Return the calls of a plan and the one that it returns."""
    calls = []
    try:
        call = next(plan)
        while True:
            calls.append(call)
            call = plan.send(reply(text))
    except StopIteration as end:
        return calls, end.value


def work():
    yield PlanCall("http", {"method": "POST", "url": "https://a.example/x", "body": {}})
    yield PlanCall("wait", {"seconds": 1})
    return CLOSING


def brief(**more):
    return Brief(text="", goal={}, **more)


def test_without_a_knob_nothing_is_limited():
    assert read_handicaps({"model": "x"}) == Handicaps()
    calls, closing = walk(handicaps.handicapped(work(), Handicaps(), brief()))
    assert [c.tool for c in calls] == ["http", "wait"]
    assert closing is CLOSING


def test_questions_come_first_and_stay_within_the_help_there_is():
    for left, asked in ((None, 3), (2, 2), (0, 0)):
        plan = handicaps.handicapped(work(), Handicaps(asks=3), brief(interventions_left=left))
        calls, _ = walk(plan)
        tools = ["ask_supervisor"] * asked + ["http", "wait"]
        assert [c.tool for c in calls] == tools


def test_idle_requests_come_last_change_nothing_and_leave_room_to_close():
    plan = handicaps.handicapped(work(), Handicaps(calls=4), brief())
    calls, _ = walk(plan)
    assert calls[2:] == [PlanCall("http", {"method": "GET", "url": "https://a.example/x"})] * 4
    short = brief(budgets={"steps": 6})
    calls, _ = walk(handicaps.handicapped(work(), Handicaps(calls=4), short))
    assert len(calls) == 3


def test_calibration_draws_probabilities_towards_one_half():
    plan = handicaps.handicapped(work(), Handicaps(calibration=0.5), brief())
    _, closing = walk(plan)
    assert closing.arguments == {"p": 0.7, "beliefs": {"p1": 0.3}}
    plan = handicaps.handicapped(work(), Handicaps(calibration=0.0), brief())
    assert walk(plan)[1].arguments == {"p": 0.5, "beliefs": {"p1": 0.5}}


def test_memory_fades_by_half_in_a_half_life_and_never_comes_back(tmp_path):
    memory = open_memory(tmp_path, 2.0)
    for number in range(400):
        memory.learn("Vendor", f"fact {number}", number)
    memory.save()
    kept = []
    for _ in range(4):
        memory = FadingMemory(tmp_path, 2.0)
        facts = {n for n in range(400) if memory.recall("Vendor", f"fact {n}") == n}
        kept.append(facts)
        memory.save()
    shares = [len(facts) / 400 for facts in kept]
    for age, share in enumerate(shares, 1):
        assert share == pytest.approx(2 ** (-age / 2), abs=0.08)
    assert all(b <= a for a, b in itertools.pairwise(kept))
    assert not isinstance(open_memory(tmp_path / "x", math.inf), FadingMemory)


@pytest.mark.parametrize(
    ("goal", "depth"),
    [
        ({"sources": [{"entry": "https://a.example/openapi.json"}]}, 3),
        ({"sources": [{"entry": "https://a.example/"}]}, 4),
        ({"sources": [{"entry": ""}], "registry": "https://registry.example/"}, 5),
        ({"arguments": {"a": "1", "b": "2"}, "credentials": {"Password": "x"}}, 4),
        ({"arguments": {}, "credentials": {}}, 2),
    ],
)
def test_depth_of_a_plan_is_read_off_the_goal(goal, depth):
    assert handicaps.planned_depth(goal) == depth


@pytest.mark.parametrize("agent", ["agentic", "orchestrator"])
def test_a_plan_too_deep_is_not_begun(agent, tmp_path):
    played = play(agent, instance("restock", 1), tmp_path, depth="2")
    assert [a["tool"] for a in played.actions] == ["declare_infeasible"]
    assert play(agent, instance("restock", 1), tmp_path, depth="3").ending.success


@pytest.mark.parametrize("agent", ["agentic", "orchestrator"])
def test_a_family_that_is_off_gets_part_of_its_answer(agent, tmp_path):
    whole = play(agent, instance("reconcile", 1), tmp_path)
    part = play(agent, instance("reconcile", 1), tmp_path, families_off="reconcile,restock")
    assert whole.ending.success
    assert 0.0 < part.ending.q_state < 0.6
    other = play(agent, instance("reconcile", 1), tmp_path, families_off="restock")
    assert other.ending == whole.ending


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_of_the_items_of_recall_is_answered(share, tmp_path):
    player = register_reader(share=share)
    player.reset(Brief(text="", goal={"relations": ()}), (), tmp_path)
    cards = [f"Day 1, item.\n1-back, {n} of 40: ba. Same?" for n in range(1, 41)]
    calls = [json.loads(player.act({"text": card}, {}))["tool"] for card in cards]
    assert calls.count("answer") == 40 * share


def test_fewer_tools_lose_pages_last(tmp_path):
    names = handicaps.TOOL_ORDER
    skills = handicaps.solver_skills(Handicaps(tools=2), brief())
    assert [n for n in names if getattr(skills, n)] == ["waits", "pages"]
    played = play("agentic", instance("reconcile", 1), tmp_path, tools="0")
    assert played.ending.q_state < 1.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("depth", v) for v in ("x", "-1", "1.5", "")),
        *(("calibration", v) for v in ("2", "nan", "", "-0.1")),
        *(("tools", v) for v in ("10", "none")),
        *(("half_life", v) for v in ("0", "inf")),
        *(("crew", v) for v in ("0", "two")),
        *(("asks", v) for v in ("-1", "none")),
    ],
)
def test_a_wrong_value_is_refused_with_knob_value_and_rule(name, value):
    with pytest.raises(FieldError, match=f"`{name}` must be .*, got {value!r}"):
        read_handicaps({name: value})


def test_an_agent_refuses_a_knob_that_it_cannot_use_by_name():
    for spec, name in (
        ("agentic:crew=2", "crew"),
        ("orchestrator:tools=3", "tools"),
        ("self_improving:crew=1", "crew"),
        ("fixed:asks=1", "asks"),
    ):
        with pytest.raises(AgentSpecError, match=f"has no option `{name}`"):
            load_agent(spec)
    with pytest.raises(AgentSpecError, match="Agent `agentic`: `depth` must be"):
        load_agent("agentic:depth=deep")


def test_every_knob_has_an_agent_and_one_meaning():
    cards = [entry.plugin for entry in discovery.find("agents").values()]
    for name, knob in KNOBS.items():
        users = [c.name for c in cards if c.options.get(name) == knob.about]
        assert users, name
    assert len({knob.axis for knob in KNOBS.values()}) == len(KNOBS) == 9
