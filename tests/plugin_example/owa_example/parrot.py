"""An agent that says what it was told and finishes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec


class Parrot:
    """Finishes at once with the brief's own words."""

    def __init__(self, config: AgentConfig) -> None:
        self._words = ""
        self._p = float(config.options.get("p", "0.1"))

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode."""
        self._words = brief.text

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the call that finishes."""
        arguments = {"answer": self._words, "p": self._p, "beliefs": {}}
        return json.dumps({"tool": "finish", "arguments": arguments})

    def close(self) -> None:
        """End the episode."""


AGENT = AgentCard(name="parrot", about="Says what it was told.", make=Parrot)
