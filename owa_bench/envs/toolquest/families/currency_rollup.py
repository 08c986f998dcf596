"""Task family currency_rollup: receipts of many currencies in the group's currency."""

from collections import defaultdict
from collections.abc import Sequence

from owa_bench.envs.toolquest import draws, task_spec
from owa_bench.envs.toolquest.provider_templates import parse
from owa_bench.envs.toolquest.world import Value

_VENDORS = """
sales/commerce (Sales|Tills|Retail) Collects the receipts of branches.
  branches (branches|shops|stores|outlets|sites) Branches that take money.
    id:string! (id|branch_id|key) Identifier of the branch.
    code:string? (code|branch_code|shop_no) Code of the branch.
    status:enum? (status|state|condition) open=trading|live|in_service closed=shut
      planned=future Status of the branch: open, closed or planned.
    entity:string? (entity|company|legal_entity) Number of the legal entity that runs
      the branch.
  receipts DELETE (receipts|takings|sales|tickets|slips) Receipts of the branches, each
      in its own currency.
    id:string! (id|receipt_id|slip_no) Identifier of the receipt.
    branch:string! (branch|branch_ref|taken_at) Identifier of the branch that took the
      money.
    date:date? (date|taken_on|business_day) Day on which the money was taken.
    currency:string? (currency|tender|coin) Currency of the amount.
    amount:money (amount|value|taken) Amount taken, in the currency of the receipt.
  control
treasury/treasury (Treasury|Forex|Exchange) Keeps exchange rates and the books of legal
      entities.
  entities (entities|companies|subsidiaries|legal-entities|holdings) Legal entities and
      the groups that they report to.
    entity:string? (entity|company|entity_no) Number of the legal entity.
    group:string? (group|segment|reports_to) Name of the group that the entity reports
      to.
    opening:money (opening|brought_forward|balance) Opening balance of the entity, in
      the group's currency.
  rates (rates|exchange-rates|fixings|conversions|quotes) Exchange rates and the days on
      which they hold.
    currency:string? (currency|tender|from_currency) Currency that is exchanged.
    first_day:date (first_day|starts|valid_from) First day of the rate.
    last_day:date^ (last_day|ends|valid_to) Day on which the rate ends.
    last_day_included:boolean (last_day_included|end_inclusive|closes_after) Whether the
      last day belongs to the rate.
    rate:integer (rate|quote|parity) Cents of the group's currency for 10000 cents of
      this one.
  control
"""
_CURRENCIES = ("VEL", "DRA", "KOR", "LUM", "TAV", "ZIN", "OBO", "MIR", "QUE", "SOL")
_GROUPS = ("north", "coast", "lakes", "hills", "valley", "islands")
_LEAST_MOVE = 400  # of a rate, so that the wrong one shows in the answer
_PARITY = 10_000  # the rate of a currency that is worth the group's own


def draw(rng: draws.IntegerDraws, size: task_spec.Sizes) -> task_spec.TaskData:
    """Return the data of a task.

    Args:
        rng: Small integers.
        size: Numbers of branches, entities, currencies besides the group's own, rates a currency,
            receipts and repeated receipts.
    Returns: Branches, their receipts, legal entities, and rates that meet without a gap.
    """
    base, *foreign = rng.sample(rng.allowed(_CURRENCIES), 1 + size["currencies"])
    cuts, rates = _rates(rng, size["rates"], foreign)
    first = max(0, cuts[0] - rng.between(20, 60))
    last = min(draws.YEAR - 2, cuts[0] + 1 + rng.between(60, 150))
    entities = _entities(rng, size["entities"])
    branches = _branches(rng, size["branches"], entities)
    receipts = _receipts(rng, size, branches, (base, *foreign), cuts[0])
    return task_spec.TaskData(
        tables={
            "branches": branches,
            "receipts": draws.by_id(receipts.rows),
            "entities": entities,
            "rates": rng.shuffled(rates),
        },
        links=branches,
        rule={
            "first_day": draws.DAYS[first],
            "last_day": draws.DAYS[last],
            "base": base,
            "branch_status": "open",
        },
        pairs=receipts.pairs,
        where={key: rates[0][key] for key in ("currency", "first_day")},
    )


def _rates(
    rng: draws.IntegerDraws, count: int, currencies: Sequence[str]
) -> tuple[list[int], list[task_spec.SourceRow]]:
    """Return the last days of the first currency's rates, and the rates of all."""
    rows: list[task_spec.SourceRow] = []
    ends: list[int] = []
    share = draws.YEAR // count
    for currency in currencies:
        cuts = [share * i + rng.below(share // 2) for i in range(1, count)]
        ends = ends or cuts
        value = rng.between(2_000, 40_000)
        for first, last in zip((0, *(c + 1 for c in cuts)), (*cuts, 364), strict=True):
            days = draws.day_bounds(rng, first, last)
            value += rng.pick((-1, 1)) * rng.between(_LEAST_MOVE, 1_200)
            rows.append({"currency": currency, **days, "rate": value})
    return ends, rows


def _entities(rng: draws.IntegerDraws, count: int) -> list[task_spec.SourceRow]:
    """Return legal entities; every group has one."""
    groups = rng.sample(rng.allowed(_GROUPS), 3)
    return [
        {
            "entity": number,
            "group": groups[i] if i < len(groups) else rng.pick(groups),
            "opening": rng.cents(500, 9000),
        }
        for i, number in enumerate(draws.random_codes(rng, "LE", count, 6))
    ]


def _branches(
    rng: draws.IntegerDraws, count: int, entities: task_spec.SourceRows
) -> list[task_spec.SourceRow]:
    return [
        {
            "id": f"br-{i + 11}",
            "code": code,
            "status": draws.status(rng, i, "open", ("closed", "planned"), 75),
            "entity": rng.pick(entities)["entity"],
        }
        for i, code in enumerate(draws.random_codes(rng, "BR", count, 5))
    ]


def _receipts(
    rng: draws.IntegerDraws,
    size: task_spec.Sizes,
    branches: task_spec.SourceRows,
    currencies: Sequence[str],
    cut: int,
) -> draws.Postings:
    """Return receipts; the first is of the last day of its currency's first rate.

    The second is of the day after. Two that look alike are equal but for their currency.
    """
    rows: list[task_spec.SourceRow] = []
    for i in range(size["receipts"]):
        day = rng.below(draws.YEAR)
        if i < 2 or rng.percent(60):
            day = cut + (i if i < 2 else rng.between(-15, 55))
        rows.append(
            {
                "branch": branches[i if i < 2 else rng.below(len(branches))]["id"],
                "date": draws.DAYS[day],
                "currency": currencies[1] if i < 2 else rng.pick(currencies),
                "amount": rng.cents(20, 3000),
            }
        )

    def alter(row: dict[str, Value]) -> None:
        row["currency"] = rng.pick([c for c in currencies if c != row["currency"]])

    return draws.with_copies(rng, rows, size["repeats"], alter, "rc-8001")


def solve(sources: task_spec.Sources, rule: task_spec.RuleParameters) -> list[task_spec.AnswerRow]:
    """Return the receipts of each group in its currency.

    Args:
        sources: Rows by source.
        rule: `first_day`, `last_day` (both included), `base`, `branch_status`.
    Returns: (group, receipts, total in the group's cents) of every group with any.
    """
    entity_of = task_spec.key_map(sources, sources["branches"], "code", "entity")
    groups = {e["entity"]: e["group"] for e in sources["entities"]}
    group_of = {
        b["id"]: groups[entity_of[b["code"]]]
        for b in sources["branches"]
        if b["status"] == rule["branch_status"]
    }
    opening: dict[Value, int] = defaultdict(int)
    for entity in sources["entities"]:
        opening[entity["group"]] += int(entity["opening"])
    rates = sorted(sources["rates"], key=lambda r: str(r["first_day"]))
    sums: dict[Value, list[int]] = defaultdict(lambda: [0, 0])
    for receipt in task_spec.distinct(sources["receipts"]):
        day = str(receipt["date"])
        inside = str(rule["first_day"]) <= day <= str(rule["last_day"])
        if not inside or receipt["branch"] not in group_of:
            continue
        total = sums[group_of[receipt["branch"]]]
        total[0] += 1
        total[1] += converted(receipt, rates, rule["base"])
    return [(g, n, cents + opening[g]) for g, (n, cents) in sums.items()]


def converted(receipt: task_spec.SourceRow, rates: task_spec.SourceRows, base: Value) -> int:
    """Return a receipt in cents of the base currency, half a cent rounded up.

    Args:
        receipt: A row with `currency`, `date` and `amount`.
        rates: Rates in the order of their first days.
        base: The group's own currency.
    Returns: The amount by the first rate of its currency that holds on its day; 0 if none does.
    """
    amount, day = int(receipt["amount"]), str(receipt["date"])
    if receipt["currency"] == base:
        return amount
    for rate in rates:
        if rate["currency"] == receipt["currency"] and task_spec.within(rate, day):
            return (amount * int(rate["rate"]) + _PARITY // 2) // _PARITY
    return 0


FAMILY = task_spec.TaskFamily(
    name="currency_rollup",
    vendors=parse(_VENDORS),
    link=task_spec.VendorLink(
        "branches", "code", "entity", "Which legal entity runs which branch."
    ),
    sizes=(
        "branches 6 9 12; entities 4 6 8; currencies 2 3 4; rates 3 4 4;"
        "receipts 18 38 52; repeats 2 4 4"
    ),
    columns=("group", "receipts", "total_cents"),
    sources=("branches", "receipts", "links", "entities", "rates"),
    text=(
        "Roll the receipts collected by {sales} up into {base} with the rates of "
        "{treasury}. Take the receipts of open branches from {first_day} to "
        "{last_day}, both days included; a repeated receipt, equal in all but its id, "
        "counts once. Convert each by the rate of its currency on its day (the rate "
        "says whether its last day is included), rounded to whole cents, half a cent "
        "up; {base} needs no rate. A branch belongs to the group of the legal entity "
        "that runs it. Report per group with a receipt: group, receipts (how many) and "
        "total_cents (opening balances of all its entities plus its receipts, in whole "
        "cents of {base})."
    ),
    duplicates="receipts",
    bound="rates.last_day_included",
    bound_text=("The last day of the rate of {currency} that begins on {first_day} belongs to it."),
    documents=("receipts", "rates"),
    last="rates",
    invariants=(
        task_spec.Invariant(
            "gapless",
            ("rates",),
            "The rates of a currency follow one another without a gap: each holds "
            "until the next one begins, the last one to the end of 2031.",
        ),
    ),
    draw=draw,
    solve=solve,
)
