"""Family currency_rollup: receipts of many currencies in the one of the group."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from owa_bench.envs.toolquest.draws import DAYS, YEAR, IntegerDraws, numbered
from owa_bench.envs.toolquest.families.currency_rollup.rule import solve
from owa_bench.envs.toolquest.families.currency_rollup.vendors import (
    DIRECTORY,
    SALES,
    SALES_WITHOUT_LINK,
    TREASURY,
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
    """Rows of a tier: `currencies` are those besides the group's own."""

    branches: int
    entities: int
    currencies: int
    rates: int
    receipts: int
    repeats: int


SIZES = {
    1: Size(6, 4, 2, 3, 18, 2),
    2: Size(9, 6, 3, 4, 38, 4),
    3: Size(12, 8, 4, 4, 52, 4),
    4: Size(12, 8, 4, 4, 52, 4),
}
_CURRENCIES = ("VEL", "DRA", "KOR", "LUM", "TAV", "ZIN", "OBO", "MIR", "QUE", "SOL")
_GROUPS = ("north", "coast", "lakes", "hills", "valley", "islands")
_SHUT = ("closed", "planned")
_LEAST_MOVE = 400  # of a rate, so that the wrong one shows in the answer


def story(draws: IntegerDraws, tier: int) -> TaskSpec:
    """Return a drawn task of this family."""
    size = SIZES[tier]
    base, *foreign = draws.sample(draws.known(_CURRENCIES), 1 + size.currencies)
    cuts, rates = _rates(draws, size, foreign)
    first = max(0, cuts[0] - draws.between(20, 60))
    last = min(YEAR - 2, cuts[0] + 1 + draws.between(60, 150))
    entities = _entities(draws, size)
    branches = _branches(draws, size, entities)
    receipts, pairs = _receipts(draws, size, branches, (base, *foreign), cuts)
    sales: Mapping[str, Rows] = {
        "branches": branches,
        "receipts": receipts,
        "control": control_rows({"receipts": [r["amount"] for r in receipts]}),
    }
    treasury: Mapping[str, Rows] = {
        "entities": entities,
        "rates": draws.shuffled(rates),
        "control": control_rows({"entities": [e["opening"] for e in entities]}),
    }
    links = [{"code": b["code"], "entity": b["entity"]} for b in branches]
    vendors: tuple[tuple[ProviderTemplate, Mapping[str, Rows]], ...]
    vendors = ((SALES, sales), (TREASURY, treasury))
    if tier >= 3:
        vendors = (
            (SALES_WITHOUT_LINK, sales),
            (DIRECTORY, {"links": draws.shuffled(links)}),
            (TREASURY, treasury),
        )
    days = {"first": DAYS[first], "last": DAYS[last]}
    return TaskSpec(
        vendors=vendors,
        sources=_sources(tier),
        rule={
            "first_day": days["first"],
            "last_day": days["last"],
            "base": base,
            "branch_status": "open",
        },
        text=_TEXT.format(base=base, **days),
        units=(("receipts", "amount"), ("entities", "opening")),
        duplicate=("receipts", *pairs[draws.below(2)]),
        bound=_bound(rates[0]),
        docs=("receipts", "rates") if tier < 3 else ("receipts",),
        last="rates",
    )


_TEXT = (
    "Roll the receipts collected by {{sales}} up into {base} with the rates of "
    "{{treasury}}. Take the receipts of open branches from {first} to {last}, both "
    "days included; a repeated receipt, equal in all but its id, counts once. Convert "
    "each by the rate of its currency on its day (the rate says whether its last day "
    "is included), rounded to whole cents, half a cent up; {base} needs no rate. A "
    "branch belongs to the group of the legal entity that runs it. Report per group "
    "with a receipt: group, receipts (how many) and total_cents (opening balances of "
    "all its entities plus its receipts, in whole cents of {base})."
)


def _bound(rate: Row) -> BoundQuestion:
    """Return the question whether the last day of a rate belongs to it."""
    return BoundQuestion(
        "rates",
        "last_day_included",
        {"currency": rate["currency"], "first_day": rate["first_day"]},
        f"The last day of the rate of {rate['currency']} that begins on "
        f"{rate['first_day']} belongs to it.",
    )


def _rates(
    draws: IntegerDraws, size: Size, currencies: Sequence[str]
) -> tuple[list[int], list[Row]]:
    """Return the last days of the first currency's rates, and the rates of all."""
    rows: list[Row] = []
    ends: list[int] = []
    share = YEAR // size.rates
    for currency in currencies:
        cuts = [share * i + draws.below(share // 2) for i in range(1, size.rates)]
        ends = ends or cuts
        value = draws.between(2_000, 40_000)
        for first, last in zip((0, *(c + 1 for c in cuts)), (*cuts, 364), strict=True):
            included = draws.coin()
            value += draws.pick((-1, 1)) * draws.between(_LEAST_MOVE, 1_200)
            rows.append(
                {
                    "currency": currency,
                    "first_day": DAYS[first],
                    "last_day": DAYS[last if included else last + 1],
                    "last_day_included": included,
                    "rate": value,
                }
            )
    return ends, rows


def _entities(draws: IntegerDraws, size: Size) -> list[Row]:
    """Return legal entities; every group has one."""
    groups = draws.sample(draws.known(_GROUPS), 3)
    return [
        {
            "entity": number,
            "group": groups[i] if i < len(groups) else draws.pick(groups),
            "opening": draws.cents(500, 9000),
        }
        for i, number in enumerate(numbered(draws, "LE", size.entities, 6, near=40))
    ]


def _branches(draws: IntegerDraws, size: Size, entities: Rows) -> list[Row]:
    """Return branches; the first two are open and every status occurs."""
    codes = numbered(draws, "BR", size.branches, 5, near=40)
    rows: list[Row] = []
    for i, code in enumerate(codes):
        status = "open" if i < 2 or draws.percent(75) else draws.pick(_SHUT)
        if 2 <= i < 2 + len(_SHUT):
            status = _SHUT[i - 2]
        rows.append(
            {
                "id": f"br-{i + 11}",
                "code": code,
                "status": status,
                "entity": draws.pick(entities)["entity"],
            }
        )
    return rows


def _receipts(
    draws: IntegerDraws,
    size: Size,
    branches: Rows,
    currencies: Sequence[str],
    cuts: Sequence[int],
) -> tuple[list[Row], tuple[tuple[str, str], tuple[str, str]]]:
    """Return receipts, and the ids of a repeated pair and of a twin pair.

    The first is of the last day of its currency's first rate, the second of the day
    after. The twin of a receipt is equal but for its currency, so it is another one.
    """
    rows: list[dict[str, Value]] = []
    for i in range(size.receipts):
        day = draws.below(YEAR)
        if i < 2 or draws.percent(60):
            day = cuts[0] + (i if i < 2 else draws.between(-15, 55))
        rows.append(
            {
                "branch": branches[i if i < 2 else draws.below(size.branches)]["id"],
                "date": DAYS[day],
                "currency": currencies[1] if i < 2 else draws.pick(currencies),
                "amount": draws.cents(20, 3000),
            }
        )
    chosen = draws.sample(range(len(rows)), size.repeats)
    copies = [dict(rows[i]) for i in chosen]
    for copy in copies[: size.repeats // 2]:
        copy["currency"] = draws.pick([c for c in currencies if c != copy["currency"]])
    order = draws.shuffled(range(len(rows) + len(copies)))
    ids = [f"rc-{8001 + place}" for place in order]
    both: list[Row] = [
        {"id": name, **row} for name, row in zip(ids, rows + copies, strict=True)
    ]
    repeat = (ids[chosen[-1]], ids[len(both) - 1])
    twin = (ids[chosen[0]], ids[len(rows)])
    return sorted(both, key=lambda row: str(row["id"])), (repeat, twin)


def _sources(tier: int) -> tuple[SourcePlan, ...]:
    links = (SourcePlan("links", "directory", "links"),) if tier >= 3 else ()
    return (
        SourcePlan("branches", "sales", "branches"),
        SourcePlan("receipts", "sales", "receipts"),
        *links,
        SourcePlan("entities", "treasury", "entities"),
        SourcePlan("rates", "treasury", "rates"),
        SourcePlan("sales_control", "sales", "control", optional=True),
        SourcePlan("treasury_control", "treasury", "control", optional=True),
    )


FAMILY = TaskFamily(
    name="currency_rollup",
    vendors=(SALES, TREASURY, DIRECTORY),
    columns=("group", "receipts", "total_cents"),
    story=story,
    solve=solve,
)
