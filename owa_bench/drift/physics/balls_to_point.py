"""Drift: balls fly to a random point."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import BallLaw, PhysicsWorld, graded
from owa_bench.worlds.physics_edits import check_target, with_law

TARGET = "balls/point"


class BallsToPoint:
    """Start a share of the balls towards one random point (released: all).

    Changes: the start velocity of a third, two thirds or all balls: up to 10 m/s
        towards a point common to the episode; released: of every ball, at one speed.
    Leaves alone: places, sizes, forces.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 3; `cartpole3d.md` section 2.
    """

    name = "balls_to_point"
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
        """Return the world of level 3 at magnitude `intensity`."""
        check_target(target, TARGET)
        released = world.spec == "released"
        grades = (1.0, 1.0, 1.0) if released else (1 / 3, 2 / 3, 1.0)
        share = graded(intensity, 0.0, *grades)
        law = BallLaw(
            kind="point",
            share=share,
            speeds=(0.0, 10.0),
            heights=world.start.heights,
            alike=released,
        )
        return with_law(world, law)


OPERATOR = BallsToPoint()
