"""A world's forces and newcomers, at work on a scene before each tick."""

from collections.abc import Callable
from itertools import repeat

import numpy as np

from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.gale import Gale
from owa_bench.envs.cartpole3d.scene import Scene
from owa_bench.envs.cartpole3d.spawning import due, spawn_ball
from owa_bench.envs.cartpole3d.start import Pair, Triple
from owa_bench.worlds.physics import PhysicsWorld, Pull, Spawn

_BLOCK = 64  # draws at once: one at a time each costs as much as the block
Effect = Callable[[int], None]  # takes the number of the tick to come, the first 1


def effects(
    world: PhysicsWorld,
    scene: Scene,
    *,
    first: Pair,
    heading: Pair,
    rng: np.random.Generator,
) -> tuple[Effect, ...]:
    """Return what acts in an episode of a world, in order: newcomers before forces.

    `first` is where the cart began, `heading` the wind's, `rng` the noise stream.
    """
    found: list[Effect] = [
        Newcomers(world, spawn, scene, first, rng) for spawn in world.spawns
    ]
    found += [Pulling(world, pull, scene, rng) for pull in world.pulls]
    if world.wind is not None:
        found.append(Blowing(world, scene, Gale(world, world.wind, heading)))
    return tuple(found)


class Pulling:
    """A force on every ball along the line to a target."""

    def __init__(
        self, world: PhysicsWorld, pull: Pull, scene: Scene, rng: np.random.Generator
    ) -> None:
        self._pull = pull
        self._scene = scene
        self._rng = rng
        self._joint, self._reach = world.cart.joint, world.pole.foot + world.pole.length
        goals = {
            "centroid": self._centroid,
            "origin": self._origin,
            "middle": self._middle,
            "tip": self._tip,
        }
        self._goal: Callable[[], Triple] = goals[pull.target]
        low, high = pull.size
        self._constant = repeat(low) if low == high else None
        self._draws: list[float] = []

    def __call__(self, tick: int) -> None:
        """Push each ball once."""
        scene = self._scene
        lows = scene.lows
        sizes = self._constant or self._drawn(len(lows))
        scene.push_balls(rules.pulls(lows, scene.radius, self._goal(), sizes))

    def _drawn(self, count: int) -> list[float]:
        """Return the size of each force, drawn anew."""
        low, high = self._pull.size
        if len(self._draws) < count:
            self._draws += self._rng.random(max(_BLOCK, count)).tolist()
        drawn, self._draws = self._draws[:count], self._draws[count:]
        return [low + (high - low) * u for u in drawn]

    def _centroid(self) -> Triple:
        return rules.centroid(self._scene.lows, self._scene.radius)

    def _origin(self) -> Triple:
        return 0.0, 0.0, 0.0

    def _middle(self) -> Triple:
        x, y, z = self._scene.cart
        return x, y, z + rules.MIDDLE

    def _tip(self) -> Triple:
        scene = self._scene
        return rules.along(scene.pole, scene.cart, self._joint, self._reach)


class Blowing:
    """The wind's forces on cart, pole and balls."""

    def __init__(self, world: PhysicsWorld, scene: Scene, gale: Gale) -> None:
        self._scene = scene
        self._gale = gale
        self._joint = world.cart.joint
        self._reach = world.pole.foot + 0.5 * world.pole.length

    def __call__(self, tick: int) -> None:
        """Push everything once."""
        scene, gale = self._scene, self._gale
        velocity = scene.velocity
        scene.push_cart(gale.on_cart(velocity))
        middle = rules.along(scene.pole, scene.cart, self._joint, self._reach)
        force = gale.on_pole(velocity, middle[2])
        if force[0] or force[1]:
            scene.push_pole(force, middle)
        scene.push_balls(gale.on_balls(scene.lows, scene.before, scene.rate))


class Newcomers:
    """A further ball every so many ticks."""

    def __init__(
        self,
        world: PhysicsWorld,
        spawn: Spawn,
        scene: Scene,
        first: Pair,
        rng: np.random.Generator,
    ) -> None:
        self._world = world
        self._spawn = spawn
        self._scene = scene
        self._first = first
        self._last = first
        self._rng = rng

    def __call__(self, tick: int) -> None:
        """Add a ball if one is due and finds a place."""
        if not due(self._spawn.every, tick):
            return
        x, y, _ = self._scene.cart
        travel = (x - self._last[0], y - self._last[1])
        self._last = (x, y)
        ball = spawn_ball(
            self._world,
            self._spawn,
            cart=(x, y),
            first=self._first,
            travel=travel,
            others=self._scene.places if self._spawn.placement == "ahead" else (),
            rng=self._rng,
        )
        if ball is not None:
            self._scene.add(ball)
