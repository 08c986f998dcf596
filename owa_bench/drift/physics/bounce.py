"""Drift: balls and walls are bouncier."""

import numpy as np
from msgspec.structs import replace

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import PhysicsWorld, spread
from owa_bench.worlds.physics_edits import check_target

TARGET = "balls/restitution"


class Bounce:
    """Draw the restitution per episode from 1.05-1.15, 1.20-1.30, 1.35-1.45.

    Changes: the restitution of balls and of walls (the engine multiplies them).
    Leaves alone: drag, starts, cart, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 12; `cartpole3d.md` section 2.
    """

    name = "bounce"
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
        """Return the world of level 12 at magnitude `intensity`."""
        check_target(target, TARGET)
        bands = ((1.0, 1.0), (1.05, 1.15), (1.2, 1.3), (1.35, 1.45))
        ball = replace(world.ball, restitution=spread(intensity, *bands))
        return replace(world, ball=ball)


OPERATOR = Bounce()
