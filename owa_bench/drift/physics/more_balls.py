"""Drift: more and more balls fly."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import PhysicsWorld, Spawn, graded
from owa_bench.worlds.physics_edits import check_target, per_tick, with_spawn

TARGET = "balls/more"


class MoreBalls:
    """Add a flying ball every 3, 2, 1 ticks, without end.

    Changes: balls come during the episode, placed as at reset, components of 3 to 5
        m/s; kept off the cart's place (released: off its first place).
    Leaves alone: the balls of the start.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 16; `cartpole3d.md` section 2.
    """

    name = "more_balls"
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
        """Return the world of level 16 at magnitude `intensity`."""
        check_target(target, TARGET)
        rate = graded(intensity, 0.0, 1 / 3, 1 / 2, 1.0)
        if not rate:
            return world
        spawn = Spawn(
            every=per_tick(rate),
            placement="reset",
            around="start" if world.spec == "released" else "cart",
            speeds=(3.0, 5.0),
        )
        return with_spawn(world, spawn)


OPERATOR = MoreBalls()
