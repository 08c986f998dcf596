"""Family deduplicate: its roles, bound, and its answer worked out in another way."""

from datetime import date, timedelta

from tests.envs.toolquest.by_hand.rows import linked, rows_of, unique

ROLES = {
    "policies": "segment days limit_included",
    "customers": "id code email tax_number segment status created account",
    "links": "code account",
    "invoices": "id account issued status amount",
    "control": "list count total",
}
LINKED = "account"  # which the directory holds from T3 on
BOUND = ("crm", "policies", "limit_included")
WRITES = False


def answer(world, tier, rule):
    account_of = linked(world, tier, "crm", "customers", "code", "account")
    records = [r for r in rows_of(world, "crm", "customers") if r["status"] == "active"]
    found = []
    for record in records:
        same = [
            r
            for r in records
            if r["tax_number"] == record["tax_number"]
            and r["email"].lower() == record["email"].lower()
        ]
        first = min(same, key=lambda r: (r["created"], r["id"]))
        if first is record:
            continue
        [policy] = [
            p for p in rows_of(world, "crm", "policies") if p["segment"] == first["segment"]
        ]
        limit = date.fromisoformat(first["created"]) + timedelta(policy["days"])
        if policy["limit_included"]:
            limit += timedelta(1)
        if record["created"] < limit.isoformat():
            owed = [
                i["amount"]
                for i in unique(rows_of(world, "billing", "invoices"))
                if i["account"] == account_of[record["code"]] and i["status"] == "open"
            ]
            found.append((first["code"], record["code"], sum(owed)))
    return found
