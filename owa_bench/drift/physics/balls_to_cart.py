"""Drift: balls fly to the cart."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import BallLaw, PhysicsWorld, graded
from owa_bench.worlds.physics_edits import check_target, with_law

TARGET = "balls/cart"


class BallsToCart:
    """Start a quarter, a half, three quarters of the balls towards the cart.

    Changes: the start velocity of a share of the balls: up to 10 m/s to the cart at
        height 0.5.
    Leaves alone: places, sizes, forces.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 11; `cartpole3d.md` section 2.
    """

    name = "balls_to_cart"
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
        """Return the world of level 11 at magnitude `intensity`."""
        check_target(target, TARGET)
        share = graded(intensity, 0.0, 0.25, 0.5, 0.75)
        law = BallLaw(kind="cart", share=share, speeds=(0.0, 10.0), aim=0.5)
        return with_law(world, law)


OPERATOR = BallsToCart()
