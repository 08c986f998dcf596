"""Content of messages, and the scripted human colleague who answers some of them.

A message asks for a clause, gives values, and reaches some who lacked them. The colleague holds no
seat and no item, and its answers are no messages of the crew. Every so many ticks it takes the
oldest questions that were put to all, and answers each by a sentence. Its minutes are the human
stream's; it is a term of the world and no intervention.

Source: docs/multicrew.md#working-together, docs/multicrew.md#human-colleague
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from owa_bench.envs.multicrew.state import CrewState, holder
from owa_bench.envs.multicrew.wording import hours_text, sentence
from owa_bench.envs.multicrew.world import Clause, CrewWorld, DocumentLine
from owa_bench.records.events import ColleagueLook, Event, Resource
from owa_bench.shells.fabric import Fabric

_CACHED = 8192  # clauses
_WORD = re.compile(r"[a-z]+(?:\.[a-z]+)?")


class CrewTalk(NamedTuple):
    """What a message that reached seats says.

    `asks` is the clause it asks for, "" for none; `reached`: a receiver knows it or keeps what
    states it. `gives` are the clauses whose values it gives, `news` those of them that a receiver's
    items need and that it had not been shown. `learned` and `gained` are what the state notes of
    it.
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


HUMAN = "human"
ANSWERS = 2  # questions that it answers at a look
_LOOK_MIN, _ANSWER_MIN = 1.0, 2.0  # minutes [D]


class HumanColleague:
    """The colleague of one episode.

    Args:
        fabric: Carries its answers; of a muted crew none.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._asked: list[tuple[str, str]] = []  # who asks, for which clause
        self._looked = 0  # tick of the last look

    def hear(self, seat: str, clause: str) -> None:
        """Take a question that was put to all.

        Args:
            seat: Who asks.
            clause: For what.
        """
        self._asked.append((seat, clause))

    def until(self, world: CrewWorld, tick: int, step: int) -> tuple[Event, ...]:
        """Return the events of the looks that are due, their answers sent.

        Args:
            world: The world that holds now; its `human` is the cadence, 0: nobody.
            tick: Now.
            step: Number of the action.
        Returns: Each look, and what it cost.
        """
        events: list[Event] = []
        while world.human and self._looked + world.human <= tick:
            self._looked += world.human
            due, self._asked = self._asked[:ANSWERS], self._asked[ANSWERS:]
            for seat, name in due:
                clause = world.clause_of[name]
                line = DocumentLine(
                    subject=clause.subject, attribute=clause.attribute, value=clause.value
                )
                self._fabric.send(
                    *(HUMAN, (seat,), sentence(line)), tick=self._looked - 1, step=step, interval=0
                )
            minutes = _LOOK_MIN + _ANSWER_MIN * len(due)
            cost = Resource(step=step, meter="supervisor_min", amount=minutes, stream="human")
            look = ColleagueLook(step=step, minutes=minutes, answers=tuple(due))
            events += [look, cost]
        return tuple(events)
