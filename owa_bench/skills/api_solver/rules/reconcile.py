"""Goals of the family reconcile: where two ledgers differ."""

from collections.abc import Mapping
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
    """Return account, reference and ledger minus bank of each entry that differs."""
    period = next(row for row in tables["periods"] if row["name"] == rule["period"])
    accounts = {
        row["id"]: row
        for row in tables["accounts"]
        if row["status"] == rule["account_status"]
    }
    bank_of = linked(tables, "accounts", "code", "bank_account")
    paid = {
        (row["bank_account"], row["reference"]): row["amount"]
        for row in tables["transfers"]
    }
    found = []
    for entry in tables["entries"]:
        account = accounts.get(entry["account"])
        if account is None or not _inside(entry["date"], period):
            continue
        place = (bank_of.get(account["code"]), entry["reference"])
        difference = entry["amount"] - paid.get(place, 0)
        if difference:
            found.append([account["code"], entry["reference"], difference])
    return sorted(found)


def _inside(date: str, period: RoleRow) -> bool:
    """Return whether an ISO date lies in a period, bound as the period says."""
    last = period["last_day"]
    before = date <= last if period["last_day_included"] else date < last
    return bool(period["first_day"] <= date and before)


RULE = FamilyRule(
    compute,
    {
        "periods": clues("name holds period; first_day below last_day; last_day meets"),
        "accounts": clues(
            "id unique; code unique; status holds account_status; "
            "id kin entries.account; code kin links.code; "
            "bank_account kin transfers.bank_account"
        ),
        "entries": clues(
            "id unique; account kin accounts.id; "
            "reference kin transfers.reference; amount adds; "
            "amount like transfers.amount"
        ),
        "transfers": clues(
            "id unique; bank_account kin accounts.bank_account; amount adds; "
            "amount like entries.amount; "
            "bank_account kin links.bank_account; "
            "reference kin entries.reference"
        ),
        "links": clues(
            "code kin accounts.code; bank_account kin transfers.bank_account"
        ),
    },
)
