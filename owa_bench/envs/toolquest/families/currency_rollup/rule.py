"""The rule of currency_rollup: from rows to the right answer."""

from collections import defaultdict
from collections.abc import Sequence

from owa_bench.envs.toolquest.rows import (
    AnswerRow,
    RuleParameters,
    SourceRow,
    Sources,
    distinct,
    linked,
)
from owa_bench.worlds.api import Value

PARITY = 10_000  # the rate of a currency that is worth the group's own


def solve(sources: Sources, rule: RuleParameters) -> list[AnswerRow]:
    """Return (group, receipts, total in the group's cents) of every group with any."""
    entity_of = linked(sources, sources["branches"], "code", "entity")
    groups = {e["entity"]: e["group"] for e in sources["entities"]}
    group_of = {
        b["id"]: groups[entity_of[b["code"]]]
        for b in sources["branches"]
        if b["status"] == rule["branch_status"]
    }
    opening: dict[Value, int] = defaultdict(int)
    for entity in sources["entities"]:
        opening[entity["group"]] += int(entity["opening"])
    rates = sorted(sources["rates"], key=lambda r: str(r["first_day"]))
    sums: dict[Value, list[int]] = defaultdict(lambda: [0, 0])
    for receipt in distinct(sources["receipts"]):
        day = str(receipt["date"])
        inside = str(rule["first_day"]) <= day <= str(rule["last_day"])
        if not inside or receipt["branch"] not in group_of:
            continue
        total = sums[group_of[receipt["branch"]]]
        total[0] += 1
        total[1] += converted(receipt, rates, rule["base"])
    return [(g, n, cents + opening[g]) for g, (n, cents) in sums.items()]


def converted(receipt: SourceRow, rates: Sequence[SourceRow], base: Value) -> int:
    """Return a receipt in cents of the base currency, half a cent rounded up.

    By the first rate of its currency that holds on its day; 0 if none does.
    """
    amount, day = int(receipt["amount"]), str(receipt["date"])
    if receipt["currency"] == base:
        return amount
    for rate in rates:
        last = str(rate["last_day"])
        if (
            rate["currency"] == receipt["currency"]
            and str(rate["first_day"]) <= day
            and (day < last or (day == last and bool(rate["last_day_included"])))
        ):
            return (amount * int(rate["rate"]) + PARITY // 2) // PARITY
    return 0
