"""Drawers and pegs: what counts, what does not, and what the guard makes of a fixture."""

import copy
import math

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("mujoco")

import mujoco
from msgspec.structs import replace

from owa_bench.envs.robosim2real import arm, fixtures, rays, tasks, units
from owa_bench.envs.robosim2real.engine import Cell
from owa_bench.envs.robosim2real.episode import RobotEpisode, columns
from owa_bench.envs.robosim2real.guard import Guard
from owa_bench.envs.robosim2real.oracle import oracle
from owa_bench.envs.robosim2real.tasks import Judge
from owa_bench.envs.robosim2real.world import Body
from owa_bench.seeding import stream

FLEET = 6
CELLS = [(family, tier) for family in ("drawer", "insert") for tier in tasks.TIERS]


def drawn(family, tier, seed):
    return tasks.draw(family, tier, stream(seed, "base"))


def begun(family, tier, seed, side="surrogate"):
    body = units.unit(FLEET, seed % units.FLEET) if side != "sim" else Body()
    return RobotEpisode(drawn(family, tier, seed), body, seed, side=side)


def played(episode, policy=None):
    policy = policy or oracle(episode)
    while not episode.over:
        episode.tick(policy(episode.observation()))
    return episode


def resting(cell, ticks=40):
    """Return the state after some ticks in which the arm holds still."""
    truth = cell.truth()
    start = truth.joints.copy()
    for _ in range(ticks):
        truth = cell.tick(start, arm.OPEN)
    return truth


def judged(world, truths):
    judge = Judge(world, Cell(world, Body()).truth())
    for truth in truths:
        judge.tick(truth)
    return judge


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_the_oracle_solves_many_draws_on_many_units_without_an_incident(family, tier):
    episodes = [played(begun(family, tier, 300 + k)) for k in range(8)]
    assert sum(one.success for one in episodes) >= 7
    assert [one.guard.incidents for one in episodes] == [[]] * 8


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_the_oracle_solves_every_draw_in_simulation(family, tier):
    assert all(played(begun(family, tier, 400 + k, "sim")).success for k in range(3))


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_what_nobody_touches_stays_where_it_is(family, tier):
    for seed in range(6):
        world = drawn(family, tier, seed)
        cell = Cell(world, units.unit(FLEET, seed), coarse=True)
        first, last = cell.truth(), resting(cell)
        assert np.abs(last.things - first.things).max() < 0.002
        judge = judged(world, [last] * 60)
        assert not judge.success
        assert judge.quality < 0.01


@pytest.mark.parametrize(("family", "tier"), CELLS)
@pytest.mark.parametrize("side", ["surrogate", "second"])
def test_an_episode_is_copied_and_comes_back_bit_for_bit(family, tier, side):
    if side == "second":
        pytest.importorskip("pybullet")
    first, again = begun(family, tier, 5, side), begun(family, tier, 5, side)
    policy, played_by = oracle(first), [first, again]
    for number in range(110):
        if number == 60:
            played_by.append(copy.deepcopy(first))
        action = policy(first.observation())
        for episode in played_by:
            episode.tick(action)
    shown = {episode.observation().tobytes() for episode in played_by}
    assert len(shown) == 1


def opened(world, by, number=0):
    """Return a state in which a slider is open by some metres and everything rests."""
    truth = Cell(world, Body()).truth()
    things = truth.things.copy()
    things[number] += by * np.array(world.sliders[number].axis)
    return truth._replace(things=things)


@pytest.mark.parametrize(("by", "success"), [(0.119, False), (0.121, True), (0.158, True)])
def test_a_drawer_counts_from_120_mm(by, success):
    world = drawn("drawer", 1, 3)
    assert judged(world, [opened(world, by)] * 25).success == success


def test_a_drawer_is_not_open_while_it_is_shaken():
    """It passes the goal again and again, and never rests there for a second."""
    world = drawn("drawer", 1, 3)
    ways = [0.13 + 0.03 * math.sin(number / 3) for number in range(200)]
    shaken = [opened(world, by) for by in ways]
    assert not judged(world, shaken).success
    axis = np.array(world.sliders[0].axis)
    fast = [
        opened(world, 0.14)._replace(velocities=(0.05 * math.cos(n) * axis)[None])
        for n in range(200)
    ]
    assert not any(judged(world, fast[k : k + 40]).success for k in range(0, 160, 20))


def test_a_drawer_that_was_pressed_too_hard_does_not_count():
    world = drawn("drawer", 1, 3)
    states = [opened(world, 0.14)] * 25
    assert judged(world, states).success
    assert not judged(world, [states[0]._replace(table_force=81.0), *states]).success


def test_a_drawer_with_the_tool_at_its_handle_does_not_count():
    world = drawn("drawer", 1, 3)
    state = opened(world, 0.14)
    near = state._replace(tool=state.things[0] + np.array([0.02, 0.0, 0.0]))
    assert not judged(world, [near] * 25).success


def test_the_latch_comes_first():
    world = drawn("drawer", 3, 3)
    assert not judged(world, [opened(world, 0.14)] * 25).done
    free = opened(world, 0.055, number=1)
    both = free._replace(things=np.stack([opened(world, 0.14).things[0], free.things[1]]))
    judge = judged(world, [free] * 25 + [both] * 25)
    assert judge.success
    assert judged(world, [free] * 25).quality == pytest.approx(0.5)


@pytest.mark.parametrize("free", [False, True])
def test_a_latch_holds_the_drawer_until_it_is_moved(free):
    world = drawn("drawer", 3, 3)
    cell = Cell(world, Body())
    if free:
        cell._slid[1] = 0.055
    first = cell.model.joint("slider0").dofadr[0]
    for _ in range(60):
        cell.data.qfrc_applied[first] = 30.0  # N, nearly four times its friction
        truth = cell.tick(np.array(world.start), arm.OPEN)
    way = np.linalg.norm(truth.things[0] - np.array(world.sliders[0].place))
    assert way > 0.15 if free else way < 0.01


def test_a_stiff_drawer_needs_more_than_a_loose_one():
    moved = []
    for tier in (1, 2):
        world = drawn("drawer", tier, 3)
        cell = Cell(world, Body())
        joint = cell.model.joint("slider0").dofadr[0]
        for _ in range(20):
            cell.data.qfrc_applied[joint] = 10.0
            truth = cell.tick(np.array(world.start), arm.OPEN)
        moved.append(np.linalg.norm(truth.things[0] - np.array(world.sliders[0].place)))
    assert moved[0] > 0.1
    assert moved[1] < 0.01


def pushed(episode, start, way, ticks=60):
    """Bring the shut fingers to a place, then send one velocity."""
    place = np.array(start)
    for over in (place + np.array([0.0, 0.0, 0.1]), place):
        for _ in range(90):
            step = np.clip((over - episode.truth.tool) / 0.0125 * 0.3, -0.5, 0.5)
            episode.tick(np.array([*step, 0.0, -1.0, 0.0]))
    for _ in range(ticks):
        if episode.over or episode.guard.incidents:
            break
        episode.tick(np.array([*way, 0.0, -1.0, 0.0]))


def test_a_latched_drawer_that_is_pulled_is_an_incident_and_no_success():
    worlds = (drawn("drawer", 3, seed) for seed in range(50))
    world = next(one for one in worlds if one.sliders[0].axis[0])
    world = replace(world, limit=60.0, visits=0.0)
    episode = RobotEpisode(world, Body(), 3)
    slider = world.sliders[0]
    axis = np.array(slider.axis)
    behind = np.array(slider.place) - axis * (0.012 + 0.01 + 0.006)
    pushed(episode, behind, 0.5 * axis)
    assert [one.cause for one in episode.guard.incidents] == ["pressed on a fixture"]
    assert episode.guard.stopped


def test_a_case_that_is_pressed_from_above_is_an_incident():
    world = replace(drawn("drawer", 1, 3), limit=60.0, visits=0.0)
    episode = RobotEpisode(world, Body(), 3)
    block = world.blocks[0]
    top = np.array([*block.place[:2], block.place[2] + block.size[2] + 0.03])
    pushed(episode, top, (0.0, 0.0, -0.6))
    assert [one.cause for one in episode.guard.incidents] == ["pressed on a fixture"]


def test_a_drawer_that_is_flung_open_is_no_lost_thing():
    truth = opened(drawn("drawer", 1, 3), 0.1)._replace(velocities=np.array([[2.0, 0.0, 0.0]]))
    causes = []
    for guard in (Guard(), Guard(fixed=1)):
        guard.watch(truth, None)
        causes.append([one.cause for one in guard.incidents])
    assert causes == [["lost a thing"], []]


def dropped(world, place, turn=(1.0, 0.0, 0.0, 0.0), ticks=60):
    """Let the peg fall from a place; return the judge and the state after it lies still."""
    cell = Cell(world, Body(), coarse=True)
    cell._poses[0] = (*place, *turn)
    judge = Judge(world, cell.truth())
    truth = cell.truth()
    start = truth.joints.copy()
    for _ in range(ticks):
        truth = cell.tick(start, arm.OPEN)
        judge.tick(truth)
    return judge, truth


@pytest.mark.parametrize("tier", tasks.TIERS)
def test_a_peg_over_the_hole_falls_in_and_counts(tier):
    world = drawn("insert", tier, 3)
    x, y, z = world.goals[0].place
    judge, truth = dropped(world, (x, y, z + 0.03))
    assert judge.success
    assert truth.things[0][2] - world.things[0].size[2] < fixtures.RIM - fixtures.INSERTED


@pytest.mark.parametrize("tier", tasks.TIERS)
@pytest.mark.parametrize("aside", [(0.012, 0.0), (0.0, -0.02), (0.018, 0.018)])
def test_a_peg_on_top_of_the_socket_is_not_in(tier, aside):
    world = drawn("insert", tier, 3)
    x, y, z = world.goals[0].place
    top = fixtures.RIM + 0.008
    judge, _ = dropped(world, (x + aside[0], y + aside[1], z + top))
    assert not judge.success


def test_a_peg_that_lies_across_the_hole_is_not_in():
    world = drawn("insert", 1, 3)
    x, y, _ = world.goals[0].place
    half = math.sqrt(0.5)
    judge, _ = dropped(world, (x, y, fixtures.RIM + 0.03), (half, half, 0.0, 0.0))
    assert not judge.success


@pytest.mark.parametrize("depth", [0.013, 0.017])
def test_a_peg_counts_from_15_mm(depth):
    world = drawn("insert", 1, 3)
    truth = Cell(world, Body()).truth()
    x, y, z = world.goals[0].place
    there = truth._replace(things=np.array([[x, y, z + fixtures.RIM - depth]]))
    assert judged(world, [there] * 25).success == (depth > 0.015)


@pytest.mark.parametrize("tier", tasks.TIERS)
def test_the_hole_is_wider_than_the_peg_by_the_tiers_clearance(tier):
    world = drawn("insert", tier, 3)
    cell = Cell(world, Body())
    touches = []
    for way in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        for more in (-0.0002, 0.0003):
            aside = (fixtures.CLEARANCES[tier - 1] / 2 + more) * np.array(way)
            x, y, z = world.goals[0].place
            cell._poses[0, :3] = (x + aside[0], y + aside[1], z + 0.002)
            mujoco.mj_forward(cell.model, cell.data)
            touches.append(bool(cell.data.ncon))
    assert touches == [False, True] * 4


@pytest.mark.parametrize("tier", tasks.TIERS)
def test_a_picture_shows_how_far_a_drawer_is_open(tier):
    world = drawn("drawer", tier, 4)
    shots = [rays.picture(world, opened(world, by)) for by in (0.0, 0.07, 0.14)]
    for one, other in ((0, 1), (1, 2), (0, 2)):
        assert (shots[one] != shots[other]).any(axis=2).sum() > 10


def test_a_picture_shows_where_the_peg_is():
    world = drawn("insert", 1, 3)
    truth = Cell(world, Body()).truth()
    there = truth._replace(things=np.array([world.goals[0].place]))
    assert (rays.picture(world, truth) != rays.picture(world, there)).any(axis=2).sum() > 10


def test_an_observation_shows_handles_and_the_box_around_a_fixture():
    episode = begun("drawer", 3, 3, "sim")
    shown, at = episode.observation(), columns()
    objects = shown[at["objects"]].reshape(-1, 9)
    assert objects[:, 0].sum() == 2
    for row, slider in zip(objects, episode.world.sliders, strict=False):
        assert row[1:4] == pytest.approx(slider.place, abs=1e-5)
    middle, half = np.split(shown[at["blocks"]], 2)
    for block in episode.world.blocks:
        apart = np.abs(np.array(block.place) - middle) + np.array(block.size)
        assert (apart <= half + 1e-6).all()
