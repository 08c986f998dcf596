"""Draws the systems of a company: hosts with habits that serve its tables."""

from collections.abc import Iterable

import numpy as np

from owa_bench.company.language.vocabulary import CALLS, HOSTS, TABLES
from owa_bench.company.systems import (
    HostHabits,
    HostPager,
    NameCase,
    ServedCall,
    ServedColumn,
    ServedTable,
    SystemHost,
)
from owa_bench.seeding import pick

CASES: tuple[NameCase, ...] = ("snake", "camel")
PAGERS: tuple[HostPager, ...] = ("page", "offset", "cursor")
WRAPPERS = ("items", "data", "results", "rows")
_SIZES = (100, 200, 500)


def in_case(name: str, case: NameCase) -> str:
    """Return a name in snake_case as a host writes it.

    Args:
        name: In snake case.
        case: Of the host.

    >>> in_case("net_cents", "camel")
    'netCents'
    """
    if case == "snake":
        return name
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def served_table(table: str, habits: HostHabits, rng: np.random.Generator) -> ServedTable:
    """Return a table as a host serves it.

    Args:
        table: Name in the vocabulary.
        habits: Of the host.
        rng: Draws the wording.
    """
    words = TABLES[table]
    return ServedTable(
        path=words.path,
        table=table,
        about=pick(words.about, rng),
        columns=tuple(
            ServedColumn(name=in_case(column, habits.names), column=column, about=about)
            for column, about in words.columns.items()
        ),
    )


def draw_hosts(
    tables: Iterable[str], calls: Iterable[str], rng: np.random.Generator
) -> tuple[SystemHost, ...]:
    """Return the systems that serve some tables and take some calls.

    Args:
        tables: Names in the vocabulary.
        calls: Names in the vocabulary.
        rng: Draws habits and wordings.
    """
    by_host: dict[str, list[str]] = {}
    for table in tables:
        by_host.setdefault(TABLES[table].host, []).append(table)
    taken: dict[str, list[ServedCall]] = {}
    for name in calls:
        words = CALLS[name]
        by_host.setdefault(words.host, [])
        taken.setdefault(words.host, []).append(
            ServedCall(
                method=words.method,
                path=words.path,
                call="" if words.severity else name,
                about=words.about,
                severity=words.severity,
            )
        )
    hosts = []
    for host, names in sorted(by_host.items()):
        habits = HostHabits(
            names=pick(CASES, rng),
            pager=pick(PAGERS, rng),
            wrapper=pick(WRAPPERS, rng),
            size=pick(_SIZES, rng),
        )
        hosts.append(
            SystemHost(
                host=host,
                about=HOSTS[host],
                habits=habits,
                tables=tuple(served_table(name, habits, rng) for name in names),
                calls=tuple(taken.get(host, ())),
            )
        )
    return tuple(hosts)
