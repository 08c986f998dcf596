"""Drift: the pole is longer."""

import numpy as np
from msgspec.structs import replace

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import PhysicsWorld, graded
from owa_bench.worlds.physics_edits import check_target

TARGET = "pole/length"


class PoleLength:
    """Lengthen the pole to 3, 5, 8 m.

    Changes: the pole's length, its centre of mass in proportion; released: the centre
        stays at 1 m, only shape and inertia grow.
    Leaves alone: mass, start, fall limit.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 9; `cartpole3d.md` section 2.
    """

    name = "pole_length"
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
        """Return the world of level 9 at magnitude `intensity`."""
        check_target(target, TARGET)
        length = graded(intensity, 1.0, 3.0, 5.0, 8.0)
        centre = 1.0 if world.spec == "released" else length
        pole = replace(world.pole, length=length, centre=centre)
        return replace(world, pole=pole)


OPERATOR = PoleLength()
