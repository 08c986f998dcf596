"""Drift: balls move on fixed axes."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import BallLaw, PhysicsWorld, graded, spread
from owa_bench.worlds.physics_edits import check_target, with_law

TARGET = "balls/rail"


class BallsOnRails:
    """Put every ball on a horizontal axis that passes the cart at 3-4, 2-3, 1.5-2 m.

    Changes: the balls' start and freedom: an axis in the pole's plane of height, 6 to
        10 m/s, no drag; released: heading and height distorted, most above the box.
    Leaves alone: cart, pole, sizes.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 10; `cartpole3d.md` section 2.
    """

    name = "balls_on_rails"
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
        """Return the world of level 10 at magnitude `intensity`."""
        check_target(target, TARGET)
        released = world.spec == "released"
        law = BallLaw(
            kind="rail",
            share=graded(intensity, 0.0, 1.0, 1.0, 1.0),
            speeds=world.start.speeds,
            heights=(0.5, 1.5) if released else (0.5, 1.25),
            distances=spread(intensity, (3, 4), (3, 4), (2, 3), (1.5, 2)),
            bent=released,
        )
        return with_law(world, law)


OPERATOR = BallsOnRails()
