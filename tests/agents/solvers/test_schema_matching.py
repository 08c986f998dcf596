"""Renamed fields are found by what is left over."""

from owa_bench.agents.solvers import schema_matching
from owa_bench.agents.solvers.openapi import Property

FIELDS = (
    Property("id", "string", "Identifier."),
    Property("account_code", "string", "Code of the account."),
    Property("booked_on", "string", "Day of the booking.", "", "date"),
    Property("amount", "integer", "Amount in the ledger.", "cents"),
)


def test_names_that_are_there_stay() -> None:
    rows = [{"id": "a", "account_code": "4", "booked_on": "2024-01-02", "amount": 3}]
    naming = schema_matching.resolve(FIELDS, rows)
    assert naming.names == {field.name: field.name for field in FIELDS}
    assert not naming.guessed


def test_two_renamed_fields_are_told_apart_by_type() -> None:
    rows = [{"id": "a", "account_code": "4", "posted": "2024-01-02", "val": 3}]
    naming = schema_matching.resolve(FIELDS, rows)
    assert naming.names["booked_on"] == "posted"
    assert naming.names["amount"] == "val"
    assert naming.guessed == {"booked_on", "amount"}


def test_words_decide_between_equal_types() -> None:
    rows = [{"key": "a", "acct_code": "4", "booked_on": "2024-01-02", "amount": 3}]
    naming = schema_matching.resolve(FIELDS, rows)
    assert naming.names["account_code"] == "acct_code"
    assert naming.names["id"] == "key"


def test_a_field_that_is_not_served_is_absent() -> None:
    rows = [{"id": "a", "account_code": "4", "amount": 3}]
    naming = schema_matching.resolve(FIELDS, rows)
    assert "booked_on" not in naming.names


def test_a_wrong_type_is_never_chosen() -> None:
    rows = [{"id": "a", "account_code": "4", "booked_on": "2024-01-02", "x": "3"}]
    assert "amount" not in schema_matching.resolve(FIELDS, rows).names


def test_every_full_naming_is_offered_once() -> None:
    rows = [{"x": "a", "y": "4", "booked_on": "2024-01-02", "amount": 3}]
    found = schema_matching.fit(FIELDS, rows)
    ways = [tuple(sorted(way.items())) for way in schema_matching.namings(found)]
    assert len(ways) == len(set(ways)) == 2
    assert (("account_code", "y"), ("id", "x")) in ways


def test_a_field_without_a_column_stays_unnamed() -> None:
    rows = [{"x": "a", "booked_on": "2024-01-02", "amount": 3}]
    ways = list(schema_matching.namings(schema_matching.fit(FIELDS, rows)))
    assert {"id": "x"} in ways
    assert {"account_code": "x"} in ways
    assert all(len(way) <= 1 for way in ways)
