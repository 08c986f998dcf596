"""The agentic archetype: reads documents, probes on errors, plans, asks when stuck.

It decides a company's cases, solves a goal over HTTP, on web pages, from a seat of a crew, on the
cards of a register, by revising a program or with an arm, by commands or by tools, whichever its
tools and its brief allow. What it adopts there it saw to be better in development; it tests
nothing.

Source: docs/archetypes.md#the-archetypes, archetype "agentic".
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.agents.solvers.api_solver.solver import ApiSolver
from owa_bench.agents.solvers.api_solver.task_state import DECLARE, LOST
from owa_bench.agents.solvers.arm.player import ArmPlayer, is_arm
from owa_bench.agents.solvers.arm.policies import Adaptive
from owa_bench.agents.solvers.arm.tool_player import SETTINGS, ArmToolPlayer
from owa_bench.agents.solvers.cases.player import DESK, case_plan
from owa_bench.agents.solvers.crew.player import CrewPlayer
from owa_bench.agents.solvers.crew.reading import ASKING, CREWS
from owa_bench.agents.solvers.handicaps import (
    handicapped,
    knob_options,
    planned_depth,
    read_handicaps,
    solver_skills,
)
from owa_bench.agents.solvers.memory import FactMemory, open_memory
from owa_bench.agents.solvers.planning import PlanCall, Runner
from owa_bench.agents.solvers.recall.player import CARDS, RecallPlayer, register_reader
from owa_bench.agents.solvers.revision import acceptors
from owa_bench.agents.solvers.revision.acceptors import RevisionAgent
from owa_bench.agents.solvers.web_solver.solver import PAGES, WebSolver
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec

APIS = "http"  # the tool of API tasks


class _Agentic:
    """Reads documents or pages, signs in, finds, computes, writes, states p."""

    def __init__(self, config: AgentConfig) -> None:
        self._handicaps = read_handicaps(config.options)
        self._memory: FactMemory | None = None
        self._runner: Runner | None = None
        self._seat: CrewPlayer | None = None
        self._player: RecallPlayer | RevisionAgent | ArmPlayer | ArmToolPlayer | None = None

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode with what is remembered of the vendors."""
        limits = self._handicaps
        names = {tool.name for tool in tools}
        if CARDS in names:
            self._player = register_reader(calibration=limits.calibration)
        elif acceptors.TESTS in names:
            self._player = RevisionAgent(acceptors.greedy)
        elif SETTINGS in names:
            self._player = ArmToolPlayer()
        elif is_arm(brief):
            self._player = ArmPlayer(Adaptive)
        if self._player is not None:
            self._player.reset(brief, tools, memory_dir)
            return
        self._memory = open_memory(memory_dir, limits.half_life)
        self._runner = None
        self._seat = CrewPlayer(brief, ASKING) if CREWS in names else None
        if planned_depth(brief.goal) > limits.depth:
            return
        skills = solver_skills(limits, brief)
        if DESK in names:
            plan = case_plan(brief)
        elif APIS in names:
            plan = ApiSolver(brief, self._memory, skills).solve()
        elif PAGES in names:
            plan = WebSolver(brief, skills).solve()
        else:
            return
        self._runner = Runner(handicapped(plan, limits, brief))

    def act(self, observation: Any, info: Mapping[str, Any]) -> str | list[float]:
        """Return the next call of the plan, or the next command of the arm."""
        if self._player is not None:
            return self._player.act(observation, info)
        if self._seat is not None:
            return self._seat.advance(str(observation["text"])).text()
        if self._runner is None:  # no tool that it knows, or too deep a plan
            return PlanCall(DECLARE, {"p": LOST}).text()
        return self._runner.advance(str(observation["text"])).text()

    def close(self) -> None:
        """End the episode; keep what was learned."""
        if self._player is not None:
            self._player.close()
        if self._memory is not None:
            self._memory.save()


AGENT = AgentCard(
    name="agentic",
    about="Reads documents and pages, probes on errors, adds up, asks when stuck.",
    make=_Agentic,
    native=("robosim2real",),
    options=knob_options(
        *("half_life", "depth", "tools", "calibration", "asks", "calls"), "families_off"
    ),
)
