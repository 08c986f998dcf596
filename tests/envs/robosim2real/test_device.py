"""What lies between an agent and the arm: delay, play, and what the sensors make of the truth."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("mujoco")

from owa_bench.envs.robosim2real import arm, tasks, units
from owa_bench.envs.robosim2real.device import MARKS
from owa_bench.envs.robosim2real.engine import Cell
from owa_bench.envs.robosim2real.episode import RobotEpisode, columns
from owa_bench.envs.robosim2real.oracle import oracle
from owa_bench.envs.robosim2real.world import Body, joined
from owa_bench.seeding import stream

AT = columns()
DOWN = np.array([0.0, 0.0, -1.0, 0.0, 1.0, 0.0])
REST = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])


def episode(**numbers):
    world = tasks.draw("push", 1, stream(3, "base"))
    return RobotEpisode(world, Body(**numbers), 3)


def sinks(one, ticks=20):
    """Return how far the tool has sunk after each tick of a command down."""
    start = one.truth.tool[2]
    found = []
    for _ in range(ticks):
        one.tick(DOWN)
        found.append(start - one.truth.tool[2])
    return found


def first_move(found):
    return next(tick for tick, sunk in enumerate(found) if sunk > 0.002)


def test_a_command_arrives_after_the_dead_time():
    assert first_move(sinks(episode(dead_time=0.2))) - first_move(sinks(episode())) == 4


def test_the_filter_delays_and_does_not_stop():
    slow, quick = sinks(episode(filter=0.4)), sinks(episode())
    assert slow[3] < 0.7 * quick[3]
    assert slow[-1] == pytest.approx(quick[-1], abs=0.03)


def test_a_full_command_is_a_quarter_of_a_metre_a_second():
    found = sinks(episode())
    assert (found[-1] - found[9]) * arm.HERTZ / 10 == pytest.approx(arm.SPEED, rel=0.05)


@pytest.mark.parametrize("coarse", [False, True])
def test_a_tick_is_a_twentieth_of_a_second_of_the_engine(coarse):
    world = tasks.draw("push", 1, stream(3, "base"))
    cell = Cell(world, Body(stiction=0.1), coarse=coarse)
    before = cell.data.time
    cell.tick(cell.truth().joints, 0.08)
    assert cell.data.time - before == pytest.approx(1.0 / arm.HERTZ)


@pytest.mark.parametrize("seed", [11, 12, 45, 46])
def test_a_unit_holds_a_cylinder_while_it_carries_it(seed):
    """Softer contacts let these creep between the fingers and shoot away."""
    world = tasks.draw("pick_place", 2, stream(seed, "base"))
    assert world.things[0].shape == "cylinder"
    episode = RobotEpisode(world, units.unit(1, seed % 24), seed, side="surrogate")
    policy = oracle(episode)
    while not episode.over:
        episode.tick(policy(episode.observation()))
    assert episode.success
    assert not episode.guard.incidents


def test_an_engine_that_blows_up_says_so_and_writes_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = episode()
    one._cell.data.qvel[0] = 1e20
    assert one.tick(REST).over == "infrastructure"
    assert not list(tmp_path.iterdir())


def test_the_hand_has_room_beside_a_box():
    for seed in range(200):
        world = tasks.draw("reach", 3, stream(seed, "base"))
        block = world.blocks[0]
        for goal in world.goals:
            assert abs(goal.place[1] - block.place[1]) > 0.1 + block.size[1]


def test_play_takes_the_first_of_each_way_back():
    played = [sinks(episode(backlash=play), 4)[-1] for play in (0.0, 0.01)]
    assert played[1] < played[0] - 0.003


def test_offsets_of_encoders_are_shown_and_not_felt():
    """The arm goes where its encoders say: beside the place that was meant."""
    one = episode(zeros=(0.01,) + (0.0,) * 6)
    shown = one.observation()[AT["tool_position"]]
    assert np.linalg.norm(shown - one.truth.tool) == pytest.approx(0.0042, abs=0.001)
    begun = one.truth.tool
    for _ in range(10):
        one.tick(REST)
    assert np.linalg.norm(one.truth.tool - begun) < 0.001


def test_the_camera_moves_things_and_marks_alike():
    one = episode(camera=(0.01, -0.02, 0.0))
    shown = one.observation()
    seen = shown[AT["objects"]].reshape(-1, 9)[0, 1:4]
    assert seen - one.truth.things[0] == pytest.approx([0.01, -0.02, 0.0], abs=1e-6)
    marks = shown[AT["marks"]].reshape(3, 3)
    assert marks[:2] - MARKS == pytest.approx(np.array([[0.01, -0.02, 0.0]] * 2), abs=1e-6)
    assert marks[2] - one.truth.tool == pytest.approx([0.01, -0.02, 0.0], abs=1e-6)


def test_an_old_picture_says_how_old_it_is():
    one = episode(old=0.15)
    for _ in range(6):
        one.tick(DOWN)
    assert one.observation()[AT["objects"]].reshape(-1, 9)[0, 8] == pytest.approx(0.15)


def test_a_unit_has_what_no_draw_of_the_simulation_has():
    own = ("stiction", "sag", "wander", "dropout")
    fleet = [units.unit(7, number) for number in range(units.FLEET)]
    assert all(getattr(one, name) > 0 for one in fleet for name in own)
    drawn = [units.simulated(seed, 1) for seed in range(20)]
    assert all(getattr(one, name) == 0 for one in drawn for name in own)
    assert units.simulated(5, 0) == Body()
    assert len(set(fleet)) == units.FLEET


def test_the_law_of_the_simulation_covers_the_fleet():
    drawn = [units.simulated(seed, 1) for seed in range(400)]
    fleet = [units.unit(7, number) for number in range(units.FLEET)]
    for name in ("dead_time", "filter", "friction", "stiffness", "payload", "mass", "grip", "old"):
        least, most = (pick(getattr(one, name) for one in drawn) for pick in (min, max))
        assert all(least * 0.9 <= getattr(one, name) <= most * 1.1 for one in fleet), name


def test_a_fleet_is_drawn_from_its_own_seed():
    assert units.unit(1, 0) != units.unit(2, 0)
    assert units.unit(1, 0) == units.unit(1, 0)


def test_a_unit_adds_to_what_drift_made_of_the_body():
    both = joined(Body(dead_time=0.05, stiffness=0.8), Body(dead_time=0.03, stiffness=0.5))
    assert both.dead_time == pytest.approx(0.08)
    assert both.stiffness == pytest.approx(0.4)
    assert joined(Body(), units.unit(1, 3)) == units.unit(1, 3)
