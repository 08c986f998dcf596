"""Schedule: each item is a job to be placed at a site that opens at hours of its own.

A fragment books a site; it is accepted if the job, run hour by hour, finds the site open
throughout, follows what it builds on, and begins as early as it could. Duties are bookings that
somebody other than their author must approve.

Source: docs/multicrew.md#worlds
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from owa_bench.envs.multicrew.draws import (
    ClauseDraft,
    Content,
    CrewDraws,
    Family,
    Fragment,
    Values,
    owned,
)
from owa_bench.envs.multicrew.world import CrewItem

_SEARCHED = 2000  # hours within which every job finds its place
FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "site": {"type": "string", "maxLength": 40},
        "start": {"type": "integer", "minimum": 0, "maximum": _SEARCHED},
        "length": {"type": "integer", "minimum": 1, "maximum": 100},
        "key": {"type": "string", "maxLength": 40},
    },
    "required": ["site", "start", "length", "key"],
    "additionalProperties": False,
}
_ABOUT = (
    "Each item is a job to be booked at its site. Its fragment is the booking: "
    '{"site": .., "start": HOUR, "length": HOURS, "key": ..}. Clause length: how many '
    "hours the job takes. Clause gap: how many hours it must wait after the end of "
    "the last job that it needs (from hour 0 if it needs none). Of its site, clause "
    "hours: open for some hours from a first hour on, and again after each period; "
    "clause key: the booking key. A job needs its site open throughout, and must "
    "begin at the first hour at which that is so; sites take several jobs at once."
)


def draw(draws: CrewDraws, items: tuple[CrewItem, ...]) -> Content:
    """Return the sites with hours and keys, and for each job its length and gap.

    Args:
        draws: The streams.
        items: Without clauses.
    """
    draft = ClauseDraft()
    add = draft.add
    sites = []
    for _ in range(max(2, len(items) // 4)):
        site, owner = draws.word(), draws.pick(draws.roles)
        open_for, period = draws.between(9, 12), draws.between(19, 31)
        first = draws.between(0, period - 1)
        hours = f"{open_for} from {first} every {period}"
        other = f"{open_for} from {(first + 3) % period} every {period}"
        key = add(site, "key", draws.pick(draws.roles), draws.code(), draws.code())
        sites.append((site, add(site, "hours", owner, hours, other), key))
    made = []
    for number, item in enumerate(items):
        site, hours, key = sites[number % len(sites)]
        length, gap = draws.between(2, 5), draws.between(1, 9)
        ends = add(item.name, "length", owned(draws, item), f"{length}", f"{length + 1}")
        waits = add(item.name, "gap", owned(draws, item), f"{gap}", f"{gap + 11}")
        made.append(replace(item, clauses=(ends, waits, hours, key), terms=(("site", site),)))
    return draft.content(made)


def _opens(hours: str) -> tuple[int, int, int]:
    """Return for how long a site is open, its first hour and its period."""
    open_for, _, rest = hours.partition(" from ")
    first, _, period = rest.partition(" every ")
    return int(open_for), int(first), int(period)


def _is_open(hours: str, hour: int) -> bool:
    open_for, first, period = _opens(hours)
    return hour >= first and (hour - first) % period < open_for


def _runs(hours: str, start: int, length: int) -> bool:
    """Return whether a site is open in each hour of a job."""
    return all(_is_open(hours, hour) for hour in range(start, start + length))


def _earliest(item: CrewItem, values: Values, before: Mapping[str, Fragment]) -> int:
    """Return the first hour at which a job can begin, -1 for none."""
    length, gap, hours, _ = (values[name] for name in item.clauses)
    ends = (int(job["start"]) + int(job["length"]) for job in before.values())
    ready = max(ends, default=0) + int(gap)
    places = range(ready, _SEARCHED)
    return next((s for s in places if _runs(hours, s, int(length))), -1)


def accepts(
    item: CrewItem, values: Values, before: Mapping[str, Fragment], fragment: Fragment
) -> bool:
    """Return whether a job that is run as booked goes through.

    Args:
        item: The item.
        values: Of its clauses.
        before: Bookings of the jobs that it needs.
        fragment: The booking.
    Returns: Whether site, key and length are right and it begins as early as it can.
    """
    length, _, _, key = (values[name] for name in item.clauses)
    right = {"site": dict(item.terms)["site"], "length": int(length), "key": key}
    if any(fragment[name] != value for name, value in right.items()):
        return False
    return bool(fragment["start"] == _earliest(item, values, before))


def solution(item: CrewItem, values: Values, before: Mapping[str, Fragment]) -> dict[str, Any]:
    """Return the booking at the first hour that is free.

    Args:
        item: The item.
        values: Of its clauses.
        before: Bookings of the jobs that it needs.
    """
    length, _, _, key = (values[name] for name in item.clauses)
    return {
        "site": dict(item.terms)["site"],
        "start": _earliest(item, values, before),
        "length": int(length),
        "key": key,
    }


FAMILY = Family(
    name="schedule",
    about=_ABOUT,
    form=FORM,
    draw=draw,
    problem=lambda item, fragment: "",
    accepts=accepts,
    solution=solution,
)
DUTIES = FAMILY._replace(name="duties", reviewed=True)
