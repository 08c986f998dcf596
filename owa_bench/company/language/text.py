"""Sentences that are written and read from one declaration.

A `Sentence` has several wordings, each with slots. `write` puts values into a drawn wording, `read`
finds the values in a text again, whichever wording it has. So what a page says and what a parser
understands cannot come apart, and a test reads every wording that can be written.
"""

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from owa_bench.seeding import pick

_SLOT = re.compile(r"{(\w+)}")
_SPACE = re.compile(r"\s+")
NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve"),
)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class TextSlot(Protocol):
    """How a value is written in a text and read from it."""

    pattern: str

    def write(self, value: Any, rng: np.random.Generator) -> str:
        """Return a text of the value.

        Args:
            value: Of the slot's kind.
            rng: Draws the way of writing.
        """

    def read(self, text: str) -> Any:
        """Return the value of a text that the pattern matches."""


class CountSlot:
    """A whole number from 0 on, in digits or, up to twelve, in a word."""

    pattern = r"\d+|" + "|".join(NUMBER_WORDS)

    def write(self, value: int, rng: np.random.Generator) -> str:
        """Return digits or a word.

        Args:
            value: At least 0.
            rng: Draws which.
        """
        in_words = value < len(NUMBER_WORDS) and rng.random() < 0.5
        return NUMBER_WORDS[value] if in_words else str(value)

    def read(self, text: str) -> int:
        """Return the number."""
        return int(text) if text.isdigit() else NUMBER_WORDS.index(text.lower())


class MoneySlot:
    """An amount in cents: "EUR 1,250.00", "1,250 EUR"; whole amounts may leave out the cents."""

    pattern = r"EUR [\d,]+(?:\.\d\d)?|[\d,]+(?:\.\d\d)? EUR"

    def write(self, value: int, rng: np.random.Generator) -> str:
        """Return an amount with its currency.

        Args:
            value: Cents, at least 0.
            rng: Draws the order, and whether whole amounts show cents.
        """
        euros, cents = divmod(value, 100)
        short = not cents and rng.random() < 0.5
        text = f"{euros:,}" if short else f"{euros:,}.{cents:02d}"
        return f"EUR {text}" if rng.random() < 0.5 else f"{text} EUR"

    def read(self, text: str) -> int:
        """Return the cents."""
        euros, _, cents = text.replace("EUR", "").replace(",", "").strip().partition(".")
        return 100 * int(euros) + int(cents or 0)


class PercentSlot:
    """A whole percentage: "8 percent", "8 %"."""

    pattern = r"\d+ (?:percent|%)"

    def write(self, value: int, rng: np.random.Generator) -> str:
        """Return the percentage.

        Args:
            value: Percent.
            rng: Draws the word or the sign.
        """
        return f"{value} {pick(('percent', '%'), rng)}"

    def read(self, text: str) -> int:
        """Return the percentage."""
        return int(text.split()[0])


class DaySlot:
    """A day with its year: ISO, "12.06.2031", "12 June 2031", "Thursday, 12 June 2031"."""

    pattern = (
        r"\d{4}-\d\d-\d\d|\d\d\.\d\d\.\d{4}|(?:(?:" + "|".join(_WEEKDAYS) + r"), )?\d{1,2} (?:"
        "" + "|".join(_MONTHS) + r") \d{4}"
    )

    def write(self, value: dt.date, rng: np.random.Generator) -> str:
        """Return the day in one of four ways.

        Args:
            value: The day.
            rng: Draws the way.
        """
        long = f"{value.day} {_MONTHS[value.month - 1]} {value.year}"
        ways = (
            value.isoformat(),
            f"{value.day:02d}.{value.month:02d}.{value.year}",
            long,
            f"{_WEEKDAYS[value.weekday()]}, {long}",
        )
        return pick(ways, rng)

    def read(self, text: str) -> dt.date:
        """Return the day."""
        if "-" in text:
            return dt.date.fromisoformat(text)
        if "." in text:
            day, month, year = map(int, text.split("."))
        else:
            number, name, number_of_year = text.split(", ")[-1].split()
            day, month, year = int(number), _MONTHS.index(name) + 1, int(number_of_year)
        return dt.date(year, month, day)


class NameSlot:
    """A text that a pattern describes, kept as it is.

    Args:
        pattern: A regular expression without groups.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def write(self, value: str, rng: np.random.Generator) -> str:
        """Return the text itself.

        Args:
            value: It matches the pattern.
            rng: Not used.
        """
        return value

    def read(self, text: str) -> str:
        """Return the text itself."""
        return text


COUNT, MONEY, PERCENT, DAY = CountSlot(), MoneySlot(), PercentSlot(), DaySlot()


class SentenceReading(NamedTuple):
    """A sentence that was found in a text, with its values and where it lies."""

    name: str
    values: Mapping[str, Any]
    first: int
    end: int


class Sentence:
    """One statement in several wordings.

    Args:
        name: Of the statement.
        wordings: Texts with slots in braces; each has every slot once.
        slots: The kind of each slot.
    Raises: ValueError: A wording lacks a slot, or has another.
    """

    def __init__(self, name: str, wordings: Sequence[str], slots: Mapping[str, TextSlot]) -> None:
        self.name, self.slots = name, dict(slots)
        self.wordings = tuple(_SPACE.sub(" ", text).strip() for text in wordings)
        for text in self.wordings:
            found = _SLOT.findall(text)
            if sorted(found) != sorted(self.slots):
                raise ValueError(f"{name}: {text!r} has slots {found}, not {sorted(self.slots)}")

    def write(self, rng: np.random.Generator, *, practice: bool = False, **values: Any) -> str:
        """Return the statement in a drawn wording.

        Args:
            rng: Draws wording and ways of writing.
            practice: Whether only the first two thirds of the wordings may be drawn.
            values: Of the slots.
        """
        known = self.wordings
        if practice:
            known = known[: max(1, 2 * len(known) // 3)]
        texts = {name: slot.write(values[name], rng) for name, slot in self.slots.items()}
        return pick(known, rng).format(**texts)

    def read(self, text: str) -> Iterator[SentenceReading]:
        """Yield the statement wherever a text makes it, in order.

        Args:
            text: Any; its breaks count as spaces.
        """
        for found in self._pattern.finditer(text):
            groups = {key: value for key, value in found.groupdict().items() if value is not None}
            values = {
                key.rpartition("_")[0]: self.slots[key.rpartition("_")[0]].read(
                    _SPACE.sub(" ", value)
                )
                for key, value in groups.items()
            }
            yield SentenceReading(self.name, values, found.start(), found.end())

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(
            "|".join(self._expression(n, text) for n, text in enumerate(self.wordings))
        )

    def _expression(self, number: int, wording: str) -> str:
        """Return the expression of a wording, its slots as named groups."""
        parts = _SLOT.split(wording)
        written = [re.escape(part).replace(r"\ ", r"\s+") for part in parts]
        for place in range(1, len(parts), 2):
            pattern = self.slots[parts[place]].pattern.replace(" ", r"\s+")
            written[place] = f"(?P<{parts[place]}_{number}>{pattern})"
        return f"(?:{''.join(written)})"


def read_all(sentences: Sequence[Sentence], text: str) -> list[SentenceReading]:
    """Return every statement that a text makes, in order.

    Args:
        sentences: The statements that are known.
        text: Any.
    """
    found = (reading for sentence in sentences for reading in sentence.read(text))
    return sorted(found, key=lambda reading: (reading.first, reading.end))
