"""Tables by role: names of columns resolved, money in cents, repeated rows once."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, NamedTuple

from owa_bench.agents.solvers import documents, schema_matching
from owa_bench.agents.solvers.api_solver.pagination import FetchedRows, WireRow
from owa_bench.agents.solvers.openapi import Operation
from owa_bench.agents.solvers.schema_matching import SchemaFit

CENTS, DOLLARS = "cents", "dollars"
CENTS_IN_DOLLAR = 100
LEAST_MATCH = 0.5
_LETTERS_DIGITS = re.compile(r"^([a-z]+)(\d)")
CONTROL_ROLES = frozenset({"list", "count", "total"})


class GoalSource(NamedTuple):
    """A source of the goal: its id, vendor, entry, meaning, roles by description."""

    id: str
    provider: str
    entry: str | None
    resource: str
    optional: bool
    fields: Mapping[str, str]

    @property
    def is_control(self) -> bool:
        """Whether it holds control totals of other sources."""
        return frozenset(self.fields) == CONTROL_ROLES


@dataclass(slots=True)
class ResourceTable:
    """Rows as served with the wire name of each role and the unit of money roles.

    `documented` are the units that the documents state, `properties` the documented name of each
    role, `fit` what those that are not served may be called. `lead` says by how much the names beat
    the next best ones; infinite when nothing was guessed. `choices` are the values that roles have
    by the documents, `values` what others mean (role -> served -> meant), `shifts` by how many days
    dates are read later, `doubts` what the rows leave open.
    """

    source: GoalSource
    fetched: FetchedRows
    properties: dict[str, str]
    fit: SchemaFit
    names: dict[str, str]
    units: dict[str, str]
    documented: dict[str, str]
    lead: float = float("inf")
    checked: bool = False
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    values: dict[str, dict[str, str]] = field(default_factory=dict)
    shifts: dict[str, int] = field(default_factory=dict)
    doubts: set[str] = field(default_factory=set)

    def roles_under(self, naming: Mapping[str, str]) -> dict[str, str]:
        """Return role -> wire name when missing fields go by `naming`."""
        known = {name: name for name in self.fit.present} | dict(naming)
        return {role: known[name] for role, name in self.properties.items() if name in known}

    @property
    def lacks(self) -> int:
        """How many roles have no column."""
        return len(self.source.fields) - len(self.names)

    def role_rows(self) -> list[dict[str, Any]]:
        """Return the rows by role, money in cents, equal postings once."""
        return [self._by_role(row) for row in self._once()]

    def _by_role(self, row: WireRow) -> dict[str, Any]:
        found = {role: row.get(name) for role, name in self.names.items()}
        for role, unit in self.units.items():
            if (amount := number(found.get(role))) is not None:
                scale = CENTS_IN_DOLLAR if unit == DOLLARS else 1
                found[role] = round(amount * scale)
        for role, meant in self.values.items():
            found[role] = meant.get(str(found.get(role)), found.get(role))
        for role, days in self.shifts.items():
            found[role] = shifted_day(found.get(role), days)
        return found

    def _once(self) -> list[WireRow]:
        """Return the rows without those that equal an earlier one but for the id."""
        ident = self.names.get("id")
        if ident is None:
            return list(self.fetched.rows)
        kept: dict[str, WireRow] = {}
        for row in self.fetched.rows:
            kept.setdefault(_content(row, ident), row)
        return list(kept.values())

    def repeats(self) -> dict[Any, Any]:
        """Return the id of each repeated posting -> the id of the one that stands."""
        ident = self.names.get("id")
        if ident is None:
            return {}
        standing: dict[str, Any] = {}
        pairs = [(row.get(ident), _content(row, ident)) for row in self.fetched.rows]
        for number, content in pairs:
            standing.setdefault(content, number)
        return {n: standing[c] for n, c in pairs if standing[c] != n}

    def same_posting(self, first: Any, second: Any, roles: Sequence[str] = ()) -> bool | None:
        """Return whether two rows by id are equal but for it; None if not both seen.

        With `roles` only these are compared, capital letters aside.

        Args:
            first: Identifier of a row.
            second: Identifier of another row.
            roles: Roles to compare; none for all but the identifier.
        Returns: True if they are equal.
        """
        ident = self.names.get("id", "id")
        rows = {row.get(ident): row for row in self.fetched.rows}
        if first not in rows or second not in rows:
            return None
        pair = (rows[first], rows[second])
        if not roles:
            return _content(pair[0], ident) == _content(pair[1], ident)
        names = [self.names[role] for role in roles if role in self.names]
        one, other = ([str(row.get(n)).lower() for n in names] for row in pair)
        return one == other if len(names) == len(roles) else None

    def column(self, role: str) -> list[Any]:
        """Return the values of a role's column as served, none without a column."""
        return schema_matching.column(self.fetched.rows, self.names.get(role, ""))

    def wire_money(self, role: str, cents: Any) -> Any:
        """Return an amount in the unit and type that the wire has for `role`.

        What is no whole number stays as it is: a column was misread, and the vendor will say so.

        Args:
            role: A role of the table.
            cents: The amount, in whole cents.
        Returns: The value to send.
        """
        if type(cents) is not int:
            return cents
        as_text = role in self.units and any(isinstance(v, str) for v in self.column(role))
        if self.units.get(role) != DOLLARS:
            return str(cents) if as_text else cents
        if as_text:
            return f"{cents // CENTS_IN_DOLLAR}.{cents % CENTS_IN_DOLLAR:02d}"
        whole = cents % CENTS_IN_DOLLAR == 0
        return cents // CENTS_IN_DOLLAR if whole else cents / CENTS_IN_DOLLAR


def resource_table(
    source: GoalSource, operation: Operation, fetched: FetchedRows, *, guesses: bool = True
) -> ResourceTable:
    """Return the table of a collection: each role gets the name of its description.

    Args:
        source: The source of the goal.
        operation: The collection as documented.
        fetched: Its rows; they are written in their plain form.
        guesses: Whether fields that go by another name are named by likeness.
    Returns: The table, before any evidence from values.
    """
    fit = schema_matching.fit(operation.fields, fetched.rows)
    if fetched.rows and fit.missing:
        fetched.doc_errors.add("fields")
    abouts = {prop.name: prop.about for prop in operation.fields}
    units = {prop.name: prop.unit for prop in operation.fields if prop.unit}
    matched = {
        role: documents.best(text, abouts, least=LEAST_MATCH)
        for role, text in source.fields.items()
    }
    properties = {role: name for role, name in matched.items() if name is not None}
    stated = {role: units[name] for role, name in properties.items() if name in units}
    fetched.rows = [_in_plain_form(row, operation) for row in fetched.rows]
    listed = {prop.name: prop.choices for prop in operation.fields if prop.choices}
    found = ResourceTable(source, fetched, properties, fit, {}, dict(stated), stated)
    found.choices = {r: listed[n] for r, n in properties.items() if n in listed}
    guessed = documents.assign(fit.scores, fit.missing) if guesses else {}
    found.names = found.roles_under(guessed)
    return found


def _in_plain_form(row: WireRow, operation: Operation) -> WireRow:
    """Return a row with its identifiers as other tables refer to them."""
    forms = {prop.name: prop.form for prop in operation.fields if prop.form}
    if not forms:
        return row
    return {n: _plain(v, forms[n]) if n in forms else v for n, v in row.items()}


def check_money(subject: ResourceTable, control: Sequence[Mapping[str, Any]]) -> None:
    """Settle the units of `subject` by its vendor's control totals, where there are.

    Args:
        subject: The table; its `units` and `checked` are updated.
        control: Rows of control totals.
    """
    for row in control:
        if row.get("list") != subject.source.id or not subject.fetched.rows:
            continue
        if row.get("count") != len(subject.fetched.rows):
            subject.fetched.complete = False
            continue
        for role in list(subject.units):
            unit = _unit(subject.column(role), row.get("total"))
            if unit is not None:
                subject.units[role] = unit
                subject.checked = True


def _unit(shown: Sequence[Any], total: Any) -> str | None:
    """Return the unit in which the column adds up to `total` cents, None if neither."""
    amounts = [number(value) for value in shown]
    added = sum(amount for amount in amounts if amount is not None)
    if not added or None in amounts:
        return None
    if round(added * CENTS_IN_DOLLAR) == round(total * CENTS_IN_DOLLAR):
        return CENTS
    return DOLLARS if round(added * CENTS_IN_DOLLAR) == total else None


def control_rows(tables: Iterable[ResourceTable]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the list that each row of control totals is about, and the row."""
    for table in tables:
        if table.source.is_control:
            for row in table.role_rows():
                yield str(row.get("list")), row


def shifted_day(day: Any, days: int) -> Any:
    """Return a date as text some days later; anything else as it is.

    Args:
        day: An ISO date, or anything else.
        days: Days to add.
    """
    try:
        return (date.fromisoformat(str(day)[:10]) + timedelta(days)).isoformat()
    except ValueError:
        return day


def number(value: Any) -> float | int | None:
    """Return a number, also one that is written as text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    try:
        return float(str(value)) if isinstance(value, str) else None
    except ValueError:
        return None


def _plain(value: Any, form: str) -> Any:
    """Return an identifier as it was before its documented form."""
    if not isinstance(value, str):
        return value
    if "upper" in form:
        return value.lower()
    if "hyphen" in form:
        return _LETTERS_DIGITS.sub(r"\1-\2", value)
    return value.removeprefix(form.partition(" ")[0])


def _content(row: WireRow, ident: str) -> str:
    """Return everything of a row but its id, as text."""
    return repr(sorted((name, value) for name, value in row.items() if name != ident))
