"""The roles at work: who looks, who fetches, who checks, what they tell each other.

All roles see the tables (`TaskState.tables`); everything else that one role knows of
another's work comes over the board.
"""

from collections.abc import Sequence
from typing import NamedTuple

from owa_bench.agents.orchestrator.board import Board
from owa_bench.agents.orchestrator.connectors import Connectors
from owa_bench.interfaces import Brief
from owa_bench.skills import probing
from owa_bench.skills.api_solver.http_session import HttpSession
from owa_bench.skills.api_solver.providers import ProviderClient, ProviderClients
from owa_bench.skills.api_solver.resource_table import GoalSource, ResourceTable
from owa_bench.skills.api_solver.self_checks import audit
from owa_bench.skills.api_solver.task_state import TaskState
from owa_bench.skills.memory import FactMemory
from owa_bench.skills.planning import ToolPlan, together

PLANNER, SCOUT = "planner", "scout"
RECONCILER, VERIFIER = "reconciler", "verifier"
FETCH_AGAIN = ("there", "whole")  # faults that a fetcher can mend
LEAST = {"meets": 0.6}  # a check is failed under this, others under 1: clues are weak


class Fault(NamedTuple):
    """A check that a table does not pass."""

    source: str
    kind: str


class Fetcher:
    """Fetches every table of one vendor."""

    def __init__(
        self,
        name: str,
        title: str,
        desk: HttpSession,
        memory: FactMemory,
        registry: str | None,
    ) -> None:
        self.name = name
        self.title = title
        self._desk, self._memory, self._registry = desk, memory, registry
        self._connectors = Connectors(desk, memory)
        self.vendors = self._fresh()

    def hear(self, board: Board) -> list[GoalSource]:
        """Take in the notes; return the sources that are to be fetched again."""
        again = []
        for note in board.take(self.name):
            if note.sender == SCOUT:
                self._connectors.heard[self.title] = note.thing
            elif note.sender == VERIFIER:
                again.append(note.thing)
        return again

    def fetch(
        self, sources: Sequence[GoalSource]
    ) -> ToolPlan[dict[str, ResourceTable]]:
        """Return the sheets of those sources that can be had."""
        sheets: dict[str, ResourceTable] = {}
        for source in sources:
            found = yield from self.vendors.fetch(source)
            if found is not None:
                sheets[source.id] = found
        return sheets

    def forget(self) -> None:
        """Drop credentials and tokens: the next fetch begins anew."""
        self.vendors = self._fresh()

    def _fresh(self) -> ProviderClients:
        return ProviderClients(
            self._desk, self._memory, self._registry, finder=self._connectors
        )


class Crew:
    """Every role but the planner, working on one case."""

    def __init__(self, brief: Brief, memory: FactMemory) -> None:
        self.desk = HttpSession(0)  # the planner alone asks the supervisor
        self.case = TaskState(brief, self.desk)
        registry = brief.goal.get("registry")
        titles = list(dict.fromkeys(source.provider for source in self.case.sources))
        self.fetchers = {
            title: Fetcher(f"fetcher {i + 1}", title, self.desk, memory, registry)
            for i, title in enumerate(titles)
        }
        names = (fetcher.name for fetcher in self.fetchers.values())
        roles = (PLANNER, SCOUT, *names, RECONCILER, VERIFIER)
        self.board = Board(roles, brief.role_cap, muted=brief.muted)
        self._registry = registry
        self._connectors = Connectors(self.desk, memory)

    @property
    def infeasible(self) -> bool:
        """Whether documents were read that lack what a goal needs."""
        return any(fetcher.vendors.infeasible for fetcher in self.fetchers.values())

    def scout(self) -> ToolPlan[None]:
        """Find the vendors that the scout was asked to find; tell their fetchers."""
        for note in self.board.take(SCOUT):
            source: GoalSource = note.thing
            entry = source.entry or self._registry
            if entry is None:
                continue
            model = yield from self._connectors.find(source.provider, entry)
            if model is not None:
                receiver = self.fetchers[source.provider].name
                words = f"{source.provider} answers at {model.server}"
                self.board.post(SCOUT, receiver, words, model)

    def fetch(self) -> ToolPlan[None]:
        """Let every fetcher fetch its vendor's tables, side by side if several hold."""
        work = []
        for fetcher in self.fetchers.values():
            fetcher.hear(self.board)
            own = [s for s in self.case.sources if s.provider == fetcher.title]
            work.append(fetcher.fetch(own))
        if self.board.holders == 1:
            found = []
            for plan in work:
                found.append((yield from plan))
        else:
            found = yield from together(work)
        for fetcher, sheets in zip(self.fetchers.values(), found, strict=True):
            self.case.tables |= sheets
            counted = ", ".join(f"{n} {len(s.fetched.rows)}" for n, s in sheets.items())
            words = f"rows fetched from {fetcher.title}: {counted}"
            self.board.post(fetcher.name, RECONCILER, words)

    def reconcile(self) -> None:
        """Name and add up what lies on the bench; tell the verifier."""
        notes = self.board.take(RECONCILER)
        self.case.settle()
        told = f" after {len(notes)} notes" if notes else ""
        words = f"{len(self.case.tables)} tables are named and added up{told}"
        self.board.post(RECONCILER, VERIFIER, words)

    def verify(self) -> list[Fault]:
        """Return the faults of the tables; those that can be mended are sent back."""
        self.board.take(VERIFIER)
        checks = audit(self.case).items()
        held = ((Fault(*name.split(" ", 1)), value) for name, value in checks)
        faults = [f for f, value in held if value < LEAST.get(f.kind, 1.0)]
        sources = {source.id: source for source in self.case.sources}
        for source, kind in faults:
            owner = self.fetchers[sources[source].provider].name
            receiver = owner if kind in FETCH_AGAIN else RECONCILER
            words = f"{source} fails its check: {kind}"
            self.board.post(VERIFIER, receiver, words, sources[source])
        words = f"{len(faults)} checks failed" if faults else "every check passed"
        self.board.post(VERIFIER, PLANNER, words)
        return faults

    def mend(self) -> ToolPlan[bool]:
        """Fetch again what was sent back; return whether anything was."""
        any_again = False
        for fetcher in self.fetchers.values():
            again = list(dict.fromkeys(s.id for s in fetcher.hear(self.board)))
            own = [s for s in self.case.sources if s.id in again]
            if own:
                any_again = True
                fetcher.forget()
                self.case.tables |= yield from fetcher.fetch(own)
                words = f"fetched again: {', '.join(again)}"
                self.board.post(fetcher.name, RECONCILER, words)
        return any_again

    def reread(self) -> ToolPlan[list[str]]:
        """Look at the first page of each table again; return those that changed."""
        changed = []
        for source in self.case.sources:
            sheet = self.case.tables.get(source.id)
            vendor = yield from self.vendor(source)
            if sheet is None or vendor is None or source.is_control:
                continue
            reply = yield from vendor.access.request("GET", sheet.fetched.address)
            found = probing.find_list(reply.body) if reply.ok else None
            if (
                found is None
                or list(found.rows) != sheet.fetched.rows[: len(found.rows)]
            ):
                changed.append(source.id)
        return changed

    def vendor(self, source: GoalSource) -> ToolPlan[ProviderClient | None]:
        """Return the vendor of a source as its fetcher knows it."""
        return (yield from self.fetchers[source.provider].vendors.open(source))
