"""Business days, holidays and local time of a company's countries."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from owa_bench.company.calendars import (
    BusinessCalendar,
    calendar,
    countries,
    easter,
    holidays,
    local_day,
    offset_h,
    utc,
)

DAYS = st.dates(dt.date(2030, 1, 1), dt.date(2032, 12, 31))
CODES = st.sampled_from(sorted(countries()))


@pytest.mark.parametrize(
    ("year", "day"),
    [(2024, "03-31"), (2025, "04-20"), (2026, "04-05"), (2031, "04-13"), (2038, "04-25")],
)
def test_easter_is_where_the_church_calendar_has_it(year, day):
    assert easter(year) == dt.date.fromisoformat(f"{year}-{day}")


def test_holidays_follow_easter_and_the_calendar():
    germany = holidays("DE", 2031)
    assert dt.date(2031, 4, 14) in germany  # Easter Monday
    assert dt.date(2031, 5, 22) in germany  # Ascension Day
    assert dt.date(2031, 10, 3) in germany
    assert dt.date(2031, 7, 14) in holidays("FR", 2031)


@given(CODES, DAYS, st.integers(1, 60))
def test_adding_and_counting_business_days_agree(code, day, count):
    days = calendar(code, 2031)
    end = days.add(day, count)
    assert days.is_open(end)
    assert days.between(day, end) == count
    assert days.between(end, day) == 0
    assert days.add(day, 0) == day


@given(CODES, DAYS, st.integers(1, 60))
def test_going_back_and_forth_ends_on_the_same_business_day(code, day, count):
    days = calendar(code, 2031)
    start = days.add(day, 1)
    assert days.add(days.add(start, -count), count) == start


def test_a_day_that_is_closed_is_no_business_day():
    day = dt.date(2031, 7, 2)
    closed = BusinessCalendar("DE", 2031, frozenset({day}))
    assert calendar("DE", 2031).is_open(day)
    assert not closed.is_open(day)
    assert closed.between(day - dt.timedelta(1), day) == 0


def test_summer_time_has_its_rules():
    assert offset_h("DE", dt.date(2031, 3, 29)) == 1
    assert offset_h("DE", dt.date(2031, 3, 30)) == 2
    assert offset_h("DE", dt.date(2031, 10, 26)) == 1
    assert offset_h("US", dt.date(2031, 3, 8)) == -5
    assert offset_h("US", dt.date(2031, 3, 9)) == -4
    assert offset_h("US", dt.date(2031, 11, 2)) == -5


def test_an_evening_overseas_is_the_next_day_in_utc():
    day = dt.date(2031, 6, 12)
    stamp = utc("US", day, 21 * 60)
    assert stamp.date() == day + dt.timedelta(1)
    assert local_day("US", stamp) == day


@given(CODES, DAYS, st.integers(8 * 60, 22 * 60 - 1))
def test_local_days_come_back(code, day, minute):
    assert local_day(code, utc(code, day, minute)) == day
