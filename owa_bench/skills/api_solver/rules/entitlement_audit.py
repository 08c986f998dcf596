"""Goals of the family entitlement_audit: who holds what without a right to it."""

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


def compute(tables: Tables, rule: Mapping[str, Any]) -> AnswerRows:
    """Return login, entitlement, wrong grants and their price in cents."""
    rights = {(row["department"], row["entitlement"]) for row in tables["rights"]}
    seat_of = linked(tables, "people", "login", "seat")
    people = {seat_of.get(row["login"]): row for row in tables["people"]}
    sums: dict[tuple[str, str], list[int]] = {}
    for grant in tables["grants"]:
        person = people.get(grant["seat"])
        day = grant["granted"][:10]
        if person is None or day > rule["day"]:
            continue
        entitled = (person["department"], grant["entitlement"]) in rights
        if entitled and person["status"] == rule["person_status"]:
            continue
        total = sums.setdefault((person["login"], grant["entitlement"]), [0, 0])
        total[0] += 1
        total[1] += _price(tables["terms"], grant["entitlement"], day)
    return [[*place, *total] for place, total in sorted(sums.items())]


def _price(terms: Sequence[RoleRow], entitlement: str, day: str) -> int:
    """Return the price of the entitlement's term that holds a day, 0 without one."""
    for term in sorted(terms, key=lambda row: str(row["first_day"])):
        last = term["last_day"]
        before = day <= last if term["last_day_included"] else day < last
        if term["entitlement"] == entitlement and term["first_day"] <= day and before:
            return int(term["seat_price"])
    return 0


RULE = FamilyRule(
    compute,
    {
        "rights": clues(
            "department kin people.department; entitlement kin grants.entitlement;"
            "entitlement kin terms.entitlement"
        ),
        "people": clues(
            "id unique; login unique; login kin links.login; seat unique;"
            "department kin rights.department; status holds person_status;"
            "seat kin grants.seat"
        ),
        "grants": clues(
            "id unique; seat kin people.seat; seat kin links.seat;"
            "entitlement kin terms.entitlement; entitlement kin rights.entitlement"
        ),
        "terms": clues(
            "entitlement kin grants.entitlement; first_day below last_day;"
            "last_day meets entitlement; seat_price adds"
        ),
        "links": clues("login kin people.login; seat kin grants.seat"),
    },
)
