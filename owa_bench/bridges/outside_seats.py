"""Seats that are played from outside: how whoever plays leaves, and which tools.

Used by the doors for persons (`person.py`) and for readers (`reader.py`).
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from owa_bench.errors import AgentRaised, UsageError
from owa_bench.interfaces import ToolSpec
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Progress
from owa_bench.runs.play.episode_setup import env_for
from owa_bench.runs.play.loop import RunStopped
from owa_bench.runs.resolve import Resolver
from owa_bench.shells.tool_env import ToolEnv


class OutsideSeats:
    """The seats of one run: who plays them may leave between two episodes.

    Args:
        layout: The run directory.
        who: What the player is called in the reason of a failed episode.
        leaving: What is raised where the player leaves.
    """

    def __init__(
        self,
        layout: RunLayout,
        who: str,
        leaving: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
    ) -> None:
        self.layout = layout
        self.acting = False  # in the open episode
        self._who = who
        self._leaving = leaving
        self._left = False
        self._tools: Mapping[str, ToolSpec] | None = None

    def on_progress(self, _progress: Progress) -> None:
        """Note that an episode has ended."""
        self.acting = False

    @contextlib.contextmanager
    def present(self) -> Iterator[None]:
        """Turn the player's leaving into the end of the episode, or of the run.

        Raises:
            RunStopped: No action has been asked for, or played, in this episode.
            AgentRaised: One has; the episode has failed.
        """
        if self._left:
            raise RunStopped
        try:
            yield
        except self._leaving as error:
            self._left = True
            if self.acting:
                raise AgentRaised(f"the {self._who} left before the episode had ended") from error
            raise RunStopped from error

    def every_tool(self) -> Mapping[str, ToolSpec]:
        """Return all tools of the run's suites: some come on offer in mid-sitting."""
        if self._tools is None:
            plan = read_plan(self.layout)
            resolver = Resolver(plan)
            envs = [env_for(plan, resolver.drifted_suite(suite.name, "")) for suite in plan.suites]
            self._tools = {
                tool.name: tool for env in envs if isinstance(env, ToolEnv) for tool in env.tools
            }
            for env in envs:
                env.close()
        return self._tools


def refuse_other_agents(layout: RunLayout, prefixes: tuple[str, ...]) -> None:
    """Refuse to go on with a run whose agent plays through another door.

    Args:
        layout: The run directory.
        prefixes: Beginnings of the specs that may play here.
    Raises: UsageError: With the fix.
    """
    for arm in read_plan(layout).arms:
        if not arm.agent.startswith(prefixes):
            raise UsageError(
                f"{layout.root} is played by {arm.agent!r}: go on as it was begun "
                "(`owa-bench play` for a person, with --folder for a reader)."
            )


class OfferedTools:
    """The tools on offer in one sitting.

    Args:
        seats: Those of the run.
        tools: On offer when the sitting begins.
    """

    def __init__(self, seats: OutsideSeats, tools: tuple[ToolSpec, ...]) -> None:
        self._seats = seats
        self._tools = tools
        self._narrow = False

    def named(self, names: Sequence[str] | None) -> tuple[ToolSpec, ...]:
        """Return the tools that may be called now; None names all."""
        known = {tool.name: tool for tool in self._tools}
        if names is None and not self._narrow:
            return self._tools
        self._narrow = True  # the sitting began with some of the tools
        if names is None or not set(names) <= set(known):
            known = dict(self._seats.every_tool())
        return tuple(known[name] for name in (known if names is None else names))
