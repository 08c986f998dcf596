"""Drift: balls attract each other."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import PhysicsWorld, Pull, graded
from owa_bench.worlds.physics_edits import check_target, with_pull

TARGET = "balls/together"


class BallsTogether:
    """Pull balls to their centroid with a constant 1, 3, 5 N.

    Changes: a force on every ball; released: away from the centroid.
    Leaves alone: starts, masses, cart, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 13; `cartpole3d.md` section 2.
    """

    name = "balls_together"
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
        """Return the world of level 13 at magnitude `intensity`."""
        check_target(target, TARGET)
        size = graded(intensity, 0.0, 1.0, 3.0, 5.0)
        if world.spec == "released":
            size = -size
        return with_pull(world, Pull(target="centroid", size=(size, size)))


OPERATOR = BallsTogether()
