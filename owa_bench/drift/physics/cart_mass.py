"""Drift: the cart is heavier."""

import numpy as np
from msgspec.structs import replace

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import PhysicsWorld, graded
from owa_bench.worlds.physics_edits import check_target

TARGET = "cart/mass"


class CartMass:
    """Make the cart heavier: 5, 10, 50 kg (released: 10 kg at every grade).

    Changes: the cart's mass.
    Leaves alone: its shape and the push, balls, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 1; `cartpole3d.md` section 2.
    """

    name = "cart_mass"
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
        """Return the world of level 1 at magnitude `intensity`."""
        check_target(target, TARGET)
        grades = (10.0, 10.0, 10.0) if world.spec == "released" else (5.0, 10.0, 50.0)
        mass = graded(intensity, 1.0, *grades)
        return replace(world, cart=replace(world.cart, mass=mass))


OPERATOR = CartMass()
