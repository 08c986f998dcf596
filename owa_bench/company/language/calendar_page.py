"""The page of business calendars: local time and public holidays of each country."""

import datetime as dt
import re
from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.company.calendars import BusinessCalendar, countries, holidays, offset_h

SLUG, TITLE = "business-calendar", "Business days and local time"
_HEAD = (
    "Business days are Monday to Friday without the public holidays of the country. Local time is "
    "UTC plus the hours given for the day."
)
_LINE = re.compile(r"^([A-Z]{2}): (.*?)\. Public holidays: (.*)\.$", re.MULTILINE)
_SPAN = re.compile(r"UTC([+-]\d+) from ([\d-]+) to ([\d-]+)")
_BEFORE, _AFTER = 70, 20  # days around today that the page covers


class ServedCalendar(NamedTuple):
    """The calendar of a country, as the page states it.

    Attributes:
        days: Its business days.
        offsets: First day, last day and hours of each span.
    """

    days: BusinessCalendar
    offsets: tuple[tuple[dt.date, dt.date, int], ...]

    def local_day(self, stamp: dt.datetime) -> dt.date:
        """Return the local day of a time in UTC.

        Args:
            stamp: In UTC, without a zone.
        """
        day = stamp.date()
        hours = next((h for first, last, h in self.offsets if first <= day <= last), 0)
        return (stamp + dt.timedelta(hours=hours)).date()


def write_calendar(today: dt.date) -> str:
    """Return the text of the page.

    Args:
        today: The day of the case.
    """
    first, last = today - dt.timedelta(_BEFORE), today + dt.timedelta(_AFTER)
    lines = [_HEAD]
    for code in sorted(countries()):
        spans = ", ".join(
            f"UTC{hours:+d} from {start} to {end}"
            for start, end, hours in _spans(code, first, last)
        )
        days = sorted(
            day
            for year in {first.year, last.year}
            for day in holidays(code, year)
            if first <= day <= last
        )
        named = ", ".join(day.isoformat() for day in days) or "none"
        lines.append(f"{code}: {spans}. Public holidays: {named}.")
    return "\n".join(lines)


def _spans(code: str, first: dt.date, last: dt.date) -> list[tuple[dt.date, dt.date, int]]:
    """Return the spans of days that have one offset from UTC."""
    found: list[tuple[dt.date, dt.date, int]] = []
    for number in range((last - first).days + 1):
        day = first + dt.timedelta(number)
        hours = offset_h(code, day)
        if found and found[-1][2] == hours:
            found[-1] = (found[-1][0], day, hours)
        else:
            found.append((day, day, hours))
    return found


def read_calendar(text: str, today: dt.date) -> Mapping[str, ServedCalendar]:
    """Return the calendars that a page states, by country.

    Args:
        text: Of the page.
        today: The day of the case.
    """
    day = dt.date.fromisoformat
    found = {}
    for code, spans, named in _LINE.findall(text):
        closed = frozenset(map(day, named.split(", "))) if named != "none" else frozenset()
        local = tuple((day(a), day(b), int(hours)) for hours, a, b in _SPAN.findall(spans))
        found[code] = ServedCalendar(BusinessCalendar("", today.year, closed), local)
    return found
