"""The rule of sla_report: from rows to the right answer."""

from collections import defaultdict

from owa_bench.envs.toolquest.rows import (
    AnswerRow,
    RuleParameters,
    Sources,
    distinct,
    linked,
)
from owa_bench.worlds.api import Value


def solve(sources: Sources, rule: RuleParameters) -> list[AnswerRow]:
    """Return (customer code, breaches, minutes over, credit in cents) per customer."""
    codes = {c["id"]: c["code"] for c in sources["customers"]}
    contract = linked(sources, sources["customers"], "code", "contract")
    plans = {a["contract"]: a["plan"] for a in sources["agreements"]}
    targets = {(t["plan"], t["priority"]): t for t in sources["targets"]}
    sums: dict[Value, list[int]] = defaultdict(lambda: [0, 0, 0])
    for ticket in distinct(sources["tickets"]):
        if not str(rule["first_day"]) <= str(ticket["opened"]) <= str(rule["last_day"]):
            continue
        code = codes[ticket["customer"]]
        target = targets[plans[contract[code]], ticket["priority"]]
        over = int(ticket["minutes"]) - int(target["minutes"])
        if over > 0 or (over == 0 and target["limit_is_breach"]):
            total = sums[code]
            total[0] += 1
            total[1] += over
            total[2] += int(target["credit"])
    return [(code, *total) for code, total in sums.items()]
