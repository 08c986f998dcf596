"""Operators of RoboSim2Real: their contract, what they tell, and what they do to policies."""

import gymnasium
import numpy as np
import pytest
from msgspec.structs import replace

pytest.importorskip("numba")
pytest.importorskip("mujoco")

from owa_bench.contract_checks import check_operator
from owa_bench.discovery import find, get
from owa_bench.drift.calendar import parse
from owa_bench.drift.timeline import SuiteTimelines, source
from owa_bench.envs.robosim2real import tasks
from owa_bench.envs.robosim2real.device import commanded
from owa_bench.envs.robosim2real.session import ArmOracle, ArmSession
from owa_bench.envs.robosim2real.world import FAMILIES, Body
from owa_bench.errors import PlanError, UsageError
from owa_bench.interfaces import Setting
from owa_bench.records.instance import Instance
from owa_bench.runs.plan import draws
from owa_bench.runs.plan.draws import Draw
from owa_bench.seeding import stream

OPERATORS = {
    name: found.plugin
    for name, found in find("operators").items()
    if name.startswith("robosim2real/")
}
GROUPS = {"sensor", "dynamics", "firmware", "cell", "wear"}


def worlds():
    return [tasks.draw(family, 1, stream(3, "base")) for family in FAMILIES]


@pytest.mark.parametrize("name", OPERATORS)
def test_the_contract_holds(name):
    check_operator(OPERATORS[name], worlds())


def test_there_are_five_groups_and_wear_is_held_out():
    assert {found.group for found in OPERATORS.values()} == GROUPS
    assert {found.group for found in OPERATORS.values() if found.held_out} == {"wear"}


@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_documented_is_told_and_what_is_silent_is_not(name):
    chosen = OPERATORS[name]
    for world in worlds():
        for target in chosen.targets(world):
            after = chosen.apply(world, target, 1.0, rng=np.random.default_rng(1))
            assert bool(after.notices) == (chosen.announcement == "D1")
            assert after.goals == world.goals
            assert after.limit == world.limit


def instance(family, seed, delta=0.0):
    made = Instance(suite="robosim2real", version=1, family=family, tier=1, seed=seed)
    return source("robosim2real").at_magnitude(made, delta) if delta else made


def test_notices_stand_in_the_brief_and_nothing_else_of_the_drift():
    made = instance("push", 4, 1.0)
    timeline = source("robosim2real")(made)
    world = timeline.worlds[0]
    assert timeline.realised == pytest.approx(1.0)
    task = ArmSession(timeline, Setting()).task
    assert len(world.notices) >= 4
    assert all(notice in task.text for notice in world.notices)
    assert task.goal["notices"] == list(world.notices)
    plain = ArmSession(source("robosim2real")(instance("push", 4)), Setting()).task
    changed = {key for key in plain.goal if plain.goal[key] != task.goal[key]}
    assert changed == {"notices"}


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_the_oracle_knows_its_way_under_each_group(group):
    """It is told every number, so firmware that turns commands does not hold it."""
    suite = get("suites", "robosim2real")
    timelines = SuiteTimelines(suite, parse(f"nested:{group}", "robosim2real"))
    won = 0
    for seed in range(3):
        made = timelines.at_magnitude(instance("reach", seed), 0.5)
        session = ArmSession(timelines(made), Setting())
        policy = ArmOracle(session)
        while not session.over:
            session.tick(np.array(policy.act(session.observation(), {})))
        won += session.success
    assert won >= 2


def test_firmware_that_turns_commands_is_undone_by_itself():
    body = Body(exchanged=1.0, reversed=1.0)
    action = np.array([0.1, -0.7, 0.3, 0.0, 1.0, 0.0])
    turned = commanded(action, body)
    assert turned.tolist() == [-0.7, 0.1, 0.3, 0.0, -1.0, 0.0]
    assert commanded(turned, body).tolist() == action.tolist()
    half = commanded(action, replace(Body(), pace=0.5))
    assert half[:3].tolist() == pytest.approx([0.05, -0.35, 0.15])


def test_a_gymnasium_env_plays_drifted_worlds():
    plain = gymnasium.make("owa_bench/RoboSim2Real-v1", family="push")
    drifted = gymnasium.make("owa_bench/RoboSim2Real-v1", family="push", delta=1.0)
    worlds_of = []
    for env in (plain, drifted):
        env.reset(seed=4)
        worlds_of.append(env.unwrapped.episode.world)
    assert worlds_of[0].goals == worlds_of[1].goals
    assert worlds_of[0] != worlds_of[1]
    with pytest.raises(UsageError, match="delta"):
        gymnasium.make("owa_bench/RoboSim2Real-v1", delta=2.0)


def test_no_calendar_changes_a_body_within_an_episode():
    draw = Draw(name="robosim2real", deltas=(0.5,), calendar="nested^600000")
    with pytest.raises(UsageError, match="must change nothing within an episode"):
        draws.check(draw, PlanError)
