"""Replay of a recorded procedure: recorded requests, answers derived from the replies.

Nothing is looked up: lists are read where they stood, under the names and units that their columns
had. A refusal that the script does not wait out ends the replay, and so does a list that is not
where it was.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from owa_bench.agents.solvers.api_solver.http_session import HttpSession
from owa_bench.agents.solvers.api_solver.pagination import FetchedRows
from owa_bench.agents.solvers.api_solver.resource_table import ResourceTable
from owa_bench.agents.solvers.api_solver.task_state import TaskState, read_source
from owa_bench.agents.solvers.planning import PlanCall, PlanReply, ToolPlan
from owa_bench.agents.solvers.schema_matching import SchemaFit
from owa_bench.interfaces import Brief

FIRST_OTHER = 300  # redirects among them: it goes nowhere else
ENDINGS = ("finish", "declare_infeasible")
Line = Mapping[str, Any]


def replay(
    script: Sequence[Line], brief: Brief, *, confident: float, halted: float
) -> ToolPlan[PlanCall]:
    """Replay a script to its end or its first unexpected refusal.

    Args:
        script: Its lines; `derive` says how a line's answer is made.
        brief: The task.
        confident: p stated at the end of the script.
        halted: p stated before it.
    Returns: The call that ends the episode.
    """
    halt = PlanCall("finish", {"answer": "", "p": halted})
    session, rows = HttpSession(0), _DerivedRows(brief)
    derives = any("derive" in line for line in script)
    for number, line in enumerate(script):
        following = script[number + 1]["tool"] if number + 1 < len(script) else ""
        arguments = dict(line["arguments"])
        if line["tool"] in ENDINGS:
            return PlanCall(line["tool"], {**arguments, "p": confident})
        if "derive" in line and not rows.complete(line, arguments):
            return halt
        if derives and line["tool"] == "http":
            reply = yield from session.send(arguments)
            rows.note(arguments, reply.body)
            refused = not 0 < reply.status < FIRST_OTHER
        else:
            seen = yield PlanCall(line["tool"], arguments)
            refused = is_refusal(seen)
        if refused and following != "wait":
            return halt
    return halt


def is_refusal(seen: PlanReply) -> bool:
    """Return whether a tool result reports an error or a status of 300 or more."""
    if seen.error is not None:
        return True
    status = seen.value.get("status") if isinstance(seen.value, Mapping) else None
    return isinstance(status, int) and status >= FIRST_OTHER


class _DerivedRows:
    """Replies of the recorded requests, and the answer that the goal's rule makes."""

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        self._bodies: dict[str, list[Any]] = {}
        self._task: TaskState | None = None
        self._rows: list[list[Any]] | None = None

    def note(self, arguments: Line, body: Any) -> None:
        """Keep a reply's body under the address that was asked."""
        self._bodies.setdefault(str(arguments["url"]), []).append(body)

    def complete(self, line: Line, arguments: dict[str, Any]) -> bool:
        """Put the derived rows or record into a call.

        Args:
            line: The line of the script.
            arguments: Those of its call; changed.
        Returns: False where a list is not where it was, or the rows make no answer.
        """
        if self._task is None:
            self._task = self._read(line["derive"])
            self._rows = self._task.compute() if self._task else None
        if self._task is None or self._rows is None:
            return False
        if "record" not in line:
            arguments["rows"] = self._rows
            return True
        if line["record"] >= len(self._rows):
            return False
        wanted = self._brief.goal["writes"]
        table = self._task.tables[wanted["source"]]
        values = zip(wanted["columns"], self._rows[line["record"]], strict=True)
        arguments["body"] = {
            table.names[role]: table.wire_money(role, value) for role, value in values
        }
        return True

    def _read(self, lists: Mapping[str, Line]) -> TaskState | None:
        """Return the goal with its tables, None where a list cannot be read."""
        task = TaskState(self._brief, HttpSession(0))
        sources = {one["id"]: one for one in self._brief.goal["sources"]}
        for name, one in lists.items():
            rows: list[Any] = []
            for body in self._bodies.get(one["url"], ()):
                for part in filter(None, one["wrapper"].split(".")):
                    body = body.get(part) if isinstance(body, Mapping) else None
                rows += body if isinstance(body, list) else [None]
            wire = set(one["names"].values())
            if not rows or not all(isinstance(row, Mapping) and wire <= set(row) for row in rows):
                return None
            task.tables[name] = ResourceTable(
                source=read_source(sources[name]),
                fetched=FetchedRows(one["url"], rows),
                properties=dict(one["names"]),
                fit=SchemaFit(frozenset(wire), (), (), {}),
                names=dict(one["names"]),
                units=dict(one["units"]),
                documented=dict(one["units"]),
            )
        return task
