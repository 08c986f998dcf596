"""The agent that does nothing: it finishes at once and says so."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec

FINISH = {"tool": "finish", "arguments": {"answer": "", "p": 0.0, "beliefs": {}}}


class Noop:
    """Finishes in its first step, sure that it has not succeeded."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode; nothing is kept."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the call that finishes."""
        return json.dumps(FINISH)

    def close(self) -> None:
        """End the episode."""


AGENT = AgentCard(
    name="noop", about="Finishes at once; the floor of every suite.", make=Noop
)
