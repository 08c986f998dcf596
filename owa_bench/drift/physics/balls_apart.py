"""Drift: balls push each other away."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import PhysicsWorld, Pull, graded
from owa_bench.worlds.physics_edits import check_target, with_pull

TARGET = "balls/apart"


class BallsApart:
    """Push balls away from their centroid by up to 2, 4, 6 N, redrawn every tick.

    Changes: a force on every ball; released: towards the centroid, up to 6 N at every
        grade.
    Leaves alone: starts, masses, cart, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 5; `cartpole3d.md` section 2.
    """

    name = "balls_apart"
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
        """Return the world of level 5 at magnitude `intensity`."""
        check_target(target, TARGET)
        if world.spec == "released":
            size = (0.0, graded(intensity, 0.0, 6.0, 6.0, 6.0))
        else:
            size = (-graded(intensity, 0.0, 2.0, 4.0, 6.0), 0.0)
        return with_pull(world, Pull(target="centroid", size=size))


OPERATOR = BallsApart()
