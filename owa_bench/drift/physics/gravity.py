"""Drift: gravity is stronger and balls feel it."""

import numpy as np
from msgspec.structs import replace

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import PhysicsWorld, graded
from owa_bench.worlds.physics_edits import check_target

TARGET = "gravity"


class Gravity:
    """Raise gravity to 20, 30, 40 m/s2, on balls too (released: 9.8, on balls too).

    Changes: gravity on cart-pole and balls.
    Leaves alone: starts, masses.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 6; `cartpole3d.md` section 2.
    """

    name = "gravity"
    version = 1
    announcement: Announcement = "D3"
    weight = 1.0

    def targets(self, world: PhysicsWorld) -> tuple[str, ...]:
        """Return the one thing that it changes."""
        return (TARGET,)

    def apply(
        self,
        world: PhysicsWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> PhysicsWorld:
        """Return the world of level 6 at magnitude `intensity`."""
        check_target(target, TARGET)
        grades = (9.8, 9.8, 9.8) if world.spec == "released" else (20.0, 30.0, 40.0)
        ball = replace(world.ball, weighs=intensity > 0)
        return replace(world, gravity=graded(intensity, 9.8, *grades), ball=ball)


OPERATOR = Gravity()
