"""A world's forces and newcomers, at work on a scene before each tick."""

from collections.abc import Callable

import numpy as np

from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.scene import Scene
from owa_bench.envs.cartpole3d.spawning import due, spawn_ball
from owa_bench.envs.cartpole3d.start import Pair, Triple
from owa_bench.worlds.physics import PhysicsWorld, Pull, Spawn

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
        found.append(Blowing(world, scene, heading))
    return tuple(found)


class Pulling:
    """A force on every ball along the line to a target."""

    def __init__(
        self, world: PhysicsWorld, pull: Pull, scene: Scene, rng: np.random.Generator
    ) -> None:
        self._world = world
        self._pull = pull
        self._scene = scene
        self._rng = rng

    def __call__(self, tick: int) -> None:
        """Push each ball once."""
        scene = self._scene
        places = scene.places
        goal = self._goal(places)
        low, high = self._pull.size
        if low == high:
            sizes = [low] * len(places)
        else:
            draws = self._rng.random(len(places)).tolist()
            sizes = [low + (high - low) * u for u in draws]
        for ball, at, size in zip(scene.live, places, sizes, strict=True):
            scene.push_ball(ball, at, rules.towards(at, goal, size))

    def _goal(self, places: list[Triple]) -> Triple:
        target = self._pull.target
        if target == "centroid":
            return rules.centroid(places)
        if target == "origin":
            return 0.0, 0.0, 0.0
        x, y, z = self._scene.cart
        if target == "middle":
            return x, y, z + rules.MIDDLE
        world = self._world
        reach = world.pole.foot + world.pole.length
        return rules.along(self._scene.pole, (x, y), world.cart.joint, reach)


class Blowing:
    """The wind's forces on cart, pole and balls."""

    def __init__(self, world: PhysicsWorld, scene: Scene, heading: Pair) -> None:
        self._world = world
        self._scene = scene
        self._heading = heading

    def __call__(self, tick: int) -> None:
        """Push everything once."""
        world, scene, heading = self._world, self._scene, self._heading
        velocity = scene.velocity
        scene.push_cart(rules.wind_on_cart(world, heading, velocity))
        reach = world.pole.foot + 0.5 * world.pole.length
        middle = rules.along(scene.pole, scene.cart, world.cart.joint, reach)
        force = rules.wind_on_pole(world, heading, velocity, middle[2])
        if force[0] or force[1]:
            scene.push_pole(force, middle)
        moving = zip(scene.live, scene.places, scene.speeds, strict=True)
        for ball, at, speed in moving:
            scene.push_ball(ball, at, rules.wind_on_ball(world, heading, at, speed))


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
            others=self._scene.places,
            rng=self._rng,
        )
        if ball is not None:
            self._scene.add(ball)
