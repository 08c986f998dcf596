"""The kind `close`: month-end cash application."""

from collections.abc import Mapping, Set
from typing import Any

from typing_extensions import override

from owa_bench.company.kinds.close.statements import PROPOSITION_KINDS, month_propositions
from owa_bench.company.kinds.close.truth import CLASSES, month_truth
from owa_bench.company.kinds.close.world import draw_world
from owa_bench.company.kinds.contract import (
    CaseKind,
    CasePart,
    CaseProposition,
    CaseSpec,
    CaseState,
    CaseTruth,
    CaseWorld,
    ItemTruth,
    JsonRow,
    PostResult,
)
from owa_bench.company.kinds.judging import f1_rows, items_by_reason, plain_value
from owa_bench.company.language.close_policy import CODES, FORM, POLICY
from owa_bench.company.language.close_rules import PAID_ROWS

_AT_ONCE = 250  # allocations that the answer key posts in one act: an action has its limit
_WEIGHTS = {"lines": 0.6, "exceptions": 0.25, "open_items": 0.15}  # [D]
_REFUSED = 20  # rows that a reply lists
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


class CloseKind(CaseKind):
    """Month-end cash application: allocations, exceptions, open items."""

    name = "close"
    form = FORM
    policy_slug = POLICY
    policy_owner = "Head of Finance"
    sources = CLASSES
    proposition_kinds = PROPOSITION_KINDS
    deliverables: Mapping[str, tuple[str, ...]] = {
        "exceptions": ("line", "code", "amount_cents"),
        "open_items": ("customer", "open_cents"),
    }

    @override
    def draw(self, spec: CaseSpec) -> CaseWorld:
        return draw_world(spec)

    @override
    def brief(self, world: CaseWorld) -> str:
        year, month = world.matter.month.split("-")
        asked = ", ".join(world.matter.customers)
        return BRIEF.format(
            firm=world.firm,
            trade=world.trade,
            name=f"{_MONTHS[int(month) - 1]} {year}",
            month=world.matter.month,
            today=f"{world.begins:%A, %d %B %Y, %H:%M}",
            ends=f"{world.ends:%H:%M}",
            asked=asked,
            codes=", ".join(CODES),
        )

    @override
    def truth(
        self, world: CaseWorld, happened: Set[str] = frozenset(), blind: Set[str] = frozenset()
    ) -> CaseTruth:
        return month_truth(world, happened, blind)

    @override
    def post(self, world: CaseWorld, state: CaseState, call: str, body: Any) -> PostResult:
        rows = body.get("rows") if isinstance(body, Mapping) else body
        mode = body.get("mode", "add") if isinstance(body, Mapping) else "add"
        if call != "allocate" or not isinstance(rows, list) or mode not in ("add", "replace"):
            return PostResult(400, {"error": "a body with mode and rows is expected"})
        lines = {row.id for row in world.tables["bank_lines"]}
        invoices = {row.id for row in world.tables["invoices"]}
        standing: dict[str, dict[str, dict[str, Any]]] = {}
        if mode == "add":
            for line, old in state.settled.items():
                standing[line] = {row["invoice"]: row for row in old}
        refused = []
        for place, row in enumerate(rows):
            paid = _paid_row(row)
            if paid is None or paid["line"] not in lines or paid["invoice"] not in invoices:
                refused.append(place)
            else:
                standing.setdefault(paid["line"], {})[paid["invoice"]] = paid
        settled: dict[str, Any] = dict.fromkeys(state.settled)
        settled |= {line: tuple(by[key] for key in sorted(by)) for line, by in standing.items()}
        reply = {
            "taken": len(rows) - len(refused),
            "standing": sum(map(len, standing.values())),
            "refused": len(refused),
            "refused_rows": refused[:_REFUSED],
        }
        return PostResult(200, reply, settled)

    @override
    def parts(self, world: CaseWorld, truth: CaseTruth, state: CaseState) -> tuple[CasePart, ...]:
        handed = {name: state.handed_in.get(name, ()) for name in self.deliverables}
        if not any(state.settled.values()) and not any(handed.values()):
            return tuple(CasePart(name, weight, 0.0) for name, weight in _WEIGHTS.items())
        told = _exceptions_by_line(handed["exceptions"])

        def right(item: ItemTruth) -> float:
            rows = tuple(state.settled.get(item.id) or ())
            same = told.get(item.id, []) == list(item.answer["exceptions"])
            return float(rows == item.answer["rows"] and same)

        values = {
            "lines": items_by_reason(truth, right),
            "exceptions": f1_rows(
                truth.deliverables["exceptions"],
                handed["exceptions"],
                ("line", "code"),
                ("amount_cents",),
            ),
            "open_items": f1_rows(
                truth.deliverables["open_items"],
                handed["open_items"],
                ("customer",),
                ("open_cents",),
            ),
        }
        return tuple(CasePart(name, weight, values[name]) for name, weight in _WEIGHTS.items())

    @override
    def solution(
        self, world: CaseWorld, truth: CaseTruth
    ) -> tuple[tuple[tuple[str, Any], ...], Mapping[str, tuple[JsonRow, ...]]]:
        rows = [row for item in truth.items for row in item.answer["rows"]]
        parts = [rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE)]
        calls = tuple(("allocate", {"mode": "add", "rows": part}) for part in parts)
        return calls, truth.deliverables

    @override
    def state_of(self, world: CaseWorld, truth: CaseTruth, happened: Set[str]) -> CaseState:
        answers = {item.id: item.answer["rows"] for item in truth.items}
        return CaseState(
            settled={line: rows for line, rows in answers.items() if rows},
            handed_in={name: tuple(rows) for name, rows in truth.deliverables.items()},
            happened=frozenset(happened),
        )

    @override
    def right(self, world: CaseWorld, truth: CaseTruth, state: CaseState) -> frozenset[str]:
        return frozenset(
            item.id
            for item in truth.items
            if tuple(state.settled.get(item.id) or ()) == item.answer["rows"]
        )

    @override
    def propositions(self, world: CaseWorld) -> tuple[CaseProposition, ...]:
        return month_propositions(world)


def _paid_row(row: Any) -> dict[str, Any] | None:
    """Return an allocation with all its columns; None: it is none."""
    if not isinstance(row, Mapping):
        return None
    line, invoice = row.get("line"), row.get("invoice")
    cents = [row.get(name) or 0 for name in PAID_ROWS[2:]]
    if not isinstance(line, str) or not isinstance(invoice, str):
        return None
    if any(type(one) is not int or one < 0 for one in cents):
        return None
    return dict(zip(PAID_ROWS, (line, invoice, *cents), strict=True))


def _exceptions_by_line(rows: Any) -> dict[str, list[tuple[str, Any]]]:
    """Return the exceptions that were handed in by line, in order."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for row in rows:
        if isinstance(row, Mapping):
            cell = (str(plain_value(row.get("code"))), plain_value(row.get("amount_cents")))
            found.setdefault(str(row.get("line")), []).append(cell)
    return {line: sorted(cells, key=str) for line, cells in found.items()}


BRIEF = """# Cash application for {name}, {firm} ({trade})

It is {today}. The desk closes at {ends}; each act costs a minute or more.

## Hand in
- Allocations: post them to the receivables ledger (host ledger.corp, mode replace): one row for \
each line and invoice, with line, invoice, paid_cents, discount_cents, charge_cents, credit_cents. \
A line that pays nothing has no row.
- `exceptions` (submit): one row for each exception of the policy, with line, code, amount_cents. \
Codes: {codes}. No row where a line is no exception.
- `open_items` (submit): customer, open_cents after your allocations, for: {asked}.
- Amounts are whole cents.

## Task
- Apply the bank lines of {month} to the invoices they pay, by the cash application policy in the \
wiki. The policy decides alone; the page of changes, if there is one, amends it.
- Lines and statements: bank.corp. Invoices and credit notes: billing.corp. Customers, contacts, \
contracts, registered payers: crm.corp. `GET https://HOST/` describes a host.
- Invoice status is that of the last day before the month: the month's payments are not in it.
- The gross amount of an invoice is net_cents + vat_cents.
- Payment advices and announcements of payers are mails in your mailbox; read \
them all, and look again when new ones arrive.
- Contracts are in force from valid_from to valid_to, both included.
- Things may change while you work. Judged is what is right at the end.
- What colleagues remember is no rule.

## How it is judged
- 0.6 lines: a line is right if all its rows and exceptions are right. The mean is taken over the \
reasons why lines are not plain, so rare reasons count as much as frequent ones; plain lines \
together count less than one reason.
- 0.25 exceptions: F1 over line and code with the right amount. Wrong rows cost as much as missing \
ones.
- 0.15 open items: share of customers that are right to the cent.
- The case counts as right from 0.95 on. Acts that nobody asked for (write-offs, reminders) cost.
"""
