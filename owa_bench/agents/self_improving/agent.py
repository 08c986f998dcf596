"""Self-improving agent: works with its adopted skills and tests one change beside them.

A goal over HTTP is worked on twice if it shows a sign that an open trial is to remove. A goal on
web pages cannot be reached twice: either the adopted configuration or the one under trial goes
first, by the episode's seed, and the other one only where the site did not accept the work. All
that the agent can see of its work there is whether the site accepted it: it does not learn from
work that is wrong and accepted.

`discovering` begins with every skill but OAuth2. How a vendor family that asks for tokens is opened
it works out from refusals once it is done with a goal, tests that as any change, and keeps it below
`families/`.

Of what may revise a program it adopts what a registered test shows to be better.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from owa_bench.agents.self_improving import revisions
from owa_bench.agents.self_improving.revisions import Notebook
from owa_bench.agents.solvers.api_solver.authentication import Connector, candidates
from owa_bench.agents.solvers.api_solver.connectors import (
    connector_for,
    load_connectors,
    save_connector,
    work_out,
)
from owa_bench.agents.solvers.api_solver.http_session import ALL_SKILLS, HttpSession
from owa_bench.agents.solvers.api_solver.providers import ProviderClient
from owa_bench.agents.solvers.api_solver.self_checks import audit, failing_sources, share
from owa_bench.agents.solvers.api_solver.solver import ApiSolver
from owa_bench.agents.solvers.api_solver.task_state import DECLARE, LOST, TaskState
from owa_bench.agents.solvers.crew.player import CrewPlayer
from owa_bench.agents.solvers.crew.reading import ASKING, CREWS
from owa_bench.agents.solvers.handicaps import handicapped, knob_options, read_handicaps
from owa_bench.agents.solvers.memory import FactMemory, open_memory
from owa_bench.agents.solvers.planning import PlanCall, Runner, ToolPlan, limited
from owa_bench.agents.solvers.recall.player import CARDS, RecallPlayer, register_reader
from owa_bench.agents.solvers.revision import acceptors
from owa_bench.agents.solvers.revision.acceptors import RevisionAgent
from owa_bench.agents.solvers.web_solver.solver import PAGES, WebSolver
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, ToolSpec
from owa_bench.records.events import Revision

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
REST = 60  # seconds before a second run: it is not to pay for the first one's requests
MOST_KEYS = 3  # credentials with which a vendor's refusals are looked into
UNSOUND_SIGNS = frozenset({"short", "off total", "renamed"})
UNSOUND = 0.02  # odds left by each of them
WEIGHT = 8.0  # pairs that the agent's own odds count for in the calibration table


class _SelfImproving:
    """Works with the skills it has adopted; tests a proposed one on the same goal.

    The answer is always that of the adopted skills: a trial changes nothing but the number of
    requests.
    """

    start = revisions.BEGINNER

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

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
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
        self._notebook = revisions.load_notebook(memory_dir, self.start)
        self._steps = 0
        on_pages = PAGES in names and APIS not in names
        plan = self._web_plan(brief) if on_pages else self._api_plan(brief, self._memory)
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
        adopted = self._notebook.habits
        facts = memory.apart()
        # the supervisor is not asked before both runs have fetched
        session = HttpSession(0, waits=adopted.waits)
        known = load_connectors(self._folder) if self._folder else ()
        vendors = _collections(brief.goal)
        first = ApiSolver(brief, memory, adopted, session, _by_title(known, vendors))
        gathered = yield from first.gather()
        shown = _signs(first.task, facts)
        refused = first.vendors.refusing_client()
        closed = vendors[refused.title] if refused else ()
        trial = revisions.relevant_trial(
            self._notebook, shown.union(map(revisions.closed_sign, closed))
        )
        left = int(brief.budgets.get("steps", STEPS) * TRIAL_SHARE) - self._steps
        if trial is not None:
            changed = revisions.changed_config(self._notebook, trial)
            tried = (trial.connector, *known) if trial.connector else known
            again = session.cached_copy(waits=changed.waits)
            second = ApiSolver(brief, facts, changed, again, _by_title(tried, vendors))
            yield PlanCall("wait", {"seconds": REST})
            ended = (yield from limited(second.gather(), max(0, left))) is not None
            old = share(audit(first.task))
            new = share(audit(second.task)) if ended else old
            self._recorded(trial, old, new)
        elif refused and not adopted.grants and not connector_for(known, closed):
            plan = self._discovery(refused, closed, session, known)
            yield from limited(plan, max(0, left))
        session.hints = brief.interventions_left
        first.task.doubts += [UNSOUND] * len(shown & UNSOUND_SIGNS)
        closing = yield from first.conclude(gathered=gathered)
        self._notebook = revisions.count_signs(self._notebook, shown)
        if self._revision is None:
            self._notebook, self._revision = self._proposed(self._notebook)
        return self._calibrated(closing, first.task)

    def _recorded(self, trial: revisions.RevisionTrial, old: float, new: float) -> None:
        """Record a pair; keep a connector that it made good."""
        self._notebook, event = revisions.record_pair(self._notebook, trial, old, new)
        adopted = event is not None and event.decision == "adopted"
        if adopted and trial.connector is not None and self._folder is not None:
            save_connector(self._folder, trial.connector)
        self._revision = event

    def _discovery(
        self,
        vendor: ProviderClient,
        closed: Sequence[str],
        session: HttpSession,
        known: Sequence[Connector],
    ) -> ToolPlan[bool]:
        """Work out how a vendor is opened, and propose that for its family."""
        entries = yield from session.entries()
        titles = (vendor.title, vendor.model.title)
        for name in candidates(titles, entries, "")[:MOST_KEYS]:
            secret = yield from session.secret(name)
            found = yield from work_out(session, vendor.access.closed, secret, closed)
            if found is not None:
                for other in known:
                    if other.name == found.name:
                        serves = tuple(sorted({*other.serves, *found.serves}))
                        found = msgspec.structs.replace(found, serves=serves)
                self._notebook, self._revision = revisions.propose_connector(self._notebook, found)
                return True
        return False

    def _web_plan(self, brief: Brief) -> ToolPlan[PlanCall]:
        """Reach a goal on a site, testing a change where one is proposed."""
        notebook = self._notebook
        revision: Revision | None = None
        trial = notebook.trials[0] if notebook.trials else None
        order = [notebook.habits]
        if trial is not None:
            changed = revisions.changed_config(notebook, trial)
            order = [changed, *order] if brief.seed % 2 else [*order, changed]
        solver = WebSolver(brief, order[0])
        outcome = yield from solver.attempt(again=False)
        shown = solver.signs
        if trial is not None and not (outcome.accepted or outcome.refusal):
            solver = WebSolver(brief, order[1])
            outcome = yield from solver.attempt(again=True)
            won = float(outcome.accepted)
            old, new = (0.0, won) if order[1] is not notebook.habits else (won, 0.0)
            notebook, revision = revisions.record_pair(notebook, trial, old, new)
        closing = yield from solver.conclude(outcome)
        notebook = revisions.count_signs(notebook, shown)
        if revision is None:
            notebook, revision = self._proposed(notebook)
        self._notebook, self._revision = notebook, revision
        return closing

    def _proposed(self, notebook: Notebook) -> tuple[Notebook, Revision | None]:
        """Return the notebook with a trial opened, where one is called for."""
        count = revisions.adopted_count(notebook, self.start)
        if count >= self._handicaps.revisions:
            return notebook, None
        return revisions.propose(notebook)

    def _calibrated(self, closing: PlanCall, task: TaskState) -> PlanCall:
        """Return the closing call with a calibrated probability.

        An answer that the supervisor gave in the end tells whether the agent's own would have been
        right: the calibration table counts these.
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


class _Discovering(_SelfImproving):
    """The same, with all skills but OAuth2 from the first day."""

    start = dataclasses.replace(ALL_SKILLS, grants=False)


def _collections(goal: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return what tells each vendor of a goal: descriptions of its collections.

    Those of several vendors, such as control totals, tell none.
    """
    owners: dict[str, set[str]] = {}
    for source in goal.get("sources", ()):
        owners.setdefault(str(source["resource"]), set()).add(str(source["provider"]))
    found: dict[str, tuple[str, ...]] = {}
    for text, titles in owners.items():
        for title in titles:
            own = (text,) if len(titles) == 1 else ()
            found[title] = (*found.get(title, ()), *own)
    return found


def _by_title(
    known: Sequence[Connector], vendors: Mapping[str, Sequence[str]]
) -> dict[str, Connector]:
    """Return the connector of each vendor that has one."""
    found = {title: connector_for(known, own) for title, own in vendors.items()}
    return {title: one for title, one in found.items() if one is not None}


def _signs(task: TaskState, facts: FactMemory) -> frozenset[str]:
    """Return the signs of missing skills that an episode showed."""
    needed = {source.id for source in task.sources if not source.optional}
    there = set(task.tables)
    statuses = task.session.statuses
    shown = {sign for status, sign in STATUS_SIGNS.items() if statuses[status]}
    if needed <= there:
        shown.discard("gone")  # it was found in the end
    checks = audit(task)
    short = set(failing_sources(checks, "whole"))
    if there & short:
        shown.add("short")
    if (there - short) & set(failing_sources(checks, "adds up")):
        shown.add("off total")
    if there & set(failing_sources(checks, "named")) or any(
        table.lead < float("inf") for table in task.tables.values()
    ):
        shown.add("renamed")
    met = any(facts.knows(source.provider) for source in task.sources)
    if met and shown & {"refused", "gone"}:
        shown.add("met before")
    return frozenset(shown)


AGENTS = (
    AgentCard(
        name="self_improving",
        about="Begins with few skills, tests one change of habit at a time.",
        make=_SelfImproving,
        options=knob_options("half_life", "calibration", "asks", "calls", "revisions"),
    ),
    AgentCard(
        name="discovering",
        about="Has every skill but OAuth2: it works out how vendors are opened.",
        make=_Discovering,
        suites=("toolquest",),
    ),
)
