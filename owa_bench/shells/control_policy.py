"""The control policy of a tool suite: it sees the state and follows the oracle."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.interfaces import Brief, OracleAccess, ToolSpec

NextCall = Mapping[str, Any]


class ControlPolicy:
    """An agent that plays the oracle's next call; its kinds play another one.

    A kind overrides `_next` with the world and the state of its suite.

    Args:
        access: The oracle, the timeline and the state of the episode.
    """

    def __init__(self, access: OracleAccess) -> None:
        self._access = access
        self.steps = 0
        self.seed = 0
        self.memory = Path()

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
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
            info: Unused.
        Returns: A call of a tool as JSON text.
        """
        self.steps += 1
        timeline, state = self._access.observe()
        hint = self._access.oracle.hint(timeline, state)
        return json.dumps(self._next(hint, timeline.worlds[-1], state))

    def close(self) -> None:
        """End an episode, or a sitting of one."""

    def _next(self, hint: NextCall, world: Any, state: Any) -> NextCall:
        """Return the next call.

        Args:
            hint: The oracle's call: the right one.
            world: The world as it is now.
            state: The state of the episode.
        Returns: The call to make.
        """
        return hint
