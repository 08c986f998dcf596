"""Goals of the family deduplicate: customer records made twice."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from owa_bench.skills.api_solver.rule_tables import (
    AnswerRows,
    FamilyRule,
    RoleRow,
    Tables,
    clues,
    linked,
)


def compute(tables: Tables, rule: Mapping[str, Any]) -> AnswerRows:
    """Return survivor, duplicate and what is open on the latter, in cents."""
    policies = {row["segment"]: row for row in tables["policies"]}
    account_of = linked(tables, "customers", "code", "account")
    owed: dict[Any, int] = {}
    for invoice in tables["invoices"]:
        if invoice["status"] == rule["invoice_status"]:
            account = invoice["account"]
            owed[account] = owed.get(account, 0) + invoice["amount"]
    found = []
    for first, *later in _customers(tables["customers"], rule["customer_status"]):
        policy = policies[first["segment"]]
        found += [
            [first["code"], row["code"], owed.get(account_of.get(row["code"]), 0)]
            for row in later
            if _is_merged(_day(row) - _day(first), policy)
        ]
    return sorted(found)


def _customers(records: Any, status: str) -> list[list[RoleRow]]:
    """Return the records of each customer, the first made first."""
    groups: dict[tuple[str, str], list[RoleRow]] = {}
    for row in records:
        if row["status"] == status:
            key = (row["tax_number"], row["email"].lower())
            groups.setdefault(key, []).append(row)
    return [
        sorted(rows, key=lambda row: (row["created"], str(row["id"])))
        for rows in groups.values()
    ]


def _day(row: RoleRow) -> int:
    return date.fromisoformat(row["created"][:10]).toordinal()


def _is_merged(gap: int, policy: RoleRow) -> bool:
    """Return whether a record made `gap` days later is of the same making."""
    limit = policy["days"]
    return bool(gap < limit or (gap == limit and policy["limit_included"]))


RULE = FamilyRule(
    compute,
    {
        "policies": clues("segment unique; segment kin customers.segment"),
        "customers": clues(
            "id unique; code unique; code kin links.code; status holds customer_status;"
            "account unique; account kin invoices.account; segment kin policies.segment"
        ),
        "invoices": clues(
            "id unique; account kin customers.account; account kin links.account;"
            "status holds invoice_status; amount adds"
        ),
        "links": clues("code kin customers.code; account kin invoices.account"),
    },
)
