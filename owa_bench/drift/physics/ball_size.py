"""Drift: balls are larger."""

import numpy as np
from msgspec.structs import replace

from owa_bench.records.instance import Announcement
from owa_bench.worlds.physics import DECIMALS, PhysicsWorld, graded
from owa_bench.worlds.physics_edits import check_target

TARGET = "balls/radius"


class BallSize:
    """Enlarge the balls: radius 2/3, 5/6, 1 m (released: 1 m at every grade).

    Changes: the radius; in table1 also where balls may start, so that none begins in a
        wall or on the cart.
    Leaves alone: the balls' mass and speed.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Errors: DriftError if `target` is another; FieldError if `intensity` is not in
        [0, 1].
    Source: AIQ paper Table 1, novelty level 4; `cartpole3d.md` section 2.
    """

    name = "ball_size"
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
        """Return the world of level 4 at magnitude `intensity`."""
        check_target(target, TARGET)
        released = world.spec == "released"
        grades = (1.0, 1.0, 1.0) if released else (2 / 3, 5 / 6, 1.0)
        radius = graded(intensity, 0.5, *grades)
        ball = replace(world.ball, radius=radius)
        if released:
            return replace(world, ball=ball)
        start = replace(
            world.start,
            clearance=round(world.start.clearance + radius - 0.5, DECIMALS),
            ball=min(world.start.ball, round(world.arena.half - radius, DECIMALS)),
        )
        return replace(world, ball=ball, start=start)


OPERATOR = BallSize()
