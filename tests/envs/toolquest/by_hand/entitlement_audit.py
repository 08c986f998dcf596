"""Family entitlement_audit: its roles, bound, and its answer in another way."""

from collections import Counter

from tests.envs.toolquest.by_hand.rows import linked, rows_of, unique

ROLES = {
    "rights": "department entitlement",
    "people": "id login department status seat",
    "links": "login seat",
    "grants": "id seat entitlement granted",
    "terms": "entitlement first_day last_day last_day_included seat_price",
    "control": "list count total",
}
LINKED = "seat"  # which the directory holds from T3 on
BOUND = ("licensing", "terms", "last_day_included")
WRITES = False


def answer(world, tier, rule):
    seat_of = linked(world, tier, "identity", "people", "login", "seat")
    grants, cents = Counter(), Counter()
    for person in rows_of(world, "identity", "people"):
        rights = {
            r["entitlement"]
            for r in rows_of(world, "identity", "rights")
            if r["department"] == person["department"] and person["status"] == "active"
        }
        for grant in unique(rows_of(world, "licensing", "grants")):
            if grant["seat"] != seat_of[person["login"]] or (grant["entitlement"] in rights):
                continue
            if grant["granted"] > rule["day"]:
                continue
            prices = [
                (t["first_day"], t["seat_price"])
                for t in rows_of(world, "licensing", "terms")
                if t["entitlement"] == grant["entitlement"]
                and t["first_day"] <= grant["granted"]
                and (grant["granted"], not t["last_day_included"]) <= (t["last_day"], False)
            ]
            place = (person["login"], grant["entitlement"])
            grants[place] += 1
            cents[place] += min(prices)[1] if prices else 0
    return [(*place, count, cents[place]) for place, count in grants.items()]
