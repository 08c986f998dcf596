"""Draws that families share: the structure of a world apart from its surface.

The structure comes from the seed alone, words and names from the seed and the form, so
forms A, B and C of one seed are isomorphic.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.random import Generator

from owa_bench.envs.recall.lexicon import Lexicon
from owa_bench.seeding import stream
from owa_bench.worlds.recall import Form, Notice

FORMS: tuple[Form, ...] = ("A", "B", "C")
STUDY_DAYS = (0, 1, 3)
LAGS = (1, 7, 28)  # days after which an item is asked
DAY_BLOCK = 1000  # numbers of notices that a day may give
_STYLES = 1 << 16


class Draws(NamedTuple):
    """The streams of one world, its tier, and a generator of words."""

    tier: int
    rng: Generator
    lexicon: Lexicon

    def styles(self, count: int) -> list[int]:
        """Return numbers that choose among sentences."""
        numbers: list[int] = self.rng.integers(_STYLES, size=count).tolist()
        return numbers

    def order(self, count: int) -> list[int]:
        """Return the numbers below `count` in a drawn order."""
        numbers: list[int] = self.rng.permutation(count).tolist()
        return numbers

    def by_tier(self, values: Sequence[Any]) -> Any:
        """Return the value of this tier."""
        return values[self.tier - 1]


def draws_of(seed: int, family: str, tier: int, form: Form) -> Draws:
    """Return the streams of a world.

    Args:
        seed: The instance's.
        family: Name of its family.
        tier: 1 to 4.
        form: Chooses the surface.
    Returns: Streams at their start.
    """
    return Draws(
        tier=tier,
        rng=stream(seed, "base", family),
        lexicon=Lexicon(stream(seed, "form", form)),
    )


class Statement(NamedTuple):
    """A notice before it has a number: its chain's place, what it says."""

    day: int
    chain: int  # statements of one chain are issued in this order
    place: int
    terms: dict[str, Any]
    strikes: int = -1  # place in its chain of the statement that it withdraws


def numbered(
    statements: Sequence[Statement], draws: Draws
) -> tuple[dict[tuple[int, int], int], tuple[Notice, ...]]:
    """Return notices in order of issue, chains in theirs, mixed by draw.

    Args:
        statements: Of all chains.
        draws: For the order within a day and the sentences.
    Returns: The number of each (chain, place), and the notices.
    """
    ranks = draws.rng.random(len(statements)).tolist()
    slots: dict[tuple[int, int], list[float]] = {}
    for statement, rank in zip(statements, ranks, strict=True):
        slots.setdefault((statement.chain, statement.day), []).append(rank)
    for group in slots.values():
        group.sort(reverse=True)
    ordered = sorted(statements, key=lambda s: (s.chain, s.place))
    keyed = [(s.day, slots[s.chain, s.day].pop(), s) for s in ordered]
    keyed.sort(key=lambda entry: entry[:2])
    steps = draws.rng.integers(1, 3, size=len(keyed)).tolist()
    styles = draws.styles(len(keyed))
    numbers: dict[tuple[int, int], int] = {}
    notices = []
    day, number = -1, 0
    for (at, _, statement), step, style in zip(keyed, steps, styles, strict=True):
        if at != day:
            day, number = at, DAY_BLOCK * (at + 1)
        number += step
        numbers[statement.chain, statement.place] = number
        struck = numbers.get((statement.chain, statement.strikes), 0)
        notices.append(
            Notice(
                number=number, day=at, style=style, withdraws=struck, **statement.terms
            )
        )
    return numbers, tuple(notices)
