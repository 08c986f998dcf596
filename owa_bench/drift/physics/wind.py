"""Drift: wind blows."""

import numpy as np
from msgspec.structs import replace

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import PhysicsWorld, Wind, graded
from owa_bench.worlds.physics_edits import check_target

TARGET = "wind"


class WindForce:
    """Let a wind of 1, 2, 3 m/s blow from a heading drawn per episode.

    Changes: drag forces on cart, pole and balls; released: 16, 18, 20 m/s, forces as
        measured there (cart along x only, pole none, balls into one corner).
    Leaves alone: starts, masses.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 14; `cartpole3d.md` section 2.
    """

    name = "wind"
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
        """Return the world of level 14 at magnitude `intensity`."""
        check_target(target, TARGET)
        released = world.spec == "released"
        grades = (16.0, 18.0, 20.0) if released else (1.0, 2.0, 3.0)
        speed = graded(intensity, 0.0, *grades)
        if not speed:
            return world
        return replace(world, wind=Wind(speed=speed, bent=released))


OPERATOR = WindForce()
