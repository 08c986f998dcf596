"""SkyRL-gym: an episode as its `BaseTextEnv`, whose actions are what the model said.

Needs the extra `[skyrl]`. Source: docs/train-a-language-model.md#skyrl-gym
"""

from collections.abc import Mapping
from typing import Any

from owa_bench.errors import FieldError, MissingPartError, extra
from owa_bench.runs.episode_session import EpisodeSession, open_episode

try:
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
except ImportError as error:
    raise MissingPartError("SkyRL-gym", extra("skyrl")) from error


class SkyRLEpisode(BaseTextEnv):
    """An episode of a suite for SkyRL's generator.

    Args:
        env_config: What all episodes of a training share: fields of `open_episode`.
        extras: A row of the data set; its "episode" holds the fields that are its own: suite, seed,
            family, ..
    """

    def __init__(
        self, env_config: Mapping[str, Any] | None = None, extras: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        own = (extras or {}).get("episode", {})
        # Rows of a table have every column.
        self._terms = {**(env_config or {}), **{n: v for n, v in own.items() if v is not None}}
        self._session: EpisodeSession | None = None

    def init(self, prompt: Any = ()) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Begin the episode.

        Args: prompt: Of the data set; the episode's own messages take its place.
        Returns: The messages that a model reads first, with the tools in them, and an empty info.
        """
        self.close()
        for name in ("suite", "seed"):
            if name not in self._terms:
                raise FieldError(name, None, "must stand in env_config or the row's `episode`")
        self._session = open_episode(**self._terms)
        self.turns, self.max_turns = 0, self._session.step_limit
        return self._session.text_messages, {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Play what the model said. Args: action: its text. Returns: as SkyRL-gym."""
        if self._session is None:
            self.init()
        assert self._session is not None  # noqa: S101  init has made it
        self.turns += 1
        text, reward, done, info = self._session.say(action)
        told = [] if done else [{"role": "user", "content": text}]
        return BaseTextEnvStepOutput(observations=told, reward=reward, done=done, metadata=info)

    def get_metrics(self) -> dict[str, Any]:
        """Return the steps and the sum of rewards of the episode."""
        session = self._session
        return {} if session is None else {"steps": session.steps, "reward": session.reward}

    def close(self) -> None:
        """End the episode."""
        if self._session is not None:
            self._session.close()
            self._session = None
