"""The rule of reconcile: from rows to the right answer."""

from owa_bench.envs.toolquest.rows import (
    AnswerRow,
    RuleParameters,
    SourceRow,
    Sources,
    distinct,
    linked,
)


def solve(sources: Sources, rule: RuleParameters) -> list[AnswerRow]:
    """Return (account code, reference, ledger - bank in cents) where they differ."""
    period = next(p for p in sources["periods"] if p["name"] == rule["period"])
    accounts = {
        a["id"]: a for a in sources["accounts"] if a["status"] == rule["account_status"]
    }
    bank_account = linked(sources, sources["accounts"], "code", "bank_account")
    paid = {
        (t["bank_account"], t["reference"]): int(t["amount"])
        for t in distinct(sources["transfers"])
    }
    found: list[AnswerRow] = []
    for entry in distinct(sources["entries"]):
        account = accounts.get(entry["account"])
        if account is None or not _within(period, str(entry["date"])):
            continue
        code = account["code"]
        bank = paid.get((bank_account.get(code, ""), entry["reference"]), 0)
        if bank != entry["amount"]:
            found.append((code, entry["reference"], int(entry["amount"]) - bank))
    return found


def _within(period: SourceRow, day: str) -> bool:
    """Return whether an ISO day lies in the period."""
    last = str(period["last_day"])
    return str(period["first_day"]) <= day and (
        day < last or (day == last and bool(period["last_day_included"]))
    )
