"""Forces and arriving balls of a world, applied to a scene before each tick."""

from collections.abc import Callable
from itertools import repeat

import numpy as np

from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.scene import Scene
from owa_bench.envs.cartpole3d.start import Vector2, Vector3, is_due, spawn_ball
from owa_bench.envs.cartpole3d.world import PhysicsWorld, Pull, Spawn, Wind

_BLOCK = 64  # draws at once: one at a time each costs as much as the block
TickEffect = Callable[[int], None]  # takes the number of the tick to come, the first 1


def tick_effects(
    world: PhysicsWorld, scene: Scene, *, first: Vector2, heading: Vector2, rng: np.random.Generator
) -> tuple[TickEffect, ...]:
    """Return what acts in an episode of a world, in order: arrivals before forces.

    Args:
        world: the world that is played.
        scene: the scene that is acted on.
        first: position of the cart at the start, m.
        heading: unit vector of the wind.
        rng: the noise stream of the episode.
    Returns: Functions of the number of the tick to come.
    """
    effects: list[TickEffect] = [
        _Arrivals(world, spawn, scene, first, rng) for spawn in world.spawns
    ]
    effects += [_PullForce(world, pull, scene, rng) for pull in world.pulls]
    if world.wind is not None:
        effects.append(_WindForce(world, world.wind, scene, heading))
    return tuple(effects)


class _PullForce:
    """A force on every ball along the line to a target."""

    def __init__(
        self, world: PhysicsWorld, pull: Pull, scene: Scene, rng: np.random.Generator
    ) -> None:
        self._size = pull.size
        self._target = pull.target
        self._scene = scene
        self._rng = rng
        self._joint, self._reach = world.cart.joint, world.pole.foot + world.pole.length
        low, high = pull.size
        self._constant = repeat(low) if low == high else None
        self._draws: list[float] = []

    def __call__(self, tick: int) -> None:
        """Push each ball once."""
        scene = self._scene
        lows = scene.lows
        sizes = self._constant or self._random_sizes(len(lows))
        scene.push_balls(rules.pull_forces(lows, scene.radius, self._goal(), sizes))

    def _random_sizes(self, count: int) -> list[float]:
        """Return the size of each force, drawn anew."""
        low, high = self._size
        if len(self._draws) < count:
            self._draws += self._rng.random(max(_BLOCK, count)).tolist()
        draws, self._draws = self._draws[:count], self._draws[count:]
        return [low + (high - low) * u for u in draws]

    def _goal(self) -> Vector3:
        """Return the point that pulls."""
        scene = self._scene
        if self._target == "centroid":
            return rules.centroid(scene.lows, scene.radius)
        if self._target == "origin":
            return 0.0, 0.0, 0.0
        if self._target == "middle":
            x, y, z = scene.cart
            return x, y, z + rules.MIDDLE
        return rules.point_on_pole(scene.pole, scene.cart, self._joint, self._reach)


class _WindForce:
    """The wind's forces on cart, pole and balls."""

    def __init__(self, world: PhysicsWorld, wind: Wind, scene: Scene, heading: Vector2) -> None:
        self._scene = scene
        self._drag = rules.WindDrag(world, wind, heading)
        self._joint = world.cart.joint
        self._reach = world.pole.foot + 0.5 * world.pole.length

    def __call__(self, tick: int) -> None:
        """Push everything once."""
        scene, drag = self._scene, self._drag
        velocity = scene.velocity
        scene.push_cart(drag.on_cart(velocity))
        middle = rules.point_on_pole(scene.pole, scene.cart, self._joint, self._reach)
        force = drag.on_pole(velocity, middle[2])
        if force[0] or force[1]:
            scene.push_pole(force, middle)
        scene.push_balls(drag.on_balls(scene.lows, scene.before, scene.rate))


class _Arrivals:
    """A further ball every so many ticks."""

    def __init__(
        self,
        world: PhysicsWorld,
        spawn: Spawn,
        scene: Scene,
        first: Vector2,
        rng: np.random.Generator,
    ) -> None:
        self._world = world
        self._spawn = spawn
        self._scene = scene
        self._first = self._last = first
        self._rng = rng

    def __call__(self, tick: int) -> None:
        """Add a ball if one is due and there is a place for it."""
        if not is_due(self._spawn.every, tick):
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
