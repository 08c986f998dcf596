"""The world of a crew: items of work, clauses known to roles, documents, a calendar.

A clause is a requirement of an item whose value stands in a document of one role. A
contested clause stands in the documents of two, with different values and grounds; the
stronger ground (`GROUNDS`, first is strongest) decides. Times are ticks.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

import msgspec

from owa_bench.canonical import record_digest
from owa_bench.worlds.fact_sets import jaccard_distance

Shape = Literal["chain", "star", "tree", "mesh"]
Standing = Literal["holds", "former", "draft", "filler"]
# On which a value holds; first is strongest. "change": it replaces what stood there;
# "word": of the one who decides between readings.
GROUNDS = ("change", "word", "law", "contract", "habit", "reading")


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement: the value of a subject's attribute, and the role that knows it.

    `rival` is the value that `rival_owner` has, "" where nobody contests the clause.
    `settler` is the role that decides between readings, "" where grounds do.
    `checked`: a merge tells where it is missed.
    """

    subject: str
    attribute: str
    value: str
    owner: str
    ground: str = ""
    rival: str = ""
    rival_owner: str = ""
    rival_ground: str = ""
    settler: str = ""
    checked: bool = False

    @property
    def name(self) -> str:
        """The name by which tools and items call it."""
        return f"{self.subject}.{self.attribute}"

    @property
    def sides(self) -> tuple[str, ...]:
        """The roles that have a value of it."""
        sides = (self.owner, self.rival_owner, self.settler)
        return tuple(role for role in sides if role)


class CrewItem(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work: who does it, how long it takes, what it needs and must meet.

    `terms` are words that everybody is told, by name; `hidden` are clauses that it must
    meet too, but which ones stands in a document. `priority` is the factor at which its
    effort counts. A `stamp` is text that its fragment must carry.
    """

    name: str
    role: str
    effort: int
    needs: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    terms: tuple[tuple[str, str], ...] = ()
    hidden: tuple[str, ...] = ()
    priority: int = 1
    stamp: str = ""


class DocumentLine(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of a document; what does not hold is there to be told apart.

    `halves`: a number is written in half units.
    """

    subject: str = ""
    attribute: str = ""
    value: str = ""
    standing: Standing = "holds"
    ground: str = ""
    halves: bool = False
    style: int = 0


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A document of a role."""

    name: str
    owner: str
    lines: tuple[DocumentLine, ...]


class CrewClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A proposition about a clause, of which an agent may state p.

    "in_force": the last digit of its value at the end is even; "owner": a document of
    `role` states it; "contested": two roles' documents give different values.
    """

    name: str
    kind: Literal["in_force", "owner", "contested"]
    clause: str
    role: str = ""


class CrewWorld(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Everything that a crew works on, and the terms it works under.

    `deadline` is T, `work` B. A seat may send a message every `interval` ticks, of
    `tokens` at most. Reading another role's document takes `research` ticks, an
    arbitration `arbitration`. `away` are (seat, first tick, tick of return). `hours`
    are the ticks of work that each role may spend. `reviewed`: an item is merged only
    after somebody other than its author approved it. `asks_openly`: the task says who
    owns which clause. `human`: ticks between looks of a human colleague, 0: nobody.
    `notices` are lines to everybody, shown from when they are there.
    `board_words` are (word, other word) by which the board puts things.
    """

    family: str
    tier: int
    code: str
    shape: Shape
    seats: tuple[str, ...]
    items: tuple[CrewItem, ...]
    clauses: tuple[Clause, ...]
    documents: tuple[Document, ...]
    deadline: int
    work: int
    hours: int
    interval: int
    tokens: int
    research: int
    arbitration: int
    away: tuple[tuple[str, int, int], ...] = ()
    reviewed: bool = False
    asks_openly: bool = True
    notices: tuple[DocumentLine | str, ...] = ()
    board_words: tuple[tuple[str, str], ...] = ()
    claims: tuple[CrewClaim, ...] = ()
    human: int = 0

    @cached_property
    def item_of(self) -> Mapping[str, CrewItem]:
        """The items by name."""
        return {item.name: item for item in self.items}

    @cached_property
    def clause_of(self) -> Mapping[str, Clause]:
        """The clauses by name."""
        return {clause.name: clause for clause in self.clauses}

    @cached_property
    def contested(self) -> Mapping[str, str]:
        """The values of contested clauses by name."""
        return {clause.name: clause.value for clause in self.clauses if clause.rival}

    def digest(self) -> str:
        """Return the SHA-256 of the world."""
        return record_digest(self)


def distance(a: CrewWorld, b: CrewWorld) -> float:
    """Return the share of items, clauses, sentences and terms in which worlds differ.

    Args:
        a: One world.
        b: The other.
    Returns: The Jaccard distance of their entries: 0 for equal worlds.
    """
    return jaccard_distance(_entries(a), _entries(b))


def _entries(world: CrewWorld) -> set[object]:
    lines = {(d.name, line) for d in world.documents for line in d.lines}
    terms = (
        *("deadline", "hours", "interval", "tokens", "research", "seats"),
        "board_words",
    )
    named = {(name, getattr(world, name)) for name in terms}
    return {*world.items, *world.clauses, *world.away, *world.notices, *lines, *named}
