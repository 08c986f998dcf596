"""The agent that knows a site by heart: it looks for the very words it once pressed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec
from owa_bench.skills.retracing import Walker, exact

CONFIDENT, STRAYED, LOST = 0.9, 0.6, 0.02


class ExactLabel:
    """Replays the undrifted way by the exact words of its controls."""

    def __init__(self, config: AgentConfig) -> None:
        self._script = config.script
        self._walker = Walker(config.script, exact, wanders=False)

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode at the first line of the script."""
        self._walker = Walker(self._script, exact, wanders=False)

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next call of the script as this page has it, or the end."""
        call = self._walker.advance(str(observation["text"]))
        if call is None:
            arguments = {"answer": "", "p": LOST}
            return json.dumps({"tool": "finish", "arguments": arguments})
        if call["tool"] in ("finish", "declare_infeasible"):
            p = STRAYED if self._walker.strayed else CONFIDENT
            call = {"tool": call["tool"], "arguments": {**call["arguments"], "p": p}}
        return json.dumps(call)

    def close(self) -> None:
        """End the episode; nothing is kept."""


AGENT = AgentCard(
    name="exact_label",
    about="Replays the undrifted way by the exact words of its controls.",
    make=ExactLabel,
    needs="script",
    suites=("changesurf",),
)
