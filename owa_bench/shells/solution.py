"""The oracle's own play of an instance: its solution, H_t, and control policies."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from owa_bench import interfaces
from owa_bench.interfaces import Brief, OracleAccess, ToolSpec
from owa_bench.records.instance import Timeline
from owa_bench.shells.calls import CallParser, call_text
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import NullSink
from owa_bench.shells.standard_tools import ENDING_TOOLS


class OracleSolution(NamedTuple):
    """The oracle's action texts, how many were verified, and q_state.

    The last action ends the episode, unless the step limit did.
    """

    actions: tuple[str, ...]
    accepted: int
    q_state: float


def horizon(
    suite: interfaces.Suite, timeline: Timeline, *, parser: CallParser | None = None
) -> int:
    """Return H_t, from the suite if it can tell, else by playing the episode.

    Args:
        suite: A tool suite.
        timeline: The episode's.
        parser: Of the suite's tools, where there is one already.
    Returns: The oracle's number of verified actions.
    """
    known = suite.horizon(timeline)
    return solve(suite, timeline, parser=parser).accepted if known is None else known


def solve(
    suite: interfaces.Suite,
    timeline: Timeline,
    *,
    parser: CallParser | None = None,
    laboratory: interfaces.Laboratory | None = None,
) -> OracleSolution:
    """Return the result of following the oracle's hints; pure.

    Args:
        suite: A tool suite.
        timeline: The episode's.
        parser: Of the suite's tools, where there is one already.
        laboratory: For a suite that plays attempts inside an episode.
    Returns: The actions and their result.
    """
    episode = Episode(
        suite, timeline, sink=NullSink(), terms=EpisodeTerms(), parser=parser, laboratory=laboratory
    )
    actions: list[str] = []
    try:
        while episode.ending is None:
            hint = suite.oracle.hint(timeline, episode.session.state)
            actions.append(call_text(hint["tool"], hint["arguments"]))
            episode.step(actions[-1])
        return OracleSolution(tuple(actions), episode.verified, episode.ending.q_state)
    finally:
        episode.close()


# --- control policies: they see the state, and the oracle beside it -------------------


NextCall = Mapping[str, Any]


class StatePolicy:
    """An agent that sees the state of the episode; its kinds say what it calls.

    A kind overrides `_call`; what is not overridden is the oracle's next call.

    Args:
        access: The oracle, the timeline and the state of the episode.
    """

    def __init__(self, access: OracleAccess) -> None:
        self._access = access
        self.steps = 0
        self.seed = 0
        self.memory = Path()

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode, or a sitting of one.

        Args:
            brief: The task; its seed is the policy's.
            tools: Those on offer; unused.
            memory_dir: The folder that the agent may keep things in.
        """
        self.seed, self.memory = brief.seed, memory_dir

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next action.

        Args:
            observation: Unused.
            info: What the environment says beside it.
        Returns: A call of a tool as JSON text.
        """
        self.steps += 1
        return json.dumps(self._call(info))

    def close(self) -> None:
        """End an episode, or a sitting of one."""

    def _call(self, info: Mapping[str, Any]) -> NextCall:
        """Return the call to make."""
        return self._hint()

    def _observed(self) -> tuple[Timeline, Any]:
        """Return the timeline and the state of the episode."""
        return self._access.observe()

    def _hint(self) -> NextCall:
        """Return the oracle's next call: the right one."""
        return self._access.oracle.hint(*self._observed())


class KnowingPolicy(StatePolicy):
    """Follows the oracle to the end, and states what is true as it ends."""

    def _call(self, info: Mapping[str, Any]) -> NextCall:
        step = self._hint()
        if step["tool"] not in ENDING_TOOLS:
            return step
        timeline, _ = self._observed()
        truths = self._access.oracle.propositions(timeline)
        beliefs = {truth.name: float(truth.truth) for truth in truths}
        arguments = {**step["arguments"], "beliefs": beliefs}
        return {"tool": step["tool"], "arguments": arguments}


class ControlPolicy(StatePolicy):
    """An agent that plays the oracle's next call; its kinds play another one.

    A kind overrides `_next` with the world and the state of its suite.
    """

    def _call(self, info: Mapping[str, Any]) -> NextCall:
        timeline, state = self._observed()
        hint = self._access.oracle.hint(timeline, state)
        return self._next(hint, timeline.worlds[-1], state)

    def _next(self, hint: NextCall, world: Any, state: Any) -> NextCall:
        """Return the next call.

        Args:
            hint: The oracle's call: the right one.
            world: The world as it is now.
            state: The state of the episode.
        Returns: The call to make.
        """
        return hint
