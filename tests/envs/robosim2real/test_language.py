"""The language view: its contract, its tools' replies, and what nobody gains by cheating."""

import json
import math

import pytest
from msgspec.structs import asdict, replace

pytest.importorskip("numba")
pytest.importorskip("mujoco")

from owa_bench import contract_checks
from owa_bench.agents.solvers.arm import tool_plans
from owa_bench.discovery import find
from owa_bench.drift.calendar import parse
from owa_bench.drift.timeline import SuiteTimelines
from owa_bench.envs.robosim2real.language import wording
from owa_bench.envs.robosim2real.world import FAMILIES
from owa_bench.errors import InfrastructureFailure, UsageError
from owa_bench.records.layout import RunLayout
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.seeding import stream
from owa_bench.shells.solution import horizon
from tests.builders import arm_tool_episodes as episodes
from tests.builders.arm_tool_episodes import SUITE, ArmTable

PLAYED = SUITE.card.families
TOO_LATE = "the arm's time is up"


def test_the_contract_holds_with_an_oracle_of_one_and_a_floor_of_nothing():
    contract_checks.check_suite(SUITE, seeds=(0,))


def test_each_family_that_is_told_has_a_plan_and_is_one_of_the_arms():
    assert set(PLAYED) == set(wording.ERRANDS) == set(tool_plans.PLANS)
    assert set(PLAYED) <= set(FAMILIES)


def test_plans_keep_to_what_the_tools_take():
    assert (tool_plans.LOW_MM, tool_plans.HIGH_MM) == (wording.LOW_MM, wording.HIGH_MM)
    assert tool_plans.SLOWEST == wording.SLOWEST


@pytest.mark.parametrize("family", PLAYED)
def test_controls_are_in_order(family, tmp_path):
    score = {
        name: episodes.play(episodes.control(name), tmp_path, family, 2)[0]["q_state"]
        for name in SUITE.policies
    }
    assert score["oracle"] == 1.0
    assert score["noop"] == score["leak_probe"] == 0.0
    assert score["plausible_wrong"] <= 0.5
    assert score["random"] <= 0.5
    assert score["over_doer"] < 1.0


@pytest.mark.parametrize("family", PLAYED)
def test_an_agent_that_reads_brief_and_replies_alone_succeeds(family, tmp_path):
    for seed in range(2):
        info, _ = episodes.play(episodes.reference, tmp_path, family, 2, seed)
        assert info["q_state"] == 1.0


@pytest.mark.parametrize("family", PLAYED)
def test_the_oracle_solves_what_has_drifted(family):
    source = SuiteTimelines(SUITE, parse("nested", "robosim2real"))
    for delta in (0.5, 1.0):
        chosen = source.at_magnitude(episodes.instance(family, 1, 2), delta)
        line = source(chosen)
        assert line.worlds[0].body != SUITE.generate(chosen).body
        env = SUITE.env(lambda _, line=line: line)
        env.reset(options={"instance": chosen})
        shell, over = env.unwrapped, False
        while not over:
            call = SUITE.oracle.hint(*shell.oracle_access().observe())
            *_, terminated, truncated, info = env.step(json.dumps(call))
            over = terminated or truncated
        assert info["q_state"] == 1.0


def test_the_horizon_is_the_three_measurements_and_the_nodes():
    for family in PLAYED:
        line = episodes.timeline(episodes.instance(family))
        nodes = SUITE.oracle.subgoals(line.worlds[0])
        assert horizon(SUITE, line) == 3 + len(nodes)
        assert max(node.depth for node in nodes) <= SUITE.card.depth_target


def test_equal_calls_give_equal_replies():
    texts = []
    for _ in range(2):
        table = ArmTable("push", seed=5)
        for _ in range(9):
            hint = table.hint()
            table.call(hint["tool"], **hint["arguments"])
        texts.append(table.texts)
    assert texts[0] == texts[1]


# --- replies ----------------------------------------------------------------------------


def test_each_tool_takes_the_time_that_it_says():
    table = ArmTable("push")
    for tool, arguments, least, most in (
        ("look", {}, 0.5, 0.5),
        ("calibrate", {"what": "camera"}, 1.0, 1.0),
        ("calibrate", {"what": "delay"}, 1.0, 1.5),
        ("move_to", {"x": 500, "y": 0, "z": 300}, 0.5, 5.0),
        ("grip", {"what": "shut"}, 0.5, 1.0),
        ("wait", {"seconds": 2}, 2.0, 2.0),
        ("run_path", {"waypoints": [{"x": 450, "y": 0, "z": 300}] * 3}, 0.5, 10.0),
        ("recover", {}, 0.0, 0.0),
    ):
        before = table.episode.simulated_ms
        reply = table.call(tool, **arguments)
        took = (table.episode.simulated_ms - before) / 1000
        assert least <= took <= most
        assert reply["took_s"] == pytest.approx(took)
    for tool, arguments in (("standard", {}), ("set_correction", {"delay_ms": 90})):
        before = table.episode.simulated_ms
        table.call(tool, **arguments)
        assert table.episode.simulated_ms == before


def test_a_move_arrives_where_the_corrected_encoders_say():
    table = ArmTable()
    table.call("set_correction", encoder_offset_mm=[10, -20, 5], delay_ms=100)
    reply = table.call("move_to", x=480, y=60, z=280)
    assert reply["ended"] == "arrived"
    assert math.dist(reply["tool_mm"], (480, 60, 280)) < 6
    raw = table.call("set_correction", encoder_offset_mm=[0, 0, 0]) and table.call("look")
    assert math.dist(raw["tool_mm"], (490, 40, 285)) < 6


def test_measured_corrections_bring_marks_and_tool_to_where_they_are():
    table = ArmTable("push", seed=3)
    table.prepare()
    shown = table.call("look")
    for mark, known in zip(
        shown["table_marks_mm"], table.episode.task.goal["marks_mm"], strict=True
    ):
        assert math.dist(mark, known) < 4
    assert math.dist(shown["tool_mm"], [1000 * v for v in table.state.tool]) < 6
    thing = shown["things_mm"]["thing 1"]
    assert math.dist(thing, [1000 * v for v in table.state.things[0]]) < 5


def test_a_stop_in_the_middle_of_a_move_is_told_with_what_to_do_next():
    table = ArmTable("reach", 3)
    side = table.world.goals[0].place[1]
    table.call("move_to", x=500, y=round(1000 * side), z=300)
    table.call("move_to", x=500, y=round(1000 * side), z=100)
    reply = table.call("move_to", x=500, y=-round(1000 * side), z=100)
    assert reply["ended"] == "protective stop: pressed on a fixture"
    assert "call recover" in reply["next"]
    assert reply["incidents"] == 1
    refused = table.call("move_to", x=500, y=0, z=300)
    assert "call recover" in refused["next"]
    assert "refused" in refused
    assert table.call("recover")["guard"] == "run"
    assert table.call("move_to", x=500, y=round(1000 * side), z=300)["incidents"] == 1


def test_a_second_stop_ends_the_episode_with_nothing():
    table = ArmTable("reach", 3)
    side = table.world.goals[0].place[1]
    table.call("move_to", x=500, y=round(1000 * side), z=300)
    table.call("move_to", x=500, y=round(1000 * side), z=100)
    table.call("move_to", x=500, y=-round(1000 * side), z=100)
    table.call("recover")
    reply = table.call("move_to", x=500, y=-round(1000 * side), z=100)
    assert reply["over"].startswith("the guard ended it: a second stop")
    table.call("finish", p=0.0)
    assert table.episode.ending.q_state == 0.0


def test_a_move_ends_when_a_person_comes_near():
    table = ArmTable(visits=3600.0 * 20)
    reply = table.call("move_to", x=600, y=0, z=300)
    assert reply["ended"] == "a person is near"
    assert table.call("look")["person_mm"] is not None


def test_a_fault_of_the_firmware_shows_and_a_setting_undoes_it():
    table = ArmTable(body={"exchanged": 1.0, "reversed": 1.0})
    assert table.call("grip", what="open")["gripper_mm"] < 5
    # Along the diagonal on which the exchange turns the way round.
    assert table.call("move_to", x=520, y=-150, z=395)["ended"] != "arrived"
    table.call("set_correction", swap_xy=True, reverse_gripper=True)
    assert table.call("move_to", x=500, y=-100, z=395)["ended"] == "arrived"
    assert table.call("grip", what="open")["gripper_mm"] > 70


def test_a_measurement_leaves_the_gripper_as_it_is():
    table = ArmTable(body={"reversed": 1.0})
    table.call("set_correction", reverse_gripper=True)
    assert table.call("grip", what="shut")["gripper_mm"] < 5
    for what in ("camera", "encoders", "delay"):
        table.call("calibrate", what=what)
        assert table.call("look")["gripper_mm"] < 5


def test_an_engine_that_loses_its_state_is_no_result_of_the_agents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the engine writes its log
    table = ArmTable()
    episode = table.episode.session._motion.episode
    episode._cell.data.qvel[0] = float("nan")
    with pytest.raises(InfrastructureFailure, match="lost its state"):
        table.call("wait", seconds=1)


def test_a_body_does_not_change_within_an_episode():
    table = ArmTable()
    with pytest.raises(UsageError, match="between episodes"):
        table.episode.session.enter(table.world, now_ms=0)


# --- drift --------------------------------------------------------------------------------


def test_the_brief_tells_what_is_documented_and_not_what_is_silent():
    chosen = [f.plugin for name, f in find("operators").items() if name.startswith("robosim2real/")]
    plain = ArmTable("push").texts[0]
    for operator in chosen:
        world = SUITE.generate(episodes.instance("push"))
        for target in operator.targets(world):
            after = operator.apply(world, target, 1.0, rng=stream(1, "x"))
            assert type(after) is type(world)
            assert after.unit == world.unit
            text = ArmTable("push", world=after).texts[0]
            assert (text != plain) == (operator.announcement == "D1")


# --- who could gain without doing the work --------------------------------------------------


def test_waiting_and_measuring_for_ever_use_the_time_up():
    table = ArmTable()
    while "over" not in (reply := table.call("calibrate", what="camera")):
        assert table.episode.steps < SUITE.card.step_limit
    assert reply["over"] == TOO_LATE
    assert table.call("move_to", x=500, y=0, z=300)["refused"] == TOO_LATE
    assert table.call("wait", seconds=5)["refused"] == TOO_LATE
    table.call("finish", p=0.0)
    assert table.episode.ending.q_state < 0.01


def test_calls_that_take_no_time_are_bounded_by_steps():
    table = ArmTable()
    while table.episode.ending is None:
        table.call("set_correction", delay_ms=100)
    assert table.episode.steps == SUITE.card.step_limit
    assert table.episode.verified == 0


def test_a_setting_that_is_guessed_solves_no_node():
    table = ArmTable("push", seed=1)
    table.call("set_correction", camera_offset_mm=[0, 0, 0], encoder_offset_mm=[0, 0, 0])
    table.call("set_correction", camera_offset_mm=[15, 15, 15], encoder_offset_mm=[9, 9, 9])
    assert not table.state.right


@pytest.mark.parametrize("family", PLAYED)
def test_to_declare_every_task_infeasible_earns_nothing(family):
    table = ArmTable(family)
    table.call("declare_infeasible", p=0.0)
    assert table.episode.ending.q_state == 0.0


def test_a_thing_that_falls_from_above_the_goal_is_not_placed_in_passing():
    """Held is held at rest for a second: a drop that bounces or rolls off is no success."""
    table = ArmTable("pick_place", seed=0)
    table.prepare()
    while not (table.state.lifted and table.state.tool[2] > 0.11):
        hint = table.hint()
        table.call(hint["tool"], **hint["arguments"])
    far = [1000 * v for v in table.world.goals[0].place]
    away = far[1] - 80 if far[1] > 0 else far[1] + 80
    table.call("move_to", x=far[0], y=away, z=300)
    reply = table.call("grip", what="open")
    table.call("wait", seconds=3)
    assert reply["goals_held"] == "0 of 1"
    table.call("finish")
    assert table.episode.ending.q_state < 1.0


def test_no_hidden_number_is_in_anything_that_is_served():
    """Numbers of the unit with 3 or more digits that could not be there by chance."""
    table = ArmTable("pick_place", 3, seed=7)
    for tool in ("standard", "look"):
        table.call(tool)
    while table.episode.ending is None:
        hint = table.hint()
        table.call(hint["tool"], **hint["arguments"])
    served = "\n".join([table.brief, *table.texts, json.dumps(table.episode.task.goal)])
    served += json.dumps(
        [tool.parameters for tool in SUITE.session(table.timeline, None, None).tools]
    )
    hidden = _numbers(asdict(table.world.unit)) | _numbers(asdict(table.world.whole_body))
    assert len(hidden) > 30
    for number in hidden:
        for factor in (1.0, 1000.0, 180 / math.pi):
            digits = f"{abs(number * factor):.6g}"
            assert len(digits.strip("0.")) < 5 or digits not in served
    assert "unit" not in table.episode.task.goal


def _numbers(value):
    if isinstance(value, dict):
        return set().union(*map(_numbers, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(_numbers, value)) if value else set()
    found = getattr(value, "__struct_fields__", None)
    if found:
        return _numbers(asdict(value))
    return {float(value)} if isinstance(value, int | float) else set()


def test_no_two_instances_share_a_unit_and_repeats_do():
    units = {SUITE.generate(episodes.instance("reach", 1, seed)).unit for seed in range(40)}
    assert len(units) == 40
    first = episodes.instance("reach")
    assert SUITE.generate(replace(first, repeat=1)).unit == SUITE.generate(first).unit


def test_a_move_that_comes_no_further_ends_soon():
    table = ArmTable()
    table.call("set_correction", encoder_offset_mm=[0, 0, -60])
    reply = table.call("move_to", x=450, y=0, z=20)
    assert reply["ended"].startswith("it comes no nearer than")
    assert 50 < reply["off_by_mm"] < 70


def test_a_path_ends_at_the_first_place_that_is_not_reached():
    table = ArmTable()
    table.call("set_correction", encoder_offset_mm=[0, 0, -60])
    way = [{"x": 450, "y": 0, "z": z} for z in (300, 20, 300)]
    reply = table.call("run_path", waypoints=way)
    assert reply["reached"] == "1 of 3"
    assert reply["ended"].startswith("it comes no nearer than")
    assert reply["off_by_mm"] > 50


# --- a recorded run -----------------------------------------------------------------------


def test_a_recorded_run_is_replayed_event_by_event(tmp_path):
    draw = Draw(
        name="armtools", families=("reach",), tiers=(1,), deltas=(0.0, 1.0), interventions=(0,)
    )
    request = Request(agents=("oracle", "agentic"), draws=(draw,))
    out, home = tmp_path / "run", tmp_path / "home"
    batch.play(request, out, RunOptions(home=home, in_process=True))
    escrow.reveal(home, RunLayout(out))
    replays = replay.replay_run(RunLayout(out)).attempts
    assert len(replays) == 4
    assert {one.outcome for one in replays} == {"same"}
