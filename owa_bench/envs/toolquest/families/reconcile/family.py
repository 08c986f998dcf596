"""Family reconcile: two ledgers that should agree, and where they do not."""

from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.envs.toolquest.draws import DAYS, YEAR, IntegerDraws, numbered
from owa_bench.envs.toolquest.families.reconcile.rule import solve
from owa_bench.envs.toolquest.families.reconcile.vendors import (
    BANK,
    DIRECTORY,
    LEDGER,
    LEDGER_WITHOUT_LINK,
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

    accounts: int
    entries: int
    repeats: int


SIZES = {1: Size(5, 18, 2), 2: Size(9, 40, 3), 3: Size(12, 60, 4), 4: Size(12, 60, 4)}
_QUARTERS = ((0, 89), (90, 180), (181, 272), (273, 364))


def story(draws: IntegerDraws, tier: int) -> TaskSpec:
    """Return a drawn task of this family."""
    size = SIZES[tier]
    quarter = draws.below(4)
    periods = _periods(draws)
    accounts = _accounts(draws, size)
    entries = _entries(draws, size, accounts, _QUARTERS[quarter])
    transfers, pairs = _transfers(draws, size, accounts, entries)
    entries += [
        {**entry, "id": f"en-{2001 + i}"}
        for i, entry in enumerate(draws.sample(entries, size.repeats // 2))
    ]
    links = [{"code": a["code"], "bank_account": a["bank_account"]} for a in accounts]
    ledger: Mapping[str, Rows] = {
        "periods": periods,
        "accounts": accounts,
        "entries": draws.shuffled(entries),
        "control": control_rows({"entries": [e["amount"] for e in entries]}),
    }
    bank: Mapping[str, Rows] = {
        "transfers": transfers,
        "control": control_rows({"transfers": [t["amount"] for t in transfers]}),
    }
    vendors: tuple[tuple[ProviderTemplate, Mapping[str, Rows]], ...]
    vendors = ((LEDGER, ledger), (BANK, bank))
    if tier >= 3:
        vendors = (
            (LEDGER_WITHOUT_LINK, ledger),
            (DIRECTORY, {"links": draws.shuffled(links)}),
            (BANK, bank),
        )
    return TaskSpec(
        vendors=vendors,
        sources=_sources(tier),
        rule={"period": periods[quarter]["name"], "account_status": "open"},
        text=_TEXT.format(period=periods[quarter]["name"]),
        units=(("entries", "amount"), ("transfers", "amount")),
        duplicate=("transfers", *pairs[draws.below(2)]),
        bound=BoundQuestion(
            "periods",
            "last_day_included",
            {"name": periods[quarter]["name"]},
            f"The last day of {periods[quarter]['name']} belongs to the period.",
        ),
        docs=("entries", "transfers") if tier < 3 else ("entries",),
        last="transfers",
        spare=1,
    )


_TEXT = (
    "Reconcile the ledger kept by {{ledger}} with the bank {{bank}} for the period "
    "{period}. Take every open account and its entries of the period (the period says "
    "whether its last day is included). The counterpart of an entry is the transfer "
    "with the same reference on the account's bank account, whatever its date; without "
    "one the bank's amount is 0. A repeated posting, equal in all but its id, counts "
    "once. Report account_code, reference and difference_cents (ledger minus bank, in "
    "whole cents) of every entry that differs."
)


def _periods(draws: IntegerDraws) -> list[Row]:
    """Return the quarters, which meet without a gap; some name the day after."""
    rows: list[Row] = []
    for i, (first, last) in enumerate(_QUARTERS):
        included = draws.coin()
        rows.append(
            {
                "name": f"2031-Q{i + 1}",
                "first_day": DAYS[first],
                "last_day": DAYS[last if included else last + 1],
                "last_day_included": included,
            }
        )
    return rows


def _accounts(draws: IntegerDraws, size: Size) -> list[Row]:
    codes = numbered(draws, "GL", size.accounts, 5, near=40)
    banks = numbered(draws, "BA", size.accounts, 7, near=40)
    rows: list[Row] = []
    for i, (code, bank) in enumerate(zip(codes, banks, strict=True)):
        status = "open" if i < 2 or draws.percent(60) else draws.pick(_SHUT)
        if 2 <= i < 2 + len(_SHUT):
            status = _SHUT[i - 2]  # every status occurs, so that drift can be seen
        rows.append(
            {"id": f"ac-{i + 11}", "code": code, "status": status, "bank_account": bank}
        )
    return rows


_SHUT = ("closed", "frozen")


def _entries(
    draws: IntegerDraws, size: Size, accounts: Rows, quarter: tuple[int, int]
) -> list[Row]:
    """Return bookings; the first is on an open account on the period's last day."""
    first, last = quarter
    rows: list[Row] = []
    references = numbered(draws, "INV-", size.entries, 5, near=35)
    for i, reference in enumerate(references):
        day = draws.between(first, last)
        if i == 0 or (i > 1 and draws.percent(8)):
            day = last
        elif i == 1:
            day = last + 1  # just outside: what a bound too late takes in
        elif i > 1 and draws.percent(25):
            day = draws.below(YEAR)
        rows.append(
            {
                "id": f"en-{1001 + i}",
                "account": accounts[i if i < 2 else draws.below(size.accounts)]["id"],
                "reference": reference,
                "date": DAYS[day],
                "amount": draws.cents(40, 9000),
            }
        )
    return rows


def _transfers(
    draws: IntegerDraws, size: Size, accounts: Rows, entries: Rows
) -> tuple[list[Row], tuple[tuple[str, str], tuple[str, str]]]:
    """Return transfers, and the ids of a repeated pair and of a twin pair.

    The twin of a transfer is equal but for its bank account, so it is another posting.
    The first two entries differ from their counterparts in any case.
    """
    bank_of = {a["id"]: a["bank_account"] for a in accounts}
    rows: list[dict[str, Value]] = []
    for i, entry in enumerate(entries):
        if i > 1 and draws.percent(8):
            continue
        amount = int(entry["amount"])
        if i < 2 or draws.percent(25):
            amount += draws.grain * draws.pick((-30, -9, -1, 1, 9, 30))
        rows.append(
            {
                "bank_account": bank_of[entry["account"]],
                "reference": entry["reference"],
                "date": draws.pick(DAYS[_day(entry) : _day(entry) + 4]),
                "amount": amount,
            }
        )
    chosen = draws.sample(range(len(rows)), size.repeats)
    copies = [dict(rows[i]) for i in chosen]
    banks = [str(a["bank_account"]) for a in accounts]
    for copy in copies[: size.repeats // 2]:
        copy["bank_account"] = draws.pick(
            [bank for bank in banks if bank != copy["bank_account"]]
        )
    order = draws.shuffled(range(len(rows) + len(copies)))
    ids = [f"tr-{5001 + place}" for place in order]
    both = [{"id": name, **row} for name, row in zip(ids, rows + copies, strict=True)]
    repeat = (ids[chosen[-1]], ids[len(rows) + len(copies) - 1])
    twin = (ids[chosen[0]], ids[len(rows)])
    return sorted(both, key=lambda row: str(row["id"])), (repeat, twin)


def _day(entry: Row) -> int:
    return DAYS.index(str(entry["date"]))


def _sources(tier: int) -> tuple[SourcePlan, ...]:
    links = (SourcePlan("links", "directory", "links"),) if tier >= 3 else ()
    return (
        SourcePlan("periods", "ledger", "periods"),
        SourcePlan("accounts", "ledger", "accounts"),
        SourcePlan("entries", "ledger", "entries"),
        *links,
        SourcePlan("transfers", "bank", "transfers"),
        SourcePlan("ledger_control", "ledger", "control", optional=True),
        SourcePlan("bank_control", "bank", "control", optional=True),
    )


FAMILY = TaskFamily(
    name="reconcile",
    vendors=(LEDGER, BANK, DIRECTORY),
    columns=("account_code", "reference", "difference_cents"),
    story=story,
    solve=solve,
)
