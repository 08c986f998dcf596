"""Pictures show the shapes that the engine has, with the same bytes each time."""

import hashlib
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("mujoco")

import mujoco

from owa_bench.envs.robosim2real import arm, ray_kernels, rays, tasks
from owa_bench.envs.robosim2real.engine import Cell
from owa_bench.envs.robosim2real.env import RobotEnv
from owa_bench.envs.robosim2real.world import FAMILIES, TIERS, Body
from owa_bench.errors import FieldError, UsageError
from owa_bench.seeding import stream

CELLS = [(family, tier) for family in FAMILIES for tier in TIERS]
HERE = (0.9, 0.2)


def scene(family="pick_place", tier=3, seed=3):
    world = tasks.draw(family, tier, stream(seed, "base"))
    return world, Cell(world, Body())


def shot(family="pick_place", tier=3, **options):
    world, cell = scene(family, tier)
    return rays.picture(world, cell.truth(), **options)


def near(pixels, colour, far=60):
    """Return how many pixels have about a colour's hue: its share of each channel."""
    shares = pixels / np.maximum(1, pixels.sum(axis=2, keepdims=True))
    wanted = np.array(colour) / sum(colour)
    return int((np.abs(shares - wanted).max(axis=2) < far / 1000).sum())


def test_equal_states_have_equal_bytes_in_another_process():
    digest = hashlib.sha256(shot().tobytes()).hexdigest()
    code = (
        "import hashlib\n"
        "from owa_bench.envs.robosim2real import rays, tasks\n"
        "from owa_bench.envs.robosim2real.engine import Cell\n"
        "from owa_bench.envs.robosim2real.world import Body\n"
        "from owa_bench.seeding import stream\n"
        "world = tasks.draw('pick_place', 3, stream(3, 'base'))\n"
        "picture = rays.picture(world, Cell(world, Body()).truth())\n"
        "print(hashlib.sha256(picture.tobytes()).hexdigest())\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == digest
    assert hashlib.sha256(shot().tobytes()).hexdigest() == digest


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_a_ray_meets_what_the_engines_ray_meets(family, tier):
    world, cell = scene(family, tier)
    targets = arm.inverse(arm.HOME, np.array([0.5, 0.1, 0.25]), 0.6)
    for _ in range(8):
        truth = cell.tick(targets, 0.05)
    kinds, rows, *_ = rays.shapes_of(world, truth)
    pedestal = rays._ARM_ROWS + world.objects + 1
    kinds, rows = np.delete(kinds, pedestal), np.delete(rows, pedestal, axis=0)
    side = 48
    ways = ray_kernels._ways(ray_kernels._SLOPE, ray_kernels._SLOPE, side, side)
    depth, nearest = np.full((side, side), np.inf), np.full((side, side), -1)
    slope = ray_kernels._SLOPE
    ray_kernels._cast(kinds, rows, ways, slope, slope, depth, nearest)
    geom, normal, differ = np.zeros(1, np.int32), np.zeros(3), 0
    for i, j in np.ndindex(side, side):
        way = ways[i, j] / np.linalg.norm(ways[i, j])
        far = mujoco.mj_ray(
            cell.model, cell.data, ray_kernels._EYE_AT, way, None, 1, -1, geom, normal
        )
        far = np.inf if far < 0 else far
        differ += not np.isclose(far, depth[i, j] * np.linalg.norm(ways[i, j]), atol=1e-6)
    assert differ <= 2  # a ray along an edge may go either way
    assert len({*nearest.ravel().tolist()}) >= 8


@pytest.mark.parametrize("size", [(64, 64), (48, 96), (1, 1)])
def test_a_picture_has_the_size_that_is_asked(size):
    pixels = shot(size=size)
    assert (pixels.shape, pixels.dtype) == ((*size, 3), np.uint8)


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_goal_arm_table_and_thing_are_seen_in_every_cell(family, tier):
    pixels = shot(family, tier, size=(128, 128))
    goals = near(pixels, rays._GOALS[0]) + near(pixels, rays._GOALS[1])
    assert goals >= 10
    assert near(pixels, rays._JOINT) > 200
    assert near(pixels, rays._WOOD, far=20) > 2000
    assert (near(pixels, rays._FIRST) > 4) == (family != "reach")


def test_a_person_is_seen_and_the_cached_shapes_stay_as_they_are():
    alone = shot()
    assert near(shot(person=HERE), rays._BODY, far=20) > 100 > near(alone, rays._BODY, far=20)
    assert np.array_equal(shot(), alone)


def test_a_thing_and_its_shadow_move_with_its_place():
    world, cell = scene("push", 1)
    truth = cell.truth()
    moved = truth._replace(things=truth.things + np.array([0.0, -0.1, 0.0]))
    changed = (rays.picture(world, truth) != rays.picture(world, moved)).any(axis=2)
    thing = near(rays.picture(world, truth), rays._FIRST)
    assert 2 * thing < changed.sum() < 200


def test_a_place_below_the_hand_is_in_its_shadow():
    pixels = shot("reach", 1, size=(128, 128)).astype(int)
    wood = (
        np.abs(
            pixels / np.maximum(1, pixels.sum(axis=2, keepdims=True))
            - np.array(rays._WOOD) / sum(rays._WOOD)
        ).max(axis=2)
        < 0.02
    )
    lights = pixels.sum(axis=2)[wood]
    assert (lights < 0.65 * lights.max()).sum() > 50


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300, -1e9])
def test_a_state_that_the_engine_lost_is_drawn_without_what_is_nowhere(number):
    world, cell = scene("push", 1)
    truth = cell.truth()
    lost = truth._replace(things=np.full_like(truth.things, number))
    assert near(rays.picture(world, lost), rays._FIRST) == 0
    lost = lost._replace(joints=np.full(7, number), tool=np.full(3, number))
    assert rays.picture(world, lost).shape == (64, 64, 3)


def test_the_env_shows_its_cell_and_the_observation_stays():
    seen = []
    for mode in (None, "rgb_array"):
        env = gymnasium.make(
            "owa_bench/RoboSim2Real-v1", family="push", render_mode=mode, render_size=(64, 64)
        )
        seen.append(env.reset(seed=4)[0])
        first = env.render() if mode else env.unwrapped.render()
        env.step(np.ones(6, np.float32))
        if mode:
            assert first.shape == (64, 64, 3)
            assert (first != env.render()).any()
        else:
            assert first is None
        env.close()
    assert np.array_equal(*seen)


def test_an_env_says_why_it_does_not_draw():
    with pytest.raises(FieldError, match="render_mode"):
        RobotEnv(render_mode="human")
    with pytest.raises(FieldError, match="process"):
        RobotEnv(side="surrogate", process=True, render_mode="rgb_array")
    with pytest.raises(FieldError, match="render_size"):
        RobotEnv(render_mode="rgb_array", render_size=(0, 64))
    with pytest.raises(UsageError, match="reset"):
        RobotEnv(render_mode="rgb_array").render()
