"""Drift: balls cannot be moved."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import BallLaw, PhysicsWorld, graded
from owa_bench.worlds.physics_edits import check_target, with_law

TARGET = "balls/fixed"


class BallsFixed:
    """Fix a share of the balls in the cart's plane (released: all, anywhere).

    Changes: the start of a third, two thirds or all balls: unmovable, their centres at
        height 0.5; released: every ball, heights as at level 0.
    Leaves alone: sizes, masses, cart, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 2; `cartpole3d.md` section 2.
    """

    name = "balls_fixed"
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
        """Return the world of level 2 at magnitude `intensity`."""
        check_target(target, TARGET)
        released = world.spec == "released"
        grades = (1.0, 1.0, 1.0) if released else (1 / 3, 2 / 3, 1.0)
        heights = world.start.heights if released else (0.5, 0.5)
        share = graded(intensity, 0.0, *grades)
        return with_law(world, BallLaw(kind="fixed", share=share, heights=heights))


OPERATOR = BallsFixed()
