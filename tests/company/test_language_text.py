"""What is written is read again, whichever wording was drawn."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from owa_bench.company.language.text import COUNT, DAY, MONEY, PERCENT, NameSlot, Sentence, read_all
from owa_bench.seeding import stream

WINDOW = Sentence(
    "window",
    (
        "A claim reaches us within {days} calendar days of {event}.",
        "We accept claims up to {days} calendar days after {event}.",
        "After {event}, customers have {days} calendar days to claim.",
    ),
    {"days": COUNT, "event": NameSlot("delivery|the invoice")},
)
CAP = Sentence(
    "cap",
    (
        "No customer gets more than {most} in a quarter, from {first} on.",
        "From {first} on, {most} is the most for a customer and quarter.",
    ),
    {"most": MONEY, "first": DAY},
)
SHARE = Sentence("share", ("We credit {share} of the net value.",), {"share": PERCENT})
SEEDS = st.integers(0, 10_000)
DAYS = st.dates(dt.date(2027, 1, 1), dt.date(2035, 12, 31))


@given(SEEDS, st.integers(0, 400), st.sampled_from(("delivery", "the invoice")))
def test_counts_come_back(seed, days, event):
    text = WINDOW.write(stream(seed, "t"), days=days, event=event)
    (found,) = WINDOW.read(f"First. {text} Last.")
    assert found.values == {"days": days, "event": event}


@given(SEEDS, st.integers(0, 10**9), DAYS)
def test_amounts_and_days_come_back(seed, most, first):
    text = CAP.write(stream(seed, "t"), most=most, first=first)
    (found,) = CAP.read(text)
    assert found.values == {"most": most, "first": first}


@given(SEEDS, st.integers(0, 100))
def test_breaks_of_lines_do_not_matter(seed, share):
    text = SHARE.write(stream(seed, "t"), share=share).replace(" ", "\n   ")
    (found,) = SHARE.read(text)
    assert found.values == {"share": share}


def test_statements_of_a_page_are_found_in_order():
    rng = stream(3, "t")
    page = " ".join(
        (
            SHARE.write(rng, share=8),
            WINDOW.write(rng, days=14, event="delivery"),
            CAP.write(rng, most=125_000, first=dt.date(2031, 4, 1)),
            SHARE.write(rng, share=15),
        )
    )
    found = read_all((WINDOW, CAP, SHARE), page)
    assert [reading.name for reading in found] == ["share", "window", "cap", "share"]
    assert [found[0].values["share"], found[3].values["share"]] == [8, 15]


def test_practice_never_sees_the_last_third():
    seen = {
        practice: {
            WINDOW.write(stream(n, "t"), practice=practice, days=500, event="delivery")
            for n in range(60)
        }
        for practice in (True, False)
    }
    assert len(seen[True]) == 2
    assert len(seen[False]) == 3


def test_another_text_makes_no_statement():
    assert not list(WINDOW.read("We accept claims up to many calendar days after delivery."))
    assert not list(CAP.read("No customer gets more than 100 in a quarter, from 2031-01-01 on."))


def test_a_wording_without_a_slot_is_refused():
    with pytest.raises(ValueError, match="has slots"):
        Sentence("bad", ("Nothing here.",), {"days": COUNT})
