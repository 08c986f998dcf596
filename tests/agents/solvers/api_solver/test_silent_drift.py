"""What nobody announced: told by rows, or left as a doubt."""

import pytest

from owa_bench.agents.solvers.api_solver import silent_drift, task_state
from owa_bench.agents.solvers.api_solver.column_evidence import clues
from owa_bench.agents.solvers.api_solver.pagination import FetchedRows
from owa_bench.agents.solvers.api_solver.resource_table import (
    CENTS,
    DOLLARS,
    GoalSource,
    ResourceTable,
    resource_table,
)
from owa_bench.agents.solvers.openapi import Operation, PagingScheme, Property

STATES = ("open", "shut", "frozen")


def made(
    fields: dict[str, Property], rows: list[dict], name: str = "rows", **about: str
) -> ResourceTable:
    """Return a sheet whose roles are described as its properties are."""
    texts = {role: about.get(role, prop.about) for role, prop in fields.items()}
    source = GoalSource(name, "V", None, "Rows.", optional=False, fields=texts)
    documented = tuple(fields.values())
    operation = Operation("GET", "https://v/r", "Rows.", (), PagingScheme("none"), documented)
    return resource_table(source, operation, FetchedRows("https://v/r", rows=rows, complete=True))


def stated(served: list[str], choices: tuple[str, ...] = STATES) -> ResourceTable:
    """Return a sheet of states that was compared with what the rule asks for."""
    about = "State of it: open, shut or frozen."
    field = Property("state", "string", about, choices=choices)
    found = made({"state": field}, [{"state": value} for value in served])
    rule = {"wanted": "open"}
    silent_drift.compare(found, rule, {"rows": clues("state holds wanted")})
    return found


def states(found: ResourceTable) -> list[str]:
    return [row["state"] for row in found.role_rows()]


def test_values_that_are_documented_stay() -> None:
    found = stated(["open", "shut", "open"])
    assert states(found) == ["open", "shut", "open"]
    assert not found.doubts
    assert not found.fetched.doc_errors


@pytest.mark.parametrize("choices", [STATES, ()])
def test_a_strange_value_is_the_one_that_is_missing(choices: tuple[str, ...]) -> None:
    found = stated(["live", "shut", "frozen", "live"], choices)
    assert states(found) == ["open", "shut", "frozen", "open"]
    assert "values" in found.fetched.doc_errors
    assert not found.doubts


@pytest.mark.parametrize(
    "served",
    [
        ["live", "shut"],  # `frozen` is missing too
        ["live", "on", "frozen", "shut"],  # two strangers
        ["shut", "frozen"],  # none is open, or what is
        ["open", "shut", "frozen", "lost"],  # a state that nothing tells of
    ],
)
def test_what_cannot_be_told_is_a_doubt(served: list[str]) -> None:
    assert stated(served).doubts == {"values"}


PERIOD = {
    "first_day": Property("from", "string", "First day.", format="date"),
    "last_day": Property("to", "string", "End.", format="date"),
    "last_day_included": Property("incl", "boolean", "Whether the end is in."),
    "line": Property("line", "string", "Line."),
}


def periods(*rows: tuple[str, str, str, bool]) -> ResourceTable:
    names = ("line", "from", "to", "incl")
    found = made(PERIOD, [dict(zip(names, row, strict=True)) for row in rows])
    silent_drift.compare(found, {}, {"rows": clues("last_day meets line")})
    return found


def test_ends_that_meet_stay() -> None:
    found = periods(
        ("a", "2031-01-01", "2031-03-31", True),
        ("b", "2031-01-01", "2031-02-01", False),
        ("a", "2031-04-01", "2031-12-31", True),
        ("b", "2031-02-01", "2031-12-31", True),
    )
    assert found.role_rows()[0]["last_day"] == "2031-03-31"
    assert not found.doubts


def test_ends_that_are_all_a_day_early_are_read_a_day_later() -> None:
    found = periods(
        ("a", "2031-01-01", "2031-03-30", True),
        ("b", "2031-01-01", "2031-01-31", False),
        ("a", "2031-04-01", "2031-12-30", True),
        ("b", "2031-02-01", "2031-12-30", True),
    )
    assert [row["last_day"] for row in found.role_rows()] == [
        "2031-03-31",
        "2031-02-01",
        "2031-12-31",
        "2031-12-31",
    ]


def test_ends_that_are_off_in_different_ways_are_a_doubt() -> None:
    found = periods(
        ("a", "2031-01-01", "2031-03-30", True),
        ("a", "2031-04-01", "2031-06-30", True),
        ("a", "2031-07-01", "2031-12-31", True),
    )
    assert found.doubts == {"ends"}
    assert periods(("a", "2031-01-01", "2031-12-31", True)).doubts == {"ends"}


def money(amounts: list[float], unit: str, name: str = "rows") -> ResourceTable:
    field = Property("amount", "number", "Amount.", unit)
    return made({"amount": field}, [{"amount": a} for a in amounts], name)


def test_decimals_are_dollars_whatever_the_documents_say() -> None:
    found = money([12.5, 3, 4], CENTS)
    silent_drift.compare(found, {}, {})
    assert (found.units["amount"], found.checked) == (DOLLARS, True)


def test_dollars_without_decimals_are_a_doubt() -> None:
    whole = [float(100 + i) for i in range(9)]
    for unit, doubts in ((DOLLARS, {"units"}), (CENTS, set())):
        found = money(whole, unit)
        silent_drift.compare(found, {}, {})
        assert (found.doubts, found.checked) == (doubts, False)


def test_what_is_in_doubt_is_not_believed() -> None:
    found = money([float(100 + i) for i in range(9)], DOLLARS)
    field = {"source": "rows", "field": "amount"}
    claims = [
        {"id": "u", "kind": "unit", "claim": "dollars", **field},
        {"id": "d", "kind": "docs", "claim": "agree", "source": "rows"},
    ]
    sure = task_state.beliefs(claims, {"rows": found})
    assert min(sure.values()) > 0.7
    silent_drift.compare(found, {}, {})
    assert set(task_state.beliefs(claims, {"rows": found}).values()) == {0.5}


def test_a_counterpart_settles_the_unit() -> None:
    cents = [1250, 999, 310, 4075, 880, 515, 123, 64, 777]
    known = money([c / 100 for c in cents], DOLLARS, "known")
    open_one = money([float(c) for c in cents], DOLLARS, "open")
    like = {"open": clues("amount like known.amount")}
    sheets = {"known": known, "open": open_one}
    for found in sheets.values():
        silent_drift.compare(found, {}, like)
    assert open_one.doubts == {"units"}
    silent_drift.counterpart(open_one, sheets, like)
    assert (open_one.units["amount"], open_one.checked) == (CENTS, True)
    assert not open_one.doubts
    strange = money([1e6 + i for i in range(9)], DOLLARS, "open")
    silent_drift.compare(strange, {}, like)
    silent_drift.counterpart(strange, {"known": known}, like)
    assert strange.doubts == {"units"}
