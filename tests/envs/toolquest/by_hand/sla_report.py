"""Family sla_report: its roles, its bound, and its answer worked out in another way."""

from tests.envs.toolquest.by_hand.rows import linked, rows_of, unique

ROLES = {
    "customers": "id code contract",
    "tickets": "id customer subject priority opened minutes",
    "links": "code contract",
    "agreements": "contract plan",
    "targets": "plan priority minutes limit_is_breach credit",
    "control": "list count total",
}
LINKED = "contract"  # which the directory holds from T3 on
BOUND = ("contracts", "targets", "limit_is_breach")
WRITES = False


def answer(world, tier, rule):
    contract_of = linked(world, tier, "helpdesk", "customers", "code", "contract")
    found = []
    for customer in rows_of(world, "helpdesk", "customers"):
        [plan] = [
            a["plan"]
            for a in rows_of(world, "contracts", "agreements")
            if a["contract"] == contract_of[customer["code"]]
        ]
        breaches = minutes = credit = 0
        for ticket in unique(rows_of(world, "helpdesk", "tickets")):
            if ticket["customer"] != customer["id"]:
                continue
            [level] = [
                t
                for t in rows_of(world, "contracts", "targets")
                if (t["plan"], t["priority"]) == (plan, ticket["priority"])
            ]
            if ticket["opened"] < rule["first_day"]:
                continue
            if ticket["opened"] > rule["last_day"]:
                continue
            allowed = level["minutes"] - (1 if level["limit_is_breach"] else 0)
            if ticket["minutes"] > allowed:
                breaches += 1
                minutes += ticket["minutes"] - level["minutes"]
                credit += level["credit"]
        if breaches:
            found.append((customer["code"], breaches, minutes, credit))
    return found
