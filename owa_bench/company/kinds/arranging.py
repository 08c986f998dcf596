"""Steps that every kind takes after it has arranged its facts: order, keys, people, background."""

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from owa_bench.company.books import Books, table_names
from owa_bench.company.draw import HEADS
from owa_bench.seeding import pick

_NUMBERS = re.compile(r"\d+")
# Tables to which rows are added after they were drawn; the others are in order as they are.
_ADDED_TO = ("contacts", "delays", "invoices", "credit_notes", "contracts")
NEWSLETTERS = (
    ("Canteen", "Next week the canteen is closed on Tuesday."),
    ("Parking", "The lower deck is being painted until Friday."),
    ("Figures", "Thanks to everybody, we are above plan."),
    ("Time sheets", "Please hand in your time sheets until Friday."),
    ("Next price list", "The next price list comes in two months; nothing changes before."),
    ("Carrier", "From next quarter on the carrier scans every piece at the door."),
    ("Printer", "The printer on the second floor is out of order."),
    ("New colleague", "Please welcome our new colleague in the warehouse."),
    ("Fire drill", "There will be a fire drill some day this week."),
)


def natural(key: str) -> tuple[Any, ...]:
    """Return a sort key by which "SH-9/2" comes before "SH-10/1".

    Args:
        key: Of a row.
    """
    return tuple(map(int, _NUMBERS.findall(key))), key


def frozen_tables(books: Books) -> dict[str, tuple[Any, ...]]:
    """Return the tables of a world: rows in the order of their keys, so of time.

    Args:
        books: With every fact arranged.
    """
    tables = {name: tuple(getattr(books, name).values()) for name in table_names()}
    for name in _ADDED_TO:
        tables[name] = tuple(sorted(tables[name], key=lambda row: natural(row.id)))
    return tables


def fill_heads(books: Books, today: dt.date, rng: np.random.Generator, away: int) -> None:
    """Give every head a deputy among the heads, and let some be absent.

    Args:
        books: They are changed.
        today: The day of the case.
        rng: Draws both.
        away: How many are absent today; nobody and the deputy of the deputy are all absent.
    """
    heads = [next(iter(books.people.of("role", role))) for role in HEADS]
    ring = [heads[n] for n in rng.permutation(len(heads)).tolist()]
    absent = set(rng.permutation(len(ring))[:away].tolist())
    for place, person in enumerate(ring):
        first = last = None
        if place in absent and not {(place + 1) % len(ring), (place + 2) % len(ring)} <= absent:
            first = today - dt.timedelta(int(rng.integers(6)))
            last = today + dt.timedelta(int(rng.integers(10)))
        elif rng.random() < 0.15:  # was absent, or will be
            shift = pick((-20, -12, 5, 12), rng)
            first = today + dt.timedelta(shift)
            last = first + dt.timedelta(1 + int(rng.integers(3)))
        books.people.put(
            replace(person, deputy=ring[(place + 1) % len(ring)].id, away_from=first, away_to=last)
        )


def mail_keys(count: int, rng: np.random.Generator) -> list[str]:
    """Return keys of mails in order of time, with gaps.

    Args:
        count: How many.
        rng: Draws the gaps.
    """
    numbers = np.cumsum(1 + rng.integers(0, 4, count)) + 100
    return [f"m-{number}" for number in numbers.tolist()]


def sample_rows(
    rows: Sequence[Any], count: int, rng: np.random.Generator, without: Iterable[str] = ()
) -> list[Any]:
    """Return some rows, none of whose keys is excluded.

    Args:
        rows: To choose from.
        count: At most so many.
        rng: Draws them.
        without: Keys.
    """
    taken = set(without)
    free = [row for row in rows if row.id not in taken]
    return [free[n] for n in rng.permutation(len(free))[:count].tolist()]
