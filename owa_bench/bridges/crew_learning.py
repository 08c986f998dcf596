"""Crews for Stable-Baselines3: every seat of every crew a row of one vectorised env.

All rows share a policy, so one that is learnt here plays any seat. Needs the extras `[crew]` and
`[rl]`.

Source: docs/multicrew.md#views-of-a-whole-crew
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from owa_bench.bridges.pettingzoo import CrewMacroEnv
from owa_bench.errors import MissingPartError, UsageError, extra

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise MissingPartError("Stable-Baselines3", extra("rl")) from error

Rows = npt.NDArray[np.float32]


class CrewSeats(VecEnv):
    """Crews as rows of observations, one a seat; a crew's seats get its reward each.

    A crew whose episode is over begins the next one; its rows are done together.

    Args:
        crews: Of one suite and tier.
        first_seed: Of the first crew's first episode; each episode takes the next one.
    """

    render_mode = None

    def __init__(self, crews: Sequence[CrewMacroEnv], first_seed: int) -> None:
        self.crews = tuple(crews)
        self.rows = [(crew, s) for crew in self.crews for s in crew.possible_agents]
        first = self.crews[0]
        seen = first.observation_space(first.possible_agents[0])
        if not isinstance(seen, spaces.Dict):
            raise UsageError(f"`crews` must show features, got {seen}.")
        super().__init__(
            len(self.rows), seen["features"], first.action_space(first.possible_agents[0])
        )
        self.next_seed = first_seed
        self.qualities: list[float] = []  # q_state of the episodes that ended
        self._seen: dict[CrewMacroEnv, dict[str, Any]] = {}
        self._actions: npt.NDArray[np.int64] = np.zeros(len(self.rows), dtype=np.int64)

    def reset(self) -> Rows:
        """Begin an episode of every crew; return the features, (rows, features)."""
        for crew in self.crews:
            self._begin(crew)
        return self._features()

    def step_async(self, actions: npt.NDArray[np.int64]) -> None:
        """Take an action for every row. Args: actions: (rows,)."""
        self._actions = actions

    def step_wait(self) -> tuple[Rows, Rows, npt.NDArray[np.bool_], list[Any]]:
        """Play a round of every crew. Returns: as Stable-Baselines3, a row a seat."""
        rewards = np.zeros(len(self.rows), dtype=np.float32)
        done = np.zeros(len(self.rows), dtype=np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in self.rows]
        for crew in self.crews:
            places = [i for i, row in enumerate(self.rows) if row[0] is crew]
            chosen = {self.rows[i][1]: self._actions[i] for i in places}
            seen, paid, _, truncated, told = crew.step(chosen)
            self._seen[crew] = seen
            over = not crew.agents
            for i in places:
                seat = self.rows[i][1]
                rewards[i], done[i] = paid.get(seat, 0.0), over
                if over:
                    infos[i]["terminal_observation"] = seen[seat]["features"]
                    infos[i]["TimeLimit.truncated"] = truncated.get(seat, False)
            if over:
                self.qualities.append(told[crew.possible_agents[0]]["q_state"])
                self._begin(crew)
        return self._features(), rewards, done, infos

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which macros each row may choose, (rows, macros)."""
        masks = [self._seen[crew][seat]["action_mask"] for crew, seat in self.rows]
        return np.stack(masks).astype(np.bool_)

    def close(self) -> None:
        """Release the sessions."""
        for crew in self.crews:
            crew.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute once a row. Args: as there. Returns: A list."""
        return [getattr(self, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: rows have nothing of their own to set. Args: as there."""
        raise UsageError(f"A row of crews has no attribute to set, got {attr_name!r}.")

    def env_method(
        self, method_name: str, *arguments: Any, indices: Any = None, **named: Any
    ) -> list[Any]:
        """Return what a method gives. Args: as there. Returns: A list, a row each."""
        return list(getattr(self, method_name)(*arguments, **named))

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return that no row is wrapped. Args: as there. Returns: A list."""
        return [False] * self.num_envs

    def _begin(self, crew: CrewMacroEnv) -> None:
        self._seen[crew], _ = crew.reset(seed=self.next_seed)
        self.next_seed += 1

    def _features(self) -> Rows:
        shown = [self._seen[crew][seat]["features"] for crew, seat in self.rows]
        return np.stack(shown)
