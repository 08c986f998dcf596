"""Countries and their calendars: business days, holidays and local time, by integers alone."""

import datetime as dt
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

SATURDAY = 5
_YEAR_SPAN = range(-2, 3)  # calendar years around the one that is asked for


class Country(msgspec.Struct, frozen=True, kw_only=True):
    """A country of customers.

    Attributes:
        forms: Legal forms of its firms.
        cities: Cities with a postcode each.
        region: The team that looks after it.
        share: Its weight among customers.
        offset_h: Local time less UTC in winter, h.
        summer: The rule of summer time.
        holidays: "MM-DD", or days after Easter Sunday.
    """

    forms: tuple[str, ...]
    cities: tuple[tuple[str, str], ...]
    region: str
    share: int
    offset_h: int
    summer: str
    holidays: tuple[str | int, ...]


@cache
def countries() -> Mapping[str, Country]:
    """Return the countries by their codes."""
    text = files("owa_bench.company").joinpath("data/countries.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Country])


def easter(year: int) -> dt.date:
    """Return Easter Sunday of a year.

    By the rule of Meeus, Jones and Butcher for the Gregorian calendar.
    """
    a, (b, c) = year % 19, divmod(year, 100)
    d, e = divmod(b, 4)
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    m = (32 + 2 * e + 2 * i - h - k) % 7
    n = (a + 11 * h + 22 * m) // 451
    month, day = divmod(h + m - 7 * n + 114, 31)
    return dt.date(year, month, day + 1)


def holidays(code: str, year: int) -> frozenset[dt.date]:
    """Return the public holidays of a country in a year.

    Args:
        code: Of the country; "" has none.
        year: The calendar year.
    """
    if not code:
        return frozenset()
    sunday = easter(year)
    return frozenset(
        sunday + dt.timedelta(rule)
        if isinstance(rule, int)
        else dt.date.fromisoformat(f"{year}-{rule}")
        for rule in countries()[code].holidays
    )


class BusinessCalendar:
    """Business days of a country, from two years before a year to two years after it.

    Args:
        code: Of the country; "": only weekends are off.
        year: The middle of the span.
        closed: Further days on which nobody works.
    """

    def __init__(self, code: str, year: int, closed: frozenset[dt.date] = frozenset()) -> None:
        years = [year + step for step in _YEAR_SPAN]
        off = closed.union(*(holidays(code, one) for one in years))
        first, last = dt.date(years[0], 1, 1), dt.date(years[-1], 12, 31)
        days = (first + dt.timedelta(n) for n in range((last - first).days + 1))
        self._open = [
            day.toordinal() for day in days if day.weekday() < SATURDAY and day not in off
        ]
        self._known = frozenset(self._open)

    def is_open(self, day: dt.date) -> bool:
        """Return whether a day is a business day."""
        return day.toordinal() in self._known

    def between(self, first: dt.date, last: dt.date) -> int:
        """Return how many business days lie after a day, up to and including another.

        Args:
            first: The day before the count begins.
            last: The last day that may count; before `first`: 0.
        """
        after = bisect_right(self._open, first.toordinal())
        return max(0, bisect_right(self._open, last.toordinal()) - after)

    def add(self, day: dt.date, count: int) -> dt.date:
        """Return the business day that is so many business days after a day.

        Args:
            day: Any day.
            count: 0: the day itself, open or not; below 0: before it.
        """
        if not count:
            return day
        if count > 0:
            place = bisect_right(self._open, day.toordinal()) + count - 1
        else:
            place = bisect_left(self._open, day.toordinal()) + count
        return dt.date.fromordinal(self._open[place])


@cache
def calendar(code: str, year: int) -> BusinessCalendar:
    """Return the calendar of a country around a year, made once.

    Args:
        code: Of the country.
        year: The middle of its span.
    """
    return BusinessCalendar(code, year)


def _sunday(year: int, month: int, number: int) -> dt.date:
    """Return a Sunday of a month: the first is 1, the last -1."""
    if number < 0:
        last = dt.date(year, month + 1, 1) - dt.timedelta(1)
        return last - dt.timedelta((last.weekday() + 1) % 7)
    first = dt.date(year, month, 1)
    return first + dt.timedelta((6 - first.weekday()) % 7 + 7 * (number - 1))


@cache
def _summer(rule: str, year: int) -> tuple[dt.date, dt.date]:
    """Return the days on which summer time begins and ends."""
    if rule == "EU":
        return _sunday(year, 3, -1), _sunday(year, 10, -1)
    return _sunday(year, 3, 2), _sunday(year, 11, 1)


def offset_h(code: str, day: dt.date) -> int:
    """Return local time less UTC on a day, h; it changes at the day's beginning.

    Args:
        code: Of the country.
        day: The local day.
    """
    country = countries()[code]
    begins, ends = _summer(country.summer, day.year)
    return country.offset_h + (begins <= day < ends)


def local_day(code: str, stamp: dt.datetime) -> dt.date:
    """Return the local day of a time in UTC.

    Args:
        code: Of the country.
        stamp: In UTC.
    """
    hours = offset_h(code, stamp.date())
    return (stamp + dt.timedelta(hours=hours)).date()


def utc(code: str, day: dt.date, minute: int) -> dt.datetime:
    """Return the time in UTC of a local day and minute.

    Args:
        code: Of the country.
        day: The local day.
        minute: Since its midnight.
    """
    midnight = dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)
    local = midnight + dt.timedelta(minutes=minute)
    return local - dt.timedelta(hours=offset_h(code, day))
