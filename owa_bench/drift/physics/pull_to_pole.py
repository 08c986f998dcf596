"""Drift: balls are pushed towards the pole's tip."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import PhysicsWorld, Pull, Target, graded
from owa_bench.worlds.physics_edits import check_target, with_pull

TARGET = "balls/pole"


class PullToPole:
    """Pull every ball to the pole's tip with a constant 10, 20, 30 N.

    Changes: a force on every ball; released: towards half a metre above the cart.
    Leaves alone: starts, masses, cart, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 15; `cartpole3d.md` section 2.
    """

    name = "pull_to_pole"
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
        """Return the world of level 15 at magnitude `intensity`."""
        check_target(target, TARGET)
        size = graded(intensity, 0.0, 10.0, 20.0, 30.0)
        goal: Target = "middle" if world.spec == "released" else "tip"
        return with_pull(world, Pull(target=goal, size=(size, size)))


OPERATOR = PullToPole()
