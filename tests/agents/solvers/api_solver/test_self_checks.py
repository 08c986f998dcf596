"""The checks of a case, by hand."""

import pytest

from owa_bench.agents.solvers.api_solver.http_session import HttpSession
from owa_bench.agents.solvers.api_solver.pagination import FetchedRows
from owa_bench.agents.solvers.api_solver.resource_table import resource_table
from owa_bench.agents.solvers.api_solver.self_checks import audit, failing_sources, share
from owa_bench.agents.solvers.api_solver.task_state import TaskState
from owa_bench.agents.solvers.openapi import Operation, PagingScheme, Property
from owa_bench.interfaces import Brief

FIELDS = {"id": "Number.", "amount": "Amount of it."}
CONTROL = {"list": "List.", "count": "Rows.", "total": "Sum."}
DOCUMENTED = (
    Property("id", "string", "Number."),
    Property("amt", "integer", "Amount of it.", "cents"),
)
CONTROLS = tuple(
    Property(name, "integer" if name != "list" else "string", about)
    for name, about in CONTROL.items()
)
ROWS = [{"id": "e1", "amt": 3}, {"id": "e2", "amt": 4}]


def source(name: str, fields: dict[str, str]) -> dict[str, object]:
    about = {"provider": "V", "entry": None, "resource": name, "fields": fields}
    return {"id": name, "optional": name == "control", **about}


def case(count: int = 2, total: int = 7, *, complete: bool = True) -> TaskState:
    """Return a case of two entries whose control says `count` and `total`."""
    sources = [source("entries", FIELDS), source("control", CONTROL)]
    made = TaskState(
        Brief(text="", goal={"family": "reconcile", "sources": sources}), HttpSession(0)
    )
    control = [{"list": "entries", "count": count, "total": total}]
    for name, rows, documented in (("entries", ROWS, DOCUMENTED), ("control", control, CONTROLS)):
        operation = Operation("GET", "https://v", name, (), PagingScheme("none"), documented)
        crop = FetchedRows("https://v", rows=list(rows), complete=complete)
        told = next(s for s in made.sources if s.id == name)
        made.tables[name] = resource_table(told, operation, crop)
    return made


def test_a_sound_table_passes_every_check() -> None:
    checks = audit(case())
    kinds = ["there", "whole", "named", "meets", "adds up"]
    assert list(checks) == [f"entries {kind}" for kind in kinds]
    assert share(checks) == 1.0


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("whole", case(count=3)),
        ("whole", case(complete=False)),
        ("adds up", case(total=8)),
        ("adds up", case(total=700)),
    ],
)
def test_a_fault_fails_its_own_check_alone(kind: str, made: TaskState) -> None:
    checks = audit(made)
    assert failing_sources(checks, kind) == ["entries"]
    assert share(checks) == 0.8


def test_a_total_is_met_in_the_unit_that_is_held() -> None:
    made = case(total=700)
    made.tables["entries"].units["amount"] = "dollars"
    assert failing_sources(audit(made), "adds up") == []


def test_a_table_that_is_not_there_fails_all_its_checks() -> None:
    made = case()
    del made.tables["entries"]
    assert share(audit(made)) == 0.0


def test_a_control_that_is_not_there_fails_what_it_controls() -> None:
    made = case()
    del made.tables["control"]
    assert failing_sources(audit(made), "adds up") == ["entries"]
    assert failing_sources(audit(made), "whole") == []


def test_a_role_without_a_column_counts_in_part() -> None:
    made = case()
    made.tables["entries"].names.pop("id")
    assert audit(made)["entries named"] == 0.5


def test_no_sources_no_faults() -> None:
    assert share(audit(TaskState(Brief(text="", goal={}), HttpSession(0)))) == 1.0
