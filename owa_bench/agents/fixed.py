"""The agent that never looks: it replays the actions that solved the undrifted world.

Source: `suites.md` section 9, archetype "fixed".
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec
from owa_bench.skills import planning

CONFIDENT = 0.9  # its script solved this task once
HALTED = 0.02
ENDINGS = ("finish", "declare_infeasible")
FIRST_OTHER = 300  # redirects among them: it goes nowhere else


class Fixed:
    """Replays `config.script` and halts at the first refusal it does not expect.

    It sees nothing but whether a step was refused. A refusal that the script waits out
    is expected; after any other it hands in nothing, for what it would hand in was
    not fetched.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._script = tuple(map(_parsed, config.script))
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
        if self._step and call["tool"] != "wait" and refused(str(observation["text"])):
            self._step = len(self._script)
            return _ending({"tool": "finish", "arguments": {"answer": ""}}, HALTED)
        self._step += 1
        return _ending(call, CONFIDENT) if call["tool"] in ENDINGS else json.dumps(call)

    def close(self) -> None:
        """End the episode; nothing is kept."""


def refused(text: str) -> bool:
    """Return whether what came back tells of an error."""
    seen = planning.reply(text)
    if seen.error is not None:
        return True
    status = seen.value.get("status") if isinstance(seen.value, Mapping) else None
    return isinstance(status, int) and status >= FIRST_OTHER


def _parsed(line: str) -> dict[str, Any]:
    """Return a line of the script as a call."""
    call: dict[str, Any] = json.loads(line)
    return call


def _ending(call: dict[str, Any], p: float) -> str:
    """Return a closing call with the agent's own p."""
    arguments = {**call["arguments"], "p": p}
    return json.dumps({"tool": call["tool"], "arguments": arguments})


AGENT = AgentCard(
    name="fixed",
    about="Replays the oracle's actions of the undrifted world.",
    make=Fixed,
    needs="script",
)
