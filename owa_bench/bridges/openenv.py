"""OpenEnv: a server of episodes, one a session; OpenEnv's `MCPToolClient` plays them.

Needs the extra `[openenv]`. Source: docs/train-a-language-model.md#openenv
"""

from functools import partial
from pathlib import Path
from typing import Any

from owa_bench.errors import MissingPartError, UsageError, extra
from owa_bench.runs.episode_session import EpisodeSession, open_episode

try:
    from openenv.core.env_server.http_server import create_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.mcp_types import (
        CallToolAction,
        CallToolObservation,
        ListToolsObservation,
        Tool,
    )
    from openenv.core.env_server.types import Observation, State
except ImportError as error:
    raise MissingPartError("OpenEnv", extra("openenv")) from error


class PromptObservation(Observation):
    """What a model reads first, as chat messages."""

    messages: list[dict[str, Any]]


class OpenEnvEpisodes(Environment):
    """Episodes of a suite for one client.

    Args:
        suite: Name of a suite with tools.
        record: Folder for a file of each episode; None: nothing is kept.
        options: As for `open_episode`; a reset may name others.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, suite: str, record: str | Path | None = None, **options: Any) -> None:
        super().__init__()
        self._suite, self._record, self._options = suite, record, options
        self._id: str | None = None
        self._session: EpisodeSession | None = None

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> PromptObservation:
        """Begin an episode.

        Args:
            seed: Of the instance; None is 0.
            episode_id: Is told with the state.
            options: In place of the server's.
        Returns: The messages that a model reads first.
        """
        self.close()
        terms = {**self._options, **options}
        self._session = open_episode(self._suite, seed or 0, record=self._record, **terms)
        self._id = episode_id
        return PromptObservation(messages=self._session.messages)

    def step(self, action: Any, timeout_s: float | None = None, **_: Any) -> Observation:
        """Play a call, or list the tools, which is no step.

        Args:
            action: OpenEnv's `CallToolAction` or `ListToolsAction`.
            timeout_s: Is not used: an env has no clock.
        Returns: OpenEnv's observation of it; `metadata` is the env's info.
        """
        session = self._playing
        if not isinstance(action, CallToolAction):
            functions = [tool["function"] for tool in session.tools]
            tools = [
                Tool(name=f["name"], description=f["description"], input_schema=f["parameters"])
                for f in functions
            ]
            return ListToolsObservation(tools=tools, done=session.done)
        text, reward, done, info = session.call(action.tool_name, action.arguments)
        return CallToolObservation(
            tool_name=action.tool_name, result=text, reward=reward, done=done, metadata=info
        )

    @property
    def state(self) -> State:
        """The number of steps."""
        return State(episode_id=self._id, step_count=self._session.steps if self._session else 0)

    def close(self) -> None:
        """End the episode."""
        if self._session is not None:
            self._session.close()
            self._session = None

    @property
    def _playing(self) -> EpisodeSession:
        if self._session is None:
            raise UsageError("No episode has begun: call reset first.")
        return self._session


def server_app(suite: str, *, clients: int = 64, **options: Any) -> Any:
    """Return the server's application, for uvicorn.

    Args:
        suite: Name of a suite with tools.
        clients: How many play at once.
        options: As for `OpenEnvEpisodes`.
    """
    make = partial(OpenEnvEpisodes, suite, **options)
    return create_app(
        make, CallToolAction, CallToolObservation, env_name=suite, max_concurrent_envs=clients
    )
