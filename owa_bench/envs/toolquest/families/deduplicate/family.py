"""Family deduplicate: customer records made twice, and what is owed on them."""

from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.envs.toolquest.draws import DAYS, IntegerDraws, numbered
from owa_bench.envs.toolquest.families.deduplicate.rule import solve
from owa_bench.envs.toolquest.families.deduplicate.vendors import (
    BILLING,
    CRM,
    CRM_WITHOUT_LINK,
    DIRECTORY,
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
    """Rows of a tier: customers, records made twice, strangers that look alike."""

    customers: int
    copies: int
    strangers: int
    repeats: int


SIZES = {
    1: Size(7, 3, 2, 2),
    2: Size(14, 5, 4, 2),
    3: Size(20, 7, 5, 4),
    4: Size(20, 7, 5, 4),
}
_SEGMENTS = ("retail", "trade", "public", "partner", "export", "staff", "press")
_NAMES = (
    "moran",
    "keller",
    "silva",
    "novak",
    "haas",
    "lind",
    "costa",
    "byrne",
    "egger",
)
_HOSTS = ("post", "mail", "inbox", "letters", "office", "desk")
_IDLE = ("archived", "blocked")
_SETTLED = ("paid", "cancelled")


class _Pair(NamedTuple):
    """Places of two records."""

    first: int
    second: int


def story(draws: IntegerDraws, tier: int) -> TaskSpec:
    """Return a drawn task of this family."""
    size = SIZES[tier]
    policies = _policies(draws)
    records, pairs = _records(draws, size, policies)
    customers = _customers(draws, records)
    invoices = _invoices(draws, size, customers)
    crm: Mapping[str, Rows] = {
        "policies": policies,
        "customers": sorted(customers, key=lambda row: str(row["id"])),
    }
    billing: Mapping[str, Rows] = {
        "invoices": invoices,
        "control": control_rows({"invoices": [i["amount"] for i in invoices]}),
    }
    links = [{"code": c["code"], "account": c["account"]} for c in customers]
    vendors: tuple[tuple[ProviderTemplate, Mapping[str, Rows]], ...]
    vendors = ((CRM, crm), (BILLING, billing))
    if tier >= 3:
        vendors = (
            (CRM_WITHOUT_LINK, crm),
            (DIRECTORY, {"links": draws.shuffled(links)}),
            (BILLING, billing),
        )
    asked = records[0]["segment"]
    first, second = (str(customers[i]["id"]) for i in pairs[draws.below(2)])
    return TaskSpec(
        vendors=vendors,
        sources=_sources(tier),
        rule={"customer_status": "active", "invoice_status": "open"},
        text=_TEXT,
        units=(("invoices", "amount"),),
        duplicate=("customers", first, second),
        same=("tax_number", "email"),
        bound=BoundQuestion(
            "policies",
            "limit_included",
            {"segment": asked},
            f"In segment {asked}, a record made exactly at the limit is merged too.",
        ),
        docs=("customers", "invoices") if tier < 3 else ("customers",),
        last="invoices",
    )


_TEXT = (
    "Find customer records that were made twice at {crm}, and what is still owed on "
    "them at {billing}. Take the active records. Records with the same tax number and "
    "the same e-mail address, capital letters aside, are of one customer; the one made "
    "first (the lowest id in a tie) stands. A later one is its duplicate when it was "
    "made fewer days after it than the merge policy of its segment allows, or exactly "
    "that many where the policy says so. Report per duplicate: survivor_code, "
    "duplicate_code and moved_cents (sum of the open invoices on the duplicate's "
    "debtor account, in whole cents; a repeated invoice, equal in all but its id, "
    "counts once)."
)


def _policies(draws: IntegerDraws) -> list[Row]:
    return [
        {"segment": name, "days": draws.between(10, 60), "limit_included": draws.coin()}
        for name in draws.sample(draws.known(_SEGMENTS), 3)
    ]


def _records(
    draws: IntegerDraws, size: Size, policies: Rows
) -> tuple[list[dict[str, Value]], tuple[_Pair, _Pair]]:
    """Return records without names, and places of a duplicate and of a lookalike pair.

    The first customer's copy is made exactly at the limit, the second one's before it.
    """
    rows = _originals(draws, size, policies)
    copied = [0, 1, *draws.sample(range(4, size.customers), size.copies - 3), 1]
    for turn, place in enumerate(copied):
        rows.append(_copy(draws, rows[place], policies, turn))
    alike = draws.sample(range(size.customers), size.strangers)
    for turn, place in enumerate(alike):
        rows.append(_stranger(draws, rows[place], turn))
    return rows, (
        _Pair(0, size.customers),
        _Pair(alike[0], size.customers + size.copies),
    )


def _originals(
    draws: IntegerDraws, size: Size, policies: Rows
) -> list[dict[str, Value]]:
    """Return one record of each customer; every status occurs."""
    taxes = numbered(draws, "TX", size.customers, 7, near=40)
    boxes = numbered(draws, "", size.customers, 3, near=40)
    rows: list[dict[str, Value]] = []
    for i, (tax, box) in enumerate(zip(taxes, boxes, strict=True)):
        active = i < 2 or draws.percent(80)
        idle = _IDLE[i - 2] if 2 <= i < 4 else draws.pick(_IDLE)
        host = f"{draws.pick(_HOSTS)}.example"
        rows.append(
            {
                "email": f"{draws.pick(_NAMES)}{box}@{host}",
                "tax_number": tax,
                "segment": draws.pick(policies)["segment"],
                "status": "active" if active and not 2 <= i < 4 else idle,
                "created": DAYS[draws.below(220)],
            }
        )
    return rows


def _copy(
    draws: IntegerDraws, original: Row, policies: Rows, turn: int
) -> dict[str, Value]:
    """Return a later record of a customer, its address in other capitals."""
    limit = next(
        int(p["days"]) for p in policies if p["segment"] == original["segment"]
    )
    kind = turn if turn < 2 else draws.below(3)
    gap = (limit, draws.between(1, limit - 1), limit + draws.between(1, 30))[kind]
    email = str(original["email"])
    return {
        **original,
        "email": draws.pick((email.capitalize(), email.upper(), email.title(), email)),
        "status": "active" if turn < 2 or draws.percent(85) else draws.pick(_IDLE),
        "created": DAYS[DAYS.index(str(original["created"])) + gap],
    }


def _stranger(draws: IntegerDraws, record: Row, turn: int) -> dict[str, Value]:
    """Return another customer who shares the address or the tax number alone."""
    tax, email = str(record["tax_number"]), str(record["email"])
    if turn % 2 == 0:
        tax = f"{tax[:-1]}{(int(tax[-1]) + draws.between(1, 9)) % 10}"
    else:
        name, _, host = email.partition("@")
        digit = (int(name[-1]) + draws.between(1, 9)) % 10
        email = f"{name[:-1]}{digit}@{host}"
    day = DAYS.index(str(record["created"])) + draws.between(0, 8)
    return {
        **record,
        "tax_number": tax,
        "email": email,
        "status": "active",
        "created": DAYS[day],
    }


def _customers(draws: IntegerDraws, records: Rows) -> list[Row]:
    """Return the records with id, code and account, in the order given."""
    codes = numbered(draws, "CU", len(records), 5, near=40)
    accounts = numbered(draws, "DB", len(records), 6, near=40)
    order = draws.shuffled(range(len(records)))
    return [
        {"id": f"cr-{101 + place}", "code": code, "account": account, **record}
        for place, code, account, record in zip(
            order, codes, accounts, records, strict=True
        )
    ]


def _invoices(draws: IntegerDraws, size: Size, customers: Rows) -> list[Row]:
    """Return invoices, some made twice; an open one on the account of every copy."""
    copies = range(size.customers, size.customers + size.copies)
    rows: list[dict[str, Value]] = []
    for i, customer in enumerate(customers):
        for turn in range(draws.between(1, 2)):
            due = (i in copies and turn == 0) or draws.percent(55)
            status = "open" if due else draws.pick(_SETTLED)
            if i < len(_SETTLED) and turn == 0:
                status = _SETTLED[i]  # every status occurs, so that drift can be seen
            rows.append(
                {
                    "account": customer["account"],
                    "issued": DAYS[draws.below(365)],
                    "status": status,
                    "amount": draws.cents(20, 4000),
                }
            )
    chosen = [
        i
        for i, row in enumerate(rows)
        if row["account"] == customers[copies[0]]["account"]
    ][:1] + draws.sample(range(len(rows)), size.repeats - 1)
    twins = [dict(rows[i]) for i in chosen]
    for twin in twins[len(twins) // 2 :]:
        twin["amount"] = int(twin["amount"]) + draws.grain * draws.pick((1, 9, 10))
    order = draws.shuffled(range(len(rows) + len(twins)))
    both: list[Row] = [
        {"id": f"iv-{6001 + place}", **row}
        for place, row in zip(order, rows + twins, strict=True)
    ]
    return sorted(both, key=lambda row: str(row["id"]))


def _sources(tier: int) -> tuple[SourcePlan, ...]:
    links = (SourcePlan("links", "directory", "links"),) if tier >= 3 else ()
    return (
        SourcePlan("policies", "crm", "policies"),
        SourcePlan("customers", "crm", "customers"),
        *links,
        SourcePlan("invoices", "billing", "invoices"),
        SourcePlan("control", "billing", "control", optional=True),
    )


FAMILY = TaskFamily(
    name="deduplicate",
    vendors=(CRM, BILLING, DIRECTORY),
    columns=("survivor_code", "duplicate_code", "moved_cents"),
    story=story,
    solve=solve,
)
