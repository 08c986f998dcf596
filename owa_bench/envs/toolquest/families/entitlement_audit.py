"""Task family entitlement_audit: entitlements held without a right, and their price."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from owa_bench.envs.toolquest import draws, task_spec
from owa_bench.envs.toolquest.provider_templates import parse
from owa_bench.envs.toolquest.world import Value

_VENDORS = """
identity/identity (Identity|Staffing|Personnel) Knows who works where.
  rights (rights|permissions|role-rights|allowances|privileges) Entitlements to which
      each department has a right.
    department:string? (department|unit|division) Name of the department.
    entitlement:string? (entitlement|product|feature) Entitlement that people of the
      department may hold.
  people (people|persons|employees|users|staff) People and the departments they work in.
    id:string! (id|person_id|key) Identifier of the person.
    login:string? (login|username|handle) Name under which the person logs in.
    department:string? (department|unit|team) Department in which the person works.
    status:enum? (status|state|employment) active=employed|enabled|current
      suspended=on_hold left=departed Status of the person: active, suspended or left.
    seat:string? (seat|licence_no|seat_number) Number of the licence seat that the
      person has.
licensing/licensing (Licensing|Seats|Licences) Sells licence seats and keeps track of
      who has them.
  terms (terms|price-terms|tariffs|rate-cards|price-list) Terms of the entitlements and
      their prices.
    entitlement:string? (entitlement|product|item) Entitlement that the term prices.
    first_day:date (first_day|starts|from_date) First day of the term.
    last_day:date^ (last_day|ends|to_date) Day on which the term ends.
    last_day_included:boolean (last_day_included|end_inclusive|closes_after) Whether the
      last day belongs to the term.
    seat_price:money (seat_price|price|charge) Price of a seat made in the term.
  grants DELETE (grants|assignments|allocations|entitlements|bookings) Grants of
      entitlements to licence seats.
    id:string! (id|grant_id|assignment) Identifier of the grant.
    seat:string? (seat|licence_no|holder) Number of the licence seat that holds the
      grant.
    entitlement:string? (entitlement|product|feature) Entitlement that is granted.
    granted:date? (granted|assigned_on|valid_from) Day on which the grant was made.
  control
"""
_DEPARTMENTS = ("sales", "legal", "plant", "labs", "fleet", "audit")
_ENTITLEMENTS = (
    "ledger-read", "ledger-edit", "payroll-read", "payroll-edit", "stock-read",
    "stock-edit", "ledger-admin", "payroll-admin", "stock-admin",
)  # fmt: skip
_DOLLAR = 100
_AUDIT = (250, 340)  # days of the year between which the audit lies


class PriceTerm(NamedTuple):
    """The last day of a term, a number in the year, and the row served for it."""

    last: int
    row: task_spec.SourceRow


def draw(rng: draws.IntegerDraws, size: task_spec.Sizes) -> task_spec.TaskData:
    """Return the data of a task.

    Args:
        rng: Small integers.
        size: Numbers of people, entitlements, terms an entitlement, grants and repeated grants.
    Returns: Rights of departments, people, priced terms and grants.
    """
    day = rng.between(*_AUDIT)
    departments = rng.sample(rng.allowed(_DEPARTMENTS), 3)
    entitlements = rng.sample(rng.allowed(_ENTITLEMENTS), size["entitlements"])
    rights = _rights(rng, departments, entitlements)
    people = list(_people(rng, size["people"], departments))
    terms = [term for e in entitlements for term in _terms(rng, size["terms"], e)]
    grants = _grants(rng, size, people, entitlements, terms)
    return task_spec.TaskData(
        tables={
            "rights": rights,
            "people": people,
            "terms": rng.shuffled([term.row for term in terms]),
            "grants": draws.by_id(grants.rows),
        },
        links=people,
        rule={"day": draws.DAYS[day], "person_status": "active"},
        pairs=grants.pairs,
        where={key: terms[0].row[key] for key in ("entitlement", "first_day")},
    )


def _rights(
    rng: draws.IntegerDraws, departments: Sequence[str], entitlements: Sequence[str]
) -> list[task_spec.SourceRow]:
    """Return rights; the first department has none to the first entitlement."""
    rows: list[task_spec.SourceRow] = [
        {"department": department, "entitlement": entitlement}
        for i, department in enumerate(departments)
        for k, entitlement in enumerate(entitlements)
        if (i, k) != (0, 0) and (k == 1 + i % 2 or rng.percent(55))
    ]
    return rng.shuffled(rows)


def _people(
    rng: draws.IntegerDraws, count: int, departments: Sequence[str]
) -> Iterator[task_spec.SourceRow]:
    """Yield people; the first two are active, of the first department."""
    logins = draws.random_codes(rng, "u", count, 5)
    seats = draws.random_codes(rng, "LS", count, 6)
    for i, (login, seat) in enumerate(zip(logins, seats, strict=True)):
        state = draws.status(rng, i, "active", ("suspended", "left"), 75)
        yield {
            "id": f"pe-{i + 11}",
            "login": login,
            "department": departments[0] if i < 2 else rng.pick(departments),
            "status": state,
            "seat": seat,
        }


def _terms(rng: draws.IntegerDraws, count: int, entitlement: str) -> list[PriceTerm]:
    """Return the terms of a year, which meet without a gap; prices always change."""
    share = 230 // count  # all begin before any audit
    cuts = [share * i + rng.between(0, share // 2) for i in range(1, count)]
    terms: list[PriceTerm] = []
    price = 0
    for first, last in zip((0, *(c + 1 for c in cuts)), (*cuts, 364), strict=True):
        days = draws.day_bounds(rng, first, last)
        before, price = price, rng.cents(4, 90)
        price += _DOLLAR * (price == before)  # a wrong term must show in the answer
        row = {"entitlement": entitlement, **days, "seat_price": price}
        terms.append(PriceTerm(last, row))
    return terms


def _grants(
    rng: draws.IntegerDraws,
    size: task_spec.Sizes,
    people: task_spec.SourceRows,
    entitlements: Sequence[str],
    terms: Sequence[PriceTerm],
) -> draws.Postings:
    """Return grants; the first was made on the last day of the first term.

    The second was made on the day after; both are wrong. Two that look alike are equal but for
    their day.
    """
    rows: list[task_spec.SourceRow] = []
    for i in range(size["grants"]):
        day = rng.below(365)
        if i < 2 or rng.percent(20):
            day = (terms[0] if i < 2 else rng.pick(terms)).last + i % 2
        rows.append(
            {
                "seat": (people[i] if i < 2 else rng.pick(people))["seat"],
                "entitlement": entitlements[0] if i < 2 else rng.pick(entitlements),
                "granted": draws.DAYS[min(day, 364)],
            }
        )

    def alter(row: dict[str, Value]) -> None:
        row["granted"] = draws.DAYS[draws.DAYS.index(str(row["granted"])) + 1]

    return draws.with_copies(rng, rows, size["repeats"], alter, "gr-7001")


def solve(sources: task_spec.Sources, rule: task_spec.RuleParameters) -> list[task_spec.AnswerRow]:
    """Return what is held wrongly.

    Args:
        sources: Rows by source.
        rule: `day` of the audit and `person_status`.
    Returns: (login, entitlement, grants, price in cents) per person and entitlement.
    """
    rights = {(r["department"], r["entitlement"]) for r in sources["rights"]}
    seat_of = task_spec.key_map(sources, sources["people"], "login", "seat")
    people = {seat_of[p["login"]]: p for p in sources["people"]}
    terms: dict[Value, list[task_spec.SourceRow]] = defaultdict(list)
    for term in sorted(sources["terms"], key=lambda t: str(t["first_day"])):
        terms[term["entitlement"]].append(term)
    sums: dict[tuple[Value, Value], list[int]] = defaultdict(lambda: [0, 0])
    for grant in task_spec.distinct(sources["grants"]):
        person, entitlement = people[grant["seat"]], grant["entitlement"]
        entitled = (person["department"], entitlement) in rights
        day = str(grant["granted"])
        if day > str(rule["day"]) or (entitled and person["status"] == rule["person_status"]):
            continue
        total = sums[person["login"], entitlement]
        total[0] += 1
        held = (term for term in terms[entitlement] if task_spec.within(term, day))
        total[1] += next((int(term["seat_price"]) for term in held), 0)
    return [(*holding, *total) for holding, total in sums.items()]


FAMILY = task_spec.TaskFamily(
    name="entitlement_audit",
    vendors=parse(_VENDORS),
    link=task_spec.VendorLink(
        "people", "login", "seat", "Which licence seat belongs to which login."
    ),
    sizes=("people 8 15 20; entitlements 3 4 4; terms 2 2 3; grants 16 34 48; repeats 2 4 4"),
    columns=("login", "entitlement", "grants", "price_cents"),
    sources=("rights", "people", "links", "grants", "terms"),
    text=(
        "Audit who holds what on {day}. Take the grants at {licensing} that were made "
        "on or before that day; a repeated grant, equal in all but its id, counts "
        "once. A grant is wrong when the person at {identity} who has its seat is not "
        "active, or when the department of that person has no right to the "
        "entitlement. The price of a grant is that of the entitlement's term in which "
        "it was made (the term says whether its last day is included). Report per "
        "person and entitlement with a wrong grant: login, entitlement, grants (how "
        "many are wrong) and price_cents (sum of their prices, in whole cents)."
    ),
    duplicates="grants",
    bound="terms.last_day_included",
    bound_text=(
        "The last day of the term of {entitlement} that begins on {first_day} belongs to the term."
    ),
    documents=("grants", "terms"),
    last="terms",
    invariants=(
        task_spec.Invariant(
            "gapless",
            ("terms",),
            "The terms of an entitlement follow one another without a gap: each lasts "
            "until the next one begins, the last one to the end of 2031.",
        ),
    ),
    draw=draw,
    solve=solve,
)
