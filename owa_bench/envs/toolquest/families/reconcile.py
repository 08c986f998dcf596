"""Task family reconcile: two ledgers that should agree, and where they do not."""

from collections.abc import Iterator

from owa_bench.envs.toolquest import draws, task_spec
from owa_bench.envs.toolquest.provider_templates import parse
from owa_bench.envs.toolquest.world import Value

_VENDORS = """
ledger/ledger (Ledger|Books|Accounting) Keeps general ledgers.
  periods unpaged (periods|fiscal-periods|calendar|quarters|closing-periods) Accounting
      periods and their bounds.
    name:string (name|period|label) Name of the period.
    first_day:date (first_day|starts|from_date) First day of the period.
    last_day:date^ (last_day|ends|to_date) Day on which the period ends.
    last_day_included:boolean (last_day_included|end_inclusive|closes_after) Whether the
      last day belongs to the period.
  accounts (accounts|ledger-accounts|chart|gl-accounts|books) Accounts of the ledger.
    id:string! (id|account_id|key) Identifier of the account.
    code:string? (code|account_code|gl_code) Code of the account in the chart of
      accounts.
    status:enum? (status|state|condition) open=live|in_use|current closed=shut
      frozen=blocked Status of the account: open, closed or frozen.
    bank_account:string? (bank_account|iban|settlement_account) Number of the bank
      account that settles the account.
  entries DELETE (entries|journal-lines|bookings|postings|movements) Bookings on the
      accounts of the ledger.
    id:string! (id|entry_id|line) Identifier of the booking.
    account:string! (account|account_ref|booked_to) Identifier of the account that is
      booked.
    reference:string? (reference|document|voucher) Reference of the business document.
    date:date? (date|booked_on|booking_day) Day of the booking.
    amount:money (amount|value|booked) Booked amount.
  control
bank/payments (Bank|Payments|Clearing) Moves money between accounts.
  transfers (transfers|payments|transactions|settlements|remittances) Transfers on the
      bank accounts.
    id:string! (id|transfer_id|trace) Identifier of the transfer.
    bank_account:string? (bank_account|iban|account_number) Number of the bank account.
    reference:string? (reference|remittance|end_to_end) Reference that the payer gave.
    date:date? (date|value_date|settled_on) Value day of the transfer.
    amount:money (amount|value|sum) Transferred amount.
  control
"""
_QUARTERS = ((0, 89), (90, 180), (181, 272), (273, 364))


def draw(rng: draws.IntegerDraws, size: task_spec.Sizes) -> task_spec.TaskData:
    """Return the data of a task.

    Args:
        rng: Small integers.
        size: Numbers of accounts, entries and repeated postings.
    Returns: Quarters that meet without a gap, accounts, entries and their transfers.
    """
    quarter = rng.below(4)
    periods = [
        {"name": f"2031-Q{i + 1}", **draws.day_bounds(rng, *days)}
        for i, days in enumerate(_QUARTERS)
    ]
    accounts = _accounts(rng, size["accounts"])
    entries = list(_entries(rng, size["entries"], accounts, _QUARTERS[quarter]))
    transfers = _transfers(rng, size["repeats"], accounts, entries)
    entries += [
        {**entry, "id": f"en-{2001 + i}"}
        for i, entry in enumerate(rng.sample(entries, size["repeats"] // 2))
    ]
    name = periods[quarter]["name"]
    return task_spec.TaskData(
        tables={
            "periods": periods,
            "accounts": accounts,
            "entries": rng.shuffled(entries),
            "transfers": draws.by_id(transfers.rows),
        },
        links=accounts,
        rule={"period": name, "account_status": "open"},
        pairs=transfers.pairs,
        where={"name": name},
    )


def _accounts(rng: draws.IntegerDraws, count: int) -> list[task_spec.SourceRow]:
    codes = draws.random_codes(rng, "GL", count, 5)
    banks = draws.random_codes(rng, "BA", count, 7)
    return [
        {
            "id": f"ac-{i + 11}",
            "code": code,
            "status": draws.status(rng, i, "open", ("closed", "frozen"), 60),
            "bank_account": bank,
        }
        for i, (code, bank) in enumerate(zip(codes, banks, strict=True))
    ]


def _entries(
    rng: draws.IntegerDraws, count: int, accounts: task_spec.SourceRows, quarter: tuple[int, int]
) -> Iterator[task_spec.SourceRow]:
    """Yield bookings; the first is on an open account on the period's last day."""
    first, last = quarter
    for i, reference in enumerate(draws.random_codes(rng, "INV-", count, 5, near=35)):
        day = rng.between(first, last)
        if i == 0 or (i > 1 and rng.percent(8)):
            day = last
        elif i == 1:
            day = last + 1  # just outside: what a bound too late takes in
        elif i > 1 and rng.percent(25):
            day = rng.below(draws.YEAR)
        yield {
            "id": f"en-{1001 + i}",
            "account": accounts[i if i < 2 else rng.below(len(accounts))]["id"],
            "reference": reference,
            "date": draws.DAYS[day],
            "amount": rng.cents(40, 9000),
        }


def _transfers(
    rng: draws.IntegerDraws,
    repeats: int,
    accounts: task_spec.SourceRows,
    entries: task_spec.SourceRows,
) -> draws.Postings:
    """Return transfers; the first two differ from their entries in any case.

    Two that look alike are equal but for their bank account.
    """
    bank_of = {a["id"]: a["bank_account"] for a in accounts}
    rows: list[task_spec.SourceRow] = []
    for i, entry in enumerate(entries):
        if i > 1 and rng.percent(8):
            continue
        amount, day = int(entry["amount"]), draws.DAYS.index(str(entry["date"]))
        if i < 2 or rng.percent(25):
            amount += rng.grain * rng.pick((-30, -9, -1, 1, 9, 30))
        rows.append(
            {
                "bank_account": bank_of[entry["account"]],
                "reference": entry["reference"],
                "date": rng.pick(draws.DAYS[day : day + 4]),
                "amount": amount,
            }
        )
    banks = list(bank_of.values())

    def alter(row: dict[str, Value]) -> None:
        row["bank_account"] = rng.pick([b for b in banks if b != row["bank_account"]])

    return draws.with_copies(rng, rows, repeats, alter, "tr-5001")


def solve(sources: task_spec.Sources, rule: task_spec.RuleParameters) -> list[task_spec.AnswerRow]:
    """Return the entries that differ from their transfers.

    Args:
        sources: Rows by source.
        rule: `period` and `account_status`.
    Returns: (account code, reference, ledger - bank in cents) where they differ.
    """
    period = next(p for p in sources["periods"] if p["name"] == rule["period"])
    accounts = {a["id"]: a for a in sources["accounts"] if a["status"] == rule["account_status"]}
    bank_account = task_spec.key_map(sources, sources["accounts"], "code", "bank_account")
    paid = {
        (t["bank_account"], t["reference"]): int(t["amount"])
        for t in task_spec.distinct(sources["transfers"])
    }
    differences: list[task_spec.AnswerRow] = []
    for entry in task_spec.distinct(sources["entries"]):
        account = accounts.get(entry["account"])
        if account is None or not task_spec.within(period, str(entry["date"])):
            continue
        code = account["code"]
        bank = paid.get((bank_account.get(code, ""), entry["reference"]), 0)
        if bank != entry["amount"]:
            differences.append((code, entry["reference"], int(entry["amount"]) - bank))
    return differences


FAMILY = task_spec.TaskFamily(
    name="reconcile",
    vendors=parse(_VENDORS),
    link=task_spec.VendorLink(
        "accounts", "code", "bank_account", "Which bank account settles which account."
    ),
    sizes="accounts 5 9 12; entries 18 40 60; repeats 2 3 4",
    columns=("account_code", "reference", "difference_cents"),
    sources=("periods", "accounts", "entries", "links", "transfers"),
    text=(
        "Reconcile the ledger kept by {ledger} with the bank {bank} for the period "
        "{period}. Take every open account and its entries of the period (the period "
        "says whether its last day is included). The counterpart of an entry is the "
        "transfer with the same reference on the account's bank account, whatever its "
        "date; without one the bank's amount is 0. A repeated posting, equal in all "
        "but its id, counts once. Report account_code, reference and difference_cents "
        "(ledger minus bank, in whole cents) of every entry that differs."
    ),
    duplicates="transfers",
    bound="periods.last_day_included",
    bound_text="The last day of {name} belongs to the period.",
    documents=("entries", "transfers"),
    last="transfers",
    invariants=(
        task_spec.Invariant(
            "gapless",
            ("periods",),
            "Periods follow one another without a gap: each lasts until the next one "
            "begins, the last one to the end of 2031.",
        ),
        task_spec.Invariant(
            "counterpart",
            ("entries.amount", "transfers.amount"),
            "Some entries have a transfer of exactly their amount.",
        ),
    ),
    draw=draw,
    solve=solve,
    spare=1,
)
