"""Content of messages: the clause asked for, the values given, who lacked them.

Source: docs/multicrew.md#working-together
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from owa_bench.envs.multicrew.state import CrewState, holder
from owa_bench.envs.multicrew.wording import hours_text
from owa_bench.worlds.crew import Clause, CrewWorld

_CACHED = 8192  # clauses
_WORD = re.compile(r"[a-z]+(?:\.[a-z]+)?")


class CrewTalk(NamedTuple):
    """What a message that reached seats says.

    `asks` is the clause it asks for, "" for none; `reached`: a receiver knows it or
    keeps what states it. `gives` are the clauses whose values it gives, `news` those of
    them that a receiver's items need and that it had not been shown. `learned` and
    `gained` are what the state notes of it.
    """

    asks: str
    reached: bool
    gives: tuple[str, ...]
    news: int
    learned: frozenset[tuple[str, str]]
    gained: frozenset[str]


def needs_of(world: CrewWorld, seats: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """Return (seat, clause) for each clause that an item of a seat must meet.

    Args:
        world: The world that holds now.
        seats: Those that play.
    Returns: The pairs.
    """
    return frozenset(
        (holder(world, seats, item.role), name)
        for item in world.items
        for name in (*item.clauses, *item.hidden)
    )


def talk_of(
    world: CrewWorld,
    state: CrewState,
    needs: frozenset[tuple[str, str]],
    seats: tuple[str, ...],
    receivers: tuple[str, ...],
    text: str,
    about: str,
) -> CrewTalk:
    """Return what a message says.

    Args:
        world: The world that holds now.
        state: Before it.
        needs: Of the seats, by `needs_of`.
        seats: Those that play.
        receivers: Those that it reached.
        text: The message.
        about: What it asks for, "" if it is no question.
    Returns: What it says; nothing for a message that reached nobody.
    """
    given = told_clauses(world.clauses, text) if receivers else []
    gives = tuple(clause.name for clause in given)
    new = {(seat, name) for seat in receivers for name in gives} - state.known
    news = new & needs
    asked = asked_clause(world.clauses, about) if receivers and about else None
    reached = asked is not None and any(
        (seat, asked.name) in state.known
        or any(holder(world, seats, side) == seat for side in asked.sides)
        for seat in receivers
    )
    return CrewTalk(
        asks=asked.name if asked else "",
        reached=reached,
        gives=gives,
        news=len({name for _, name in news}),
        learned=frozenset(new),
        gained=frozenset(f"told/{seat}/{name}" for seat, name in news),
    )


def asked_clause(clauses: Sequence[Clause], about: str) -> Clause | None:
    """Return the clause that a question names, by its name or in two words.

    Args:
        clauses: Those of the world.
        about: The question.
    Returns: The first such clause, None if it names none.
    """
    words = set(_WORD.findall(about.lower()))
    words |= {part for word in words for part in word.split(".")}
    named = (c for c in clauses if c.name in about)
    meant = (c for c in clauses if words >= {c.attribute, *c.subject.split()})
    return next(named, None) or next(meant, None)


def told_clauses(clauses: Sequence[Clause], text: str) -> list[Clause]:
    """Return the clauses whose subject a text names and whose value it gives.

    Args:
        clauses: Those of the world.
        text: A message.
    Returns: What its receiver knows now.
    """
    words = {word.strip(".,;:\"'{}") for word in text.replace('":"', " ").split()}
    whole = " ".join(words)
    return [c for c in clauses if c.subject in whole and words >= _value_words(c)]


@lru_cache(_CACHED)
def _value_words(clause: Clause) -> frozenset[str]:
    """Return the words of a clause's value that a message must have."""
    if clause.attribute == "hours":
        parts = [p for p in hours_text(clause.value).split() if p.isdigit()]
    else:
        parts = clause.value.replace(" and ", " ").split()
    return frozenset(part for part in parts if part[0] != "(")
