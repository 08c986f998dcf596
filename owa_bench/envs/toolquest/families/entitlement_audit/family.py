"""Family entitlement_audit: who holds what they have no right to, and its price."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from owa_bench.envs.toolquest.draws import DAYS, IntegerDraws, numbered
from owa_bench.envs.toolquest.families.entitlement_audit.rule import solve
from owa_bench.envs.toolquest.families.entitlement_audit.vendors import (
    DIRECTORY,
    IDENTITY,
    IDENTITY_WITHOUT_LINK,
    LICENSING,
)
from owa_bench.envs.toolquest.provider_templates import (
    ProviderTemplate,
    Row,
    Rows,
    control_rows,
)
from owa_bench.envs.toolquest.task_spec import (
    BoundQuestion,
    SourcePlan,
    TaskFamily,
    TaskSpec,
)
from owa_bench.worlds.api import Value


class Size(NamedTuple):
    """Rows of a tier."""

    people: int
    entitlements: int
    terms: int
    grants: int
    repeats: int


SIZES = {
    1: Size(8, 3, 2, 16, 2),
    2: Size(15, 4, 2, 34, 4),
    3: Size(20, 4, 3, 48, 4),
    4: Size(20, 4, 3, 48, 4),
}
_DEPARTMENTS = ("sales", "legal", "plant", "labs", "fleet", "audit")
_ENTITLEMENTS = (
    "ledger-read", "ledger-edit", "payroll-read", "payroll-edit", "stock-read",
    "stock-edit", "ledger-admin", "payroll-admin", "stock-admin",
)  # fmt: skip
_GONE = ("suspended", "left")
_DOLLAR = 100
_AUDIT = (250, 340)  # days of the year between which the audit lies


class Term(NamedTuple):
    """The days of a term, both included, and the row that is served for it."""

    first: int
    last: int
    row: Row


def story(draws: IntegerDraws, tier: int) -> TaskSpec:
    """Return a drawn task of this family."""
    size = SIZES[tier]
    day = draws.between(*_AUDIT)
    departments = draws.sample(draws.known(_DEPARTMENTS), 3)
    entitlements = draws.sample(draws.known(_ENTITLEMENTS), size.entitlements)
    rights = _rights(draws, departments, entitlements)
    people = _people(draws, size, departments)
    terms = [term for e in entitlements for term in _terms(draws, size, e)]
    # The first department has no right to the first entitlement.
    grants, pairs = _grants(draws, size, people, entitlements, terms)
    prices = draws.shuffled([term.row for term in terms])
    identity: Mapping[str, Rows] = {"rights": rights, "people": people}
    licensing: Mapping[str, Rows] = {
        "terms": prices,
        "grants": sorted(grants, key=lambda row: str(row["id"])),
        "control": control_rows({"terms": [t["seat_price"] for t in prices]}),
    }
    links = [{"login": p["login"], "seat": p["seat"]} for p in people]
    vendors: tuple[tuple[ProviderTemplate, Mapping[str, Rows]], ...]
    vendors = ((IDENTITY, identity), (LICENSING, licensing))
    if tier >= 3:
        vendors = (
            (IDENTITY_WITHOUT_LINK, identity),
            (DIRECTORY, {"links": draws.shuffled(links)}),
            (LICENSING, licensing),
        )
    asked = terms[0].row
    return TaskSpec(
        vendors=vendors,
        sources=_sources(tier),
        rule={"day": DAYS[day], "person_status": "active"},
        text=_TEXT.format(day=DAYS[day]),
        units=(("terms", "seat_price"),),
        duplicate=("grants", *pairs[draws.below(2)]),
        bound=BoundQuestion(
            "terms",
            "last_day_included",
            {"entitlement": asked["entitlement"], "first_day": asked["first_day"]},
            f"The last day of the term of {asked['entitlement']} that begins on "
            f"{asked['first_day']} belongs to the term.",
        ),
        docs=("grants", "terms") if tier < 3 else ("grants",),
        last="terms",
    )


_TEXT = (
    "Audit who holds what on {day}. Take the grants at {{licensing}} that were made on "
    "or before that day; a repeated grant, equal in all but its id, counts once. A "
    "grant is wrong when the person at {{identity}} who has its seat is not active, or "
    "when the department of that person has no right to the entitlement. The price of "
    "a grant is that of the entitlement's term in which it was made (the term says "
    "whether its last day is included). Report per person and entitlement with a wrong "
    "grant: login, entitlement, grants (how many are wrong) and price_cents (sum of "
    "their prices, in whole cents)."
)


def _rights(
    draws: IntegerDraws, departments: Sequence[str], entitlements: Sequence[str]
) -> list[Row]:
    """Return rights; the first department has none to the first entitlement."""
    kept = [
        {"department": department, "entitlement": entitlement}
        for i, department in enumerate(departments)
        for k, entitlement in enumerate(entitlements)
        if (i, k) != (0, 0) and (k == 1 + i % 2 or draws.percent(55))
    ]
    return draws.shuffled(kept)


def _people(draws: IntegerDraws, size: Size, departments: Sequence[str]) -> list[Row]:
    """Return people; the first two are active, of the first department."""
    logins = numbered(draws, "u", size.people, 5, near=40)
    seats = numbered(draws, "LS", size.people, 6, near=40)
    rows: list[Row] = []
    for i, (login, seat) in enumerate(zip(logins, seats, strict=True)):
        status = "active" if i < 2 or draws.percent(75) else draws.pick(_GONE)
        if 2 <= i < 4:
            status = _GONE[i - 2]  # every status occurs, so that drift can be seen
        rows.append(
            {
                "id": f"pe-{i + 11}",
                "login": login,
                "department": departments[0] if i < 2 else draws.pick(departments),
                "status": status,
                "seat": seat,
            }
        )
    return rows


def _terms(draws: IntegerDraws, size: Size, entitlement: str) -> list[Term]:
    """Return the terms of a year, which meet without a gap; some name the day after."""
    share = 230 // size.terms  # all begin before any audit
    cuts = [share * i + draws.between(0, share // 2) for i in range(1, size.terms)]
    found: list[Term] = []
    price = 0
    for first, last in zip((0, *(c + 1 for c in cuts)), (*cuts, 364), strict=True):
        included = draws.coin()
        before, price = price, draws.cents(4, 90)
        price += _DOLLAR * (price == before)  # a wrong term must show in the answer
        row: Row = {
            "entitlement": entitlement,
            "first_day": DAYS[first],
            "last_day": DAYS[last if included else last + 1],
            "last_day_included": included,
            "seat_price": price,
        }
        found.append(Term(first, last, row))
    return found


def _grants(
    draws: IntegerDraws,
    size: Size,
    people: Rows,
    entitlements: Sequence[str],
    terms: Sequence[Term],
) -> tuple[list[Row], tuple[tuple[str, str], tuple[str, str]]]:
    """Return grants, and the ids of a repeated pair and of a twin pair.

    The first was made on the last day of the first term, the second on the day after;
    both are wrong. The twin of a grant is equal but for its day, so it is another one.
    """
    rows: list[dict[str, Value]] = []
    for i in range(size.grants):
        day = draws.below(365)
        if i < 2 or draws.percent(20):
            day = (terms[0] if i < 2 else draws.pick(terms)).last + i % 2
        rows.append(
            {
                "seat": (people[i] if i < 2 else draws.pick(people))["seat"],
                "entitlement": entitlements[0] if i < 2 else draws.pick(entitlements),
                "granted": DAYS[min(day, 364)],
            }
        )
    chosen = draws.sample(range(len(rows)), size.repeats)
    copies = [dict(rows[i]) for i in chosen]
    for copy in copies[: size.repeats // 2]:
        copy["granted"] = DAYS[DAYS.index(str(copy["granted"])) + 1]
    order = draws.shuffled(range(len(rows) + len(copies)))
    ids = [f"gr-{7001 + place}" for place in order]
    both: list[Row] = [
        {"id": name, **row} for name, row in zip(ids, rows + copies, strict=True)
    ]
    repeat = (ids[chosen[-1]], ids[len(both) - 1])
    twin = (ids[chosen[0]], ids[len(rows)])
    return both, (repeat, twin)


def _sources(tier: int) -> tuple[SourcePlan, ...]:
    links = (SourcePlan("links", "directory", "links"),) if tier >= 3 else ()
    return (
        SourcePlan("rights", "identity", "rights"),
        SourcePlan("people", "identity", "people"),
        *links,
        SourcePlan("grants", "licensing", "grants"),
        SourcePlan("terms", "licensing", "terms"),
        SourcePlan("control", "licensing", "control", optional=True),
    )


FAMILY = TaskFamily(
    name="entitlement_audit",
    vendors=(IDENTITY, LICENSING, DIRECTORY),
    columns=("login", "entitlement", "grants", "price_cents"),
    story=story,
    solve=solve,
)
