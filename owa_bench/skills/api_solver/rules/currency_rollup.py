"""Goals of the family currency_rollup: receipts of many currencies in one."""

from collections.abc import Mapping, Sequence
from typing import Any

from owa_bench.skills.api_solver.rule_tables import (
    AnswerRows,
    FamilyRule,
    RoleRow,
    Tables,
    clues,
    linked,
)

_PER = 10_000  # a rate is for so many cents


def compute(tables: Tables, rule: Mapping[str, Any]) -> AnswerRows:
    """Return group, number of receipts and total of each group with receipts."""
    entity_of = linked(tables, "branches", "code", "entity")
    group_of = {row["entity"]: row["group"] for row in tables["entities"]}
    branches = {
        row["id"]: group_of[entity_of[row["code"]]]
        for row in tables["branches"]
        if row["status"] == rule["branch_status"] and row["code"] in entity_of
    }
    sums: dict[str, list[int]] = {}
    for receipt in tables["receipts"]:
        group = branches.get(receipt["branch"])
        inside = rule["first_day"] <= receipt["date"][:10] <= rule["last_day"]
        if group is None or not inside:
            continue
        total = sums.setdefault(group, [0, 0])
        total[0] += 1
        total[1] += _converted(receipt, tables["rates"], rule["base"])
    for row in tables["entities"]:
        if row["group"] in sums:
            sums[row["group"]][1] += row["opening"]
    return [[group, *total] for group, total in sorted(sums.items())]


def _converted(receipt: RoleRow, rates: Sequence[RoleRow], base: str) -> int:
    """Return a receipt in cents of the base currency, 0 without a rate."""
    amount, day = int(receipt["amount"]), receipt["date"][:10]
    if receipt["currency"] == base:
        return amount
    for rate in sorted(rates, key=lambda row: str(row["first_day"])):
        last = rate["last_day"]
        before = day <= last if rate["last_day_included"] else day < last
        same = rate["currency"] == receipt["currency"]
        if same and rate["first_day"] <= day and before:
            return int(2 * amount * rate["rate"] + _PER) // (2 * _PER)
    return 0


RULE = FamilyRule(
    compute,
    {
        "branches": clues(
            "id unique; id kin receipts.branch; code unique; code kin links.code;"
            "status holds branch_status; entity kin entities.entity"
        ),
        "receipts": clues(
            "id unique; branch kin branches.id; currency kin rates.currency;amount adds"
        ),
        "entities": clues(
            "entity unique; entity kin branches.entity; entity kin links.entity;"
            "opening adds"
        ),
        "rates": clues(
            "currency kin receipts.currency; first_day below last_day;"
            "last_day meets currency"
        ),
        "links": clues("code kin branches.code; entity kin entities.entity"),
    },
)
