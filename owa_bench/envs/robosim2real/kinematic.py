"""The compiled simulator of reaching: many lanes of a tool that follows commands, no engine.

For practice alone: nothing is scored here. A tool follows its command by a lag of first order,
behind the dead time and the filter of a drawn unit, and is shown a little beside where it is. A
policy sees what `ToolView` shows of a `RobotEnv`, so one that was trained here plays there.
"""

from typing import Any

import gymnasium as gym
import numba
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from owa_bench.agents.solvers.arm.policies import ArmView, MarkReader
from owa_bench.envs.robosim2real import arm, tasks, units
from owa_bench.envs.robosim2real.device import HIGH_PLACE, LEASH, LOW_PLACE
from owa_bench.envs.robosim2real.episode import ACTION
from owa_bench.envs.robosim2real.oracle import LAYOUT
from owa_bench.errors import FieldError
from owa_bench.records.observables import Floats
from owa_bench.seeding import stream

Lanes = npt.NDArray[np.float32]
HISTORY = 8  # commands that are seen: dead time shows in no single view
SEEN = 9 + 3 * HISTORY
_LAG = 0.4  # share of the way to its command that the tool makes in a tick, as in the engine
_DRAWN = 1024  # episodes whose numbers are drawn at once
_TOLERANCE, _HOLD, _STILL = 0.01, arm.HERTZ, 0.02 / arm.HERTZ
_RING = 16  # ticks that a command may be late
_PLACE, _SENT, _SHOWN = 0, 3, 6  # columns of a lane's state, three each
_HELD, _TICK, _HEAD, _STATE = 9, 10, 11, 12
# Columns of an episode's numbers.
_GOAL, _FROM, _SHIFT, _DEAD, _FILTER, _LIMIT, _NUMBERS = 0, 3, 6, 9, 10, 11, 12
_LEFT = 0.003  # m, most that is left of the encoders' error after the marks were read
_SPREAD = 0.04  # m, of the start
_NEARER, _THERE, _DONE = 10.0, 0.05, 5.0  # rewards: a metre nearer, a tick at the goal, success


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _move(  # pragma: no cover
    state: Floats, ring: Floats, numbers: Floats, action: Lanes, low: Floats, high: Floats
) -> tuple[float, bool, bool]:
    """Play one command in one lane; return its reward, and whether it is done or late."""
    ahead = np.zeros(3)
    length = 0.0
    for axis in range(3):
        asked = min(1.0, max(-1.0, float(action[axis])))
        wanted = state[_PLACE + axis] + asked * (arm.SPEED / arm.HERTZ)
        wanted = min(high[axis], max(low[axis], wanted))
        ahead[axis] = wanted - state[_SHOWN + axis]
        length += ahead[axis] * ahead[axis]
    share = 1.0
    if length > LEASH * LEASH:
        share = LEASH / np.sqrt(length)
    head = int(state[_HEAD])
    late = min(_RING - 1, int(np.ceil(numbers[_DEAD] - 1e-9)))
    before = after = moved = 0.0
    for axis in range(3):
        state[_PLACE + axis] = state[_SHOWN + axis] + ahead[axis] * share
        ring[head, axis] = state[_PLACE + axis]
        arrived = ring[(head - late) % _RING, axis]
        sent = state[_SENT + axis]
        sent += numbers[_FILTER] * (arrived - sent)
        state[_SENT + axis] = sent
        shown = state[_SHOWN + axis]
        step = _LAG * (sent - shown)
        goal = numbers[_GOAL + axis] + numbers[_SHIFT + axis]
        before += (shown - goal) ** 2
        after += (shown + step - goal) ** 2
        moved += step * step
        state[_SHOWN + axis] = shown + step
    state[_HEAD] = (head + 1) % _RING
    before, after = np.sqrt(before), np.sqrt(after)
    there = after < _TOLERANCE and moved < _STILL * _STILL
    state[_HELD] = state[_HELD] + 1.0 if there else 0.0
    state[_TICK] += 1.0
    done = state[_HELD] >= _HOLD
    late_now = state[_TICK] >= numbers[_LIMIT] and not done
    reward = _NEARER * (before - after) + (_THERE if there else 0.0) + (_DONE if done else 0.0)
    return reward, done, late_now


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _show(state: Floats, numbers: Floats, past: Lanes, out: Lanes) -> None:  # pragma: no cover
    """Write what a lane shows."""
    for axis in range(3):
        out[axis] = state[_SHOWN + axis]
        out[3 + axis] = numbers[_GOAL + axis]
        out[6 + axis] = _NEARER * (numbers[_GOAL + axis] - state[_SHOWN + axis])
    for number in range(past.size):
        out[9 + number] = past[number]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _begin(  # pragma: no cover
    state: Floats, ring: Floats, numbers: Floats, past: Lanes
) -> None:
    """Put a lane to the start of its episode."""
    for axis in range(3):
        start = numbers[_FROM + axis] + numbers[_SHIFT + axis]
        state[_PLACE + axis] = state[_SENT + axis] = state[_SHOWN + axis] = start
        for number in range(_RING):
            ring[number, axis] = start
    state[_HELD] = state[_TICK] = state[_HEAD] = 0.0
    past[:] = 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _step(  # pragma: no cover
    state: Floats,
    ring: Floats,
    numbers: Floats,
    fresh: Floats,
    past: Lanes,
    actions: Lanes,
    low: Floats,
    high: Floats,
    out: tuple[Lanes, Lanes, Floats, npt.NDArray[np.bool_], npt.NDArray[np.bool_]],
) -> int:
    """Play a command in every lane; return how many of the fresh episodes were begun."""
    shown, last, reward, done, late = out
    used = 0
    for lane in range(len(state)):
        own = state[lane]
        reward[lane], done[lane], late[lane] = _move(
            own, ring[lane], numbers[lane], actions[lane], low, high
        )
        for number in range(past.shape[1] - 3):
            past[lane, number] = past[lane, number + 3]
        for axis in range(3):
            asked = min(np.float32(1.0), max(np.float32(-1.0), actions[lane, axis]))
            past[lane, past.shape[1] - 3 + axis] = asked
        if done[lane] or late[lane]:
            _show(own, numbers[lane], past[lane], last[lane])
            numbers[lane] = fresh[used]
            used += 1
            _begin(own, ring[lane], numbers[lane], past[lane])
        _show(own, numbers[lane], past[lane], shown[lane])
    return used


class ReachLanes(gym.vector.VectorEnv[Lanes, Lanes, Any]):
    """Many reaching tasks of tier 1 in one process; a lane that ends begins anew in the same step.

    Args:
        num_envs: Lanes.
        randomised: From 0 to 1, how much of the simulation's law is drawn for each episode.
        seed: Of all that is drawn.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs: int, *, randomised: float = 1.0, seed: int = 0) -> None:
        if num_envs < 1:
            raise FieldError("num_envs", num_envs, "must be at least 1")
        if not 0.0 <= randomised <= 1.0:
            raise FieldError("randomised", randomised, "must lie in [0, 1]")
        self.num_envs, self.randomised = num_envs, randomised
        self.single_observation_space = spaces.Box(-100.0, 100.0, (SEEN,), np.float32)
        self.single_action_space = spaces.Box(-1.0, 1.0, (3,), np.float32)
        batch = gym.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)
        self._build(seed)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Lanes, dict[str, Any]]:
        """Begin an episode in every lane.

        Args:
            seed: Names all that follows; without one the next episodes begin.
            options: Play no part.
        Returns: Views (num_envs, SEEN) and an empty info.
        """
        if seed is not None:
            self._build(int(np.asarray(seed).flat[0]))
        for lane in range(self.num_envs):
            self._numbers[lane] = self._fresh(1)[0]
            self._next += 1
            _begin(self._state[lane], self._ring[lane], self._numbers[lane], self._past[lane])
            _show(self._state[lane], self._numbers[lane], self._past[lane], self._out[0][lane])
        return self._out[0].copy(), {}

    def step(
        self, actions: Any
    ) -> tuple[Lanes, Floats, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Play a command a lane.

        Args:
            actions: (num_envs, 3) in [-1, 1]; what is more is cut.
        Returns: Gymnasium's five, each (num_envs, ..).
        """
        given = np.ascontiguousarray(actions, dtype=np.float32)
        fresh = self._fresh(self.num_envs)
        shown, last, reward, done, late = self._out
        self._next += _step(
            *(self._state, self._ring, self._numbers, fresh, self._past, given),
            *(LOW_PLACE, HIGH_PLACE, self._out),
        )
        info: dict[str, Any] = {}
        over = done | late
        if over.any():
            final = np.where(over[:, None], last, np.float32(0))
            info = {"final_obs": final, "_final_obs": over, "is_success": done.copy()}
        return shown.copy(), reward.copy(), done.copy(), late.copy(), info

    def _build(self, seed: int) -> None:
        lanes = self.num_envs
        self._seed, self._block, self._next = seed, -1, 0
        self._drawn = np.zeros((0, _NUMBERS))
        self._state = np.zeros((lanes, _STATE))
        self._ring = np.zeros((lanes, _RING, 3))
        self._numbers = np.zeros((lanes, _NUMBERS))
        self._past = np.zeros((lanes, 3 * HISTORY), dtype=np.float32)
        self._out = (
            np.zeros((lanes, SEEN), dtype=np.float32),
            np.zeros((lanes, SEEN), dtype=np.float32),
            np.zeros(lanes),
            np.zeros(lanes, dtype=np.bool_),
            np.zeros(lanes, dtype=np.bool_),
        )

    def _fresh(self, count: int) -> Floats:
        """Return the numbers of the next episodes."""
        while len(self._drawn) - self._next < count:
            self._block += 1
            more = episode_numbers(self._seed, self._block, self.randomised)
            self._drawn = np.concatenate((self._drawn[self._next :], more))
            self._next = 0
        return self._drawn[self._next : self._next + count]


def episode_numbers(seed: int, block: int, randomised: float) -> Floats:
    """Return what is drawn for `_DRAWN` episodes: task, start, and the unit's part that is felt.

    Args:
        seed: Of the env.
        block: Which episodes, from 0.
        randomised: How much of the simulation's law.
    Returns: (episodes, numbers).
    """
    rng = stream(seed, "lanes", block)
    found = np.zeros((_DRAWN, _NUMBERS))
    for axis, (low, high) in enumerate(tasks.REACHED):
        found[:, _GOAL + axis] = low + (high - low) * rng.random(_DRAWN)
    home = np.array(tasks.HOME_PLACE)
    found[:, _FROM : _FROM + 3] = home + _SPREAD * (2.0 * rng.random((_DRAWN, 3)) - 1.0)
    found[:, _SHIFT : _SHIFT + 3] = _LEFT * randomised * (2.0 * rng.random((_DRAWN, 3)) - 1.0)
    (soon, late), (least, most) = units.DEAD_TIME, units.KEPT
    dead = soon + (late - soon) * rng.random(_DRAWN)
    found[:, _DEAD] = randomised * dead * arm.HERTZ
    found[:, _FILTER] = 1.0 - randomised * (least + (most - least) * rng.random(_DRAWN))
    way = np.sqrt(((found[:, _GOAL : _GOAL + 3] - home) ** 2).sum(axis=1))
    found[:, _LIMIT] = tasks.LIMIT_SHARE * (way / tasks.PACE + tasks.ERRAND) * arm.HERTZ
    return found


class ToolView(gym.Wrapper[Lanes, Lanes, Any, Any]):
    """Shows a `RobotEnv` of `reach` as `ReachLanes` shows its lanes, and takes their commands.

    The tool is shown by the encoders, set right by the marks as they were seen in the episode.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(-100.0, 100.0, (SEEN,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (3,), np.float32)
        self._marks = MarkReader(LAYOUT.marks, {})
        self._past = np.zeros(3 * HISTORY, dtype=np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Lanes, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: As of the env.
            options: The same.
        Returns: The first view, and the env's info.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        self._past[:] = 0.0
        self._marks = MarkReader(LAYOUT.marks, {})
        return self._view(observation), info

    def step(self, action: Any) -> tuple[Lanes, Any, bool, bool, dict[str, Any]]:
        """Play a command.

        Args:
            action: (3,) in [-1, 1]; what is more is cut.
        Returns: Gymnasium's five.
        """
        asked = np.clip(np.asarray(action, dtype=np.float32), -1.0, 1.0)
        whole = np.zeros(ACTION, dtype=np.float32)
        whole[:3], whole[4] = asked, 1.0
        observation, reward, terminated, truncated, info = self.env.step(whole)
        self._past = np.concatenate((self._past[3:], asked))
        return self._view(observation), reward, terminated, truncated, info

    def _view(self, observation: Any) -> Lanes:
        view = ArmView.of(observation, LAYOUT)
        self._marks.look(view)
        tool = self._marks.right(view).tool
        gap = _NEARER * (view.goal - tool)
        return np.concatenate((tool, view.goal, gap, self._past)).astype(np.float32)
