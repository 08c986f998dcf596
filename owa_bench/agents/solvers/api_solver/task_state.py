"""A goal and the tables fetched for it: the answer, its odds, and how it is given."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from owa_bench.agents.solvers.api_solver import family_rules, resource_table, silent_drift
from owa_bench.agents.solvers.api_solver.authentication import AuthenticatedClient
from owa_bench.agents.solvers.api_solver.column_evidence import ColumnEvidence, family_clues
from owa_bench.agents.solvers.api_solver.http_session import ALL_SKILLS, HttpSession, SkillConfig
from owa_bench.agents.solvers.planning import PlanCall, ToolPlan, posterior
from owa_bench.interfaces import Brief

DECLARE = "declare_infeasible"
PRIOR = 0.97  # a goal whose every source was read without trouble
SURE = 1.0  # lead from which guessed names are trusted
DOUBTFUL = 0.25  # odds left by names that others could have
LACKING = 0.05  # odds left by a role without a column
UNCHECKED = 0.6  # odds left by money whose unit rests on documents alone
UNTOLD = 0.05  # odds left by a value or an end that the rows leave open
INCOMPLETE = 0.1  # odds left by a list that is shorter than it should be
REFUSED_WRITE = 0.02  # odds left by a record that was not taken
EMPTY = 0.005  # odds left by an answer without rows: goals ask for something
LOST = 0.02  # no answer could be given
HELPED = 0.97  # the supervisor's own answer was handed in
MOST_HINTS = 40
MOST_SOURCES = 200
UNKNOWN = 0.5  # the belief in what was not looked at
SEEN = 0.97  # read off the served rows themselves
ADDED_UP = 0.98  # a unit that control totals confirm
DOCUMENTED = 0.8  # a unit that only the documents state
LOOKED_AT = 0.93  # documents against a whole collection, units added up
NOT_ADDED_UP = 0.75  # the same without control totals


class TaskState:
    """The goal and what is known of it: tables by source id.

    `supervisor_rows` are the rows of the supervisor's own answer, once it has given one. `doubts`
    is what else was noticed: how much of the odds each leaves.
    """

    def __init__(
        self, brief: Brief, session: HttpSession, config: SkillConfig = ALL_SKILLS
    ) -> None:
        self.goal = brief.goal
        self.session = session
        self.config = config
        self.tables: dict[str, resource_table.ResourceTable] = {}
        self.sources = tuple(map(read_source, self.goal.get("sources", ())))
        self.supervisor_rows: list[Any] | None = None
        self.doubts: list[float] = []
        self._listed = frozenset(brief.propositions)
        self._posted: set[str] = set()

    def settle(self) -> None:
        """Name what was renamed, add money up, and look for what nobody announced."""
        if self.config.weighs:
            self.evidence().settle()
        evidence = self.evidence()
        for table in self.tables.values():
            for role in evidence.money(table.source.id):
                table.units.setdefault(role, resource_table.CENTS)
        if self.config.adds_up:
            self._add_up()
        self._listen()

    def _listen(self) -> None:
        """Look for silent drift, and note what stays open."""
        clues = family_clues(self.goal.get("family", ""))
        evidence = self.evidence()
        stated = {one["kind"] for one in self.goal.get("invariants", ())}
        exact, rule = "cents" in stated, self.goal.get("rule", {})
        for table in self.tables.values():
            silent_drift.compare(table, rule, clues, exact=exact)
            if not evidence.meets(table):
                table.doubts.add(silent_drift.KEYS)
        for table in self.tables.values():
            silent_drift.counterpart(table, self.tables, clues)

    def _add_up(self) -> None:
        """Hold money against control totals."""
        for control in self.tables.values():
            if control.source.is_control:
                totals = control.role_rows()
                for subject in self.tables.values():
                    if subject.source.provider == control.source.provider:
                        resource_table.check_money(subject, totals)

    def evidence(self) -> ColumnEvidence:
        """Return what the goal's rule says of the columns of the tables."""
        clues = family_clues(self.goal.get("family", ""))
        return ColumnEvidence(self.tables, self.goal.get("rule", {}), clues)

    def follow_hints(self) -> ToolPlan[PlanCall | None]:
        """Do as the supervisor says; return the ending, None when the help stops.

        A record that was posted at its word is not posted again.
        """
        for _ in range(MOST_HINTS):
            hint = yield from self.session.ask("What is the next right step?")
            if hint is None:
                break
            if hint.tool == "finish":
                return self.finish(HELPED)
            if hint.tool == DECLARE:
                return self.declare()
            seen = yield hint
            if hint.tool == "write_artifact" and seen.error is None:
                self.supervisor_rows = list(hint.arguments.get("rows", ()))
                return self.finish(HELPED)
            if hint.arguments.get("method") == "POST":
                self._posted.update(map(str, _values(hint.arguments.get("body"))))
        return None

    def compute(self) -> list[list[Any]] | None:
        """Return the rows that the answer is to have, None without what they need."""
        repeats: dict[Any, Any] = {}
        for table in self.tables.values():
            repeats |= table.repeats()
        tables = {
            name: [_standing(row, repeats) for row in table.role_rows()]
            for name, table in self.tables.items()
        }
        try:
            rows = family_rules.compute(self.goal["family"], tables, self.goal["rule"])
        except (KeyError, TypeError, AttributeError, StopIteration, ZeroDivisionError):
            return None  # a role without values: the odds say so
        return rows and rows[: math.floor(self.config.carries * len(rows))]

    def hand_in(self, rows: list[list[Any]]) -> ToolPlan[bool]:
        """Write the artefact; return whether it was taken."""
        seen = yield PlanCall(
            "write_artifact",
            {
                "name": "answer",
                "columns": list(self.goal["answer"]["columns"]),
                "rows": rows,
                "sources": self.session.handles[:MOST_SOURCES],
            },
        )
        return seen.error is None

    def write(self, rows: list[list[Any]], access: AuthenticatedClient | None) -> ToolPlan[int]:
        """Post each record through `access`; return how many were refused.

        Args:
            rows: Records in the order of the goal's columns.
            access: Client of the vendor that takes them, None where there is none.
        Returns: The number of refused records.
        """
        wanted = self.goal["writes"]
        table = self.tables[wanted["source"]]
        if access is None or not set(wanted["columns"]) <= set(table.names):
            return len(rows)
        refused = 0
        for row in rows:
            if str(row[0]) in self._posted:
                continue
            record = {
                table.names[role]: table.wire_money(role, value)
                for role, value in zip(wanted["columns"], row, strict=True)
            }
            reply = yield from access.request(wanted["method"], table.fetched.address, body=record)
            refused += not reply.ok
        return refused

    def odds(self, more: Sequence[float] = ()) -> float:
        """Return the probability that the work is right, from what went wrong."""
        ratios = [*more, *self.doubts]
        for table in self.tables.values():
            if table.source.is_control:
                continue
            ratios += [LACKING] * table.lacks
            ratios += [DOUBTFUL] * (table.lead < SURE)
            ratios += [UNTOLD] * len(table.doubts)
            ratios += [INCOMPLETE] * (not table.fetched.complete)
            ratios += [UNCHECKED] * (bool(table.units) and not table.checked)
        return posterior(PRIOR, ratios)

    def finish(self, p: float) -> PlanCall:
        """Return the ending of an answer that is right with probability `p`."""
        words = {"answer": "answer", "p": p, "beliefs": self._beliefs()}
        return PlanCall("finish", words)

    def declare(self) -> PlanCall:
        """Return the ending of a goal that cannot be reached."""
        return PlanCall(DECLARE, {"p": LOST, "beliefs": self._beliefs()})

    def _beliefs(self) -> dict[str, float]:
        held = beliefs(self.goal.get("propositions", ()), self.tables)
        return {name: p for name, p in held.items() if name in self._listed}


def read_source(raw: Mapping[str, Any]) -> resource_table.GoalSource:
    """Return a source of the goal."""
    return resource_table.GoalSource(
        id=str(raw["id"]),
        provider=str(raw["provider"]),
        entry=raw.get("entry"),
        resource=str(raw["resource"]),
        optional=bool(raw.get("optional", False)),
        fields=dict(raw["fields"]),
    )


def _standing(row: Mapping[str, Any], repeats: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a row whose references to repeated postings name the standing one."""
    return {
        role: repeats.get(value, value) if isinstance(value, str) else value
        for role, value in row.items()
    }


def _values(body: Any) -> Sequence[Any]:
    """Return the values of a body that is an object."""
    return tuple(body.values()) if isinstance(body, Mapping) else ()


def beliefs(
    propositions: Sequence[Mapping[str, Any]], tables: Mapping[str, resource_table.ResourceTable]
) -> dict[str, float]:
    """Return a probability for each proposition of the goal.

    Args:
        propositions: The propositions as the goal has them for machines.
        tables: Tables by source.
    Returns: Probability by id.
    """
    return {
        str(claim["id"]): _belief(claim, tables.get(str(claim.get("source"))))
        for claim in propositions
    }


def _belief(claim: Mapping[str, Any], table: resource_table.ResourceTable | None) -> float:
    if table is None or not table.fetched.rows:
        return UNKNOWN
    match claim["kind"]:
        case "unit":
            return _unit(claim, table)
        case "duplicate":
            one, other = claim["rows"]
            same = table.same_posting(one, other, claim.get("fields", ()))
            return _sided(same, SEEN)
        case "bound":
            return _bound(claim, table)
        case "docs":
            return _docs(claim, table)
        case _:
            return UNKNOWN


def _unit(claim: Mapping[str, Any], table: resource_table.ResourceTable) -> float:
    unit = None if silent_drift.UNITS in table.doubts else table.units.get(claim["field"])
    sure = ADDED_UP if table.checked else DOCUMENTED
    return _sided(None if unit is None else unit == claim["claim"], sure)


def _bound(claim: Mapping[str, Any], table: resource_table.ResourceTable) -> float:
    where = claim["where"].items()
    for row in table.role_rows():
        if all(row.get(role) == value for role, value in where):
            value = row.get(claim["field"])
            return _sided(value if isinstance(value, bool) else None, SEEN)
    return UNKNOWN


def _docs(claim: Mapping[str, Any], table: resource_table.ResourceTable) -> float:
    differ = bool(table.fetched.doc_errors) or table.units != table.documented
    added_up = table.checked or not table.documented
    sure = LOOKED_AT if differ or added_up else NOT_ADDED_UP
    if table.doubts and not differ:
        sure = UNKNOWN
    return _sided(differ == (claim["claim"] == "differ"), sure)


def _sided(truth: bool | None, sure: float) -> float:
    """Return `sure` for what was seen true, its opposite for false, .5 if unseen."""
    if truth is None:
        return UNKNOWN
    return posterior(sure if truth else 1.0 - sure)
