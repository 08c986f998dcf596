"""The arm's kinematics are those of the model that the engine steps."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("mujoco")

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.engine import Cell
from owa_bench.envs.robosim2real.world import Body, GoalPlace, RobotWorld
from owa_bench.seeding import stream


def bare(start, **numbers):
    goals = (GoalPlace(place=(0.5, 0.0, 0.2), tolerance=0.01),)
    world = RobotWorld(family="reach", tier=1, limit=9.0, start=tuple(start), goals=goals)
    return Cell(world, Body(**numbers)).truth()


def test_the_tool_is_where_the_engine_has_it():
    rng = stream(0, "poses")
    for _ in range(20):
        joints = arm.LOW + (arm.HIGH - arm.LOW) * rng.random(7)
        place, _ = arm.forward(joints)
        assert bare(joints).tool == pytest.approx(place, abs=1e-9)


def test_an_offset_of_a_hinge_moves_the_tool():
    links = ((0.0, 0.0, 0.0),) * 3 + ((0.01, 0.0, 0.0),) + ((0.0, 0.0, 0.0),) * 3
    moved = bare(arm.HOME, links=links).tool - bare(arm.HOME).tool
    assert np.linalg.norm(moved) == pytest.approx(0.01)


@pytest.mark.parametrize("yaw", [-0.8, 0.0, 0.8])
def test_the_inverse_reaches_every_place_over_the_table(yaw):
    for x in (0.38, 0.5, 0.66):
        for y in (-0.25, 0.0, 0.25):
            for z in (0.03, 0.3):
                joints = arm.HOME.copy()
                for _ in range(30):
                    joints = arm.inverse(joints, np.array([x, y, z]), yaw)
                place, rotation = arm.forward(joints)
                assert place == pytest.approx([x, y, z], abs=2e-3)
                assert rotation[:, 2] == pytest.approx([0, 0, -1], abs=0.01)
                assert arm.yaw_of(rotation) == pytest.approx(yaw, abs=0.01)


def test_the_drives_follow_the_inverse():
    target, joints = np.array([0.5, 0.1, 0.2]), arm.HOME.copy()
    goals = (GoalPlace(place=(0.5, 0.1, 0.2), tolerance=0.01),)
    world = RobotWorld(family="reach", tier=1, limit=9.0, start=tuple(joints), goals=goals)
    cell = Cell(world, Body())
    for _ in range(60):
        joints = arm.inverse(joints, target, 0.0)
        truth = cell.tick(joints, arm.OPEN)
    assert truth.tool == pytest.approx(target, abs=1e-3)
    assert not truth.blew_up
