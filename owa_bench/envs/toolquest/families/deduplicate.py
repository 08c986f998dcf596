"""Task family deduplicate: customer records made twice, and what is owed on them."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date

from owa_bench.envs.toolquest import draws, task_spec
from owa_bench.envs.toolquest.provider_templates import parse
from owa_bench.envs.toolquest.world import Value

_VENDORS = """
crm/crm (Contacts|Relations|Clientele) Keeps customer records.
  policies unpaged (policies|merge-policies|matching-rules|segments|limits) Merge
      policies of the customer segments.
    segment:string (segment|bracket|customer_group) Name of the customer segment.
    days:integer (days|max_days|window) Days after the standing record in which later
      ones are merged.
    limit_included:boolean (limit_included|inclusive|counts_limit) Whether a record made
      exactly at the limit is merged too.
  customers DELETE (customers|contacts|people|clients|parties) Customer records, some of
      them made twice.
    id:string! (id|customer_id|key) Identifier of the record.
    code:string? (code|customer_code|record_no) Code of the customer record.
    email:string? (email|mail|mailbox) E-mail address of the customer.
    tax_number:string? (tax_number|vat_id|fiscal_code) Tax number of the customer.
    segment:string? (segment|bracket|class) Segment that the customer belongs to.
    status:enum? (status|state|condition) active=live|in_use|enabled archived=shelved
      blocked=barred Status of the record: active, archived or blocked.
    created:date? (created|made_on|since) Day on which the record was made.
    account:string? (account|debtor|billing_account) Number of the debtor account that
      the record is billed on.
billing/billing (Billing|Invoicing|Receivables) Bills customers.
  invoices (invoices|bills|receivables|claims|open-items) Invoices on the debtor
      accounts.
    id:string! (id|invoice_id|number) Identifier of the invoice.
    account:string? (account|debtor_account|billed_to) Number of the debtor account that
      is billed.
    issued:date? (issued|invoice_date|billed_on) Day on which the invoice was issued.
    status:enum? (status|state|settlement) open=due|unpaid|outstanding paid=settled
      cancelled=void Status of the invoice: open, paid or cancelled.
    amount:money (amount|value|sum) Amount of the invoice.
  control
"""
_SEGMENTS = ("retail", "trade", "public", "partner", "export", "staff", "press")
_NAMES = (
    "moran", "keller", "silva", "novak", "haas", "lind", "costa", "byrne", "egger",
)  # fmt: skip
_HOSTS = ("post", "mail", "inbox", "letters", "office", "desk")
_IDLE = ("archived", "blocked")
_SETTLED = ("paid", "cancelled")
_Record = dict[str, Value]


def draw(rng: draws.IntegerDraws, size: task_spec.Sizes) -> task_spec.TaskData:
    """Return the data of a task.

    Args:
        rng: Small integers.
        size: Numbers of customers, records made twice (copies), other customers that look alike
            (strangers), and repeated invoices.
    Returns: Merge policies, customer records and invoices.
    """
    policies = _policies(rng)
    records = list(_originals(rng, size["customers"], policies))
    count, copies = size["customers"], size["copies"]
    copied = [0, 1, *rng.sample(range(4, count), copies - 3), 1]
    records += [_copy(rng, records[place], policies, i) for i, place in enumerate(copied)]
    alike = rng.sample(range(count), size["strangers"])
    records += [_stranger(rng, records[place], i) for i, place in enumerate(alike)]
    customers = _customers(rng, records)
    invoices = _invoices(rng, size, customers)
    ids = [str(customer["id"]) for customer in customers]
    return task_spec.TaskData(
        tables={"policies": policies, "customers": draws.by_id(customers), "invoices": invoices},
        links=customers,
        rule={"customer_status": "active", "invoice_status": "open"},
        pairs=((ids[0], ids[count]), (ids[alike[0]], ids[count + copies])),
        where={"segment": records[0]["segment"]},
    )


def _policies(rng: draws.IntegerDraws) -> list[task_spec.SourceRow]:
    return [
        {"segment": name, "days": rng.between(10, 60), "limit_included": rng.coin()}
        for name in rng.sample(rng.allowed(_SEGMENTS), 3)
    ]


def _originals(
    rng: draws.IntegerDraws, count: int, policies: task_spec.SourceRows
) -> Iterator[_Record]:
    """Yield one record of each customer; every status occurs."""
    taxes = draws.random_codes(rng, "TX", count, 7)
    boxes = draws.random_codes(rng, "", count, 3)
    for i, (tax, box) in enumerate(zip(taxes, boxes, strict=True)):
        active = i < 2 or rng.percent(80)
        idle = _IDLE[i - 2] if 2 <= i < 4 else rng.pick(_IDLE)
        host = f"{rng.pick(_HOSTS)}.example"
        yield {
            "email": f"{rng.pick(_NAMES)}{box}@{host}",
            "tax_number": tax,
            "segment": rng.pick(policies)["segment"],
            "status": "active" if active and not 2 <= i < 4 else idle,
            "created": draws.DAYS[rng.below(220)],
        }


def _copy(
    rng: draws.IntegerDraws, original: task_spec.SourceRow, policies: task_spec.SourceRows, i: int
) -> _Record:
    """Return a later record of a customer, its address in other capitals.

    The first copy is made exactly at the limit of its segment, the second before it.
    """
    limit = next(int(p["days"]) for p in policies if p["segment"] == original["segment"])
    kind = i if i < 2 else rng.below(3)
    gap = (limit, rng.between(1, limit - 1), limit + rng.between(1, 30))[kind]
    email = str(original["email"])
    return {
        **original,
        "email": rng.pick((email.capitalize(), email.upper(), email.title(), email)),
        "status": "active" if i < 2 or rng.percent(85) else rng.pick(_IDLE),
        "created": draws.DAYS[draws.DAYS.index(str(original["created"])) + gap],
    }


def _stranger(rng: draws.IntegerDraws, record: task_spec.SourceRow, i: int) -> _Record:
    """Return another customer who shares the address or the tax number alone."""
    tax, email = str(record["tax_number"]), str(record["email"])
    if i % 2 == 0:
        tax = f"{tax[:-1]}{(int(tax[-1]) + rng.between(1, 9)) % 10}"
    else:
        name, _, host = email.partition("@")
        digit = (int(name[-1]) + rng.between(1, 9)) % 10
        email = f"{name[:-1]}{digit}@{host}"
    day = draws.DAYS.index(str(record["created"])) + rng.between(0, 8)
    return {
        **record,
        "tax_number": tax,
        "email": email,
        "status": "active",
        "created": draws.DAYS[day],
    }


def _customers(rng: draws.IntegerDraws, records: task_spec.SourceRows) -> list[task_spec.SourceRow]:
    """Return the records with id, code and account, in the order given."""
    codes = draws.random_codes(rng, "CU", len(records), 5)
    accounts = draws.random_codes(rng, "DB", len(records), 6)
    order = rng.shuffled(range(len(records)))
    return [
        {"id": f"cr-{101 + place}", "code": code, "account": account, **record}
        for place, code, account, record in zip(order, codes, accounts, records, strict=True)
    ]


def _invoices(
    rng: draws.IntegerDraws, size: task_spec.Sizes, customers: task_spec.SourceRows
) -> list[task_spec.SourceRow]:
    """Return invoices, some made twice; an open one on the account of every copy."""
    copies = range(size["customers"], size["customers"] + size["copies"])
    rows: list[_Record] = []
    for i, customer in enumerate(customers):
        for turn in range(rng.between(1, 2)):
            due = (i in copies and turn == 0) or rng.percent(55)
            status = "open" if due else rng.pick(_SETTLED)
            if i < len(_SETTLED) and turn == 0:
                status = _SETTLED[i]  # every status occurs, so that drift can be seen
            rows.append(
                {
                    "account": customer["account"],
                    "issued": draws.DAYS[rng.below(365)],
                    "status": status,
                    "amount": rng.cents(20, 4000),
                }
            )
    of_copy = customers[copies[0]]["account"]
    first = next(i for i, row in enumerate(rows) if row["account"] == of_copy)
    chosen = [first, *rng.sample(range(len(rows)), size["repeats"] - 1)]
    repeated = [dict(rows[i]) for i in chosen]
    for row in repeated[len(repeated) // 2 :]:
        row["amount"] = int(row["amount"]) + rng.grain * rng.pick((1, 9, 10))
    order = rng.shuffled(range(len(rows) + len(repeated)))
    return draws.by_id(
        [
            {"id": f"iv-{6001 + place}", **row}
            for place, row in zip(order, rows + repeated, strict=True)
        ]
    )


def solve(sources: task_spec.Sources, rule: task_spec.RuleParameters) -> list[task_spec.AnswerRow]:
    """Return the duplicates.

    Args:
        sources: Rows by source.
        rule: `customer_status` and `invoice_status`.
    Returns: (survivor code, duplicate code, open cents) of every duplicate.
    """
    policies = {p["segment"]: p for p in sources["policies"]}
    account = task_spec.key_map(sources, sources["customers"], "code", "account")
    owed: dict[Value, int] = defaultdict(int)
    for invoice in task_spec.distinct(sources["invoices"]):
        if invoice["status"] == rule["invoice_status"]:
            owed[invoice["account"]] += int(invoice["amount"])
    same: dict[tuple[str, str], list[task_spec.SourceRow]] = defaultdict(list)
    for record in sources["customers"]:
        if record["status"] == rule["customer_status"]:
            key = (str(record["tax_number"]), str(record["email"]).casefold())
            same[key].append(record)
    duplicates: list[task_spec.AnswerRow] = []
    for records in same.values():
        first, *later = sorted(records, key=lambda r: (str(r["created"]), str(r["id"])))
        duplicates += [
            (first["code"], record["code"], owed[account[record["code"]]])
            for record in later
            if _merges(policies[first["segment"]], first, record)
        ]
    return duplicates


def _merges(
    policy: task_spec.SourceRow, first: task_spec.SourceRow, record: task_spec.SourceRow
) -> bool:
    """Return whether a record was made soon enough after the first one."""
    later, earlier = (date.fromisoformat(str(row["created"])) for row in (record, first))
    gap, limit = (later - earlier).days, int(policy["days"])
    return gap < limit or (gap == limit and bool(policy["limit_included"]))


FAMILY = task_spec.TaskFamily(
    name="deduplicate",
    vendors=parse(_VENDORS),
    link=task_spec.VendorLink(
        "customers", "code", "account", "Which debtor account bills which record."
    ),
    sizes="customers 7 14 20; copies 3 5 7; strangers 2 4 5; repeats 2 2 4",
    columns=("survivor_code", "duplicate_code", "moved_cents"),
    sources=("policies", "customers", "links", "invoices"),
    text=(
        "Find customer records that were made twice at {crm}, and what is still owed "
        "on them at {billing}. Take the active records. Records with the same tax "
        "number and the same e-mail address, capital letters aside, are of one "
        "customer; the one made first (the lowest id in a tie) stands. A later one is "
        "its duplicate when it was made fewer days after it than the merge policy of "
        "its segment allows, or exactly that many where the policy says so. Report per "
        "duplicate: survivor_code, duplicate_code and moved_cents (sum of the open "
        "invoices on the duplicate's debtor account, in whole cents; a repeated "
        "invoice, equal in all but its id, counts once)."
    ),
    duplicates="customers",
    same=("tax_number", "email"),
    bound="policies.limit_included",
    bound_text=("In segment {segment}, a record made exactly at the limit is merged too."),
    documents=("customers", "invoices"),
    last="invoices",
    draw=draw,
    solve=solve,
)
