"""Self-improving agent: works with its adopted skills and tests one change beside them.

A goal over HTTP is worked on twice while a trial is open. A goal on web pages cannot
be reached twice: either the adopted configuration or the one under trial goes first, by
the episode's seed, and the other one only where the site did not accept the work. All
that the agent can see of its work there is whether the site accepted it: it does not
learn from work that is wrong and accepted.

Of what may revise a program it adopts what a registered test shows to be better.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from owa_bench.agents.self_improving import revisions
from owa_bench.agents.self_improving.revisions import Notebook
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, ToolSpec
from owa_bench.records.events import Revision
from owa_bench.skills.api_solver.http_session import HttpSession
from owa_bench.skills.api_solver.self_checks import audit, failed, share
from owa_bench.skills.api_solver.solver import ApiSolver
from owa_bench.skills.api_solver.task_state import DECLARE, LOST, TaskState
from owa_bench.skills.crew.habits import ASKING, CREWS
from owa_bench.skills.crew.player import CrewPlayer
from owa_bench.skills.handicaps import handicapped, knob_options, read_handicaps
from owa_bench.skills.memory import FactMemory, open_memory
from owa_bench.skills.planning import PlanCall, Runner, ToolPlan, limited
from owa_bench.skills.recall.player import CARDS, RecallPlayer, register_reader
from owa_bench.skills.revision import acceptors
from owa_bench.skills.revision.acceptors import RevisionAgent
from owa_bench.skills.web_solver.solver import PAGES, WebSolver

APIS = "http"  # the tool of API tasks
STATUS_SIGNS: Mapping[int, str] = {
    400: "bad request",
    401: "refused",
    403: "refused",
    404: "gone",
    429: "limited",
}
STEPS = 200.0  # assumed where the brief names no limit
TRIAL_SHARE = 0.5  # of the steps, after which a second run is stopped
UNSOUND_SIGNS = frozenset({"short", "off total", "renamed"})
UNSOUND = 0.02  # odds left by each of them
WEIGHT = 8.0  # pairs that the agent's own odds count for in the calibration table


class _SelfImproving:
    """Works with the skills it has adopted; tests a proposed one on the same goal.

    The answer is always that of the adopted skills: a trial changes nothing but the
    number of requests.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._handicaps = read_handicaps(config.options)
        self._folder: Path | None = None
        self._memory: FactMemory | None = None
        self._notebook = Notebook()
        self._runner: Runner | None = None
        self._revision: Revision | None = None
        self._steps = 0
        self._seat: CrewPlayer | None = None
        self._player: RecallPlayer | RevisionAgent | None = None

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode with the remembered skills and facts."""
        names = {tool.name for tool in tools}
        if CARDS in names:  # nothing to revise: it reads as the agentic one does
            share = self._handicaps.calibration
            self._player = register_reader(calibration=share)
        elif acceptors.TESTS in names:
            most = self._handicaps.revisions
            self._player = RevisionAgent(acceptors.bonferroni, most=most)
        if self._player is not None:
            self._player.reset(brief, tools, memory_dir)
            return
        self._seat = CrewPlayer(brief, ASKING) if CREWS in names else None
        if self._seat is not None:
            return
        self._folder = memory_dir
        limits = self._handicaps
        self._memory = open_memory(memory_dir, limits.half_life)
        self._notebook = revisions.load_notebook(memory_dir)
        self._steps = 0
        on_pages = PAGES in names and APIS not in names
        plan = (
            self._web_plan(brief) if on_pages else self._api_plan(brief, self._memory)
        )
        self._runner = Runner(handicapped(plan, limits, brief))

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the next call of the plan; a revision goes with the last one."""
        if self._player is not None:
            return Move(self._player.act(observation, info))
        if self._seat is not None:
            return Move(self._seat.advance(str(observation["text"])).text())
        if self._runner is None:
            return Move(PlanCall(DECLARE, {"p": LOST}).text())
        call = self._runner.advance(str(observation["text"]))
        self._steps += 1
        revision, self._revision = self._revision, None
        return Move(call.text(), revision=revision)

    def close(self) -> None:
        """End the episode; keep what was learned."""
        if self._player is not None:
            self._player.close()
        if self._memory is not None and self._folder is not None:
            self._memory.save()
            revisions.save_notebook(self._folder, self._notebook)

    def _api_plan(self, brief: Brief, memory: FactMemory) -> ToolPlan[PlanCall]:
        """Fetch, fetch again with the change under trial, decide, then answer."""
        adopted, trial = self._notebook.habits, revisions.trial_config(self._notebook)
        facts = memory.apart()
        # the supervisor is not asked before both runs have fetched
        session = HttpSession(0, waits=adopted.waits)
        first = ApiSolver(brief, memory, adopted, session)
        gathered = yield from first.gather()
        shown = _signs(first.task, facts)
        if trial is not None:
            second = ApiSolver(
                brief, facts, trial, session.cached_copy(waits=trial.waits)
            )
            left = int(brief.budgets.get("steps", STEPS) * TRIAL_SHARE) - self._steps
            if (yield from limited(second.gather(), max(0, left))) is None:
                self._notebook, self._revision = revisions.record_uninformative(
                    self._notebook
                )
            else:
                self._compare(first.task, second.task, shown)
        session.hints = brief.interventions_left
        first.task.doubts += [UNSOUND] * len(shown & UNSOUND_SIGNS)
        closing = yield from first.conclude(gathered=gathered)
        self._notebook = revisions.count_signs(self._notebook, shown)
        if self._revision is None:
            self._notebook, self._revision = self._proposed(self._notebook)
        return self._calibrated(closing, first.task)

    def _web_plan(self, brief: Brief) -> ToolPlan[PlanCall]:
        """Reach a goal on a site, testing a change where one is proposed."""
        notebook = self._notebook
        revision: Revision | None = None
        trial = revisions.trial_config(notebook)
        order = [notebook.habits]
        if trial is not None:
            order = [trial, *order] if brief.seed % 2 else [*order, trial]
        solver = WebSolver(brief, order[0])
        outcome = yield from solver.attempt(again=False)
        shown = solver.signs
        if trial is not None:
            if outcome.accepted or outcome.refusal:
                notebook, revision = revisions.record_uninformative(notebook)
            else:
                solver = WebSolver(brief, order[1])
                outcome = yield from solver.attempt(again=True)
                won = float(outcome.accepted)
                old, new = (0.0, won) if order[1] is trial else (won, 0.0)
                skill = notebook.trial.habit if notebook.trial else ""
                relevant = revisions.may_remove(skill, shown)
                notebook, revision = revisions.record_pair(
                    notebook, old, new, relevant=relevant
                )
        closing = yield from solver.conclude(outcome)
        notebook = revisions.count_signs(notebook, shown)
        if revision is None:
            notebook, revision = self._proposed(notebook)
        self._notebook, self._revision = notebook, revision
        return closing

    def _proposed(self, notebook: Notebook) -> tuple[Notebook, Revision | None]:
        """Return the notebook with a trial opened, where one is called for."""
        if revisions.adopted_count(notebook) >= self._handicaps.revisions:
            return notebook, None
        return revisions.propose(notebook)

    def _compare(self, old: TaskState, new: TaskState, shown: frozenset[str]) -> None:
        """Record one more pair of the open trial."""
        skill = self._notebook.trial.habit if self._notebook.trial else ""
        self._notebook, self._revision = revisions.record_pair(
            self._notebook,
            share(audit(old)),
            share(audit(new)),
            relevant=revisions.may_remove(skill, shown),
        )

    def _calibrated(self, closing: PlanCall, task: TaskState) -> PlanCall:
        """Return the closing call with a calibrated probability.

        An answer that the supervisor gave in the end tells whether the agent's own
        would have been right: the calibration table counts these.
        """
        own = task.odds()
        row = f"{int(own * 10)}"
        right, asked = self._notebook.table.get(row, (0, 0))
        if task.supervisor_rows is not None:
            agrees = (task.compute() if task.tables else None) == task.supervisor_rows
            table = {**self._notebook.table, row: (right + agrees, asked + 1)}
            self._notebook = msgspec.structs.replace(self._notebook, table=table)
            return closing
        stated = float(closing.arguments.get("p", LOST))
        p = (WEIGHT * stated + right) / (WEIGHT + asked)
        return PlanCall(closing.tool, {**closing.arguments, "p": round(p, 2)})


def _signs(task: TaskState, facts: FactMemory) -> frozenset[str]:
    """Return the signs of missing skills that an episode showed."""
    needed = {source.id for source in task.sources if not source.optional}
    there = set(task.tables)
    statuses = task.session.statuses
    shown = {sign for status, sign in STATUS_SIGNS.items() if statuses[status]}
    if needed <= there:
        shown.discard("gone")  # it was found in the end
    checks = audit(task)
    short = set(failed(checks, "whole"))
    if there & short:
        shown.add("short")
    if (there - short) & set(failed(checks, "adds up")):
        shown.add("off total")
    if there & set(failed(checks, "named")) or any(
        table.lead < float("inf") for table in task.tables.values()
    ):
        shown.add("renamed")
    met = any(facts.knows(source.provider) for source in task.sources)
    if met and shown & {"refused", "gone"}:
        shown.add("met before")
    return frozenset(shown)


AGENT = AgentCard(
    name="self_improving",
    about="Begins with few skills, tests one change of habit at a time.",
    make=_SelfImproving,
    options=knob_options("half_life", "calibration", "asks", "calls", "revisions"),
)
