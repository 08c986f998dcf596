"""Drift: balls are attracted to the origin."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import PhysicsWorld, Pull, graded
from owa_bench.worlds.physics_edits import check_target, with_pull

TARGET = "balls/origin"


class PullToOrigin:
    """Pull every ball to (0, 0, 0) with a constant 15, 25, 35 N.

    Changes: a force on every ball.
    Leaves alone: starts, masses, cart, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 7; `cartpole3d.md` section 2.
    """

    name = "pull_to_origin"
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
        """Return the world of level 7 at magnitude `intensity`."""
        check_target(target, TARGET)
        size = graded(intensity, 0.0, 15.0, 25.0, 35.0)
        return with_pull(world, Pull(target="origin", size=(size, size)))


OPERATOR = PullToOrigin()
