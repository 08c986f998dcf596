"""The observation of CartPole3D: its space, and which balls its slots show."""

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.bodies import RAIL
from owa_bench.envs.cartpole3d.scene import Scene
from owa_bench.envs.cartpole3d.start import Vector3

ObservationMode = Literal["full", "core"]
ObservationArray = npt.NDArray[np.float32]

_PLACE, _SPEED = 100.0, 500.0  # bounds of the Box, far beyond what is met


def observation_space(slots: int) -> spaces.Box:
    """Return the observation space with `slots` balls: generous bounds in SI units."""
    core = [_PLACE] * 2 + [_SPEED] * 2 + [1.0] * 4 + [_SPEED] * 3
    ball = [1.0] + [_PLACE] * 3 + [_SPEED] * 3
    high = np.array(core + ball * slots, dtype=np.float32)
    low = -high
    low[rules.CORE :: rules.PER_BALL] = 0.0
    return spaces.Box(low, high, dtype=np.float32)


def visible_balls(scene: Scene, slots: int, *, blind: bool) -> tuple[list[Vector3], list[Vector3]]:
    """Return low corners, now and before, of the balls that the slots show.

    Args:
        scene: The bodies.
        slots: The most balls that are shown; of more, those nearest to the pole.
        blind: Whether balls on rails seem to rest, as released.
    Returns: The corners now, and those one tick earlier.
    """
    lows, before = scene.lows, scene.before
    if blind:
        before = _unmoved_rails(scene)
    if len(lows) > slots:
        order = _nearest(scene.places, scene.centre)[:slots]
        return [lows[i] for i in order], [before[i] for i in order]
    return lows, before


def _nearest(places: list[Vector3], centre: Vector3) -> list[int]:
    """Return the numbers of places, those nearest to a centre first."""
    away = [math.dist(place, centre) for place in places]
    return sorted(range(len(places)), key=away.__getitem__)


def _unmoved_rails(scene: Scene) -> list[Vector3]:
    """Return earlier places such that balls on rails seem to rest, as released."""
    moving = zip(scene.live, scene.lows, scene.before, strict=True)
    return [now if ball.kind == RAIL else old for ball, now, old in moving]
