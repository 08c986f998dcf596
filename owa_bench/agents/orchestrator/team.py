"""Roles of the orchestrator and the message board between them.

A scout finds providers' documents, a fetcher per provider fetches tables, a reconciler names their
fields and adds them up, a verifier checks them. The planner, in `agent.py`, leads them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urljoin

from owa_bench.agents.solvers import openapi, probing
from owa_bench.agents.solvers.api_solver.http_session import ALL_SKILLS, HttpSession, SkillConfig
from owa_bench.agents.solvers.api_solver.providers import (
    DocumentSearch,
    ProviderClient,
    ProviderClients,
)
from owa_bench.agents.solvers.api_solver.resource_table import GoalSource, ResourceTable
from owa_bench.agents.solvers.api_solver.self_checks import audit
from owa_bench.agents.solvers.api_solver.task_state import TaskState
from owa_bench.agents.solvers.memory import FactMemory
from owa_bench.agents.solvers.openapi import ApiModel
from owa_bench.agents.solvers.planning import ToolPlan, together
from owa_bench.interfaces import Brief
from owa_bench.records.events import Message

PLANNER, SCOUT = "planner", "scout"
RECONCILER, VERIFIER = "reconciler", "verifier"
FETCH_AGAIN = ("there", "whole")  # checks that a fetcher can repair
LEAST = {"meets": 0.6}  # a check is failed under this, others under 1: clues are weak
# Customary places of documents, for providers whose entry leads nowhere.
CUSTOMARY = ("/openapi.json", "/", "/docs", "/.well-known/api-catalog")
CHARACTERS_IN_TOKEN = 4


class BoardMessage(NamedTuple):
    """A message that arrived: its sender, its text and what it is about."""

    sender: str
    text: str
    subject: Any


class MessageBoard:
    """Carries messages between roles.

    `holders` is how many hold roles at most (None: every role has its own): the first roles get a
    holder each, the last holder has all that remain. Only a message between two holders is
    recorded.
    """

    def __init__(self, roles: Sequence[str], holders: int | None = None) -> None:
        last = len(roles) if holders is None else max(1, holders)
        self._holders = {role: min(i, last - 1) for i, role in enumerate(roles)}
        self._waiting: dict[str, list[BoardMessage]] = {role: [] for role in roles}
        self._sent: list[Message] = []

    @property
    def holders(self) -> int:
        """How many hold roles."""
        return len(set(self._holders.values()))

    def post(self, sender: str, receiver: str, text: str, subject: Any = None) -> None:
        """Send a message; it arrives at once.

        Args:
            sender: role that sends it.
            receiver: role that it is for.
            text: as it is recorded.
            subject: what it is about, for the receiver's program.
        """
        self._waiting[receiver].append(BoardMessage(sender, text, subject))
        if self._holders[sender] != self._holders[receiver]:
            self._sent.append(_message_event(sender, receiver, text))

    def receive(self, role: str) -> list[BoardMessage]:
        """Return the messages for a role, once."""
        messages, self._waiting[role] = self._waiting[role], []
        return messages

    def take_sent(self) -> tuple[Message, ...]:
        """Return the events of the messages since the last call."""
        events, self._sent = self._sent, []
        return tuple(events)


def _message_event(sender: str, receiver: str, text: str) -> Message:
    """Return the event of a message; the harness keeps its text as a blob."""
    tokens = -(-len(text) // CHARACTERS_IN_TOKEN)
    return Message(step=0, sender=sender, receivers=(receiver,), tokens=tokens, digest=text)


class DocumentLocator:
    """Finds a provider's documents and remembers where they are.

    It asks in this order: models that another role has sent (`received`, by title), memory, the
    entry, customary places. A provider without documents is a model without operations, of its page
    for people.
    """

    def __init__(self, session: HttpSession, memory: FactMemory) -> None:
        self.received: dict[str, ApiModel] = {}
        self._session = session
        self._memory = memory
        self._search = DocumentSearch(session)

    def find(self, title: str, address: str) -> ToolPlan[ApiModel | None]:
        """Look for a provider's documents.

        Args:
            title: of the provider.
            address: its entry.
        Returns: The model of its API; None where nothing is found.
        """
        if title in self.received:
            return self.received[title]
        model = yield from self._remembered(title)
        customary = [urljoin(address, place) for place in CUSTOMARY]
        for place in [] if model else dict.fromkeys((address, *customary)):
            found = yield from self._search.find(title, place)
            if title in self._search.places:
                self._memory.learn(title, "documents", self._search.places[title])
                return found
            model = model or found
        return model

    def _remembered(self, title: str) -> ToolPlan[ApiModel | None]:
        """Return the model at the remembered place, if it is the provider's."""
        place = self._memory.recall(title, "documents")
        if place is None:
            return None
        reply = yield from self._session.http("GET", place)
        if not reply.ok or not openapi.is_openapi(reply.body):
            return None
        model = openapi.parse(reply.body, place)
        return model if title in model.title else None


class FailedCheck(NamedTuple):
    """A check that a table does not pass."""

    source: str
    kind: str


class Fetcher:
    """Fetches every table of one provider."""

    def __init__(
        self, name: str, title: str, session: HttpSession, memory: FactMemory, registry: str | None
    ) -> None:
        self.name = name
        self.title = title
        self._session, self._memory, self._registry = session, memory, registry
        self._finder = DocumentLocator(session, memory)
        self.clients = self._new_clients()

    def read_messages(self, board: MessageBoard) -> list[GoalSource]:
        """Read the messages; return the sources that are to be fetched again."""
        again = []
        for message in board.receive(self.name):
            if message.sender == SCOUT:
                self._finder.received[self.title] = message.subject
            elif message.sender == VERIFIER:
                again.append(message.subject)
        return again

    def fetch(self, sources: Sequence[GoalSource]) -> ToolPlan[dict[str, ResourceTable]]:
        """Return the tables of those sources that can be fetched."""
        tables: dict[str, ResourceTable] = {}
        for source in sources:
            table = yield from self.clients.fetch(source)
            if table is not None:
                tables[source.id] = table
        return tables

    def sign_out(self) -> None:
        """Drop credentials and tokens: the next fetch signs in again."""
        self.clients = self._new_clients()

    def _new_clients(self) -> ProviderClients:
        return ProviderClients(self._session, self._memory, self._registry, self._finder)


class Team:
    """Every role but the planner, working on one task.

    Tables are shared (`TaskState.tables`); everything else that one role knows of another's work
    comes over the board.
    """

    def __init__(
        self,
        brief: Brief,
        memory: FactMemory,
        holders: int | None = None,
        skills: SkillConfig = ALL_SKILLS,
    ) -> None:
        self.session = HttpSession(0)  # the planner alone asks the supervisor
        self.task = TaskState(brief, self.session, skills)
        registry = brief.goal.get("registry")
        titles = list(dict.fromkeys(source.provider for source in self.task.sources))
        self.fetchers = {
            title: Fetcher(f"fetcher {i + 1}", title, self.session, memory, registry)
            for i, title in enumerate(titles)
        }
        names = (fetcher.name for fetcher in self.fetchers.values())
        roles = (PLANNER, SCOUT, *names, RECONCILER, VERIFIER)
        self.board = MessageBoard(roles, holders)
        self._registry = registry
        self._finder = DocumentLocator(self.session, memory)

    @property
    def infeasible(self) -> bool:
        """Whether documents were read that lack what a goal needs."""
        return any(fetcher.clients.infeasible for fetcher in self.fetchers.values())

    def scout(self) -> ToolPlan[None]:
        """Find the providers that the planner named; send them to their fetchers."""
        for message in self.board.receive(SCOUT):
            source: GoalSource = message.subject
            entry = source.entry or self._registry
            if entry is None:
                continue
            model = yield from self._finder.find(source.provider, entry)
            if model is not None:
                receiver = self.fetchers[source.provider].name
                text = f"{source.provider} answers at {model.server}"
                self.board.post(SCOUT, receiver, text, model)

    def fetch(self) -> ToolPlan[None]:
        """Fetch every provider's tables, in turns if there are several holders."""
        work = []
        for fetcher in self.fetchers.values():
            fetcher.read_messages(self.board)
            own = [s for s in self.task.sources if s.provider == fetcher.title]
            work.append(fetcher.fetch(own))
        if self.board.holders == 1:
            results = []
            for plan in work:
                results.append((yield from plan))
        else:
            results = yield from together(work)
        for fetcher, tables in zip(self.fetchers.values(), results, strict=True):
            self.task.tables |= tables
            counts = ", ".join(f"{n} {len(s.fetched.rows)}" for n, s in tables.items())
            text = f"rows fetched from {fetcher.title}: {counts}"
            self.board.post(fetcher.name, RECONCILER, text)

    def reconcile(self) -> None:
        """Name the fields of the shared tables and add them up."""
        messages = self.board.receive(RECONCILER)
        self.task.settle()
        after = f" after {len(messages)} notes" if messages else ""
        text = f"{len(self.task.tables)} tables are named and added up{after}"
        self.board.post(RECONCILER, VERIFIER, text)

    def verify(self) -> list[FailedCheck]:
        """Return the failed checks; those that a role can repair are sent back."""
        self.board.receive(VERIFIER)
        checks = audit(self.task).items()
        values = ((FailedCheck(*name.split(" ", 1)), value) for name, value in checks)
        failed = [c for c, value in values if value < LEAST.get(c.kind, 1.0)]
        sources = {source.id: source for source in self.task.sources}
        for source, kind in failed:
            fetcher = self.fetchers[sources[source].provider].name
            receiver = fetcher if kind in FETCH_AGAIN else RECONCILER
            text = f"{source} fails its check: {kind}"
            self.board.post(VERIFIER, receiver, text, sources[source])
        text = f"{len(failed)} checks failed" if failed else "every check passed"
        self.board.post(VERIFIER, PLANNER, text)
        return failed

    def refetch(self) -> ToolPlan[bool]:
        """Fetch again what was sent back; return whether anything was."""
        any_again = False
        for fetcher in self.fetchers.values():
            again = list(dict.fromkeys(s.id for s in fetcher.read_messages(self.board)))
            own = [s for s in self.task.sources if s.id in again]
            if own:
                any_again = True
                fetcher.sign_out()
                self.task.tables |= yield from fetcher.fetch(own)
                text = f"fetched again: {', '.join(again)}"
                self.board.post(fetcher.name, RECONCILER, text)
        return any_again

    def find_changed(self) -> ToolPlan[list[str]]:
        """Fetch the first page of each table again; return the ids of those changed."""
        changed = []
        for source in self.task.sources:
            table = self.task.tables.get(source.id)
            client = yield from self.client(source)
            if table is None or client is None or source.is_control:
                continue
            reply = yield from client.access.request("GET", table.fetched.address)
            page = probing.find_list(reply.body) if reply.ok else None
            if page is None or list(page.rows) != table.fetched.rows[: len(page.rows)]:
                changed.append(source.id)
        return changed

    def client(self, source: GoalSource) -> ToolPlan[ProviderClient | None]:
        """Return the client of a source's provider as its fetcher has it."""
        return (yield from self.fetchers[source.provider].clients.open(source))
