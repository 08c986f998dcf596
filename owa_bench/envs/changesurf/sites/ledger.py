"""Ledger, a book-keeping site: total transactions, transfer money, reverse an entry."""

from owa_bench.envs.changesurf import plots
from owa_bench.envs.changesurf.draws import Draws
from owa_bench.envs.changesurf.formats import MONTHS
from owa_bench.envs.changesurf.plots import Plot, Rows, Site, Task
from owa_bench.worlds.site import (
    Collection,
    Effect,
    Option,
    SiteTable,
    SiteValue,
    Slot,
    Workflow,
)

WORDS = {
    "menu:accounts": "Accounts|Account list|All accounts || Books|Account register",
    "menu:entries": "Transactions|Entries|Postings || Movements|Journal",
    "menu:transfer": "Transfer|Move money|New transfer || Send funds|Shift an amount",
    "flow:transfer": "A transfer|Transfer form|Money transfer "
    "|| Sending funds|Order a shift",
    "commit:transfer": "Transfer now|Execute transfer|Release "
    "|| Order the transfer|Dispatch funds",
    "act:reverse": "Reverse|Undo|Cancel entry || Annul|Take back",
    "flow:reverse": "Reverse a transaction|Undo an entry|Cancellation of an entry "
    "|| Annulment|Taking back a posting",
    "commit:reverse": "Book reversal|Undo now|Cancel this entry "
    "|| Annul for good|Take it back",
    "slot:source": "From account|Debit account|Take from || Drawn on|Paying account",
    "slot:target": "To account|Credit account|Pay into || Booked to|Receiving account",
    "slot:amount": "Amount|Sum|How much || Figure|Money",
    "slot:due": "Execution date|Book on|Value date || Carried out on|Day of posting",
    "slot:memo": "Memo|Purpose|Description || Subject line|Statement text",
    "slot:receipt": "Send a receipt|Receipt by mail|Confirm by e-mail "
    "|| Mail me proof|Proof of transfer",
    "slot:speed": "Speed|Priority|How fast || Urgency|Handling",
    "slot:reason": "Reason|Why|Grounds || Cause|Explanation",
    "slot:since": "Effective date|Reversal date|Applies from "
    "|| In force on|Counts from",
    "slot:note": "Comment|Note|Remark || Side note|Annotation",
    "column:id": "No.|Number|Reference || Ident|Key",
    "column:name": "Account|Account name|Title || Label|Called",
    "column:kind": "Type|Kind|Class || Category|Sort",
    "column:opened": "Opened|Open since|Started || Begun|First day",
    "column:status": "Status|State|Condition || Phase|Standing",
    "column:limit": "Limit|Credit line|Ceiling || Cap|Upper bound",
    "column:account": "Account no.|Booked on|Ledger account || Book no.|Register no.",
    "column:date": "Date|Booked|Day || Posted|When",
    "column:payee": "Payee|Counterparty|Paid to || Other side|Recipient",
    "column:amount": "Value|Net amount|Worth || Size|Turnover",
}
NAMES = {
    "source": "taken from",
    "target": "paid into",
    "amount": "the sum of",
    "due": "carried out on",
    "memo": "with the memo",
    "receipt": "with a receipt",
    "speed": "speed",
    "reason": "because of",
    "since": "effective",
    "note": "with the comment",
}
_NAMES = (
    *("Office rent", "Travel", "Software", "Payroll", "Insurance", "Repairs"),
    *("Marketing", "Postage", "Training", "Utilities"),
)
_KINDS = ("Cost", "Staff", "Service")
_PAYEES = ("Brook Ltd", "Varda AG", "Nimbus Co", "Ostra BV", "Pell and Sons", "Quill")
_SPEEDS = plots.options("Standard", "Same day")
_REASONS = plots.options("Duplicate", "Wrong account", "Wrong amount")
_MEMOS = ("Quarter close", "Advance for travel", "Correction of stock")
_NOTES = ("Seen by audit", "Asked for by the customer", "Found at month end")
_COUNTS = {1: (5, 9), 2: (8, 26), 3: (10, 56)}
_POSTED, _OPEN = "posted", "open"
_ENTRY_COLUMNS = (
    *("id", "account", "date", "payee", "amount", "status", "reason", "since"),
    "note",
)
_TRANSFER_COLUMNS = (
    *("id", "source", "target", "amount", "due", "memo", "receipt", "speed"),
)
_COLLECTIONS = (
    Collection(
        key="accounts",
        columns=plots.columns("id name kind:choice opened:date status limit:money"),
        title="name",
        secluded=("limit",),
    ),
    Collection(
        key="entries",
        columns=plots.columns("id account:choice date:date payee amount:money status"),
        title="id",
        category="account",
    ),
)


def draw(draws: Draws, tier: int, goal: str) -> Plot:
    """Return the books with accounts and entries, and the task of `goal`."""
    day = plots.today(draws)
    accounts = _accounts(draws, _COUNTS[tier][0], day)
    entries = _entries(draws, accounts, day, _COUNTS[tier][1])
    tasks = {
        "total": _total,
        "transfer": _transfer,
        "reverse": _reverse,
        "infeasible": _closed,
    }
    task = tasks[goal](draws, tier, accounts, entries, day)
    asked = draws.pick(entries)
    return Plot(
        today=day,
        user="clerk",
        tables=(
            SiteTable(
                key="accounts",
                columns=("id", "name", "kind", "opened", "status", "limit"),
                rows=tuple(accounts),
            ),
            SiteTable(key="entries", columns=_ENTRY_COLUMNS, rows=tuple(entries)),
            SiteTable(key="transfers", columns=_TRANSFER_COLUMNS),
        ),
        collections=_COLLECTIONS,
        workflows=(_moving(tier, accounts), _undoing(tier)),
        task=task,
        fact=("entries", asked[0], "payee", draws.pick(_PAYEES[:2])),
    )


def _accounts(draws: Draws, count: int, day: str) -> Rows:
    names = draws.sample(_NAMES, count)
    rows: Rows = []
    for i, name in enumerate(names):
        status = "closed" if i == count - 1 else _OPEN
        opened = draws.day(day, -draws.between(13, 40))
        limit = draws.cents(500, 9000)
        code = f"{4100 + 10 * i}"
        rows.append((code, name, draws.pick(_KINDS), opened, status, limit))
    return rows


def _entries(draws: Draws, accounts: Rows, day: str, count: int) -> Rows:
    return [
        (
            *(f"T-{301 + i}", draws.pick(accounts)[0]),
            *(draws.day(day, -draws.between(1, 3)), draws.pick(_PAYEES)),
            *(draws.cents(20, 2900), _POSTED, "", "", ""),
        )
        for i in range(count)
    ]


def _moving(tier: int, accounts: Rows) -> Workflow:
    known = tuple(
        Option(value=str(row[0]), text=f"{row[0]} {row[1]}") for row in accounts
    )
    slots = [
        Slot(key="source", kind="choice", options=known),
        Slot(key="target", kind="choice", options=known),
        Slot(key="amount", kind="money"),
    ]
    if tier >= 2:
        slots.append(Slot(key="due", kind="date"))
        slots.append(plots.box("receipt"))
    if tier >= 3:
        slots.append(Slot(key="memo", kind="text"))
        slots.append(Slot(key="speed", kind="choice", options=_SPEEDS))
    cells = plots.cells(slots)
    closed = "One of these accounts is closed."
    return Workflow(
        key="transfer",
        slots=tuple(slots),
        effects=(Effect(kind="insert", table="transfers", values=cells),),
        checks=(
            plots.only("known", "source", "accounts", "id", _OPEN, closed),
            plots.only("known", "target", "accounts", "id", _OPEN, closed),
        ),
    )


def _undoing(tier: int) -> Workflow:
    slots = [Slot(key="reason", kind="choice", options=_REASONS)]
    if tier >= 2:
        slots.append(Slot(key="since", kind="date"))
    if tier >= 3:
        slots.append(Slot(key="note", kind="text"))
    cells = plots.cells(slots)
    return Workflow(
        key="reverse",
        record="entries",
        slots=tuple(slots),
        effects=(
            Effect(
                kind="update", table="entries", values=(("status", "=reversed"), *cells)
            ),
        ),
        checks=(
            plots.only("is", "status", _POSTED, "Only posted entries can be reversed."),
        ),
    )


def _total(draws: Draws, tier: int, accounts: Rows, entries: Rows, _day: str) -> Task:
    if tier == 1:
        row = draws.pick(entries)
        text = f"What is the amount of the transaction {row[0]}?"
        return plots.finding(text, int(row[4]), [("entries", row[0], "amount")])
    row = draws.pick(entries)
    same = [e for e in entries if e[1] == row[1]]
    if tier == 2:
        same = [e for e in same if e[3] == row[3]]
        text = f"What was paid to {row[3]} from account {row[1]} in all?"
    else:
        month = str(row[2])[:7]
        same = [e for e in same if str(e[2]).startswith(month)]
        name = f"{MONTHS[int(month[5:]) - 1]} {month[:4]}"
        text = f"What do the transactions of account {row[1]} in {name} come to?"
    cells = [("entries", e[0], "amount") for e in same]
    return plots.finding(text, sum(int(e[4]) for e in same), cells)


def _values(draws: Draws, tier: int, accounts: Rows, day: str) -> dict[str, SiteValue]:
    source, target = draws.sample([a for a in accounts if a[4] == _OPEN], 2)
    values: dict[str, SiteValue] = {
        "source": source[0],
        "target": target[0],
        "amount": draws.cents(100, 4000),
    }
    if tier >= 2:
        values["due"] = draws.day(day, draws.between(1, 6))
        values["receipt"] = draws.pick(("yes", "no"))
    if tier >= 3:
        values["memo"] = draws.pick(_MEMOS)
        values["speed"] = draws.pick(_SPEEDS).value
    return values


def _transfer(draws: Draws, tier: int, accounts: Rows, _rows: Rows, day: str) -> Task:
    values = _values(draws, tier, accounts, day)
    return Task("Transfer money between two accounts.", "transfer", values)


def _reverse(draws: Draws, tier: int, _accounts: Rows, rows: Rows, day: str) -> Task:
    row = draws.pick(rows)
    values: dict[str, SiteValue] = {"reason": draws.pick(_REASONS).value}
    if tier >= 2:
        values["since"] = draws.day(day, draws.between(1, 3))
    if tier >= 3:
        values["note"] = draws.pick(_NOTES)
    return Task(f"Reverse the transaction {row[0]}.", "reverse", values, row[0])


def _closed(draws: Draws, tier: int, accounts: Rows, _rows: Rows, day: str) -> Task:
    """Return a transfer from or to the account that is closed."""
    values = _values(draws, tier, accounts, day)
    closed = next(a for a in accounts if a[4] != _OPEN)
    values[draws.pick(("source", "target"))] = closed[0]
    return Task("Transfer money between two accounts.", "transfer", values)


SITE = Site(
    key="ledger",
    goals=("total", "transfer", "reverse"),
    infeasible="transfer",
    brands=("Clearbook", "Open Ledger", "Tally House", "Penny Desk"),
    words=WORDS,
    names=NAMES,
    draw=draw,
)
