"""The planner: hands out the work, has it checked, asks when unsure, answers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.agents.orchestrator.board import Board
from owa_bench.agents.orchestrator.crew import (
    PLANNER,
    RECONCILER,
    SCOUT,
    VERIFIER,
    Crew,
)
from owa_bench.agents.orchestrator.errand import Surfers
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, ToolSpec
from owa_bench.skills.api_solver.task_state import DECLARE, EMPTY, LOST, REFUSED_WRITE
from owa_bench.skills.memory import FactMemory
from owa_bench.skills.planning import PlanCall, Runner, ToolPlan
from owa_bench.skills.web_solver.solver import PAGES

APIS = "http"  # the tool of the trade that the whole crew knows
ROUNDS = 2  # how often the verifier may send work back
FAULTY = 0.1  # odds left by each kind of check that fails
CHANGED = 0.3  # odds left by a table that reads otherwise the second time


class Orchestrator:
    """One program whose roles work over a message board on one seat."""

    def __init__(self, config: AgentConfig) -> None:
        self._memory: FactMemory | None = None
        self._board: Board | None = None
        self._runner: Runner | None = None

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode with the connectors that are remembered."""
        self._memory = FactMemory(memory_dir)
        names = {tool.name for tool in tools}
        if PAGES in names and APIS not in names:
            surfers = Surfers(brief)
            self._board, self._runner = surfers.board, Runner(surfers.plan())
            return
        crew = Crew(brief, self._memory)
        self._board = crew.board
        self._runner = Runner(_plan(crew, brief.interventions_left))

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the next call of whoever's turn it is, and what was said meanwhile."""
        if self._runner is None or self._board is None:
            return Move(PlanCall(DECLARE, {"p": LOST}).text())
        call = self._runner.advance(str(observation["text"]))
        return Move(call.text(), messages=self._board.sent())

    def close(self) -> None:
        """End the episode; keep what was learned."""
        if self._memory is not None:
            self._memory.save()


def _plan(crew: Crew, hints: int | None) -> ToolPlan[PlanCall]:
    """Walk the whole goal; return the call that ends the episode."""
    case = crew.case
    for fetcher in crew.fetchers.values():
        source = next(s for s in case.sources if s.provider == fetcher.title)
        words = f"find {fetcher.title} for {fetcher.name}"
        crew.board.post(PLANNER, SCOUT, words, source)
    yield from crew.scout()
    yield from crew.fetch()
    yield from _check(crew)
    needed = {source.id for source in case.sources if not source.optional}
    lacking = not needed <= set(case.tables)
    if lacking and crew.infeasible:
        return case.declare()
    crew.desk.hints = hints
    if lacking or case.odds() < case.config.asks_below:
        done = yield from case.follow_hints()
        if done is not None:
            return done
    return (yield from _answer(crew, lacking=lacking))


def _check(crew: Crew) -> ToolPlan[None]:
    """Let reconciler and verifier work by turns until nothing more can be mended."""
    crew.reconcile()
    faults = crew.verify()
    for _ in range(ROUNDS):
        if not faults or not (yield from crew.mend()):
            break
        crew.reconcile()
        faults = crew.verify()
    kinds = {fault.kind for fault in faults}
    crew.case.doubts += [FAULTY] * len(kinds)


def _answer(crew: Crew, *, lacking: bool) -> ToolPlan[PlanCall]:
    """Compute and give the answer; what was written is checked before the end."""
    case = crew.case
    rows = None if lacking else case.compute()
    if rows is None:
        return case.finish(LOST)
    if case.goal.get("writes"):
        case.doubts += [CHANGED] * len((yield from crew.reread()))
        source = case.tables[case.goal["writes"]["source"]].source
        vendor = yield from crew.vendor(source)
        refused = yield from case.write(rows, vendor.access if vendor else None)
        return case.finish(case.odds([REFUSED_WRITE] * refused))
    crew.board.post(RECONCILER, VERIFIER, f"an answer of {len(rows)} rows is written")
    taken = yield from case.hand_in(rows)
    changed = yield from crew.reread()
    if changed:
        rows = yield from _redo(crew, changed, rows)
        case.doubts += [CHANGED] * len(changed)
    return case.finish(case.odds([EMPTY] * (not rows) + [REFUSED_WRITE] * (not taken)))


def _redo(crew: Crew, changed: list[str], rows: list[list[Any]]) -> ToolPlan[list[Any]]:
    """Send changed tables back; return the rows of the answer that stands then."""
    case = crew.case
    for source in case.sources:
        if source.id in changed:
            words = f"{source.id} reads otherwise now"
            owner = crew.fetchers[source.provider].name
            crew.board.post(VERIFIER, owner, words, source)
    yield from crew.mend()
    crew.reconcile()
    again = case.compute()
    if again is None or again == rows:
        return rows
    yield from case.hand_in(again)
    return again


AGENT = AgentCard(
    name="orchestrator",
    about="Scout, fetchers, reconciler and verifier over a board, led by a planner.",
    make=Orchestrator,
)
