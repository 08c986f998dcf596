"""Script replay agents: they repeat the actions that solved the undrifted world.

`fixed` repeats the calls as they are; `exact_label` and `lexicon` repeat them on web
pages and look for each recorded control by its words.

Source: docs/archetypes.md#the-archetypes, archetype "fixed".
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec
from owa_bench.skills import planning
from owa_bench.skills.script_replay import ScriptReplayer, find_exact, find_similar

CONFIDENT = 0.9  # its script solved this task once
HALTED = 0.02
ENDINGS = ("finish", "declare_infeasible")
FIRST_OTHER = 300  # redirects among them: it goes nowhere else


class _Fixed:
    """Replays `config.script` and halts at the first refusal it does not expect.

    It sees nothing but whether a step was refused. A refusal that the script waits out
    is expected; after any other it hands in nothing, for what it would hand in was
    not fetched.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._script: list[dict[str, Any]] = [
            json.loads(line) for line in config.script
        ]
        self._step = 0

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode at the first line of the script."""
        self._step = 0

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next line of the script, or the end of it."""
        if self._step >= len(self._script):
            return _ending({"tool": "finish", "arguments": {"answer": ""}}, HALTED)
        call = self._script[self._step]
        if (
            self._step
            and call["tool"] != "wait"
            and is_refusal(str(observation["text"]))
        ):
            self._step = len(self._script)
            return _ending({"tool": "finish", "arguments": {"answer": ""}}, HALTED)
        self._step += 1
        return _ending(call, CONFIDENT) if call["tool"] in ENDINGS else json.dumps(call)

    def close(self) -> None:
        """End the episode; nothing is kept."""


def is_refusal(text: str) -> bool:
    """Return whether a tool result reports an error or a status of 300 or more."""
    result = planning.reply(text)
    if result.error is not None:
        return True
    value = result.value
    status = value.get("status") if isinstance(value, Mapping) else None
    return isinstance(status, int) and status >= FIRST_OTHER


def _ending(call: dict[str, Any], p: float) -> str:
    """Return a closing call with the agent's own p."""
    arguments = {**call["arguments"], "p": p}
    return json.dumps({"tool": call["tool"], "arguments": arguments})


AGENTS = (
    AgentCard(
        name="fixed",
        about="Replays the oracle's actions of the undrifted world.",
        make=_Fixed,
        needs="script",
    ),
    AgentCard(
        name="exact_label",
        about="Replays the undrifted way by the exact words of its controls.",
        make=lambda config: ScriptReplayer(config.script, find_exact, wanders=False),
        needs="script",
        suites=("changesurf",),
    ),
    AgentCard(
        name="lexicon",
        about="Replays the undrifted way by likely words, past moved and added pages.",
        make=lambda config: ScriptReplayer(config.script, find_similar, wanders=True),
        needs="script",
        suites=("changesurf",),
    ),
)
