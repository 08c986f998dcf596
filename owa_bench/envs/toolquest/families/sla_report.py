"""Task family sla_report: tickets that broke their service level, and their credits."""

from collections import defaultdict

from owa_bench.envs.toolquest import draws, task_spec
from owa_bench.envs.toolquest.provider_templates import parse
from owa_bench.envs.toolquest.world import Value

_VENDORS = """
helpdesk/helpdesk (Helpdesk|Support|Service) Keeps support tickets.
  customers (customers|clients|organisations|companies|tenants) Customers of the help
      desk.
    id:string! (id|customer_id|key) Identifier of the customer.
    code:string? (code|customer_code|client_code) Code of the customer.
    contract:string? (contract|agreement_no|contract_ref) Number of the customer's
      contract.
  tickets DELETE (tickets|cases|requests|incidents|issues) Tickets that customers
      opened.
    id:string! (id|ticket_id|case_no) Identifier of the ticket.
    customer:string! (customer|requester|opened_by) Identifier of the customer who
      opened the ticket.
    subject:string (subject|topic|headline) What the ticket is about.
    priority:enum? (priority|urgency|level) high=urgent|p1|critical normal=p2 low=p3
      Priority of the ticket: low, normal or high.
    opened:date? (opened|opened_on|created) Day on which the ticket was opened.
    minutes:integer (minutes|response_time|waited) Minutes until the first answer.
contracts/contracts (Contracts|Agreements|Terms) Keeps contracts and their service
      levels.
  agreements (agreements|contracts|subscriptions|deals|engagements) Contracts and the
      plan each is on.
    contract:string? (contract|number|contract_no) Number of the contract.
    plan:string? (plan|package|edition) Plan that the contract is on.
  targets (targets|service-levels|slas|objectives|commitments) Service levels of each
      plan and priority.
    plan:string? (plan|package|edition) Plan that the level belongs to.
    priority:enum? (priority|urgency|class) high=urgent|p1|critical normal=p2 low=p3
      Priority that the level is for: low, normal or high.
    minutes:integer (minutes|max_minutes|answer_within) Minutes within which an answer
      is due.
    limit_is_breach:boolean (limit_is_breach|strict|limit_excluded) Whether an answer at
      exactly the limit is a breach.
    credit:money (credit|penalty|refund) Credit due for one breach.
  control
"""
_PLANS = ("bronze", "silver", "gold", "basic", "plus", "prime", "core", "extra")
_PRIORITIES = ("low", "normal", "high")
_SUBJECTS = ("login", "invoice", "export", "printer", "sync", "alert", "import")


def draw(rng: draws.IntegerDraws, size: task_spec.Sizes) -> task_spec.TaskData:
    """Return the data of a task.

    Args:
        rng: Small integers.
        size: Numbers of customers, tickets and repeated tickets.
    Returns: Service levels of three plans, customers with contracts on them, tickets.
    """
    first = rng.below(200)
    last = first + rng.between(40, 120)
    plans = rng.sample(_PLANS, 3)
    targets = _targets(rng, plans)
    customers = _customers(rng, size["customers"])
    agreements: list[task_spec.SourceRow] = [
        {"contract": c["contract"], "plan": rng.pick(plans)} for c in customers
    ]
    limits = {(t["plan"], t["priority"]): int(t["minutes"]) for t in targets}
    levels = {
        str(c["id"]): [limits[a["plan"], p] for p in _PRIORITIES]
        for c, a in zip(customers, agreements, strict=True)
    }
    tickets = _tickets(rng, size, levels, (first, last))
    asked = tickets.rows[0]
    place = [c["id"] for c in customers].index(asked["customer"])
    return task_spec.TaskData(
        tables={
            "customers": customers,
            "tickets": draws.by_id(tickets.rows),
            "agreements": rng.shuffled(agreements),
            "targets": rng.shuffled(targets),
        },
        links=customers,
        rule={"first_day": draws.DAYS[first], "last_day": draws.DAYS[last]},
        pairs=tickets.pairs,
        where={"plan": agreements[place]["plan"], "priority": asked["priority"]},
    )


def _targets(rng: draws.IntegerDraws, plans: list[str]) -> list[task_spec.SourceRow]:
    return [
        {
            "plan": plan,
            "priority": priority,
            "minutes": 30 * rng.between(1, 16),
            "limit_is_breach": rng.coin(),
            "credit": rng.cents(5, 400),
        }
        for plan in plans
        for priority in _PRIORITIES
    ]


def _customers(rng: draws.IntegerDraws, count: int) -> list[task_spec.SourceRow]:
    codes = draws.random_codes(rng, "CU", count, 5)
    contracts = draws.random_codes(rng, "CT", count, 6)
    return [
        {"id": f"cu-{i + 11}", "code": code, "contract": contract}
        for i, (code, contract) in enumerate(zip(codes, contracts, strict=True))
    ]


def _tickets(
    rng: draws.IntegerDraws,
    size: task_spec.Sizes,
    levels: dict[str, list[int]],
    days: tuple[int, int],
) -> draws.Postings:
    """Return tickets; the first is at exactly its limit, the second beyond it.

    Both lie in the period. Two that look alike are equal but for their minutes.
    """
    customers = list(levels)
    rows: list[task_spec.SourceRow] = []
    for i in range(size["tickets"]):
        customer, kind = rng.pick(customers), rng.below(3) if i > 3 else i % 3
        inside = i < 2 or rng.percent(70)
        rows.append(
            {
                "customer": customer,
                "subject": f"{rng.pick(_SUBJECTS)}-{rng.between(100, 999)}",
                "priority": _PRIORITIES[kind],
                "opened": draws.DAYS[rng.between(*days) if inside else rng.below(365)],
                "minutes": _minutes(rng, levels[customer][kind], i),
            }
        )

    def alter(row: dict[str, Value]) -> None:
        row["minutes"] = int(row["minutes"]) + rng.pick((1, 2, 10))

    return draws.with_copies(rng, rows, size["repeats"], alter, "tk-3001")


def _minutes(rng: draws.IntegerDraws, limit: int, i: int) -> int:
    """Return minutes at, beyond or below the limit."""
    if i == 0 or (i > 1 and rng.percent(15)):
        return limit
    if i == 1 or rng.percent(40):
        return limit + rng.between(1, 300)
    return rng.between(1, limit)


def solve(sources: task_spec.Sources, rule: task_spec.RuleParameters) -> list[task_spec.AnswerRow]:
    """Return the breaches of each customer.

    Args:
        sources: Rows by source.
        rule: `first_day` and `last_day`, both included.
    Returns: (customer code, breaches, minutes over, credit in cents) per customer.
    """
    codes = {c["id"]: c["code"] for c in sources["customers"]}
    contract = task_spec.key_map(sources, sources["customers"], "code", "contract")
    plans = {a["contract"]: a["plan"] for a in sources["agreements"]}
    targets = {(t["plan"], t["priority"]): t for t in sources["targets"]}
    sums: dict[Value, list[int]] = defaultdict(lambda: [0, 0, 0])
    for ticket in task_spec.distinct(sources["tickets"]):
        if not str(rule["first_day"]) <= str(ticket["opened"]) <= str(rule["last_day"]):
            continue
        code = codes[ticket["customer"]]
        target = targets[plans[contract[code]], ticket["priority"]]
        over = int(ticket["minutes"]) - int(target["minutes"])
        if over > 0 or (over == 0 and target["limit_is_breach"]):
            total = sums[code]
            total[0] += 1
            total[1] += over
            total[2] += int(target["credit"])
    return [(code, *total) for code, total in sums.items()]


FAMILY = task_spec.TaskFamily(
    name="sla_report",
    vendors=parse(_VENDORS),
    link=task_spec.VendorLink(
        "customers", "code", "contract", "Which contract covers which customer."
    ),
    sizes="customers 6 10 14; tickets 20 42 60; repeats 2 4 4",
    columns=("customer_code", "breaches", "minutes_over", "credit_cents"),
    sources=("customers", "tickets", "links", "agreements", "targets"),
    text=(
        "Report broken service levels from the tickets at {helpdesk} and the contracts "
        "at {contracts}. Take the tickets opened from {first_day} to {last_day}, both "
        "days included; a repeated ticket, equal in all but its id, counts once. A "
        "ticket is a breach when its minutes are more than the limit of its customer's "
        "plan and its priority, or equal to it where the service level says so. Report "
        "per customer with a breach: customer_code, breaches, minutes_over (sum of the "
        "minutes beyond the limit) and credit_cents (sum of the credits, in whole "
        "cents)."
    ),
    duplicates="tickets",
    bound="targets.limit_is_breach",
    bound_text=("On plan {plan}, priority {priority}, an answer at exactly the limit is a breach."),
    documents=("tickets", "targets"),
    last="targets",
    draw=draw,
    solve=solve,
)
