"""A family of MultiCrew: draws, a form of fragments, and an acceptance.

A fragment is what a seat hands in for an item. It is accepted by what it does: the
family runs it against the values that hold, in the light of the fragments it builds on.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from owa_bench.envs.multicrew.draws import CrewDraws
from owa_bench.worlds.crew import Clause, CrewItem

Fragment = Mapping[str, Any]
Values = Mapping[str, str]  # name of a clause to its value


class Content(NamedTuple):
    """What a family draws: items with clauses, and wrong values of each clause."""

    items: tuple[CrewItem, ...]
    clauses: tuple[Clause, ...]
    wrong: Mapping[str, str]


class ClauseDraft:
    """Clauses as a family draws them, each with its wrong value."""

    def __init__(self) -> None:
        self._clauses: list[Clause] = []
        self._wrong: dict[str, str] = {}

    def add(
        self, subject: str, attribute: str, owner: str, value: str, other: str
    ) -> str:
        """Add a clause.

        Args:
            subject: The item, site, part or module that it is about.
            attribute: What it says of it.
            owner: The role that knows it.
            value: What holds.
            other: A wrong value.
        Returns: Its name.
        """
        clause = Clause(subject=subject, attribute=attribute, value=value, owner=owner)
        self._clauses.append(clause)
        self._wrong[clause.name] = other
        return clause.name

    def content(self, items: Iterable[CrewItem]) -> Content:
        """Return the clauses with the items that bear them."""
        return Content(tuple(items), tuple(self._clauses), self._wrong)


class Family(NamedTuple):
    """A family.

    `form` is a JSON schema of a fragment; `problem` says what is wrong with the form of
    an item's fragment beyond that ("" for nothing), which everybody is told; `accepts`
    and `solution` take item, values and the accepted fragments that it builds on.
    `reviewed`: an item is merged only when another seat has approved it. `runs`:
    fragments are code, merged by git; `accepts` takes in place of them what main
    answered when it was run.
    """

    name: str
    about: str
    form: Mapping[str, Any]
    draw: Callable[[CrewDraws, tuple[CrewItem, ...]], Content]
    problem: Callable[[CrewItem, Fragment], str]
    accepts: Callable[[CrewItem, Values, Mapping[str, Fragment], Fragment], bool]
    solution: Callable[[CrewItem, Values, Mapping[str, Fragment]], Fragment]
    reviewed: bool = False
    runs: bool = False
    decided: bool = False  # contested clauses have readings on which one role decides
