"""The world of a crew (items, clauses, documents, a calendar) and its edits.

A clause is a requirement of an item whose value stands in a document of one role. A contested
clause stands in the documents of two, with different values and grounds; the stronger ground
(`GROUNDS`, first is strongest) decides. Times are ticks.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Literal

import msgspec
from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.canonical import record_digest
from owa_bench.drift.targets import jaccard_distance, named_part
from owa_bench.errors import DriftError

Shape = Literal["chain", "star", "tree", "mesh"]
Standing = Literal["holds", "former", "draft", "filler"]
# On which a value holds; first is strongest. "change": it replaces what stood there;
# "word": of the one who decides between readings.
GROUNDS = ("change", "word", "law", "contract", "habit", "reading")


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement: the value of a subject's attribute, and the role that knows it.

    `rival` is the value that `rival_owner` has, "" where nobody contests the clause. `settler` is
    the role that decides between readings, "" where grounds do. `checked`: a merge tells where it
    is missed.
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

    `terms` are words that everybody is told, by name; `hidden` are clauses that it must meet too,
    but which ones stands in a document. `priority` is the factor at which its effort counts. A
    `stamp` is text that its fragment must carry.
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

    "in_force": the last digit of its value at the end is even; "owner": a document of `role` states
    it; "contested": two roles' documents give different values.
    """

    name: str
    kind: Literal["in_force", "owner", "contested"]
    clause: str
    role: str = ""


class CrewWorld(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Everything that a crew works on, and the terms it works under.

    `deadline` is T, `work` B. A seat may send a message every `interval` ticks, of `tokens` at
    most. Reading another role's document takes `research` ticks, an arbitration `arbitration`.
    `away` are (seat, first tick, tick of return). `hours` are the ticks of work that each role may
    spend. `reviewed`: an item is merged only after somebody other than its author approved it.
    `asks_openly`: the task says who owns which clause. `human`: ticks between looks of a human
    colleague, 0: nobody. `notices` are lines to everybody, shown from when they are there.
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
    terms = (*("deadline", "hours", "interval", "tokens", "research", "seats"), "board_words")
    named = {(name, getattr(world, name)) for name in terms}
    return {*world.items, *world.clauses, *world.away, *world.notices, *lines, *named}


def clause_of(world: CrewWorld, target: str) -> Clause:
    """Return the clause that a target names.

    Args:
        world: Has the clause.
        target: "clause/name".
    Raises: DriftError: it names none.
    """
    name = named_part(target, "clause", [clause.name for clause in world.clauses])
    return next(clause for clause in world.clauses if clause.name == name)


def with_clause(world: CrewWorld, clause: Clause) -> CrewWorld:
    """Return the world with a clause in place of the one of its name.

    Args:
        world: The world.
        clause: The clause as it is from now on.
    """
    clauses = tuple(clause if c.name == clause.name else c for c in world.clauses)
    return replace(world, clauses=clauses)


def rewrite(
    world: CrewWorld, clause: Clause, edit: Callable[[DocumentLine], DocumentLine | None]
) -> CrewWorld:
    """Return the world with the sentences edited that state a clause.

    Args:
        world: The world.
        clause: The clause.
        edit: Gives the new sentence, None for none.
    Returns: The world; sentences on what does not hold stay.
    """

    def edited(line: DocumentLine) -> DocumentLine | None:
        own = (line.subject, line.attribute) == (clause.subject, clause.attribute)
        return edit(line) if own and line.standing == "holds" else line

    documents = []
    for document in world.documents:
        lines = tuple(new for line in document.lines if (new := edited(line)))
        documents.append(replace(document, lines=lines))
    return replace(world, documents=tuple(documents))


def add_line(world: CrewWorld, name: str, line: DocumentLine) -> CrewWorld:
    """Return the world with one more sentence at the end of a document.

    Args:
        world: The world.
        name: Of the document.
        line: The sentence.
    """
    documents = tuple(
        replace(d, lines=(*d.lines, line)) if d.name == name else d for d in world.documents
    )
    return replace(world, documents=documents)


def fresh_value(world: CrewWorld, clause: Clause, rng: Generator) -> str:
    """Return another value that a clause may have.

    Codes change their digits, numbers grow; what names one of several things (a part, an order)
    becomes what another clause of its kind says.

    Args:
        world: Knows the other values.
        clause: The clause.
        rng: Draws it.
    Raises: DriftError: there is no other.
    """
    value = clause.value
    if clause.attribute in ("tag", "key", "flag", "version"):
        return f"{value[:-3]}{_another_number(int(value[-3:]), rng)}"
    if clause.attribute == "kinds":
        return f"{value[:-3]}{_another_number(int(value[-3:]), rng)}"
    if clause.attribute in ("limit", "length", "gap", "cap", "bonus"):
        return str(int(value) + 1 + int(rng.integers(3)))
    if clause.attribute == "range":
        low, high = value.split(" and ")
        return f"{low} and {int(high) + 1 + int(rng.integers(9))}"
    if clause.attribute == "hours":
        open_for, first, period = value.split(" ")[::2]
        return f"{open_for} from {int(first) + 1} every {period}"
    if clause.attribute == "layout":
        return "count first" if value == "amount first" else "amount first"
    others = {
        c.value for c in world.clauses if c.attribute == clause.attribute and c.value != value
    }
    if not others:
        raise DriftError(f"`{clause.name}` has no other value in this world.")
    found = sorted(others)
    return found[int(rng.integers(len(found)))]


def _another_number(number: int, rng: Generator) -> int:
    """Return another number of three digits."""
    return 100 + (number - 100 + 1 + int(rng.integers(898))) % 900
