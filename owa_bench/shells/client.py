"""The python view: an episode as an object whose methods are its tools."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym

from owa_bench.errors import UnknownNameError
from owa_bench.shells.calls import call_text
from owa_bench.shells.tool_env import ToolEnv


class Reply(NamedTuple):
    """What a call came to; `error` says why one was malformed or refused."""

    text: str
    reward: float
    done: bool
    error: str | None
    info: Mapping[str, Any]


class Client:
    """Plays an env in the python view; each call is one step and recorded as such.

    A suite's own tools are methods too: `client.http(method="GET", url=...)`.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        shell = env.unwrapped
        if not isinstance(shell, ToolEnv):
            kind = type(shell).__name__
            raise TypeError(f"A client plays the env of a tool suite, got {kind}.")
        self._env = env
        self._names = tuple(tool.name for tool in shell.tools)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> str:
        """Begin an episode and return what the agent reads first."""
        return _text(self._env.reset(seed=seed, options=options)[0])

    def call(self, tool: str, **arguments: Any) -> Reply:
        """Call a tool by name; arguments that are None are left out."""
        given = {name: value for name, value in arguments.items() if value is not None}
        observation, reward, terminated, truncated, info = self._env.step(
            call_text(tool, given)
        )
        return Reply(
            text=_text(observation),
            reward=float(reward),
            done=terminated or truncated,
            error=info.get("error"),
            info=info,
        )

    def __getattr__(self, name: str) -> Callable[..., Reply]:
        """Return the call of a suite's own tool."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._names:
            raise AttributeError(str(UnknownNameError("tool", name, self._names)))
        return partial(self.call, name)

    def note(self, text: str) -> Reply:
        """Keep a note."""
        return self.call("note", text=text)

    def recall(self, query: str = "") -> Reply:
        """Read back the notes that hold a word of `query`."""
        return self.call("recall", query=query)

    def ask_supervisor(self, question: str = "") -> Reply:
        """Ask for the next right step."""
        return self.call("ask_supervisor", question=question)

    def finish(
        self,
        answer: str = "",
        p: float | None = None,
        beliefs: Mapping[str, float] | None = None,
    ) -> Reply:
        """End the episode: the work is done."""
        return self.call("finish", answer=answer, p=p, beliefs=beliefs)

    def declare_infeasible(
        self, p: float | None = None, beliefs: Mapping[str, float] | None = None
    ) -> Reply:
        """End the episode: the task cannot be done honestly."""
        return self.call("declare_infeasible", p=p, beliefs=beliefs)


def _text(observation: Any) -> str:
    """Return the text of an observation of the python or the language view."""
    return str(observation["text"] if isinstance(observation, dict) else observation)
