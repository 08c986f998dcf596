"""The course of an episode: its sittings, and the cards that each of them shows.

A card is a page, an item to answer, or a choice of pairs to see again. The cards of a
sitting are made when it begins.
"""

from typing import Literal, NamedTuple

from owa_bench.envs.recall.wording import notice_line, question_text
from owa_bench.worlds.recall import Exercise, Question, RecallWorld, Register

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
        Returns: The script.
        """
        past = tuple(
            DayCards(self.days[at], self.cards(at)) for at in range(sitting + 1)
        )
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
