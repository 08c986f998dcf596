"""Planner of the orchestrator: assigns work, has it checked, asks when unsure, answers.

In a crew each seat is one program, and messages go over the crew's channel. On web pages there is
one window: one role works in it and another checks the outcome. Of what may revise a program it
halves the proposals and tests the last two.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.agents.orchestrator.team import (
    PLANNER,
    RECONCILER,
    SCOUT,
    VERIFIER,
    MessageBoard,
    Team,
)
from owa_bench.agents.solvers.api_solver.http_session import SkillConfig
from owa_bench.agents.solvers.api_solver.task_state import DECLARE, EMPTY, LOST, REFUSED_WRITE
from owa_bench.agents.solvers.crew.player import CrewPlayer
from owa_bench.agents.solvers.crew.reading import CREWS, TEAM
from owa_bench.agents.solvers.handicaps import (
    ANSWERED,
    handicapped,
    knob_options,
    planned_depth,
    read_handicaps,
    skips,
    solver_skills,
)
from owa_bench.agents.solvers.memory import FactMemory, open_memory
from owa_bench.agents.solvers.planning import PlanCall, Runner, ToolPlan
from owa_bench.agents.solvers.recall.player import CARDS, RecallPlayer, register_reader
from owa_bench.agents.solvers.revision import acceptors
from owa_bench.agents.solvers.revision.acceptors import RevisionAgent
from owa_bench.agents.solvers.web_solver.solver import PAGES, WebSolver
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, ToolSpec

APIS = "http"  # the tool of API tasks
SURFER = "surfer"  # role that works in the window
ROUNDS = 2  # how often the verifier may send work back
FAILED = 0.1  # odds left by each kind of check that fails
CHANGED = 0.3  # odds left by a table that changed while it was read


class _Orchestrator:
    """One program whose roles work over a message board."""

    def __init__(self, config: AgentConfig) -> None:
        self._handicaps = read_handicaps(config.options)
        self._memory: FactMemory | None = None
        self._board: MessageBoard | None = None
        self._runner: Runner | None = None
        self._seat: CrewPlayer | None = None
        self._idle = False  # a seat of a crew beyond those that hold roles
        self._player: RecallPlayer | RevisionAgent | None = None

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode with the connectors that are remembered."""
        limits = self._handicaps
        names = {tool.name for tool in tools}
        skipped = skips(limits, brief)
        if CARDS in names:  # one role keeps the facts, another searches for the rules
            self._player = register_reader(
                depth=limits.depth,
                half_life=limits.half_life,
                calibration=limits.calibration,
                share=ANSWERED if skipped else 1.0,
            )
        elif acceptors.TESTS in names:
            most = 0 if skipped else math.inf
            self._player = RevisionAgent(acceptors.halving, most=most)
        if self._player is not None:
            self._player.reset(brief, tools, memory_dir)
            return
        self._memory = open_memory(memory_dir, limits.half_life)
        self._seat = CrewPlayer(brief, TEAM) if CREWS in names else None
        if self._seat is not None:
            place = brief.goal["seats"].index(brief.goal["seat"])
            beyond = limits.crew is not None and place >= limits.crew
            self._idle = skipped or beyond
            return
        self._runner = None
        if planned_depth(brief.goal) > limits.depth:
            return
        skills = solver_skills(limits, brief)
        if PAGES in names and APIS not in names:
            roles = (PLANNER, SURFER, VERIFIER)
            self._board = MessageBoard(roles, limits.crew)
            plan = _web_plan(brief, self._board, skills)
        else:
            team = Team(brief, self._memory, limits.crew, skills)
            self._board = team.board
            plan = _api_plan(team, brief.interventions_left)
        self._runner = Runner(handicapped(plan, limits, brief))

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the next call, and the messages sent since the last one."""
        if self._player is not None:
            return Move(self._player.act(observation, info))
        if self._seat is not None and self._idle:
            return Move(PlanCall("pass_turn", {"ticks": 1}).text())
        if self._seat is not None:
            return Move(self._seat.advance(str(observation["text"])).text())
        if self._runner is None or self._board is None:
            return Move(PlanCall(DECLARE, {"p": LOST}).text())
        call = self._runner.advance(str(observation["text"]))
        return Move(call.text(), messages=self._board.take_sent())

    def close(self) -> None:
        """End the episode; keep what was learned."""
        if self._player is not None:
            self._player.close()
        if self._memory is not None:
            self._memory.save()


def _api_plan(team: Team, hints: int | None) -> ToolPlan[PlanCall]:
    """Work on a goal over HTTP; return the call that ends the episode."""
    task = team.task
    for fetcher in team.fetchers.values():
        source = next(s for s in task.sources if s.provider == fetcher.title)
        text = f"find {fetcher.title} for {fetcher.name}"
        team.board.post(PLANNER, SCOUT, text, source)
    yield from team.scout()
    yield from team.fetch()
    yield from _check(team)
    needed = {source.id for source in task.sources if not source.optional}
    lacking = not needed <= set(task.tables)
    if lacking and team.infeasible:
        return task.declare()
    team.session.hints = hints
    if lacking or task.odds() < task.config.asks_below:
        closing = yield from task.follow_hints()
        if closing is not None:
            return closing
    return (yield from _answer(team, lacking=lacking))


def _check(team: Team) -> ToolPlan[None]:
    """Let reconciler and verifier work in turns until nothing more can be repaired."""
    team.reconcile()
    failed = team.verify()
    for _ in range(ROUNDS):
        if not failed or not (yield from team.refetch()):
            break
        team.reconcile()
        failed = team.verify()
    kinds = {check.kind for check in failed}
    team.task.doubts += [FAILED] * len(kinds)


def _answer(team: Team, *, lacking: bool) -> ToolPlan[PlanCall]:
    """Compute and give the answer; what was written is checked before the end."""
    task = team.task
    rows = None if lacking else task.compute()
    if rows is None:
        return task.finish(LOST)
    if task.goal.get("writes"):
        task.doubts += [CHANGED] * len((yield from team.find_changed()))
        source = task.tables[task.goal["writes"]["source"]].source
        client = yield from team.client(source)
        refused = yield from task.write(rows, client.access if client else None)
        return task.finish(task.odds([REFUSED_WRITE] * refused))
    team.board.post(RECONCILER, VERIFIER, f"an answer of {len(rows)} rows is written")
    accepted = yield from task.hand_in(rows)
    changed = yield from team.find_changed()
    if changed:
        rows = yield from _redo(team, changed, rows)
        task.doubts += [CHANGED] * len(changed)
    return task.finish(task.odds([EMPTY] * (not rows) + [REFUSED_WRITE] * (not accepted)))


def _redo(team: Team, changed: list[str], rows: list[list[Any]]) -> ToolPlan[list[Any]]:
    """Send changed tables back; return the rows of the final answer."""
    task = team.task
    for source in task.sources:
        if source.id in changed:
            text = f"{source.id} reads otherwise now"
            fetcher = team.fetchers[source.provider].name
            team.board.post(VERIFIER, fetcher, text, source)
    yield from team.refetch()
    team.reconcile()
    again = task.compute()
    if again is None or again == rows:
        return rows
    yield from task.hand_in(again)
    return again


def _web_plan(brief: Brief, board: MessageBoard, skills: SkillConfig) -> ToolPlan[PlanCall]:
    """Work on a goal on web pages; return the call that ends the episode.

    A site that did not accept the work and named no rule is tried once more from its first page.
    """
    board.post(PLANNER, SURFER, "reach the goal on the site")
    solver = WebSolver(brief, skills)
    outcome = yield from solver.attempt()
    for _ in range(ROUNDS - 1):
        board.post(SURFER, VERIFIER, outcome.refusal or "it is done")
        if outcome.accepted or outcome.refusal:
            break
        board.post(VERIFIER, SURFER, "nothing was taken: once more")
        outcome = yield from solver.attempt(again=True)
    board.post(VERIFIER, PLANNER, "taken" if outcome.accepted else "not taken")
    return (yield from solver.conclude(outcome))


AGENT = AgentCard(
    name="orchestrator",
    about="Scout, fetchers, reconciler and verifier over a board, led by a planner.",
    make=_Orchestrator,
    options=knob_options(
        *("half_life", "depth", "calibration", "asks", "calls", "crew", "families_off")
    ),
)
