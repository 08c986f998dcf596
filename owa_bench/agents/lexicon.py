"""The agent that knows synonyms: same way, other words, pages in between."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec
from owa_bench.skills.retracing import Walker, tolerant

CONFIDENT, STRAYED, LOST = 0.9, 0.6, 0.02


class Lexicon:
    """Replays the undrifted way by likely words, past moved and added pages."""

    def __init__(self, config: AgentConfig) -> None:
        self._script = config.script
        self._walker = Walker(config.script, tolerant, wanders=True)

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode at the first line of the script."""
        self._walker = Walker(self._script, tolerant, wanders=True)

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
    name="lexicon",
    about="Replays the undrifted way by likely words, past moved and added pages.",
    make=Lexicon,
    needs="script",
    suites=("changesurf",),
)
