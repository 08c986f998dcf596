"""The agent itself: does the work as it is used to, and tries one change beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from owa_bench.agents.self_improving import notebook, revising
from owa_bench.agents.self_improving.notebook import Notebook
from owa_bench.agents.self_improving.surfing import surf
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, ToolSpec
from owa_bench.records.events import Revision
from owa_bench.skills.api_solver.http_session import HttpSession
from owa_bench.skills.api_solver.self_checks import audit, failed, share
from owa_bench.skills.api_solver.solver import ApiSolver
from owa_bench.skills.api_solver.task_state import DECLARE, LOST, TaskState
from owa_bench.skills.memory import FactMemory
from owa_bench.skills.planning import PlanCall, Runner, ToolPlan, limited
from owa_bench.skills.web_solver.solver import PAGES

APIS = "http"  # the tool of the clerk's trade
STATUS_SIGNS: Mapping[int, str] = {
    400: "bad request",
    401: "refused",
    403: "refused",
    404: "gone",
    429: "limited",
}
STEPS = 200.0  # assumed where the brief names no limit
TRIAL_SHARE = 0.5  # of the steps, after which a second look is broken off
UNSOUND_SIGNS = frozenset({"short", "off total", "renamed"})
UNSOUND = 0.02  # odds left by each of them
WEIGHT = 8.0  # pairs that the agent's own odds count for in the calibration table


class SelfImproving:
    """Works with the habits it has adopted; tests a proposed one on the same goal.

    The answer is always that of the adopted habits: a trial changes nothing but the
    number of requests.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._folder: Path | None = None
        self._memory: FactMemory | None = None
        self._notebook = Notebook()
        self._runner: Runner | None = None
        self._revision: Revision | None = None
        self._steps = 0

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode with the habits and facts that were kept."""
        self._folder = memory_dir
        self._memory = FactMemory(memory_dir)
        self._notebook = notebook.read(memory_dir)
        self._steps = 0
        names = {tool.name for tool in tools}
        on_pages = PAGES in names and APIS not in names
        self._runner = Runner(
            self._surf(brief) if on_pages else self._episode(brief, self._memory)
        )

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the next call of the plan; a revision goes with the last one."""
        if self._runner is None:
            return Move(PlanCall(DECLARE, {"p": LOST}).text())
        call = self._runner.advance(str(observation["text"]))
        self._steps += 1
        revision, self._revision = self._revision, None
        return Move(call.text(), revision=revision)

    def close(self) -> None:
        """End the episode; keep what was learned."""
        if self._memory is not None and self._folder is not None:
            self._memory.save()
            notebook.write(self._folder, self._notebook)

    def _episode(self, brief: Brief, memory: FactMemory) -> ToolPlan[PlanCall]:
        """Fetch, fetch again with the change under trial, decide, then answer."""
        habits, trial = self._notebook.habits, revising.candidate(self._notebook)
        facts = memory.apart()
        desk = HttpSession(
            0, waits=habits.waits
        )  # nobody is asked before both have fetched
        job = ApiSolver(brief, memory, habits, desk)
        gathered = yield from job.gather()
        shown = signs(job.task, facts)
        if trial is not None:
            second = ApiSolver(brief, facts, trial, desk.cached_copy(waits=trial.waits))
            left = int(brief.budgets.get("steps", STEPS) * TRIAL_SHARE) - self._steps
            if (yield from limited(second.gather(), max(0, left))) is None:
                self._notebook, self._revision = revising.pass_over(self._notebook)
            else:
                self._compare(job.task, second.task, shown)
        desk.hints = brief.interventions_left
        job.task.doubts += [UNSOUND] * len(shown & UNSOUND_SIGNS)
        closing = yield from job.conclude(gathered=gathered)
        self._notebook = revising.note_signs(self._notebook, shown)
        if self._revision is None:
            self._notebook, self._revision = revising.propose(self._notebook)
        return self._calibrated(closing, job.task)

    def _surf(self, brief: Brief) -> ToolPlan[PlanCall]:
        """Reach a goal on pages; keep what was learned of the agent's own habits."""
        done = yield from surf(brief, self._notebook)
        self._notebook, self._revision = done.notebook, done.revision
        return done.closing

    def _compare(self, old: TaskState, new: TaskState, shown: frozenset[str]) -> None:
        """Take one more pair into the open trial."""
        habit = self._notebook.trial.habit if self._notebook.trial else ""
        self._notebook, self._revision = revising.learn(
            self._notebook,
            share(audit(old)),
            share(audit(new)),
            looked=revising.is_cured_by(habit, shown),
        )

    def _calibrated(self, closing: PlanCall, case: TaskState) -> PlanCall:
        """Return the ending with a probability that past answers bear out.

        An answer that the supervisor gave in the end tells whether the agent's own
        would have been right: that is what the table is made of.
        """
        own = case.odds()
        row = f"{int(own * 10)}"
        right, asked = self._notebook.table.get(row, (0, 0))
        if case.supervisor_rows is not None:
            agrees = (case.compute() if case.tables else None) == case.supervisor_rows
            table = {**self._notebook.table, row: (right + agrees, asked + 1)}
            self._notebook = msgspec.structs.replace(self._notebook, table=table)
            return closing
        stated = float(closing.arguments.get("p", LOST))
        p = (WEIGHT * stated + right) / (WEIGHT + asked)
        return PlanCall(closing.tool, {**closing.arguments, "p": round(p, 2)})


def signs(case: TaskState, facts: FactMemory) -> frozenset[str]:
    """Return the signs of trouble that an episode showed."""
    needed = {source.id for source in case.sources if not source.optional}
    there = set(case.tables)
    statuses = case.session.statuses
    shown = {sign for status, sign in STATUS_SIGNS.items() if statuses[status]}
    if needed <= there:
        shown.discard("gone")  # it was found in the end
    checks = audit(case)
    short = set(failed(checks, "whole"))
    if there & short:
        shown.add("short")
    if (there - short) & set(failed(checks, "adds up")):
        shown.add("off total")
    if there & set(failed(checks, "named")) or any(
        sheet.lead < float("inf") for sheet in case.tables.values()
    ):
        shown.add("renamed")
    met = any(facts.knows(source.provider) for source in case.sources)
    if met and shown & {"refused", "gone"}:
        shown.add("met before")
    return frozenset(shown)


AGENT = AgentCard(
    name="self_improving",
    about="Begins with few skills, tests one change of habit at a time.",
    make=SelfImproving,
)
