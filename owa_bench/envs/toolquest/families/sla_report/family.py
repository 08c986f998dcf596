"""Family sla_report: which tickets broke their service level, and what that costs."""

from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.envs.toolquest.draws import DAYS, IntegerDraws, numbered
from owa_bench.envs.toolquest.families.sla_report.rule import solve
from owa_bench.envs.toolquest.families.sla_report.vendors import (
    CONTRACTS,
    DIRECTORY,
    HELPDESK,
    HELPDESK_WITHOUT_LINK,
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

    customers: int
    tickets: int
    repeats: int


SIZES = {1: Size(6, 20, 2), 2: Size(10, 42, 4), 3: Size(14, 60, 4), 4: Size(14, 60, 4)}
_PLANS = ("bronze", "silver", "gold", "basic", "plus", "prime", "core", "extra")
_PRIORITIES = ("low", "normal", "high")
_SUBJECTS = ("login", "invoice", "export", "printer", "sync", "alert", "import")


def story(draws: IntegerDraws, tier: int) -> TaskSpec:
    """Return a drawn task of this family."""
    size = SIZES[tier]
    first = draws.below(200)
    last = first + draws.between(40, 120)
    plans = draws.sample(_PLANS, 3)
    targets = _targets(draws, plans)
    customers = _customers(draws, size)
    agreements = [
        {"contract": c["contract"], "plan": p}
        for c, p in zip(customers, _assigned(draws, plans, size), strict=True)
    ]
    tickets, pairs = _tickets(
        draws, size, _levels(customers, agreements, targets), (first, last)
    )
    asked = _asked(tickets[0], customers, agreements)
    helpdesk: Mapping[str, Rows] = {
        "customers": customers,
        "tickets": sorted(tickets, key=lambda row: str(row["id"])),
    }
    contracts: Mapping[str, Rows] = {
        "agreements": draws.shuffled(agreements),
        "targets": draws.shuffled(targets),
        "control": control_rows({"targets": [t["credit"] for t in targets]}),
    }
    links = [{"code": c["code"], "contract": c["contract"]} for c in customers]
    vendors: tuple[tuple[ProviderTemplate, Mapping[str, Rows]], ...]
    vendors = ((HELPDESK, helpdesk), (CONTRACTS, contracts))
    if tier >= 3:
        vendors = (
            (HELPDESK_WITHOUT_LINK, helpdesk),
            (DIRECTORY, {"links": draws.shuffled(links)}),
            (CONTRACTS, contracts),
        )
    return TaskSpec(
        vendors=vendors,
        sources=_sources(tier),
        rule={"first_day": DAYS[first], "last_day": DAYS[last]},
        text=_TEXT.format(first=DAYS[first], last=DAYS[last]),
        units=(("targets", "credit"),),
        duplicate=("tickets", *pairs[draws.below(2)]),
        bound=BoundQuestion(
            "targets",
            "limit_is_breach",
            asked,
            f"On plan {asked['plan']}, priority {asked['priority']}, an answer at "
            "exactly the limit is a breach.",
        ),
        docs=("tickets", "targets") if tier < 3 else ("tickets",),
        last="targets",
    )


_TEXT = (
    "Report broken service levels from the tickets at {{helpdesk}} and the contracts "
    "at {{contracts}}. Take the tickets opened from {first} to {last}, both days "
    "included; a repeated ticket, equal in all but its id, counts once. A ticket is a "
    "breach when its minutes are more than the limit of its customer's plan and its "
    "priority, or equal to it where the service level says so. Report per customer "
    "with a breach: customer_code, breaches, minutes_over (sum of the minutes beyond "
    "the limit) and "
    "credit_cents (sum of the credits, in whole cents)."
)


def _targets(draws: IntegerDraws, plans: list[str]) -> list[Row]:
    return [
        {
            "plan": plan,
            "priority": priority,
            "minutes": 30 * draws.between(1, 16),
            "limit_is_breach": draws.coin(),
            "credit": draws.cents(5, 400),
        }
        for plan in plans
        for priority in _PRIORITIES
    ]


def _customers(draws: IntegerDraws, size: Size) -> list[Row]:
    codes = numbered(draws, "CU", size.customers, 5, near=40)
    contracts = numbered(draws, "CT", size.customers, 6, near=40)
    return [
        {"id": f"cu-{i + 11}", "code": code, "contract": contract}
        for i, (code, contract) in enumerate(zip(codes, contracts, strict=True))
    ]


def _assigned(draws: IntegerDraws, plans: list[str], size: Size) -> list[str]:
    return [draws.pick(plans) for _ in range(size.customers)]


def _levels(customers: Rows, agreements: Rows, targets: Rows) -> dict[str, list[int]]:
    """Return the limits of each customer, one per priority."""
    limits = {(t["plan"], t["priority"]): int(t["minutes"]) for t in targets}
    return {
        str(c["id"]): [limits[a["plan"], p] for p in _PRIORITIES]
        for c, a in zip(customers, agreements, strict=True)
    }


def _asked(ticket: Row, customers: Rows, agreements: Rows) -> dict[str, Value]:
    """Return plan and priority of the service level that covers a ticket."""
    place = [c["id"] for c in customers].index(ticket["customer"])
    return {"plan": agreements[place]["plan"], "priority": ticket["priority"]}


def _tickets(
    draws: IntegerDraws, size: Size, levels: dict[str, list[int]], days: tuple[int, int]
) -> tuple[list[Row], tuple[tuple[str, str], tuple[str, str]]]:
    """Return tickets, and the ids of a repeated pair and of a twin pair.

    The first ticket lies in the period at exactly its limit, the second beyond it. The
    twin of a ticket is equal but for its minutes, so it is another ticket.
    """
    customers = list(levels)
    rows: list[dict[str, Value]] = []
    for i in range(size.tickets):
        customer, kind = draws.pick(customers), draws.below(3) if i > 3 else i % 3
        inside = i < 2 or draws.percent(70)
        rows.append(
            {
                "customer": customer,
                "subject": f"{draws.pick(_SUBJECTS)}-{draws.between(100, 999)}",
                "priority": _PRIORITIES[kind],
                "opened": DAYS[draws.between(*days) if inside else draws.below(365)],
                "minutes": _minutes(draws, levels[customer][kind], i),
            }
        )
    chosen = draws.sample(range(len(rows)), size.repeats)
    copies = [dict(rows[i]) for i in chosen]
    for copy in copies[: size.repeats // 2]:
        copy["minutes"] = int(copy["minutes"]) + draws.pick((1, 2, 10))
    order = draws.shuffled(range(len(rows) + len(copies)))
    ids = [f"tk-{3001 + place}" for place in order]
    both: list[Row] = [
        {"id": name, **row} for name, row in zip(ids, rows + copies, strict=True)
    ]
    repeat = (ids[chosen[-1]], ids[len(both) - 1])
    twin = (ids[chosen[0]], ids[len(rows)])
    return both, (repeat, twin)


def _minutes(draws: IntegerDraws, limit: int, i: int) -> int:
    """Return minutes at, beyond or below the limit."""
    if i == 0 or (i > 1 and draws.percent(15)):
        return limit
    if i == 1 or draws.percent(40):
        return limit + draws.between(1, 300)
    return draws.between(1, limit)


def _sources(tier: int) -> tuple[SourcePlan, ...]:
    links = (SourcePlan("links", "directory", "links"),) if tier >= 3 else ()
    return (
        SourcePlan("customers", "helpdesk", "customers"),
        SourcePlan("tickets", "helpdesk", "tickets"),
        *links,
        SourcePlan("agreements", "contracts", "agreements"),
        SourcePlan("targets", "contracts", "targets"),
        SourcePlan("control", "contracts", "control", optional=True),
    )


FAMILY = TaskFamily(
    name="sla_report",
    vendors=(HELPDESK, CONTRACTS, DIRECTORY),
    columns=("customer_code", "breaches", "minutes_over", "credit_cents"),
    story=story,
    solve=solve,
)
