"""Batched CartPole3D as a Gymnasium vector env and as a VecEnv of Stable-Baselines3."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from owa_bench import seeding
from owa_bench.envs.cartpole3d import levels, rules
from owa_bench.envs.cartpole3d.batched import planner
from owa_bench.envs.cartpole3d.batched.planner import PlannedActions
from owa_bench.envs.cartpole3d.batched.simulator import STARTS, Simulator
from owa_bench.envs.cartpole3d.observation import ObservationMode, observation_space
from owa_bench.envs.cartpole3d.world import PRESETS, PhysicsWorld, Spec
from owa_bench.errors import FieldError, MissingPartError, UsageError, extra, one_of
from owa_bench.shells.action_forms import discrete_rule, lane_actions

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError:  # the extra [rl] holds it; `vec_env` says so
    VecEnv = object  # type: ignore[assignment, misc]

_Numbers = npt.NDArray[np.float32]
_Mask = npt.NDArray[np.bool_]
_Step = tuple[_Numbers, npt.NDArray[np.float64], _Mask, _Mask, dict[str, Any]]


class BatchedCartPole3D(gym.vector.VectorEnv[_Numbers, npt.NDArray[np.int64], Any]):
    """Many CartPole3D episodes in one process; spaces are those of the single env.

    A lane whose episode ends begins the next one in the same step: the observation is its first,
    `info["final_obs"]` holds the last of the old episodes (rows of lanes that did not end are
    zero), `info["_final_obs"]` says where.

    `level` may name several (`levels.level_list`): lanes are shared out evenly over them, and
    without a magnitude each level above 0 is there at easy, medium and hard. With `trial` episodes
    a trial, a lane plays level 0 in the first of them, a drawn number from 1 to half of the trial,
    and its own level in the others; `plain` holds these numbers (num_envs,).
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        num_envs: int,
        *,
        spec: Spec = "table1",
        level: int | str = 0,
        magnitude: float | None = None,
        obs: ObservationMode = "full",
        trial: int = 0,
        seed: int = 0,
        starts: int = STARTS,
        threads: int = 1,
    ) -> None:
        if obs not in ("full", "core"):
            raise FieldError("obs", obs, one_of(obs, ("full", "core")))
        self.num_envs = num_envs
        self._worlds = _worlds(spec, levels.level_list(level), magnitude)
        self._shared = (starts, threads)
        self._trial = trial
        self._slots = rules.SLOTS if obs == "full" else 0
        self.single_observation_space = observation_space(self._slots)
        self._directions = spaces.Discrete(len(rules.DIRECTIONS))
        self.single_action_space = self._directions
        batch = gym.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)
        self._build(seed)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[_Numbers, dict[str, Any]]:
        """Begin an episode in every lane.

        Args:
            seed: names all that follows; without one the next episodes begin.
            options: play no part.
        Returns: Observations (num_envs, n) and an empty info.
        """
        if seed is not None:
            self._build(int(np.asarray(seed).flat[0]))
        else:
            self._begin(np.ones(self.num_envs, dtype=np.bool_))
        return self._observe(), {}

    def step(self, actions: Any) -> _Step:
        """Play one action a lane.

        Args:
            actions: (num_envs,), 0 to 4, as an array, a list or a tuple. A lane with a malformed
                action plays 0.
        Returns: Gymnasium's five, each (num_envs, ..), and info. Where an action is malformed,
            `info["error"]` says so and `info["_error"]` says in which lanes.
        """
        numbers, wrong = lane_actions(actions, self.num_envs, self._directions)
        fallen = np.zeros(self.num_envs, dtype=np.bool_)
        late = np.zeros(self.num_envs, dtype=np.bool_)
        for simulator, lanes, played in self._parts():
            ended = simulator.step(numbers[lanes])
            fallen[lanes] |= ended.fallen & played
            late[lanes] |= ended.late & ~ended.fallen & played
        over = fallen | late
        info: dict[str, Any] = {}
        if wrong.any():
            rule = discrete_rule(self._directions)
            errors = np.full(self.num_envs, None, dtype=object)
            errors[wrong] = rule
            info = {"error": errors, "_error": wrong}
        if over.any():
            last = np.where(over[:, None], self._observe(), np.float32(0))
            info |= {"final_obs": last, "_final_obs": over}
            self._begin(over)
        reward = np.full(self.num_envs, 1.0 / self.simulators[0].world.ticks)
        return self._observe(), reward, fallen, late, info

    def plan_actions(self) -> PlannedActions:
        """Return what the planner does next in each lane (`planner`)."""
        actions = np.zeros(self.num_envs, dtype=np.int64)
        leans = np.zeros(self.num_envs, dtype=np.int64)
        for simulator, lanes, played in self._parts():
            made = planner.plan_actions(simulator)
            actions[lanes][played] = made.actions[played]
            leans[lanes][played] = made.leans[played]
        return PlannedActions(actions, leans)

    def _build(self, seed: int) -> None:
        starts, threads = self._shared
        shares = np.linspace(0, self.num_envs, len(self._worlds) + 1).astype(int)
        self._lanes = [slice(a, b) for a, b in pairwise(shares.tolist())]

        def simulator(k: int, world: PhysicsWorld, lanes: slice) -> Simulator:
            return Simulator(
                world, lanes.stop - lanes.start, seed=seed + k, starts=starts, threads=threads
            )

        self.simulators = [
            simulator(k, world, lanes)
            for k, (world, lanes) in enumerate(zip(self._worlds, self._lanes, strict=True))
        ]
        self._draws = seeding.stream(seed, "batched", "trials")
        self.plain = np.zeros(self.num_envs, dtype=np.int64)  # episodes of level 0
        self._episode = np.zeros(self.num_envs, dtype=np.int64)  # of the trial
        if self._trial:
            world = levels.level(self.simulators[0].world.spec, 0)
            self._level_0 = simulator(len(self._worlds), world, slice(0, self.num_envs))
            self.plain[:] = self._draw_plain(self.num_envs)

    def _draw_plain(self, count: int) -> npt.NDArray[np.int64]:
        return self._draws.integers(1, self._trial // 2 + 1, count)

    def _begin(self, over: _Mask) -> None:
        """Begin the next episode of the lanes of a mask."""
        if self._trial:
            self._episode[over] += 1
            fresh = self._episode >= self._trial
            self._episode[fresh] = 0
            self.plain[fresh] = self._draw_plain(int(fresh.sum()))
        for simulator, lanes, played in self._parts():
            simulator.restart(over[lanes] & played)

    def _parts(self) -> Iterator[tuple[Simulator, slice, Any]]:
        """Give each simulator, its lanes, and which of those are played in it now."""
        plain = self._episode < self.plain
        for simulator, lanes in zip(self.simulators, self._lanes, strict=True):
            yield simulator, lanes, ~plain[lanes]
        if self._trial:
            yield self._level_0, slice(0, self.num_envs), plain

    def _observe(self) -> _Numbers:
        shape = (self.num_envs, *(self.single_observation_space.shape or ()))
        rows = np.empty(shape, np.float32)
        for simulator, lanes, played in self._parts():
            if played.all():
                simulator.observe(out=rows[lanes])
            else:
                rows[lanes][played] = simulator.observe(self._slots)[played]
        return rows


def _worlds(
    spec: Spec, names: tuple[int, ...], magnitude: float | None
) -> tuple[PhysicsWorld, ...]:
    """Return the worlds of levels: at one magnitude, or of several levels at three."""
    if magnitude is None:
        sizes = tuple(PRESETS.values()) if len(names) > 1 else (1.0,)
    else:
        sizes = (magnitude,)
    return tuple(
        levels.level(spec, name, size) for name in names for size in (sizes if name else sizes[:1])
    )


class _BatchedVecEnv(VecEnv):
    """VecEnv of Stable-Baselines3 over `BatchedCartPole3D`.

    Infos hold what its algorithms read: `terminal_observation` and `TimeLimit.truncated` where an
    episode ended, and `episode` (return and length).
    """

    def __init__(self, env: BatchedCartPole3D) -> None:
        self.env = env
        self._actions = np.zeros(env.num_envs, dtype=np.int64)
        self._ticks = np.zeros(env.num_envs, dtype=np.int64)
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> Any:
        """Begin an episode in every lane."""
        self._ticks[:] = 0
        return self.env.reset(seed=self._seeds[0])[0]

    def step_async(self, actions: Any) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Play them."""
        rows, reward, terminated, truncated, info = self.env.step(self._actions)
        over = terminated | truncated
        self._ticks += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(over).tolist():
            length = int(self._ticks[i])
            infos[i] = {
                "terminal_observation": info["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i]),
                "episode": {"r": float(length * reward[i]), "l": length, "t": 0.0},
            }
        self._ticks[over] = 0
        return rows, reward.astype(np.float32), over, infos

    def close(self) -> None:
        """Release nothing: everything is an array."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the shared env, once a lane."""
        value = getattr(self.env, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: lanes have no attributes of their own."""
        raise UsageError(f"A lane has no attribute `{attr_name}`: make another env instead.")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Refuse: lanes have no methods of their own."""
        raise UsageError(f"A lane has no method `{method_name}`: call the simulator instead.")

    def env_is_wrapped(
        self, wrapper_class: type, indices: Iterable[int] | int | None = None
    ) -> list[bool]:
        """Return that no lane is wrapped."""
        return [False for _ in self._get_indices(indices)]


def vec_env(num_envs: int, **arguments: Any) -> Any:
    """Return the batched env as Stable-Baselines3 takes it.

    Args:
        num_envs: lanes.
        arguments: of `BatchedCartPole3D`.
    Raises: MissingPartError: Stable-Baselines3 is not installed.
    """
    if not hasattr(VecEnv, "step_wait"):
        raise MissingPartError("stable-baselines3", extra("rl"))
    return _BatchedVecEnv(BatchedCartPole3D(num_envs, **arguments))
