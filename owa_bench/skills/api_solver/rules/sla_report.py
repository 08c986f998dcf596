"""Goals of the family sla_report: broken service levels and their credits."""

from collections.abc import Mapping
from typing import Any

from owa_bench.skills.api_solver.rule_tables import (
    AnswerRows,
    FamilyRule,
    Tables,
    clues,
    linked,
)


def compute(tables: Tables, rule: Mapping[str, Any]) -> AnswerRows:
    """Return breaches, minutes over and credit in cents of each customer with one."""
    customers = {row["id"]: row["code"] for row in tables["customers"]}
    contract_of = linked(tables, "customers", "code", "contract")
    plan_of = {row["contract"]: row["plan"] for row in tables["agreements"]}
    targets = {(row["plan"], row["priority"]): row for row in tables["targets"]}
    sums: dict[str, list[int]] = {}
    for ticket in tables["tickets"]:
        code = customers.get(ticket["customer"])
        plan = plan_of.get(contract_of.get(code))
        target = targets.get((plan, ticket["priority"]))
        inside = rule["first_day"] <= ticket["opened"][:10] <= rule["last_day"]
        if code is None or target is None or not inside:
            continue
        over = ticket["minutes"] - target["minutes"]
        if over > 0 or (over == 0 and target["limit_is_breach"]):
            total = sums.setdefault(code, [0, 0, 0])
            total[0] += 1
            total[1] += over
            total[2] += target["credit"]
    return [[code, *total] for code, total in sorted(sums.items())]


RULE = FamilyRule(
    compute,
    {
        "customers": clues(
            "id unique; code unique; id kin tickets.customer; "
            "code kin links.code; contract kin agreements.contract"
        ),
        "tickets": clues(
            "id unique; customer kin customers.id; priority kin targets.priority"
        ),
        "agreements": clues(
            "contract unique; contract kin customers.contract; "
            "plan kin targets.plan; contract kin links.contract"
        ),
        "targets": clues(
            "plan kin agreements.plan; priority kin tickets.priority; credit adds"
        ),
        "links": clues("code kin customers.code; contract kin agreements.contract"),
    },
)
