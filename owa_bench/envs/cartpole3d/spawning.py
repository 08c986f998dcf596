"""Balls that come during an episode: when, where and how fast."""

import math
from collections.abc import Sequence

import numpy as np

from owa_bench.envs.cartpole3d.start import Ball, Pair, free_ball
from owa_bench.worlds.physics import PhysicsWorld, Spawn

_TRIES = 100
HEIGHT = 1.0  # m, of balls that come to rest ahead of the cart
REACH = 4.5  # m, |x| and |y| of such balls at the most
APART = 0.75  # m, least distance of such a ball from others
_TOLERANCE = 1e-9


def due(every: float, tick: int) -> bool:
    """Return whether a ball comes at `tick`, the first one being `every`.

    >>> [tick for tick in range(1, 10) if due(2.5, tick)]
    [3, 5, 8]
    """
    now = math.floor(tick / every + _TOLERANCE)
    return now > math.floor((tick - 1) / every + _TOLERANCE)


def spawn_ball(
    world: PhysicsWorld,
    spawn: Spawn,
    *,
    cart: Pair,
    first: Pair,
    travel: Pair,
    others: Sequence[Sequence[float]],
    rng: np.random.Generator,
) -> Ball | None:
    """Return the ball that comes, or None where there is no place for it.

    `cart` is where the cart is, `first` where it began, `travel` how far it went since
    the last ball came.
    """
    if spawn.placement == "ahead":
        return _ahead(
            spawn, cart=cart, first=first, travel=travel, others=others, rng=rng
        )
    draws = rng.random(9).tolist()
    off = first if spawn.around == "start" else cart
    return free_ball(world.start, off, spawn.speeds, draws, rng)


def _ahead(
    spawn: Spawn,
    *,
    cart: Pair,
    first: Pair,
    travel: Pair,
    others: Sequence[Sequence[float]],
    rng: np.random.Generator,
) -> Ball | None:
    """Return a ball at rest along the cart's travel."""
    norm = math.sqrt(travel[0] * travel[0] + travel[1] * travel[1])
    if norm == 0.0:
        return None
    near = cart if spawn.around == "cart" else first
    base = cart if spawn.around == "cart" else (0.0, 0.0)
    low, high = spawn.distances
    for share in rng.random(_TRIES).tolist():
        reach = (low + (high - low) * share) / norm
        x, y = base[0] + reach * travel[0], base[1] + reach * travel[1]
        if _is_free(x, y, near, spawn.clearance, others):
            return Ball((x, y, HEIGHT))
    return None


def _is_free(
    x: float, y: float, near: Pair, clearance: float, others: Sequence[Sequence[float]]
) -> bool:
    if abs(x) > REACH or abs(y) > REACH:
        return False
    if math.dist((x, y), near) < clearance:
        return False
    return all(math.dist((x, y, HEIGHT), other) >= APART for other in others)
