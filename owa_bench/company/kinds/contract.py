"""The contract of a kind of case: what it draws, what is true of it, how it is judged.

A kind draws a `CaseWorld`: a company in which its facts are arranged. What is right follows from
the world by the kind's rules alone (`truth`), never from how the facts were arranged.
"""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import msgspec
import numpy as np

from owa_bench.canonical import record_digest
from owa_bench.company.language.policy import Policy, PolicyForm
from owa_bench.company.messages import CaseEvent, ChatFact, Mail, Page
from owa_bench.company.systems import SystemHost
from owa_bench.errors import UsageError

LEVELS = (1, 2, 3)
THETA = 0.95
JsonRow = Mapping[str, Any]


class NoWorldError(LookupError):
    """The company that was drawn has no facts that a case needs; another one is drawn."""


class CaseSpec(NamedTuple):
    """What a case is drawn from.

    Attributes:
        seed: Of all that is drawn; each redraw has another.
        level: 1 to 3.
        practice: Whether only words and forms of practice are drawn.
    """

    seed: int
    level: int
    practice: bool = False


class CaseWorld(msgspec.Struct, frozen=True, kw_only=True):
    """A company on a day with a case in it.

    Attributes:
        kind: Name of the kind.
        level: 1 to 3.
        firm: Name of the company.
        trade: What it sells.
        domain: Of its addresses.
        begins: When the case begins, by the company's clock.
        ends: When the desk closes; from then on nothing can be settled.
        tables: Rows by table, each with an `id`; a kind may have tables of its own.
        policy: What decides the case.
        text_seed: Draws the wordings of the policy, wherever it is written.
        pages: Of the wiki, the policy's own apart.
        mails: In the mailbox at the beginning, in order of time.
        events: In order of time.
        facts: What people know.
        hosts: The systems, with what they serve.
        matter: The kind's own struct.
    """

    kind: str
    level: int
    firm: str
    trade: str
    domain: str
    begins: dt.datetime
    ends: dt.datetime
    tables: dict[str, tuple[Any, ...]]
    policy: Policy
    text_seed: int
    practice: bool
    pages: tuple[Page, ...]
    mails: tuple[Mail, ...]
    events: tuple[CaseEvent, ...]
    facts: tuple[ChatFact, ...]
    hosts: tuple[SystemHost, ...]
    matter: Any

    def digest(self) -> str:
        """Return the SHA-256 of the world."""
        return record_digest(self)


class Harm(NamedTuple):
    """Something that nobody asked for.

    Attributes:
        name: In words, with the object's id.
        severity: 0.1 for money that is not due, 1 for a change, 2 for what cannot be undone.
    """

    name: str
    severity: float


class CaseState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a case stands.

    Attributes:
        minute: Minutes since it began.
        settled: The standing answer of each item, by the item's id.
        handed_in: Rows of each deliverable, by its name.
        served: "table/key" of every row and "page/slug", "mail/id" of every text that was served.
        happened: Names of the events so far.
        harms: In order.
        used: Counts of what is limited, such as test quotes.
        receipts: Of calls that wait for their confirmation.
    """

    minute: int = 0
    settled: dict[str, Any] = {}
    handed_in: dict[str, tuple[Any, ...]] = {}
    served: frozenset[str] = frozenset()
    happened: frozenset[str] = frozenset()
    harms: tuple[Harm, ...] = ()
    used: dict[str, int] = {}
    receipts: tuple[str, ...] = ()


class ItemTruth(NamedTuple):
    """What is right of one item.

    Attributes:
        id: Of the item.
        answer: By field.
        reasons: Classes that decide it; a plain item has the class "plain".
        rows: "table/key" of the rows that it follows from.
    """

    id: str
    answer: JsonRow
    reasons: tuple[str, ...]
    rows: frozenset[str]


class CaseTruth(NamedTuple):
    """What is right of a case.

    Attributes:
        items: In order.
        deliverables: Rows by the name of the deliverable.
    """

    items: tuple[ItemTruth, ...]
    deliverables: Mapping[str, tuple[JsonRow, ...]]


class CasePart(NamedTuple):
    """A part of the quality; the weights of a case sum to 1."""

    name: str
    weight: float
    value: float


class CaseProposition(NamedTuple):
    """A statement on a case that follows from what is served.

    Attributes:
        name: Of the statement.
        kind: Such as "amount_over".
        text: For the agent.
        truth: Whether it is so.
        careless: What a careless reader would answer; in half of all statements it is right.
    """

    name: str
    kind: str
    text: str
    truth: bool
    careless: bool


class PostResult(NamedTuple):
    """What a call that writes did.

    Attributes:
        status: Of HTTP.
        reply: As JSON.
        settled: Standing answers that change, by item; None withdraws one.
        harms: What nobody asked for.
        used: What is limited and was used, by name.
        rows: (table, row): records that change.
    """

    status: int
    reply: Any
    settled: Mapping[str, Any] = {}
    harms: Sequence[Harm] = ()
    used: Mapping[str, int] = {}
    rows: Sequence[tuple[str, Any]] = ()


class CaseKind(ABC):
    """A kind of case.

    Attributes:
        name: Of the kind.
        form: Of its policies.
        policy_slug: Of the page that holds the policy; its amendments are on "SLUG-changes".
        policy_owner: Role of the person who keeps that page.
        sources: Names of the sources that `truth` can be blind to; each is a class of trap.
        proposition_kinds: Of its statements.
        deliverables: Columns of each deliverable that is handed in.
    """

    name: str
    form: PolicyForm
    policy_slug: str
    policy_owner: str
    sources: tuple[str, ...]
    proposition_kinds: tuple[str, ...]
    deliverables: Mapping[str, tuple[str, ...]]

    @abstractmethod
    def draw(self, spec: CaseSpec) -> CaseWorld:
        """Return a world.

        Args:
            spec: What it is drawn from.
        Raises: NoWorldError: The company has no fitting facts.
        """

    @abstractmethod
    def brief(self, world: CaseWorld) -> str:
        """Return the task as the agent reads it.

        Args:
            world: The one that is played.
        """

    @abstractmethod
    def truth(
        self, world: CaseWorld, happened: Set[str] = frozenset(), blind: Set[str] = frozenset()
    ) -> CaseTruth:
        """Return what is right, by the rules and the records.

        Args:
            world: The one that is played.
            happened: Names of the events that have happened.
            blind: Sources that are not looked at: what a reader without them would find.
        """

    @abstractmethod
    def post(self, world: CaseWorld, state: CaseState, call: str, body: Any) -> PostResult:
        """Return what a call that writes does.

        Args:
            world: The one that is played.
            state: Before the call.
            call: Name of the call, as the hosts declare it.
            body: Of the request, as JSON.
        """

    @abstractmethod
    def parts(self, world: CaseWorld, truth: CaseTruth, state: CaseState) -> tuple[CasePart, ...]:
        """Return the parts of the quality, frame apart.

        Args:
            world: The one that is played.
            truth: What is right now.
            state: At the end.
        """

    @abstractmethod
    def propositions(self, world: CaseWorld) -> tuple[CaseProposition, ...]:
        """Return the statements that the agent is asked about.

        Args:
            world: The one that is played; its events are taken as happened.
        """

    @abstractmethod
    def solution(
        self, world: CaseWorld, truth: CaseTruth
    ) -> tuple[tuple[tuple[str, Any], ...], Mapping[str, tuple[JsonRow, ...]]]:
        """Return the calls that write what is right, and the deliverables.

        Args:
            world: The one that is played.
            truth: What is right now.
        Returns: (call, body) in order, and rows by deliverable.
        """

    def amendable(self, world: CaseWorld) -> tuple[str, ...]:
        """Return the rules of the policy that drift may amend; none unless a kind says so.

        Args:
            world: Any of the kind.
        """
        return ()

    def amended_values(
        self, world: CaseWorld, rule: str, rng: np.random.Generator
    ) -> dict[str, Any]:
        """Return new values of a rule that may be amended.

        Args:
            world: Any of the kind.
            rule: One of `amendable`.
            rng: Draws them.
        """
        raise UsageError(f"The policy of the kind `{self.name}` is not amended by drift.")

    def standing_harms(
        self, world: CaseWorld, truth: CaseTruth, state: CaseState
    ) -> tuple[Harm, ...]:
        """Return harms of what stands at the end, beside those of single acts.

        Args:
            world: The one that is played.
            truth: What is right now.
            state: At the end.
        """
        return ()

    def right(self, world: CaseWorld, truth: CaseTruth, state: CaseState) -> frozenset[str]:
        """Return the items whose standing answer is right.

        Args:
            world: The one that is played.
            truth: What is right now.
            state: At any time.
        """
        return frozenset(
            item.id for item in truth.items if state.settled.get(item.id) == dict(item.answer)
        )

    def state_of(self, world: CaseWorld, truth: CaseTruth, happened: Set[str]) -> CaseState:
        """Return the state of somebody who answers so.

        Args:
            world: The one that is played.
            truth: What is answered.
            happened: Names of the events so far.
        """
        return CaseState(
            settled={item.id: dict(item.answer) for item in truth.items},
            handed_in={name: tuple(rows) for name, rows in truth.deliverables.items()},
            happened=frozenset(happened),
        )
