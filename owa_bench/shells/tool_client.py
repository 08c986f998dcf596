"""The client of a tool suite's env: its tools as Python calls."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym

from owa_bench.errors import UnknownNameError
from owa_bench.shells.calls import call_text
from owa_bench.shells.tool_env import ToolEnv


class CallResult(NamedTuple):
    """The result of a client's call; `error` says why it was malformed or refused."""

    text: str
    reward: float
    done: bool
    error: str | None
    info: Mapping[str, Any]


class ToolClient:
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

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> str:
        """Begin an episode.

        Args:
            seed: Chooses the instance; None: one is drawn.
            options: As for the env's reset.
        Returns: The text that the agent reads first.
        """
        return _text(self._env.reset(seed=seed, options=options)[0])

    def call(self, tool: str, **arguments: Any) -> CallResult:
        """Call a tool by name; arguments that are None are left out."""
        chosen = {name: it for name, it in arguments.items() if it is not None}
        text = call_text(tool, chosen)
        observation, reward, terminated, truncated, info = self._env.step(text)
        return CallResult(
            text=_text(observation),
            reward=float(reward),
            done=terminated or truncated,
            error=info.get("error"),
            info=info,
        )

    def __getattr__(self, name: str) -> Callable[..., CallResult]:
        """Return the call of a suite's own tool."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._names:
            raise AttributeError(str(UnknownNameError("tool", name, self._names)))
        return partial(self.call, name)

    def note(self, text: str) -> CallResult:
        """Keep a note."""
        return self.call("note", text=text)

    def recall(self, query: str = "") -> CallResult:
        """Read back the notes that hold a word of `query`."""
        return self.call("recall", query=query)

    def ask_supervisor(self, question: str = "") -> CallResult:
        """Ask for the next right step."""
        return self.call("ask_supervisor", question=question)

    def finish(
        self, answer: str = "", p: float | None = None, beliefs: Mapping[str, float] | None = None
    ) -> CallResult:
        """End the episode: the work is done.

        Args:
            answer: A closing word.
            p: Probability that the task is done right.
            beliefs: Probability of each listed proposition, by its id.
        Returns: The last result.
        """
        return self.call("finish", answer=answer, p=p, beliefs=beliefs)

    def declare_infeasible(
        self, p: float | None = None, beliefs: Mapping[str, float] | None = None
    ) -> CallResult:
        """End the episode: the task cannot be done honestly.

        Args:
            p: Probability that this is right.
            beliefs: Probability of each listed proposition, by its id.
        Returns: The last result.
        """
        return self.call("declare_infeasible", p=p, beliefs=beliefs)


def _text(observation: Any) -> str:
    """Return the text of an observation of the python or the language view."""
    return str(observation["text"] if isinstance(observation, dict) else observation)
