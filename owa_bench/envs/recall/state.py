"""The course of an episode: sittings, their cards, where it stands, and it as numbers.

A card is a page, an item to answer, or a choice of pairs to see again. The cards of a sitting are
made when it begins. The vector view plays items with options (n-back whole); a free answer has no
action, so other items can only be passed.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from owa_bench.envs.recall.wording import notice_line, question_text
from owa_bench.envs.recall.world import Exercise, Question, RecallWorld, Register

_PAGE_CHARACTERS = 2400


class Card(NamedTuple):
    """What is shown next. `name` of an item is its node in the task's DAG."""

    kind: Literal["page", "item", "review"]
    text: str
    name: str = ""
    question: Question | None = None
    exercise: Exercise | None = None

    @property
    def assisted(self) -> bool:
        """Whether tools are on offer while it is shown."""
        return self.question is not None and self.question.kind == "assisted"


class Script:
    """The sittings of an episode in one world; equal to itself alone.

    Args:
        world: The world that holds from now on.
        past: Cards of the sittings that have begun, in another world.
        today: The day of the last of them, -1 before the first.
    """

    def __init__(
        self, world: RecallWorld, past: tuple["DayCards", ...] = (), today: int = -1
    ) -> None:
        self.world = world
        self.register = Register(world)
        later = tuple(day for day in world.days if day > today)
        self.days = (*(sitting.day for sitting in past), *later)
        self._made: dict[int, DayCards] = dict(enumerate(past))

    def cards(self, sitting: int) -> tuple[Card, ...]:
        """Return the cards of a sitting."""
        if sitting not in self._made:
            day = self.days[sitting]
            self._made[sitting] = DayCards(day, tuple(_cards(self.world, day)))
        return self._made[sitting].cards

    def entered(self, world: RecallWorld, sitting: int) -> "Script":
        """Return the script that goes on in another world after this sitting.

        Args:
            world: The world that holds from now on.
            sitting: The present sitting, whose cards stay.
        """
        past = tuple(DayCards(self.days[at], self.cards(at)) for at in range(sitting + 1))
        return Script(world, past, self.days[sitting])

    def sitting_of(self, day: int) -> int:
        """Return the number of the sitting on a day."""
        return self.days.index(day)


class DayCards(NamedTuple):
    """The cards of one sitting and its day."""

    day: int
    cards: tuple[Card, ...]


def node_of(question: Question) -> str:
    """Return the name of the node that a question is: its item at its lag."""
    return f"{question.name}/{question.lag}"


def _cards(world: RecallWorld, day: int) -> list[Card]:
    lines = [
        f'From today on the register writes "{later}" for "{first}".'
        for first, later, since in world.renamed
        if since == day
    ]
    lines += [notice_line(world, n) for n in world.notices if n.day == day]
    cards = [Card("page", text) for text in _pages(lines)]
    if day in world.review_days:
        choice = f"Name up to {world.reviews} words to see again: answer(values=[..])."
        cards.append(Card("review", choice))
    for question in world.questions:
        if question.day == day:
            text = question_text(world, question)
            cards.append(Card("item", text, node_of(question), question=question))
    if world.exercises and day == world.days[0]:
        for exercise in world.exercises:
            cards += [Card("page", page) for page in exercise.pages]
            prompt = exercise.prompt
            if exercise.options:
                prompt += f" Options: {', '.join(exercise.options)}."
            cards.append(Card("item", prompt, exercise.name, exercise=exercise))
    return cards


def _pages(lines: list[str]) -> list[str]:
    """Return lines as pages of a bounded number of characters."""
    pages: list[str] = []
    page: list[str] = []
    size = 0
    for line in lines:
        if page and size + len(line) > _PAGE_CHARACTERS:
            pages.append("\n".join(page))
            page, size = [], 0
        page.append(line)
        size += len(line) + 1
    return [*pages, "\n".join(page)] if page else pages


_DONE = Card("page", "Nothing is left. Call finish with p.")


class RecallState(msgspec.Struct, frozen=True):
    """Where an episode stands.

    `place` is the card of the sitting; `scores` are those of the items, by node, None for one that
    was passed; `right` the items answered in full, `linked` those that are links of a composition;
    `seen` the day on which a pair was last seen again; `page` is shown before the next card.
    """

    script: Script
    sitting: int = 0
    place: int = 0
    scores: Mapping[str, float | None] = {}
    right: frozenset[str] = frozenset()
    linked: frozenset[str] = frozenset()
    seen: Mapping[str, int] = {}
    page: str = ""

    @property
    def over(self) -> bool:
        """Whether every card was shown."""
        return self.sitting == len(self.script.days)

    @property
    def card(self) -> Card:
        """The present card."""
        if self.over:
            return _DONE
        if self.page:
            return Card("page", self.page)
        return self.script.cards(self.sitting)[self.place]

    @property
    def day(self) -> int:
        """The present day."""
        return self.script.days[min(self.sitting, len(self.script.days) - 1)]


OPTIONS, _SIGNS, _SPANS = 8, 8, 8
MACROS = ("go_on", *(f"option_{number}" for number in range(OPTIONS)))
FEATURES = 2 + _SIGNS + _SPANS + 1
_GO_ON: Mapping[str, Any] = {"tool": "go_on", "arguments": {}}


def features(state: RecallState) -> npt.NDArray[np.float32]:
    """Return the features of a state.

    Args:
        state: The session's.
    Returns: (FEATURES,): is it an item, is all over, stimulus and length one-hot, the share of
        options.
    """
    row = np.zeros(FEATURES, dtype=np.float32)
    row[0], row[1] = state.card.kind == "item", state.over
    exercise = state.card.exercise
    if exercise is not None:
        if exercise.sign >= 0:
            row[2 + exercise.sign] = 1.0
        row[2 + _SIGNS + min(exercise.span, _SPANS - 1)] = 1.0
        row[-1] = min(len(exercise.options) / OPTIONS, 1.0)
    return row


def macros(state: RecallState) -> tuple[Mapping[str, Any] | None, ...]:
    """Return the call of each macro in a state, None where it is masked."""
    exercise = state.card.exercise
    options = exercise.options if exercise is not None else ()
    answers: list[Mapping[str, Any] | None] = [
        {"tool": "answer", "arguments": {"values": [option]}} for option in options[:OPTIONS]
    ]
    answers += [None] * (OPTIONS - len(answers))
    return (None if state.over else _GO_ON), *answers
