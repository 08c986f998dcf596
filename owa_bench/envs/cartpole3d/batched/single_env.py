"""CartPole3D as one Gymnasium env on the compiled step: quick, for training.

PyBullet is the reference, and what runs record: `owa_bench/CartPole3D-v2`.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from owa_bench.envs.cartpole3d import levels, rules
from owa_bench.envs.cartpole3d.batched import kernels
from owa_bench.envs.cartpole3d.batched.simulator import Simulator
from owa_bench.envs.cartpole3d.observation import (
    ObservationArray,
    ObservationMode,
    observation_space,
)
from owa_bench.envs.cartpole3d.start import StartSampler
from owa_bench.envs.cartpole3d.world import Spec
from owa_bench.errors import FieldError, UsageError, one_of
from owa_bench.records.instance import SEED_LIMIT
from owa_bench.shells.action_forms import discrete_action

_OPTIONS = ("start", "state")


class CartPole3DFastEnv(gym.Env[Any, Any]):
    """CartPole3D on the compiled step; spaces, starts and rewards are PyBullet's.

    Args:
        spec: "table1" or "released".
        level: 0 to 16.
        difficulty: A preset's name; or
        magnitude: A number in [0, 1]. Neither: "hard".
        obs: "full" with balls, or "core".
    Raises:
        FieldError: `obs` is another word.
        TypeError: A render mode is given.
        UsageError: Both difficulty and magnitude are given.
    """

    metadata = {"render_modes": [], "render_fps": 50}

    def __init__(
        self,
        *,
        spec: Spec = "table1",
        level: int = 0,
        difficulty: str | None = None,
        magnitude: float | None = None,
        obs: ObservationMode = "full",
        render_mode: None = None,
    ) -> None:
        if obs not in ("full", "core"):
            raise FieldError("obs", obs, one_of(obs, ("full", "core")))
        if render_mode is not None:
            # As a parameter that is not there: `make_vec_env` of Stable-Baselines3 asks for
            # pictures, and after a TypeError goes on without.
            raise TypeError(f"`render_mode` must be None: nothing draws, got {render_mode!r}.")
        size = levels.one_magnitude(difficulty, magnitude)
        world = levels.level(spec, level, size if level else 1.0)
        self._simulator = Simulator(world, 1, seed=0, starts=1)
        slots = rules.SLOTS if obs == "full" else 0
        self.observation_space = observation_space(slots)
        self.action_space = self._directions = spaces.Discrete(len(rules.DIRECTIONS))
        self._rows = np.zeros((1, rules.CORE + rules.PER_BALL * slots), np.float32)
        self._reward = 1.0 / world.ticks
        self._starts = StartSampler()
        self._parts: tuple[Any, Any, Any, Any, Any, Any] | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[ObservationArray, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: Names its start; without one it is drawn from `np_random`.
            options: "state" starts from that state, "start" from that one with the hidden tick that
                drawn starts have.
        Returns: The first observation and an empty info.
        Raises: FieldError: Another option.
        """
        super().reset(seed=seed)
        given = options or {}
        for name in given:
            if name not in _OPTIONS:
                raise FieldError("options", name, one_of(name, _OPTIONS))
        if seed is None:
            seed = int(self.np_random.integers(SEED_LIMIT))
        simulator = self._simulator
        state = given.get("state")
        start = state or given.get("start") or self._starts(simulator.world, seed)
        simulator.seeds[0] = seed
        simulator.set_states([start], hidden_tick=state is None)
        self._parts = simulator.parts()
        return simulator.observe(out=self._rows)[0].copy(), {}

    def step(self, action: Any) -> tuple[ObservationArray, float, bool, bool, dict[str, Any]]:
        """Push the cart for one tick.

        Args:
            action: 0 to 4, in any form of `shells.action_forms`; a malformed one plays 0.
        Returns: Gymnasium's five; the info holds "error" for a malformed action alone.
        Raises: UsageError: No episode has begun.
        """
        if self._parts is None:
            raise UsageError("No episode has begun: call reset first.")
        number, error = discrete_action(action, self._directions)
        fallen, late = kernels.play_one(*self._parts, number, self._rows)
        row = self._rows[0].copy()
        info = {} if error is None else {"error": error}
        return row, self._reward, fallen, late and not fallen, info
