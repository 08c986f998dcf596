"""The API solver's rule of entitlement_audit, worked by hand."""

from owa_bench.agents.solvers.api_solver import family_rules

RULE = {"day": "2031-09-30", "person_status": "active"}
PEOPLE = [
    {"id": "p1", "login": "u1", "department": "labs", "status": "active", "seat": "S1"},
    {"id": "p2", "login": "u2", "department": "labs", "status": "left", "seat": "S2"},
]
RIGHTS = [{"department": "labs", "entitlement": "read"}]


def term(entitlement: str, first: str, last: str, price: int, *, incl: bool) -> dict:
    return {
        "entitlement": entitlement,
        "first_day": first,
        "last_day": last,
        "last_day_included": incl,
        "seat_price": price,
    }


TERMS = [
    term("edit", "2031-01-01", "2031-06-30", 500, incl=True),
    term("edit", "2031-07-01", "2032-01-01", 700, incl=False),
    term("read", "2031-01-01", "2031-07-01", 20, incl=False),
    term("read", "2031-07-01", "2031-12-31", 30, incl=True),
]


def grant(seat: str, entitlement: str, day: str) -> dict:
    return {"seat": seat, "entitlement": entitlement, "granted": day}


def computed(*grants: dict, **more: list[dict]) -> object:
    tables = {"people": PEOPLE, "rights": RIGHTS, "terms": TERMS, **more}
    return family_rules.compute("entitlement_audit", {**tables, "grants": grants}, RULE)


def test_wrong_grants_and_the_prices_of_their_terms() -> None:
    found = computed(
        grant("S1", "read", "2031-02-01"),  # a right of the department
        grant("S1", "edit", "2031-06-30"),  # the last day is in
        grant("S1", "edit", "2031-07-01"),
        grant("S1", "edit", "2031-10-01"),  # after the audit
        grant("S2", "read", "2031-07-01"),  # has left; the last day is out
        grant("S9", "edit", "2031-02-01"),  # nobody's seat
    )
    assert found == [["u1", "edit", 2, 1200], ["u2", "read", 1, 30]]


def test_seats_may_be_linked() -> None:
    links = [{"login": "u1", "seat": "S2"}, {"login": "u2", "seat": "S1"}]
    found = computed(grant("S1", "read", "2031-02-01"), links=links)
    assert found == [["u2", "read", 1, 20]]
