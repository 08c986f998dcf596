"""Edits of a crew's world that operators share."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.errors import DriftError
from owa_bench.worlds.crew import Clause, CrewWorld, DocumentLine


def named(target: str, prefix: str, names: Sequence[str]) -> str:
    """Return what a target names.

    Args:
        target: "prefix/name".
        prefix: The kind of target.
        names: The names there are.
    Returns: The name.
    Raises: DriftError: it names none of them.
    """
    kind, _, name = target.partition("/")
    if kind != prefix or name not in names:
        known = ", ".join(names) or "none"
        raise DriftError(f"`target` must be {prefix}/.. ({known}), got `{target}`.")
    return name


def clause_of(world: CrewWorld, target: str) -> Clause:
    """Return the clause that a target names.

    Args:
        world: Has the clause.
        target: "clause/name".
    Returns: The clause.
    Raises: DriftError: it names none.
    """
    name = named(target, "clause", [clause.name for clause in world.clauses])
    return next(clause for clause in world.clauses if clause.name == name)


def with_clause(world: CrewWorld, clause: Clause) -> CrewWorld:
    """Return the world with a clause in place of the one of its name.

    Args:
        world: The world.
        clause: The clause as it is from now on.
    Returns: The world.
    """
    clauses = tuple(clause if c.name == clause.name else c for c in world.clauses)
    return replace(world, clauses=clauses)


def rewrite(
    world: CrewWorld,
    clause: Clause,
    edit: Callable[[DocumentLine], DocumentLine | None],
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
    Returns: The world.
    """
    documents = tuple(
        replace(d, lines=(*d.lines, line)) if d.name == name else d
        for d in world.documents
    )
    return replace(world, documents=documents)


def fresh_value(world: CrewWorld, clause: Clause, rng: Generator) -> str:
    """Return another value that a clause may have.

    Codes change their digits, numbers grow; what names one of several things (a part,
    an order) becomes what another clause of its kind says.

    Args:
        world: Knows the other values.
        clause: The clause.
        rng: Draws it.
    Returns: The value.
    Raises: DriftError: there is no other.
    """
    value = clause.value
    if clause.attribute in ("tag", "key", "flag", "version"):
        return f"{value[:-3]}{_other(int(value[-3:]), rng)}"
    if clause.attribute == "kinds":
        return f"{value[:-3]}{_other(int(value[-3:]), rng)}"
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
        c.value
        for c in world.clauses
        if c.attribute == clause.attribute and c.value != value
    }
    if not others:
        raise DriftError(f"`{clause.name}` has no other value in this world.")
    found = sorted(others)
    return found[int(rng.integers(len(found)))]


def _other(number: int, rng: Generator) -> int:
    """Return another number of three digits."""
    return 100 + (number - 100 + 1 + int(rng.integers(898))) % 900
