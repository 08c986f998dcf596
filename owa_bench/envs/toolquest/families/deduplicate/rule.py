"""The rule of deduplicate: from rows to the right answer."""

from collections import defaultdict
from datetime import date

from owa_bench.envs.toolquest.rows import (
    AnswerRow,
    RuleParameters,
    SourceRow,
    Sources,
    distinct,
    linked,
)
from owa_bench.worlds.api import Value


def solve(sources: Sources, rule: RuleParameters) -> list[AnswerRow]:
    """Return (survivor code, duplicate code, open cents) of every duplicate."""
    policies = {p["segment"]: p for p in sources["policies"]}
    account = linked(sources, sources["customers"], "code", "account")
    owed: dict[Value, int] = defaultdict(int)
    for invoice in distinct(sources["invoices"]):
        if invoice["status"] == rule["invoice_status"]:
            owed[invoice["account"]] += int(invoice["amount"])
    same: dict[tuple[str, str], list[SourceRow]] = defaultdict(list)
    for record in sources["customers"]:
        if record["status"] == rule["customer_status"]:
            same[_identity(record)].append(record)
    found: list[AnswerRow] = []
    for records in same.values():
        first, *later = sorted(records, key=lambda r: (str(r["created"]), str(r["id"])))
        found += [
            (first["code"], record["code"], owed[account[record["code"]]])
            for record in later
            if _merges(policies[first["segment"]], first, record)
        ]
    return found


def _identity(record: SourceRow) -> tuple[str, str]:
    """Return what records of one customer share."""
    return str(record["tax_number"]), str(record["email"]).casefold()


def _merges(policy: SourceRow, first: SourceRow, record: SourceRow) -> bool:
    """Return whether a record was made soon enough after the first one."""
    made = (date.fromisoformat(str(row["created"])) for row in (record, first))
    later, earlier = made
    gap, limit = (later - earlier).days, int(policy["days"])
    return gap < limit or (gap == limit and bool(policy["limit_included"]))
