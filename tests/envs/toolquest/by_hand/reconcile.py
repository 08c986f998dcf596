"""Family reconcile: its roles, its bound, and its answer worked out in another way."""

from tests.envs.toolquest.by_hand.rows import linked, rows_of, unique

ROLES = {
    "periods": "name first_day last_day last_day_included",
    "accounts": "id code status bank_account",
    "entries": "id account reference date amount",
    "links": "code bank_account",
    "transfers": "id bank_account reference date amount",
    "ledger_control": "list count total",
    "bank_control": "list count total",
}
LINKED = "bank_account"  # which the directory holds from T3 on
BOUND = ("ledger", "periods", "last_day_included")
WRITES = False


def answer(world, tier, rule):
    bank_of = linked(world, tier, "ledger", "accounts", "code", "bank_account")
    found = []
    for entry in unique(rows_of(world, "ledger", "entries")):
        [account] = [a for a in rows_of(world, "ledger", "accounts") if a["id"] == entry["account"]]
        [period] = [p for p in rows_of(world, "ledger", "periods") if p["name"] == rule["period"]]
        late = entry["date"] > period["last_day"] or (
            entry["date"] == period["last_day"] and not period["last_day_included"]
        )
        if account["status"] != "open" or late or entry["date"] < period["first_day"]:
            continue
        paid = [
            t["amount"]
            for t in unique(rows_of(world, "bank", "transfers"))
            if t["reference"] == entry["reference"]
            and t["bank_account"] == bank_of[account["code"]]
        ]
        assert len(paid) <= 1
        if entry["amount"] != sum(paid):
            gap = entry["amount"] - sum(paid)
            found.append((account["code"], entry["reference"], gap))
    return found
