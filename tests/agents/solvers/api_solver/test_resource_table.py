"""Sheets: repeats once, money in cents, units settled by control totals."""

from owa_bench.agents.solvers.api_solver.column_evidence import ColumnEvidence, family_clues
from owa_bench.agents.solvers.api_solver.pagination import FetchedRows
from owa_bench.agents.solvers.api_solver.resource_table import (
    GoalSource,
    ResourceTable,
    check_money,
    resource_table,
)
from owa_bench.agents.solvers.openapi import Operation, PagingScheme, Property

FIELDS = {"id": "Number.", "account": "Account of it.", "amount": "Amount of it."}
DOCUMENTED = (
    Property("id", "string", "Number."),
    Property("acct", "string", "Account of it."),
    Property("amt", "integer", "Amount of it.", "dollars"),
)
ROWS = [
    {"id": "e1", "acct": "a1", "amt": 3},
    {"id": "e2", "acct": "a1", "amt": 3},
    {"id": "e3", "acct": "a2", "amt": 4},
]


def made(rows: list[dict], name: str = "entries") -> ResourceTable:
    source = GoalSource(name, "V", None, "Entries.", optional=False, fields=FIELDS)
    operation = Operation("GET", "https://v/e", "Entries.", (), PagingScheme("none"), DOCUMENTED)
    return resource_table(
        source, operation, FetchedRows("https://v/e", rows=list(rows), complete=True)
    )


def test_a_repeat_stands_once_and_money_is_in_cents() -> None:
    entries = made(ROWS)
    assert entries.role_rows() == [
        {"id": "e1", "account": "a1", "amount": 300},
        {"id": "e3", "account": "a2", "amount": 400},
    ]
    assert entries.repeats() == {"e2": "e1"}
    assert entries.same_posting("e1", "e2") is True
    assert entries.same_posting("e1", "e3") is False
    assert entries.same_posting("e1", "e9") is None


def test_control_totals_settle_the_unit() -> None:
    entries = made(ROWS)
    check_money(entries, [{"list": "entries", "count": 3, "total": 10}])
    assert entries.units == {"amount": "cents"}
    assert entries.checked
    assert entries.wire_money("amount", 700) == 700


def test_a_total_that_fits_neither_unit_settles_nothing() -> None:
    entries = made(ROWS)
    check_money(entries, [{"list": "entries", "count": 3, "total": 11}])
    assert entries.units == {"amount": "dollars"}
    assert not entries.checked
    assert entries.wire_money("amount", 700) == 7


def test_a_count_that_is_off_means_rows_are_missing() -> None:
    entries = made(ROWS)
    check_money(entries, [{"list": "entries", "count": 4, "total": 10}])
    assert not entries.fetched.complete


def test_keys_that_meet_name_renamed_fields() -> None:
    renamed = [{"x": r["acct"], "y": r["id"], "sum": r["amt"]} for r in ROWS]
    source = GoalSource("accounts", "V", None, "Accounts.", optional=False, fields={"id": "Key."})
    keys = (Property("id", "string", "Key."),)
    operation = Operation("GET", "https://v/a", "Accounts.", (), PagingScheme("none"), keys)
    crop = FetchedRows("https://v/a", rows=[{"id": "a1"}, {"id": "a2"}])
    entries = made(renamed)
    sheets = {"entries": entries, "accounts": resource_table(source, operation, crop)}
    ColumnEvidence(sheets, {}, family_clues("reconcile")).settle()
    assert entries.names == {"account": "x", "id": "y", "amount": "sum"}
    assert entries.lead > 1.0
    assert "fields" in entries.fetched.doc_errors
