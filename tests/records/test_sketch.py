"""Sketches: near texts lie near, others far."""

import pytest

from owa_bench.records.sketch import BITS, distance, sketch

SAID = "I am still waiting for the reply of the second fetcher"


@pytest.mark.parametrize(
    "again", [SAID + "!", SAID.upper(), SAID.replace("fetcher", "fetchers")]
)
def test_a_letter_more_is_a_near_duplicate(again: str) -> None:
    assert distance(sketch(SAID), sketch(again)) <= 10


@pytest.mark.parametrize(
    "other",
    ["Vendor 12: fetched 340 rows of invoices", "We need to synchronise the board", ""],
)
def test_other_words_are_far(other: str) -> None:
    assert distance(sketch(SAID), sketch(other)) > 16


def test_a_missing_sketch_is_near_nothing() -> None:
    assert distance("", sketch(SAID)) == distance("", "") == BITS
