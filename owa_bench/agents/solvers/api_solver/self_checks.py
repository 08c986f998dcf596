"""Checks of how sound fetched tables are, without an answer key.

The checks are fixed by the goal's sources alone: two ways of fetching the same goal are held to the
same list, and one that did not fetch a table fails that table's checks. A table that passes them
all may still be wrong: names that fit every clue, a unit that no control total covers and rows that
changed after they were read are not seen.
"""

from collections.abc import Mapping
from typing import Any

from owa_bench.agents.solvers.api_solver import resource_table
from owa_bench.agents.solvers.api_solver.column_evidence import ColumnEvidence
from owa_bench.agents.solvers.api_solver.task_state import TaskState

Checks = Mapping[str, float]


def audit(task: TaskState) -> dict[str, float]:
    """Return each check of a case and how far it is passed, in [0, 1].

    SOURCE there    the table was fetched
    SOURCE whole    every page of it, and as many rows as its control total counts
    SOURCE named    every role has a column
    SOURCE meets    its values meet those of other tables as the goal says they must
    SOURCE adds up  it adds up to its control total, for lists that have one
    """
    evidence = task.evidence()
    controls = dict(resource_table.control_rows(task.tables.values()))
    held: dict[str, float] = {}
    for source in task.sources:
        if source.is_control:
            continue
        found = task.tables.get(source.id)
        control = controls.get(source.id)
        held[f"{source.id} there"] = float(found is not None)
        held[f"{source.id} whole"] = float(found is not None and _is_complete(found, control))
        named = len(found.names) / len(source.fields) if found and source.fields else 0.0
        held[f"{source.id} named"] = named
        held[f"{source.id} meets"] = evidence.consistency(found) if found else 0.0
        if _has_money(task, source, evidence):
            fits = found is not None and control is not None and _adds_up(found, control)
            held[f"{source.id} adds up"] = float(fits)
    return held


def share(checks: Checks) -> float:
    """Return the mean of the checks, 1 where there are none."""
    return sum(checks.values()) / len(checks) if checks else 1.0


def failing_sources(checks: Checks, kind: str) -> list[str]:
    """Return the sources that do not pass their check of a kind in full.

    Args:
        checks: Results by name.
        kind: The last words of the names, such as "whole".
    Returns: Ids of sources.
    """
    return [
        name.removesuffix(f" {kind}")
        for name, held in checks.items()
        if name.endswith(f" {kind}") and held < 1.0
    ]


def _is_complete(found: resource_table.ResourceTable, control: Mapping[str, Any] | None) -> bool:
    counted = control.get("count") if control else None
    return found.fetched.complete and counted in (None, len(found.fetched.rows))


def _has_money(
    task: TaskState, source: resource_table.GoalSource, evidence: ColumnEvidence
) -> bool:
    """Return whether the goal has control totals of a list of this vendor.

    Only a list that some clue says adds up is held to one.
    """
    vendors = {other.provider for other in task.sources if other.is_control}
    return source.provider in vendors and bool(evidence.money(source.id))


def _adds_up(found: resource_table.ResourceTable, control: Mapping[str, Any]) -> bool:
    """Return whether a money column adds up to the total in cents, as it is read."""
    for role in found.units:
        shown = found.column(role)
        amounts = [amount for v in shown if (amount := resource_table.number(v)) is not None]
        if len(amounts) == len(shown):
            scale = (
                resource_table.CENTS_IN_DOLLAR
                if found.units.get(role) == resource_table.DOLLARS
                else 1
            )
            if amounts and round(sum(amounts) * scale) == control.get("total"):
                return True
    return False
