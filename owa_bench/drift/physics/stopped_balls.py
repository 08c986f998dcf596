"""Drift: resting balls appear in the cart's way."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import PhysicsWorld, Spawn, graded
from owa_bench.worlds.physics_edits import check_target, per_tick, with_spawn

TARGET = "balls/stopped"


class StoppedBalls:
    """Add a resting ball every 50, 15, 7 ticks, ahead of the cart.

    Changes: balls come during the episode, at height 1 along the cart's recent travel,
        1.5 to 5 m from it; released: up to 10 m from the world's origin.
    Leaves alone: the balls of the start.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 8; `cartpole3d.md` section 2.
    """

    name = "stopped_balls"
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
        """Return the world of level 8 at magnitude `intensity`."""
        check_target(target, TARGET)
        rate = graded(intensity, 0.0, 1 / 50, 1 / 15, 1 / 7)
        if not rate:
            return world
        released = world.spec == "released"
        spawn = Spawn(
            every=per_tick(rate),
            placement="ahead",
            around="origin" if released else "cart",
            distances=(0.0, 10.0) if released else (1.5, 5.0),
            clearance=0.75 if released else 1.0,
        )
        return with_spawn(world, spawn)


OPERATOR = StoppedBalls()
