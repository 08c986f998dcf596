"""Edits that operators on physics worlds share."""

import msgspec

from owa_bench.errors import DriftError
from owa_bench.worlds.physics import BallLaw, PhysicsWorld, Pull, Spawn


def check_target(target: str, known: str) -> None:
    """Refuse a target that an operator does not change. Errors: DriftError."""
    if target != known:
        raise DriftError(f"`target` must be {known!r}, got {target!r}.")


def with_law(world: PhysicsWorld, law: BallLaw) -> PhysicsWorld:
    """Return `world` with one more start law for balls; one of no share is left out."""
    if not law.share:
        return world
    return msgspec.structs.replace(world, laws=(*world.laws, law))


def with_pull(world: PhysicsWorld, pull: Pull) -> PhysicsWorld:
    """Return `world` with one more force on its balls; one of no size is left out."""
    if not any(pull.size):
        return world
    return msgspec.structs.replace(world, pulls=(*world.pulls, pull))


def with_spawn(world: PhysicsWorld, spawn: Spawn) -> PhysicsWorld:
    """Return `world` with one more source of balls."""
    return msgspec.structs.replace(world, spawns=(*world.spawns, spawn))


def per_tick(rate: float) -> float:
    """Return the ticks between two balls at `rate` balls a tick, to six decimals."""
    return round(1.0 / rate, 6)
