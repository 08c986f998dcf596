"""Tables as rules read them, and what their columns must hold.

A table is a list of rows {role: value}; money is in cents and a repeated posting stands
once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

RoleRow = Mapping[str, Any]
Tables = Mapping[str, Sequence[RoleRow]]
AnswerRows = list[list[Any]]


class Clue(NamedTuple):
    """What a role's values are: unique, below, holds, kin, adds, like or meets.

    `what` is another role (below), a key of the rule (holds), "source.role" (kin: keys,
    like: amounts most of which are equal), the role that tells apart the lines of
    periods that meet (meets; "" for one line).
    """

    role: str
    kind: str
    what: str = ""


Clues = Mapping[str, tuple[Clue, ...]]


class FamilyRule(NamedTuple):
    """What a family of goals asks for, and clues to the names of its columns."""

    compute: Callable[[Tables, Mapping[str, Any]], AnswerRows]
    clues: Clues


def clues(text: str) -> tuple[Clue, ...]:
    """Return the clues of a source, written `role kind what; role kind`.

    >>> clues("id unique; account kin accounts.id")[1].what
    'accounts.id'
    """
    return tuple(Clue(*part.split()) for part in text.split(";"))


def linked(tables: Tables, source: str, key: str, value: str) -> dict[Any, Any]:
    """Return key -> value from the linking table, or from `source` itself."""
    return {row[key]: row[value] for row in tables.get("links") or tables[source]}
