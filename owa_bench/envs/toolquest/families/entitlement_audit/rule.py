"""The rule of entitlement_audit: from rows to the right answer."""

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


def solve(sources: Sources, rule: RuleParameters) -> list[AnswerRow]:
    """Return (login, entitlement, grants, price in cents) of what is held wrongly."""
    rights = {(r["department"], r["entitlement"]) for r in sources["rights"]}
    seat_of = linked(sources, sources["people"], "login", "seat")
    people = {seat_of[p["login"]]: p for p in sources["people"]}
    terms: dict[Value, list[SourceRow]] = defaultdict(list)
    for term in sorted(sources["terms"], key=lambda t: str(t["first_day"])):
        terms[term["entitlement"]].append(term)
    sums: dict[tuple[Value, Value], list[int]] = defaultdict(lambda: [0, 0])
    for grant in distinct(sources["grants"]):
        person, entitlement = people[grant["seat"]], grant["entitlement"]
        entitled = (person["department"], entitlement) in rights
        if str(grant["granted"]) > str(rule["day"]) or (
            entitled and person["status"] == rule["person_status"]
        ):
            continue
        total = sums[person["login"], entitlement]
        total[0] += 1
        total[1] += _price(terms[entitlement], str(grant["granted"]))
    return [(*holding, *total) for holding, total in sums.items()]


def _price(terms: Sequence[SourceRow], day: str) -> int:
    """Return the price of the first term that holds a day, 0 if none does."""
    for term in terms:
        last = str(term["last_day"])
        if str(term["first_day"]) <= day and (
            day < last or (day == last and bool(term["last_day_included"]))
        ):
            return int(term["seat_price"])
    return 0
