"""The wind of an episode: its forces on cart, pole and balls, in plain numbers."""

import math
from collections.abc import Iterable

from owa_bench.envs.cartpole3d.rules import (
    AIR,
    BENT_BALL,
    BENT_CART,
    DRAG_BALL,
    DRAG_CART,
    DRAG_POLE,
    wind_share,
)
from owa_bench.envs.cartpole3d.start import Pair, Triple
from owa_bench.worlds.physics import PhysicsWorld, Wind

_CALM: Triple = (0.0, 0.0, 0.0)


class Gale:
    """The drag of air that moves along a heading at a speed that height decides.

    `bent` winds are those of the released generator: fitted to its measured forces.
    """

    def __init__(self, world: PhysicsWorld, wind: Wind, heading: Pair) -> None:
        cart, pole, ball = world.cart, world.pole, world.ball
        self._bent, self._speed, self._heading = wind.bent, wind.speed, heading
        at_cart = wind.speed * wind_share(cart.bottom + 0.5 * cart.height)
        self._at_cart = (at_cart * heading[0], at_cart * heading[1])
        self._cart = 0.5 * AIR * DRAG_CART * (2.0 * cart.radius * cart.height)
        self._pole = 0.5 * AIR * DRAG_POLE * (2.0 * pole.radius * pole.length)
        self._radius = ball.radius
        self._ball = 0.5 * AIR * DRAG_BALL * (math.pi * ball.radius * ball.radius)

    def on_cart(self, velocity: Triple) -> Triple:
        """Return the force on a cart of a velocity."""
        if self._bent:
            x = self._heading[0]
            square = x * x
            size = 0.5 * BENT_CART * self._speed * self._speed * square * (1.0 + square)
            return math.copysign(size, x), 0.0, 0.0
        u, v = self._at_cart[0] - velocity[0], self._at_cart[1] - velocity[1]
        scale = self._cart * math.sqrt(u * u + v * v)
        return scale * u, scale * v, 0.0

    def on_pole(self, velocity: Triple, height: float) -> Triple:
        """Return the force at the pole's middle, taken to move with the cart."""
        if self._bent:
            return _CALM
        speed = self._speed * wind_share(height)
        x, y = self._heading
        u, v = speed * x - velocity[0], speed * y - velocity[1]
        scale = self._pole * math.sqrt(u * u + v * v)
        return scale * u, scale * v, 0.0

    def on_balls(
        self, lows: Iterable[Triple], before: Iterable[Triple], rate: float
    ) -> list[Triple]:
        """Return the forces on balls, given their low corners now and a tick before."""
        radius, full, drag = self._radius, self._speed, self._ball
        hx, hy = self._heading
        if self._bent:
            return [self._corner(low[2] + radius) for low in lows]
        found = []
        for (x, y, z), (a, b, _) in zip(lows, before):  # noqa: B905 (costs 0.1 us)
            speed = full * wind_share(z + radius)
            u, v = speed * hx - (x - a) * rate, speed * hy - (y - b) * rate
            scale = drag * math.sqrt(u * u + v * v)
            found.append((scale * u, scale * v, 0.0))
        return found

    def _corner(self, height: float) -> Triple:
        """Return the released force on a ball: into one corner by any heading."""
        speed = self._speed * wind_share(height)
        size = -BENT_BALL * speed * speed
        x, y = self._heading
        return size * x * x, size * y * y, 0.0
