"""Ledger, a book-keeping site: total transactions, transfer money, reverse an entry."""

from owa_bench.envs.changesurf import site_schema as schema
from owa_bench.envs.changesurf.server.forms import MONTHS
from owa_bench.envs.changesurf.site_schema import Site, SiteDraw, SiteRows, SiteTask
from owa_bench.envs.changesurf.site_spec import Option, SiteTable, SiteValue, Workflow

_LABELS = """
menu:accounts    Accounts|Account list|All accounts || Books|Account register
menu:entries     Transactions|Entries|Postings || Movements|Journal
menu:transfer    Transfer|Move money|New transfer || Send funds|Shift an amount
flow:transfer    A transfer|Transfer form|Money transfer || Sending funds|Order a shift
commit:transfer  Transfer now|Execute transfer|Release \
                 || Order the transfer|Dispatch funds
act:reverse      Reverse|Undo|Cancel entry || Annul|Take back
flow:reverse     Reverse a transaction|Undo an entry|Cancellation of an entry \
                 || Annulment|Taking back a posting
commit:reverse   Book reversal|Undo now|Cancel this entry || Annul for good|Take it back
slot:source      (taken from) From account|Debit account|Take from \
                 || Drawn on|Paying account
slot:target      (paid into) To account|Credit account|Pay into \
                 || Booked to|Receiving account
slot:amount      (the sum of) Amount|Sum|How much || Figure|Money
slot:due         (carried out on) Execution date|Book on|Value date \
                 || Carried out on|Day of posting
slot:memo        (with the memo) Memo|Purpose|Description || Subject line|Statement text
slot:receipt     (with a receipt) Send a receipt|Receipt by mail|Confirm by e-mail \
                 || Mail me proof|Proof of transfer
slot:speed       (speed) Speed|Priority|How fast || Urgency|Handling
slot:reason      (because of) Reason|Why|Grounds || Cause|Explanation
slot:since       (effective) Effective date|Reversal date|Applies from \
                 || In force on|Counts from
slot:note        (with the comment) Comment|Note|Remark || Side note|Annotation
column:id        No.|Number|Reference || Ident|Key
column:name      Account|Account name|Title || Label|Called
column:kind      Type|Kind|Class || Category|Sort
column:opened    Opened|Open since|Started || Begun|First day
column:status    Status|State|Condition || Phase|Standing
column:limit     Limit|Credit line|Ceiling || Cap|Upper bound
column:account   Account no.|Booked on|Ledger account || Book no.|Register no.
column:date      Date|Booked|Day || Posted|When
column:payee     Payee|Counterparty|Paid to || Other side|Recipient
column:amount    Value|Net amount|Worth || Size|Turnover
"""

_NAMES = (
    *("Office rent", "Travel", "Software", "Payroll", "Insurance", "Repairs"),
    *("Marketing", "Postage", "Training", "Utilities"),
)
_KINDS = ("Cost", "Staff", "Service")
_PAYEES = ("Brook Ltd", "Varda AG", "Nimbus Co", "Ostra BV", "Pell and Sons", "Quill")
_SPEEDS = schema.options("Standard", "Same day")
_REASONS = schema.options("Duplicate", "Wrong account", "Wrong amount")
_MEMOS = ("Quarter close", "Advance for travel", "Correction of stock")
_NOTES = ("Seen by audit", "Asked for by the customer", "Found at month end")
_COUNTS = {1: (5, 9), 2: (8, 26), 3: (10, 56)}
_CLOSED = "One of these accounts is closed."


def _tables(draw: SiteDraw) -> tuple[SiteTable, ...]:
    count, past = _COUNTS[draw.tier]
    accounts: SiteRows = []
    for i, name in enumerate(draw.sample(_NAMES, count)):
        opened, limit = draw.day(-draw.between(13, 40)), draw.cents(500, 9000)
        status = "closed" if i == count - 1 else "open"
        account = (f"{4100 + 10 * i}", name, draw.pick(_KINDS), opened, status, limit)
        accounts.append(account)
    entries: SiteRows = [
        (
            *(f"T-{301 + i}", draw.pick(accounts)[0]),
            *(draw.day(-draw.between(1, 3)), draw.pick(_PAYEES)),
            *(draw.cents(20, 2900), "posted", "", "", ""),
        )
        for i in range(past)
    ]
    return (
        schema.table("accounts", "id name kind opened status limit", accounts),
        schema.table("entries", "id account date payee amount status reason since note", entries),
        schema.table("transfers", "id source target amount due memo receipt speed", []),
    )


def _workflows(draw: SiteDraw) -> tuple[Workflow, ...]:
    accounts = tuple(
        Option(value=str(row[0]), text=f"{row[0]} {row[1]}") for row in draw.rows["accounts"]
    )
    transfer = schema.slots(
        draw,
        "source:choice target:choice amount:money",
        "due:date receipt:check",
        "memo speed:choice",
        source=accounts,
        target=accounts,
        speed=_SPEEDS,
    )
    reverse = schema.slots(draw, "reason:choice", "since:date", "note", reason=_REASONS)
    return (
        schema.workflow(
            "transfer",
            transfer,
            schema.effect("insert", "transfers", transfer),
            refusals={
                "known source accounts id open": _CLOSED,
                "known target accounts id open": _CLOSED,
            },
        ),
        schema.workflow(
            "reverse",
            reverse,
            schema.effect("update", "entries", reverse, status="=reversed"),
            record="entries",
            refusals={"is status posted": "Only posted entries can be reversed."},
        ),
    )


def _total(draw: SiteDraw) -> SiteTask:
    entries = draw.rows["entries"]
    row = draw.pick(entries)
    if draw.tier == 1:
        text = f"What is the amount of the transaction {row[0]}?"
        return schema.question(text, row[4], [("entries", row[0], "amount")])
    same = [e for e in entries if e[1] == row[1]]
    if draw.tier == 2:
        same = [e for e in same if e[3] == row[3]]
        text = f"What was paid to {row[3]} from account {row[1]} in all?"
    else:
        month = str(row[2])[:7]
        same = [e for e in same if str(e[2]).startswith(month)]
        name = f"{MONTHS[int(month[5:]) - 1]} {month[:4]}"
        text = f"What do the transactions of account {row[1]} in {name} come to?"
    cells = [("entries", e[0], "amount") for e in same]
    return schema.question(text, sum(int(e[4]) for e in same), cells)


def _values(draw: SiteDraw) -> dict[str, SiteValue]:
    accounts = [a for a in draw.rows["accounts"] if a[4] == "open"]
    source, target = draw.sample(accounts, 2)
    return draw.values(
        "transfer",
        source=lambda: source[0],
        target=lambda: target[0],
        amount=lambda: draw.cents(100, 4000),
        due=lambda: draw.day(draw.between(1, 6)),
        memo=lambda: draw.pick(_MEMOS),
    )


def _transfer(draw: SiteDraw) -> SiteTask:
    text = "Transfer money between two accounts."
    return SiteTask(text, "transfer", _values(draw))


def _reverse(draw: SiteDraw) -> SiteTask:
    row = draw.pick(draw.rows["entries"])
    values = draw.values(
        "reverse", since=lambda: draw.day(draw.between(1, 3)), note=lambda: draw.pick(_NOTES)
    )
    return SiteTask(f"Reverse the transaction {row[0]}.", "reverse", values, row[0])


def _closed_account(draw: SiteDraw) -> SiteTask:
    """Return a transfer from or to the account that is closed."""
    task = _transfer(draw)
    closed = next(a for a in draw.rows["accounts"] if a[4] != "open")
    side = draw.pick(("source", "target"))
    return task._replace(values={**task.values, side: closed[0]})


SITE = Site(
    key="ledger",
    user="clerk",
    brands=("Clearbook", "Open Ledger", "Tally House", "Penny Desk"),
    labels=_LABELS,
    collections=(
        schema.collection(
            "accounts",
            "id name kind:choice opened:date status limit:money",
            title="name",
            secluded="limit",
        ),
        schema.collection(
            "entries",
            "id account:choice date:date payee amount:money status",
            title="id",
            category="account",
        ),
    ),
    tables=_tables,
    workflows=_workflows,
    tasks={
        "total": _total,
        "transfer": _transfer,
        "reverse": _reverse,
        "infeasible": _closed_account,
    },
    infeasible="transfer",
    fact=schema.SiteFact("entries", "payee"),
)
