"""Gymnasium env of CartPole3D: plays the worlds of an instance in a scene."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.bodies import has_screen, render_image
from owa_bench.envs.cartpole3d.forces import TickEffect, tick_effects
from owa_bench.envs.cartpole3d.levels import SUITE, VERSION, LevelSequence, one_magnitude
from owa_bench.envs.cartpole3d.observation import (
    ObservationArray,
    ObservationMode,
    observation_space,
    visible_balls,
)
from owa_bench.envs.cartpole3d.scene import Scene
from owa_bench.envs.cartpole3d.start import SceneState, StartSampler, Vector3
from owa_bench.envs.cartpole3d.world import PhysicsWorld, Spec
from owa_bench.errors import FieldError, UsageError, one_of
from owa_bench.interfaces import TimelineSource
from owa_bench.records.instance import SEED_LIMIT, Instance, Timeline
from owa_bench.seeding import reseat, stream
from owa_bench.shells.action_forms import discrete_action
from owa_bench.shells.env_copies import refuse_copy

_OPTIONS = ("instance", "start", "state")
_NOT_COPIED = ("_scene", "_timeline", "_effects", "_rng")
_RENDER_MODES = ("rgb_array", "human")
_NEVER = 1 << 62
_MS = 1000.0
_CORE, _BALL = struct.Struct(f"{rules.CORE}f"), struct.Struct(f"{rules.PER_BALL}f")
_CORE_BYTES, _BALL_BYTES = _CORE.size, _BALL.size
_PACK_CORE, _PACK_BALL = _CORE.pack_into, _BALL.pack_into


class EpisodeBeginning(NamedTuple):
    """The start of an episode, whether a hidden tick follows, and its instance."""

    state: SceneState
    hidden: bool
    instance: Instance | None


class CartPole3DEnv(gym.Env[Any, Any]):
    """A cart with a pole in a box of flying balls; see docs/cartpole3d.md.

    Description: keep the pole within 10 degrees for 200 ticks of 0.02 s.
    Action space: Discrete(5): nothing, +x, -x, +y, -y, a push of 10 N for one tick.
    Observation space: Box of float32. Cart x, y, vx, vy; the pole's quaternion
        x, y, z, w and angular velocity; with obs="full" for each of `slots` balls
        presence, position, velocity (zeros where there is none; of more balls than
        slots the nearest to the pole).
    Starting state: `reset(seed=s)` plays the instance of seed s, without a seed one is
        drawn from `np_random`; `options={"instance": Instance}` plays exactly that,
        `options={"state": SceneState}` starts from that state with no hidden tick.
    Rewards: 1/200 a step, so that the return is the performance.
    Episode end: terminated when roll or pitch exceeds the limit, truncated after 200.
    Information: "error" of a malformed action, which plays 0; `world`, `instance`,
        `timeline` and `state()` are for the caller.
    Arguments: `spec` "table1" or "released"; `level` 0 to 16, or `levels`, a sequence
        of (episodes, level) whose last goes on for ever; `difficulty` a preset's name
        or `magnitude` in [0, 1]; `source` gives the timeline of an instance.
    """

    metadata = {
        "render_modes": ["rgb_array", *(["human"] if has_screen() else [])],
        "render_fps": 50,
    }

    def __init__(
        self,
        source: TimelineSource | None = None,
        *,
        spec: Spec = "table1",
        level: int = 0,
        levels: Sequence[tuple[int, int]] | None = None,
        difficulty: str | None = None,
        magnitude: float | None = None,
        obs: ObservationMode = "full",
        slots: int = rules.SLOTS,
        render_mode: str | None = None,
    ) -> None:
        if obs not in get_args(ObservationMode):
            raise FieldError("obs", obs, one_of(obs, get_args(ObservationMode)))
        if slots < 1:
            raise FieldError("slots", slots, "must be at least 1")
        if render_mode not in (None, *_RENDER_MODES):
            wanted = one_of(render_mode, _RENDER_MODES)
            raise FieldError("render_mode", render_mode, wanted)
        self._levels = LevelSequence(
            spec=spec,
            levels=tuple(levels) if levels else ((1, level),),
            magnitude=one_magnitude(difficulty, magnitude),
        )
        self._source = source
        self._slots = slots if obs == "full" else 0
        self.render_mode = render_mode
        self._bytes = _CORE_BYTES + _BALL_BYTES * self._slots
        self.observation_space = observation_space(self._slots)
        self.action_space = self._directions = spaces.Discrete(len(rules.DIRECTIONS))
        self._scene: Scene | None = None
        self._starts = StartSampler()
        self._noise = stream(0, "noise")
        self._episode = -1
        self._steps = self._age = 0
        self._root = self._repeat = 0
        self._start: EpisodeBeginning | None = None
        self._actions: list[int] = []  # of this episode, for copies of this env
        self._instance: Instance | None = None
        self._timeline: Timeline | None = None

    # --- Gymnasium ------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[ObservationArray, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: names the instance; without one it is drawn from `np_random`.
            options: "instance" plays exactly that one, "state" starts from that state, "start" from
                that one with the hidden tick that drawn starts have.
        Returns: The first observation and an empty info.
        Raises: FieldError: another option.
        """
        super().reset(seed=seed)
        given = options or {}
        for name in given:
            if name not in _OPTIONS:
                raise FieldError("options", name, one_of(name, _OPTIONS))
        self._episode += 1
        world = self._choose(seed, given.get("instance"))
        state: SceneState | None = given.get("state")
        start = state or given.get("start") or self._starts(world, self._root)
        hidden, exact = state is None, given.get("instance")
        self._start, self._actions = EpisodeBeginning(start, hidden, exact), []
        scene = self._begin(world, start, hidden=hidden)
        return self._observe(scene), {}

    def step(self, action: Any) -> tuple[ObservationArray, float, bool, bool, dict[str, Any]]:
        """Push the cart for one tick.

        Args:
            action: 0 to 4, in any form of `shells.action_forms`; a malformed one plays 0.
        Returns: Gymnasium's five; the info holds "error" for a malformed action alone.
        Raises: UsageError: no episode has begun.
        """
        scene = self._scene or self._playing
        info: dict[str, Any] = {}
        if type(action) is not int or action not in self._pushes:
            action, error = discrete_action(action, self._directions)
            if error is not None:
                info["error"] = error
        steps = self._steps = self._steps + 1
        if steps >= self._swap:
            self._enter_next_world()
        push = self._pushes[action]
        self._actions.append(action)
        for effect in self._effects:
            effect(steps + self._age)
        scene.tick(push)
        terminated = rules.has_fallen(scene.pole, self._sine, self._tangent)
        truncated = steps >= self._ticks and not terminated
        return self._observe(scene), self._reward, terminated, truncated, info

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Return a picture from the software renderer; a window draws itself."""
        if self.render_mode != "rgb_array":
            return None
        return render_image(self._playing.engine)

    def close(self) -> None:
        """Release the engine's client; a second call does nothing."""
        if self._scene is not None:
            self._scene.close()
            self._scene = self._start = None
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made from: it plays the actions of the episode again.

        Raises: UsageError: a window shows the scene.
        """
        if self._scene is not None and self.render_mode == "human":
            refuse_copy("a window")
        return {n: it for n, it in self.__dict__.items() if n not in _NOT_COPIED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._scene = self._timeline = None
        if self._start is None:
            return
        actions, self._actions = self._actions, []
        start, hidden, instance = self._start
        world = self._first_of(instance) if instance else self._plain_world()
        self._begin(world, start, hidden=hidden)
        for action in actions:
            self.step(action)

    # --- for the caller, never for an agent -----------------------------------------

    @property
    def world(self) -> PhysicsWorld:
        """The world that holds now."""
        return self._playing.world

    @property
    def instance(self) -> Instance:
        """The instance that is played."""
        if self._instance is None:
            self._instance = self._instance_of(self._root)
        return self._instance

    @property
    def timeline(self) -> Timeline:
        """The worlds of this episode.

        Raises: UsageError: no source was given.
        """
        if self._timeline is None:
            if self._source is None:
                raise UsageError("This env has no source of timelines: make it by gymnasium.make.")
            self._timeline = self._source(self.instance)
        return self._timeline

    @property
    def scene(self) -> Scene:
        """The bodies as the engine holds them."""
        return self._playing

    def state(self) -> SceneState:
        """Return the exact state, from which `options={"state": ..}` goes on."""
        return self._playing.state()._replace(wind=self._wind)

    # --- inside ---------------------------------------------------------------------

    @property
    def _playing(self) -> Scene:
        if self._scene is None:
            raise UsageError("No episode has begun: call reset first.")
        return self._scene

    def _choose(self, seed: int | None, instance: Instance | None) -> PhysicsWorld:
        """Choose instance and first world; a plain seed needs no timeline."""
        self._instance = instance
        self._timeline = None
        if instance is not None:
            self._root, self._repeat = instance.seed, instance.repeat
            return self._first_of(instance)
        if seed is None:
            seed = int(self.np_random.integers(SEED_LIMIT))
        self._root, self._repeat = seed, 0
        return self._plain_world()

    def _plain_world(self) -> PhysicsWorld:
        """Return the world of a plain seed, which lasts for the whole episode."""
        self._swap = _NEVER
        return self._levels.world(self._episode)

    def _first_of(self, instance: Instance) -> PhysicsWorld:
        """Return the first world of an instance's timeline and note when it ends."""
        if self._source is None:
            raise UsageError("An instance needs a source of timelines: use gymnasium.make.")
        self._timeline = timeline = self._source(instance)
        self._next = 0
        self._plan_swap(timeline)
        world: PhysicsWorld = timeline.worlds[0]
        return world

    def _plan_swap(self, timeline: Timeline) -> None:
        self._next += 1
        self._swap = _NEVER
        if self._next < len(timeline.starts):
            tick = timeline.worlds[0].tick
            self._swap = 1 + round(timeline.starts[self._next] / (_MS * tick))

    def _instance_of(self, seed: int) -> Instance:
        """Return the instance of a plain seed; its tier is the nearest preset."""
        sequence = self._levels
        level = sequence.level_of(self._episode)
        return Instance(
            suite=SUITE,
            version=VERSION,
            family=f"{sequence.spec}/{level}",
            tier=max(1, round(3 * sequence.magnitude)),
            seed=seed,
            drift_step=int(level > 0),
        )

    def _begin(self, world: PhysicsWorld, start: SceneState, *, hidden: bool) -> Scene:
        """Put the scene to a start; a drawn one passes a hidden tick first."""
        self._steps, self._age = 0, int(hidden)
        self._wind, self._first = start.wind, start.cart
        self._rng: np.random.Generator | None = None
        scene = self._enter(world)
        scene.set_state(start)
        self._act(world, scene)
        if hidden:
            for effect in self._effects:
                effect(1)
            scene.tick((*start.push, 0.0))
        else:
            scene.read_poses()
        return scene

    def _enter(self, world: PhysicsWorld) -> Scene:
        if self._scene is None:
            window = self.render_mode == "human"
            self._scene = Scene(world, window=window)
            self._use(world)
        elif world is not self._scene.world:
            self._scene.enter(world)
            self._use(world)
        return self._scene

    def _use(self, world: PhysicsWorld) -> None:
        """Take on the numbers of a world that a step needs."""
        self._sine, self._tangent = rules.fall_bounds(world.pole.fall)
        self._ticks = world.ticks
        self._reward = 1.0 / world.ticks
        push = world.cart.push
        self._pushes: dict[int, Vector3 | None] = {
            i: (push * x, push * y, 0.0) if x or y else None
            for i, (x, y) in enumerate(rules.DIRECTIONS)
        }
        self._blind = any(law.bent for law in world.laws)

    def _act(self, world: PhysicsWorld, scene: Scene) -> None:
        """Set up what acts on the scene beside the agent."""
        self._effects: tuple[TickEffect, ...] = ()
        if world.pulls or world.spawns or world.wind:
            if self._rng is None:
                self._rng = reseat(self._noise, self._root, "noise", self._repeat)
            self._effects = tick_effects(
                world, scene, first=self._first, heading=self._wind, rng=self._rng
            )

    def _enter_next_world(self) -> None:
        """Enter the next world of the timeline in the middle of an episode."""
        timeline = self.timeline
        world: PhysicsWorld = timeline.worlds[self._next]
        self._plan_swap(timeline)
        scene = self._playing
        state = scene.state()
        fresh = scene.enter(world)
        self._use(world)
        if fresh:
            scene.set_state(state)
            scene.read_poses()
        self._act(world, scene)

    def _observe(self, scene: Scene) -> ObservationArray:
        packed = bytearray(self._bytes)
        (x, y, _), (u, v, _) = scene.cart, scene.velocity
        _PACK_CORE(packed, 0, x, y, u, v, *scene.pole, *scene.spin)
        if self._slots:
            lows, before = scene.lows, scene.before
            if self._blind or len(lows) > self._slots:
                lows, before = visible_balls(scene, self._slots, blind=self._blind)
            r, k, at = scene.radius, scene.rate, _CORE_BYTES
            moving = zip(lows, before)  # noqa: B905 (each check costs 0.1 us)
            for (x, y, z), (a, b, c) in moving:
                u, v, w = (x - a) * k, (y - b) * k, (z - c) * k
                _PACK_BALL(packed, at, 1.0, x + r, y + r, z + r, u, v, w)
                at += _BALL_BYTES
        return np.frombuffer(packed, np.float32)
