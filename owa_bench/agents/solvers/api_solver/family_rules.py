"""The rules of the goal families: from tables by role to the rows of the answer.

The rules are those of the goal's own words. A table is a list of rows {role: value}; money is in
cents and a repeated posting stands once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

RoleRow = Mapping[str, Any]
Tables = Mapping[str, Sequence[RoleRow]]
RuleValues = Mapping[str, Any]
AnswerRows = list[list[Any]]
_Event = tuple[int, str, Any]  # minutes since FIRST_DAY began in UTC, reference, cents
PER = 10_000  # a rate is for so many cents
MINUTES_OF_DAY = 1440
SECONDS_OF_MINUTE = 60
FIRST_DAY = date(2031, 1, 1)  # the day from which changes count their seconds


def compute(family: str, tables: Tables, rule: RuleValues) -> AnswerRows | None:
    """Return the rows that a goal asks for.

    Args:
        family: Name of the family; a honeypot's is followed by "-" and more.
        tables: Rows by role for each source.
        rule: The parameters that the goal names.
    Returns: The answer's rows, sorted; None for a family not known here.
    """
    known = _RULES.get(family.partition("-")[0])
    return known(tables, rule) if known else None


def _key_map(tables: Tables, source: str, key: str, value: str) -> dict[Any, Any]:
    """Return key -> value from the linking table, or from `source` itself."""
    return {row[key]: row[value] for row in tables.get("links") or tables[source]}


def _grouped(rows: Sequence[RoleRow], *roles: str) -> dict[Any, list[RoleRow]]:
    """Return rows by the values of some roles, in order of first row."""
    groups: dict[Any, list[RoleRow]] = {}
    for row in rows:
        groups.setdefault(tuple(row[role] for role in roles), []).append(row)
    return groups


def _having(rows: Sequence[RoleRow], role: str, value: Any) -> list[RoleRow]:
    """Return the rows that have a value."""
    return [row for row in rows if row[role] == value]


def _below(value: int, row: RoleRow, limit: str, flag: str) -> bool:
    """Return whether a value is below a row's limit, or at it where a flag says so."""
    return bool(value < row[limit] or (value == row[limit] and row[flag]))


def _within(day: str, period: RoleRow) -> bool:
    """Return whether an ISO day lies in a period, bound as the period says."""
    last = period["last_day"]
    before = day <= last if period["last_day_included"] else day < last
    return bool(period["first_day"] <= day and before)


def _currency_rollup(tables: Tables, rule: RuleValues) -> AnswerRows:
    """Return group, number of receipts and total of each group with receipts."""
    entity_of = _key_map(tables, "branches", "code", "entity")
    group_of = {row["entity"]: row["group"] for row in tables["entities"]}
    branches = {
        row["id"]: group_of[entity_of[row["code"]]]
        for row in tables["branches"]
        if row["status"] == rule["branch_status"] and row["code"] in entity_of
    }
    sums: dict[str, list[int]] = {}
    for receipt in tables["receipts"]:
        group = branches.get(receipt["branch"])
        inside = rule["first_day"] <= receipt["date"][:10] <= rule["last_day"]
        if group is None or not inside:
            continue
        total = sums.setdefault(group, [0, 0])
        total[0] += 1
        total[1] += _converted(receipt, tables["rates"], rule["base"])
    for row in tables["entities"]:
        if row["group"] in sums:
            sums[row["group"]][1] += row["opening"]
    return [[group, *total] for group, total in sorted(sums.items())]


def _converted(receipt: RoleRow, rates: Sequence[RoleRow], base: str) -> int:
    """Return a receipt in cents of the base currency, 0 without a rate."""
    amount, day = int(receipt["amount"]), receipt["date"][:10]
    if receipt["currency"] == base:
        return amount
    for rate in sorted(rates, key=lambda row: str(row["first_day"])):
        if _within(day, rate) and rate["currency"] == receipt["currency"]:
            return int(2 * amount * rate["rate"] + PER) // (2 * PER)
    return 0


def _deduplicate(tables: Tables, rule: RuleValues) -> AnswerRows:
    """Return survivor, duplicate and what is open on the latter, in cents."""
    policies = {row["segment"]: row for row in tables["policies"]}
    account_of = _key_map(tables, "customers", "code", "account")
    owed: dict[Any, int] = {}
    for invoice in _having(tables["invoices"], "status", rule["invoice_status"]):
        account = invoice["account"]
        owed[account] = owed.get(account, 0) + invoice["amount"]
    rows = []
    for first, *later in _customers(tables["customers"], rule["customer_status"]):
        policy = policies[first["segment"]]
        rows += [
            [first["code"], row["code"], owed.get(account_of.get(row["code"]), 0)]
            for row in later
            if _below(_day(row) - _day(first), policy, "days", "limit_included")
        ]
    return sorted(rows)


def _customers(records: Any, status: str) -> list[list[RoleRow]]:
    """Return the records of each customer, the first made first."""
    groups: dict[tuple[str, str], list[RoleRow]] = {}
    for row in _having(records, "status", status):
        key = (row["tax_number"], row["email"].lower())
        groups.setdefault(key, []).append(row)
    return [
        sorted(rows, key=lambda row: (row["created"], str(row["id"]))) for rows in groups.values()
    ]


def _day(row: RoleRow) -> int:
    return date.fromisoformat(row["created"][:10]).toordinal()


def _entitlement_audit(tables: Tables, rule: RuleValues) -> AnswerRows:
    """Return login, entitlement, wrong grants and their price in cents."""
    rights = {(row["department"], row["entitlement"]) for row in tables["rights"]}
    seat_of = _key_map(tables, "people", "login", "seat")
    people = {seat_of.get(row["login"]): row for row in tables["people"]}
    sums: dict[tuple[str, str], list[int]] = {}
    for grant in tables["grants"]:
        person = people.get(grant["seat"])
        day = grant["granted"][:10]
        if person is None or day > rule["day"]:
            continue
        entitled = (person["department"], grant["entitlement"]) in rights
        if entitled and person["status"] == rule["person_status"]:
            continue
        total = sums.setdefault((person["login"], grant["entitlement"]), [0, 0])
        total[0] += 1
        total[1] += _price(tables["terms"], grant["entitlement"], day)
    return [[*place, *total] for place, total in sorted(sums.items())]


def _price(terms: Sequence[RoleRow], entitlement: str, day: str) -> int:
    """Return the price of the entitlement's term that holds a day, 0 without one."""
    for term in sorted(terms, key=lambda row: str(row["first_day"])):
        if _within(day, term) and term["entitlement"] == entitlement:
            return int(term["seat_price"])
    return 0


def _incident_timeline(tables: Tables, rule: RuleValues) -> AnswerRows:
    """Return reference, position, time in UTC and cents of each event of a window."""
    window = next(row for row in tables["windows"] if row["name"] == rule["window"])
    services = _having(tables["services"], "status", rule["service_status"])
    watched = {row["service"]: row for row in services}
    events = [*_alerts(tables, watched), *_changes(tables, watched)]
    inside = sorted(event for event in events if _within(_utc_text(event[0])[:10], window))
    return [
        [reference, place, _utc_text(at), cents]
        for place, (at, reference, cents) in enumerate(inside, 1)
    ]


def _alerts(tables: Tables, watched: Mapping[Any, RoleRow]) -> Iterator[_Event]:
    """Yield the alerts of watched services, local time turned to UTC."""
    for row in tables["alerts"]:
        if (service := watched.get(row["service"])) is not None:
            days = (date.fromisoformat(row["day"][:10]) - FIRST_DAY).days
            local = days * MINUTES_OF_DAY + row["minute"]
            yield local - service["minutes_ahead"], row["reference"], row["loss"]


def _changes(tables: Tables, watched: Mapping[Any, RoleRow]) -> Iterator[_Event]:
    """Yield the changes of the components that run watched services."""
    component_of = _key_map(tables, "services", "service", "component")
    components = {component_of.get(name) for name in watched}
    for row in tables["changes"]:
        if row["component"] in components:
            yield row["second"] // SECONDS_OF_MINUTE, row["reference"], row["cost"]


def _utc_text(at: int) -> str:
    """Return minutes since the first day as a time in UTC."""
    day = FIRST_DAY.toordinal() + at // MINUTES_OF_DAY
    hour, minute = divmod(at % MINUTES_OF_DAY, 60)
    written = datetime.fromordinal(day).replace(hour=hour, minute=minute, tzinfo=UTC)
    return f"{written:%Y-%m-%dT%H:%M}Z"


def _reconcile(tables: Tables, rule: RuleValues) -> AnswerRows:
    """Return account, reference and ledger minus bank of each entry that differs."""
    period = next(row for row in tables["periods"] if row["name"] == rule["period"])
    listed = _having(tables["accounts"], "status", rule["account_status"])
    accounts = {row["id"]: row for row in listed}
    bank_of = _key_map(tables, "accounts", "code", "bank_account")
    paid = {(row["bank_account"], row["reference"]): row["amount"] for row in tables["transfers"]}
    rows = []
    for entry in tables["entries"]:
        account = accounts.get(entry["account"])
        if account is None or not _within(entry["date"], period):
            continue
        place = (bank_of.get(account["code"]), entry["reference"])
        if difference := entry["amount"] - paid.get(place, 0):
            rows.append([account["code"], entry["reference"], difference])
    return sorted(rows)


def _restock(tables: Tables, rule: RuleValues) -> AnswerRows:
    """Return offer, quantity and total in cents of each order that is due."""
    classes = {row["class"]: row for row in tables["classes"]}
    part_of = _key_map(tables, "items", "sku", "part")
    offers = _grouped(tables["offers"], "part")
    pending = _having(tables["orders"], "status", rule["open_status"])
    ordered = {row["offer"] for row in pending}
    due = []
    for item in tables["items"]:
        level = classes.get(item["class"])
        part = part_of.get(item["sku"])
        choices = [offer for offer in offers.get((part,), []) if offer["available"]]
        if item["status"] != rule["item_status"] or level is None or not choices:
            continue
        if any(offer["id"] in ordered for offer in offers[part,]):
            continue
        if not _below(item["on_hand"], level, "reorder_level", "at_level"):
            continue
        offer = min(choices, key=lambda choice: (choice["price"], str(choice["id"])))
        packs = -(-(level["target_level"] - item["on_hand"]) // offer["pack_size"])
        quantity = packs * offer["pack_size"]
        due.append([offer["id"], quantity, quantity * offer["price"]])
    return sorted(due)


def _sla_report(tables: Tables, rule: RuleValues) -> AnswerRows:
    """Return breaches, minutes over and credit in cents of each customer with one."""
    customers = {row["id"]: row["code"] for row in tables["customers"]}
    contract_of = _key_map(tables, "customers", "code", "contract")
    plan_of = {row["contract"]: row["plan"] for row in tables["agreements"]}
    targets = {(row["plan"], row["priority"]): row for row in tables["targets"]}
    sums: dict[str, list[int]] = {}
    for ticket in tables["tickets"]:
        code = customers.get(ticket["customer"])
        plan = plan_of.get(contract_of.get(code))
        target = targets.get((plan, ticket["priority"]))
        inside = rule["first_day"] <= ticket["opened"][:10] <= rule["last_day"]
        if code is None or target is None or not inside:
            continue
        over = ticket["minutes"] - target["minutes"]
        if over > 0 or (over == 0 and target["limit_is_breach"]):
            total = sums.setdefault(code, [0, 0, 0])
            total[0] += 1
            total[1] += over
            total[2] += target["credit"]
    return [[code, *total] for code, total in sorted(sums.items())]


def _webhook_replay(tables: Tables, rule: RuleValues) -> AnswerRows:
    """Return delivery, number of the attempt and value in cents of each replay due."""
    deliveries = tables["deliveries"]
    message_of = _key_map(tables, "deliveries", "event", "message")
    messages = {row["message"]: row for row in tables["messages"]}
    endpoints = {row["endpoint"]: row for row in tables["endpoints"]}
    waiting = _having(tables["replays"], "status", rule["open_status"])
    queued = {row["delivery"] for row in waiting}
    due = []
    for (event, name), group in _grouped(deliveries, "event", "endpoint").items():
        failed = _having(group, "outcome", rule["outcome"])
        endpoint, message = endpoints.get(name), messages.get(message_of.get(event))
        if not failed or endpoint is None or message is None:
            continue
        if any(row["outcome"] == rule["done_outcome"] or row["id"] in queued for row in group):
            continue
        if endpoint["status"] != rule["endpoint_status"]:
            continue
        last = min(failed, key=lambda row: (-row["attempts"], str(row["id"])))
        kept = message["kept_until"][:10] >= rule["today"]
        if kept and _below(last["attempts"], endpoint, "most_attempts", "at_limit"):
            due.append([last["id"], last["attempts"] + 1, message["value"]])
    return sorted(due)


_RULES: Mapping[str, Callable[[Tables, RuleValues], AnswerRows]] = {
    "currency_rollup": _currency_rollup,
    "deduplicate": _deduplicate,
    "entitlement_audit": _entitlement_audit,
    "incident_timeline": _incident_timeline,
    "reconcile": _reconcile,
    "restock": _restock,
    "sla_report": _sla_report,
    "webhook_replay": _webhook_replay,
}
