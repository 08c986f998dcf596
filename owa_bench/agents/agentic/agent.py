"""The agent itself: from the goal to fetched tables, an answer and honest odds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec
from owa_bench.skills.clerk.case import DECLARE, LOST
from owa_bench.skills.clerk.job import Job
from owa_bench.skills.memory import Memory
from owa_bench.skills.planning import Call, Runner

TRADE = "http"  # the tool without which it knows nothing to do


class Agentic:
    """Reads documents, proves who it is, fetches, computes, writes, states odds."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._memory: Memory | None = None
        self._runner: Runner | None = None

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode with what is remembered of the vendors."""
        self._memory = Memory(memory_dir)
        self._runner = None
        if TRADE not in {tool.name for tool in tools}:
            return  # another trade's task: it says at once that it cannot do it
        self._runner = Runner(Job(brief, self._memory).solve())

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next call of the plan."""
        if self._runner is None:
            return Call(DECLARE, {"p": LOST}).text()
        return self._runner.advance(str(observation["text"])).text()

    def close(self) -> None:
        """End the episode; keep what was learned."""
        if self._memory is not None:
            self._memory.save()


AGENT = AgentCard(
    name="agentic",
    about="Reads documents, probes on errors, adds up totals, asks when stuck.",
    make=Agentic,
)
