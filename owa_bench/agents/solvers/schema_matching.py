"""Schema matching: documented fields to the served names that replaced them."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from owa_bench.agents.solvers import documents
from owa_bench.agents.solvers.openapi import Property

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
SAMPLE = 50
WORDS = 2.0  # weight of shared words against likeness of letters
SHAPE = 0.5  # what a matching shape of the values is worth
LISTED = 2.0  # what values that the documents list are worth
MOST_TRIED = 5000  # ways of naming that are weighed against each other


class SchemaFit(NamedTuple):
    """How well each undocumented name fits each documented field that is missing."""

    present: frozenset[str]
    missing: tuple[str, ...]
    unmatched: tuple[str, ...]
    scores: Mapping[tuple[str, str], float]

    @property
    def options(self) -> dict[str, list[str]]:
        """The names that each missing field may go by, best first."""
        return {
            name: sorted(
                (new for old, new in self.scores if old == name),
                key=lambda new: (-self.scores[name, new], new),
            )
            for name in self.missing
        }


class Naming(NamedTuple):
    """Wire names by documented name, and the names that were guessed."""

    names: Mapping[str, str]
    guessed: frozenset[str]


def fit(documented: Sequence[Property], rows: Sequence[Mapping[str, Any]]) -> SchemaFit:
    """Score each undocumented name against each missing documented field.

    Args:
        documented: the fields of the documents.
        rows: the rows as served.
    Returns: Which fields are present, missing and unmatched, with scores.
    """
    served = list(dict.fromkeys(name for row in rows[:SAMPLE] for name in row))
    known = {prop.name for prop in documented}
    missing = [prop for prop in documented if prop.name not in served]
    left = [name for name in served if name not in known]
    scores = {
        (prop.name, name): score
        for prop in missing
        for name in left
        if (score := fitness(prop, name, column(rows, name))) is not None
    }
    names = tuple(prop.name for prop in missing)
    return SchemaFit(frozenset(known & set(served)), names, tuple(left), scores)


def resolve(documented: Sequence[Property], rows: Sequence[Mapping[str, Any]]) -> Naming:
    """Return what each documented field is called in `rows`.

    A present field keeps its name. A missing one gets the undocumented name of its type that is
    most similar to its name and description.

    Args:
        documented: the fields of the documents.
        rows: the rows as served.
    Returns: Names by documented name, and which were guessed; absent fields have none.
    """
    found = fit(documented, rows)
    chosen = documents.assign(found.scores, found.missing)
    return Naming(names={name: name for name in found.present} | chosen, guessed=frozenset(chosen))


def namings(found: SchemaFit) -> Iterator[dict[str, str]]:
    """Yield the ways to name the missing fields, as full as possible, likely first."""
    options = found.options
    order = sorted(found.missing, key=lambda name: (len(options[name]), name))
    spare = max(0, len(order) - len(found.unmatched))
    spare = max(spare, sum(not options[name] for name in order))
    return islice(_extend(order, options, {}, spare), MOST_TRIED)


def _extend(
    order: Sequence[str], options: Mapping[str, Sequence[str]], chosen: dict[str, str], spare: int
) -> Iterator[dict[str, str]]:
    """Yield the completions of `chosen`; up to `spare` fields may stay unnamed."""
    if not order:
        yield dict(chosen)
        return
    first, rest = order[0], order[1:]
    for name in options[first]:
        if name not in chosen.values():
            yield from _extend(rest, options, {**chosen, first: name}, spare)
    if spare:
        yield from _extend(rest, options, chosen, spare - 1)


def column(rows: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    """Return the values of a field.

    Args:
        rows: the rows as served.
        name: the field.
    Returns: Its values; absent and null ones are left out.
    """
    return [row[name] for row in rows if row.get(name) is not None]


def fitness(prop: Property, name: str, values: Sequence[Any]) -> float | None:
    """Return the similarity of a served field to a documented one.

    Args:
        prop: the documented field.
        name: the served name.
        values: its values.
    Returns: A score of at least 0, None if the type rules it out.
    """
    sample = values[:SAMPLE]
    if not all(_is_type(value, prop.type) for value in sample):
        return None
    dated = bool(sample) and all(_DATE.match(str(value)) for value in sample)
    if prop.type and dated != (prop.format in ("date", "date-time")) and sample:
        return None
    text = f"{prop.name} {prop.about}"
    words = documents.words(name)
    shared = len(words & documents.words(text)) / max(1, len(words))
    likeness = difflib.SequenceMatcher(None, name.lower(), prop.name.lower()).ratio()
    listed = LISTED * any(value in prop.choices for value in sample)
    return WORDS * shared + likeness + SHAPE + listed


def _is_type(value: Any, kind: str) -> bool:
    """Return whether a JSON value has the documented type."""
    if isinstance(value, bool):
        return kind in ("boolean", "")
    return isinstance(value, _TYPES.get(kind, (object,)))
