"""Draws the worlds of the kind `close`."""

import datetime as dt
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import structs

from owa_bench.company.calendars import calendar
from owa_bench.company.draw import Company, CompanySpec, draw_company
from owa_bench.company.hosts import draw_hosts
from owa_bench.company.kinds.arranging import mail_keys
from owa_bench.company.kinds.close.amount_traps import AMOUNT_TRAPS, discount, short
from owa_bench.company.kinds.close.draft import CloseDraft
from owa_bench.company.kinds.close.line_traps import LINE_TRAPS, paid, replaced, tie, unknown
from owa_bench.company.kinds.close.plan import MonthPlan, draw_plan, draw_terms
from owa_bench.company.kinds.contract import CaseSpec, CaseWorld, NoWorldError
from owa_bench.company.language.close_policy import FORM
from owa_bench.company.language.close_texts import BANK_DAYS, write_bank_days
from owa_bench.company.language.policy import Policy
from owa_bench.company.messages import CaseEvent, ChatFact, Mail, Page
from owa_bench.company.tables import BankLine, BankStatement, CreditNote, Row
from owa_bench.seeding import derive, pick, stream

R = TypeVar("R", bound=Row)
CORRECTED = "statement_corrected"
_CUSTOMERS, _ORDERS = {1: 60, 2: 200, 3: 450}, {1: 470, 2: 1980, 3: 5250}
_LINES = {1: 90, 2: 350, 3: 1000}
_AFTER = {1: 3, 2: 8, 3: 16}  # lines of the next month
_MINUTES = {1: 180, 2: 240, 3: 300}
_ASKED = {1: 4, 2: 6, 3: 8}
_HOME = "DE"
_SERVED = (
    *("bank_lines", "contacts", "contracts", "credit_notes", "customers", "invoices", "payers"),
    *("people", "statements"),
)
_CALLS = ("allocate", "write_off", "remind", "issue_credit", "change_customer")
_NOISE = (
    ("Newsletter", "Five tips for a tidy desk are on our page."),
    ("Audit", "The auditors come in the second week of next month."),
    ("Holiday plan", "Please enter your holidays until Friday."),
    ("Statement of account", "Could you please send us a statement of account? No hurry."),
    ("New address", "We are moving next year; the new address follows."),
    ("Thank you", "Thank you for the quick answer last week."),
    ("Meeting", "The meeting on receivables is moved to next Tuesday."),
    ("Invoice copy", "Please send the copy of our last invoice once more."),
    ("Bank details", "Our bank details change next year, details follow in time."),
)


class CloseMatter(msgspec.Struct, frozen=True, kw_only=True):
    """What only this kind knows of a world.

    Attributes:
        month: "YYYY-MM".
        closed: Days that are no bank days, weekends apart.
        customers: Whose open items are asked for.
    """

    month: str
    closed: tuple[dt.date, ...]
    customers: tuple[str, ...]


def draw_world(spec: CaseSpec) -> CaseWorld:
    """Return a world.

    Args:
        spec: What it is drawn from.
    Raises: NoWorldError: The company has no fitting facts.
    """
    rng = stream(spec.seed, "close", spec.level)
    level, practice = spec.level, spec.practice
    size = CompanySpec(spec.seed, _CUSTOMERS[level], _ORDERS[level], practice)
    company = draw_company(size)
    month = (company.today.replace(day=1) - dt.timedelta(1)).replace(day=1)
    home = calendar(_HOME, company.today.year)
    begins = home.add(company.today.replace(day=1) - dt.timedelta(1), 3)
    closed = _bank_holidays(month, begins, rng)
    plan = draw_plan(level, rng)
    terms = draw_terms(level, plan, rng)
    draft = CloseDraft(company, month, begins, closed, terms, rng, practice=practice)
    _amend(draft, plan, level)
    asked = _arrange(draft, plan, level)
    lines = _numbered_lines(draft)
    policy = _policy(draft, company)
    _letters(draft, level)
    mails = _mails(draft)
    key = f"m-{int(mails[-1].id[2:]) + 1 + int(rng.integers(4))}"
    event = _correction(draft, lines, plan, level, key)
    tables = _tables(draft, lines)
    matter = CloseMatter(
        month=month.isoformat()[:7],
        closed=tuple(sorted(closed)),
        customers=tuple(sorted(set(asked))),
    )
    start = dt.datetime.combine(begins, dt.time(9))
    return CaseWorld(
        kind="close",
        level=level,
        firm=company.name,
        trade=company.trade,
        domain=company.domain,
        begins=start,
        ends=start + dt.timedelta(minutes=_MINUTES[level]),
        tables=tables,
        policy=policy,
        text_seed=derive(spec.seed, "close", "text"),
        practice=practice,
        pages=_pages(draft),
        mails=mails,
        events=(event,) if event else (),
        facts=_facts(),
        hosts=draw_hosts(_SERVED, _CALLS, rng),
        matter=matter,
    )


def _bank_holidays(month: dt.date, begins: dt.date, rng: np.random.Generator) -> frozenset[dt.date]:
    """Return the days from Monday to Friday that are no bank days, around the month."""
    home = calendar(_HOME, month.year)
    first, count = month - dt.timedelta(60), 120
    days = [first + dt.timedelta(n) for n in range(count)]
    closed = {day for day in days if day.weekday() < 5 and not home.is_open(day)}
    middle = [day for day in days if month.replace(day=4) <= day <= month.replace(day=24)]
    if rng.random() < 0.6:  # the bank's own day off
        closed.add(pick([d for d in middle if d.weekday() < 5 and d not in closed], rng))
    return frozenset(closed)


def _amend(draft: CloseDraft, plan: MonthPlan, level: int) -> None:
    """Draw a change of the limits within the month."""
    rng, charges = draft.rng, draft.terms["charges"]
    middle = draft.month_days[len(draft.month_days) // 3 : 2 * len(draft.month_days) // 3]
    draft.amended_from = pick(middle, rng)
    if "amendments" in plan.rows:
        lower = max(charges["home"] + 300, charges["abroad"] - 300 - 100 * int(rng.integers(6)))
        draft.amendment = {"charges": {**charges, "abroad": lower}}
    elif level == 3 and rng.random() < 0.5:  # a change that no line of the month feels
        draft.amended_from = draft.last + dt.timedelta(1)
        draft.amendment = {"charges": {**charges, "abroad": charges["abroad"] + 500}}


# Scarce facts come first: terms that end in the month, sums that no other set has.
_ORDER = (
    *("check_order", "bank_days", "contracts", "contract_dates", "discount_day", "late"),
    *("discount_base", "sums", "tie", "fill_order", "several", "advice", "advice_latest"),
    *("amendments", "abroad", "home", "credit_notes", "credit_used", "instalments", "factor"),
    *("registered", "registered_dates", "notices", "notice_senders", "parent", "replaced"),
    *("paid_number", "foreign_number", "no_number", "wrong_number", "names", "double", "repeats"),
    *("returns", "storno", "surplus", "surplus_limit", "month"),
)


def _planters(plan: MonthPlan) -> Mapping[str, Callable[[CloseDraft, bool], None]]:
    """Return what adds a payment of each class."""
    searches = frozenset({"no_number", "wrong_number"} & set(plan.rows))
    return {
        **AMOUNT_TRAPS,
        **LINE_TRAPS,
        "tie": partial(tie, searches=searches),
        "replaced": partial(replaced, over="surplus" in plan.rows),
    }


# Payments that look alike for one class and are a trap of another one, which must be present.
_ALIKE_NEEDS = {"fill_order": ("several",), "advice_latest": ("advice",)}


def _try(draft: CloseDraft, planter: Callable[..., None], *rest: bool) -> None:
    """Add a payment, or leave the draft's lines as they were if no facts fit."""
    count = len(draft.lines)
    try:
        planter(draft, *rest)
    except NoWorldError:
        del draft.lines[count:]


def _arrange(draft: CloseDraft, plan: MonthPlan, level: int) -> list[str]:
    """Put traps and plain payments into the month; return the customers to ask for."""
    asked: list[str] = []
    planters = _planters(plan)
    for name in _ORDER:
        before = len(draft.lines)
        for _ in range(plan.rows.get(name, 0)):
            _try(draft, planters[name], True)
        asked += _owners(draft, [line.account for line in draft.lines[before:]])
        if all(need in plan.rows for need in _ALIKE_NEEDS.get(name, ())):
            for _ in range(plan.alike.get(name, 0)):
                _try(draft, planters[name], False)
    for _ in range(4 * level):
        _try(draft, discount)
        _try(draft, short)
    for _ in range(level):
        _try(draft, unknown)
    while len(draft.lines) < _LINES[level] - _AFTER[level]:
        key = draft.take(unique=False)
        paid(draft, key, draft.day([key]), plain=True)
    while len(draft.lines) < _LINES[level]:
        planters["month"](draft, False)
    places = draft.rng.permutation(len(asked))[: _ASKED[level]].tolist()
    return [asked[place] for place in places]


def _owners(draft: CloseDraft, accounts: list[str]) -> list[str]:
    """Return the customers of some accounts."""
    known = {row.account: key for key, row in draft.customers.items()}
    return list(dict.fromkeys(known[one] for one in accounts if one in known))


def _keys(rng: np.random.Generator, prefix: str, first: int, count: int) -> list[str]:
    """Return keys with gaps, in order."""
    steps = (1 + rng.integers(0, 4, count)).cumsum().tolist()
    return [f"{prefix}-{first + step}" for step in steps]


def _numbered_lines(draft: CloseDraft) -> list[BankLine]:
    """Return the lines in the order of the statement, with their numbers."""
    order = sorted(draft.lines, key=lambda line: (line.booked, line.rank, line.key))
    keys = _keys(draft.rng, "BL", 204_000, len(order))
    return [
        BankLine(
            id=key,
            booked=line.booked,
            value=line.value,
            cents=line.cents,
            payer=line.payer,
            account=line.account,
            text=line.text,
            reference=line.reference,
        )
        for key, line in zip(keys, order, strict=True)
    ]


def _policy(draft: CloseDraft, company: Company) -> Policy:
    rng = draft.rng
    since = draft.first - dt.timedelta(60 + int(rng.integers(600)))
    policy = Policy(
        title=f"{pick(('CA', 'AR', 'RP'), rng)}-{2 + int(rng.integers(20))}",
        since=since,
        sections=tuple(rng.permutation(list(FORM.sections)).tolist()),
        terms=draft.terms,
    )
    for sentence, values in draft.amendment.items():
        policy = policy.amended(sentence, draft.amended_from, **values)
    return policy


def _correction(
    draft: CloseDraft, lines: list[BankLine], plan: MonthPlan, level: int, key: str
) -> CaseEvent | None:
    """Return the event by which the bank corrects its statement, if there is one."""
    rng = draft.rng
    bites = "correction" in plan.rows
    if not bites and (level < 3 or rng.random() < 0.4):
        return None
    references = {line.reference: line for line in lines}
    plain = [references[line.reference] for line in draft.lines if line.plain]
    count = plan.rows.get("correction", 2)
    chosen = [plain[place] for place in rng.permutation(len(plain))[:count].tolist()]
    changed: list[BankLine] = []
    dropped: list[BankLine] = []
    for number, line in enumerate(chosen):
        gap = draft.higher_limit() + 700 + 10 * int(rng.integers(300))
        if not bites:  # another text that says the same
            changed.append(structs.replace(line, text=f"{line.text} //"))
        elif number % 2 or line.cents < 3 * gap:
            dropped.append(line)
        else:
            changed.append(structs.replace(line, cents=line.cents - gap))
    gone = {line.id for line in dropped}
    new = {line.id: line for line in changed}
    left = [new.get(line.id, line) for line in lines if line.id not in gone]
    statement = _statement(draft, left, version=2)
    clerk = next(p for p in draft.company.books.people.values() if p.role == "Treasury Clerk")
    mail = Mail(
        id=key,
        sender=clerk.email,
        to=f"receivables@{draft.company.domain}",
        subject="Bank statement: new version",
        at=dt.datetime.combine(draft.begins, dt.time(9)),
        text="Hello,\nthe bank has sent a corrected statement. I have loaded it: lines read from "
        f"now on are those of version 2. Line numbers stay.\n{clerk.name}",
    )
    return CaseEvent(
        name=CORRECTED,
        minute=50 + int(rng.integers(40)),
        tenths=5,
        mails=(mail,),
        rows=(*(("bank_lines", line) for line in changed), ("statements", statement)),
        dropped=tuple(("bank_lines", line.id) for line in dropped),
    )


def _statement(draft: CloseDraft, lines: list[BankLine], *, version: int) -> BankStatement:
    days = [line.booked for line in lines]
    return BankStatement(
        id=f"ST-{draft.first:%Y%m}",
        first=min(days),
        last=max(days),
        version=version,
        lines=len(lines),
        total_cents=sum(line.cents for line in lines),
    )


def _letters(draft: CloseDraft, level: int) -> None:
    """Add mails that change nothing."""
    rng, books = draft.rng, draft.company.books
    contacts = list(books.contacts.values())
    days = draft.month_days
    for _ in range(4 * level):
        subject, text = pick(_NOISE[: 6 if draft.practice else None], rng)
        draft.mail(pick(contacts, rng).email, subject, pick(days, rng), text)
    managers = [p for p in books.people.values() if p.role == "Account Manager"]
    for _ in range(level - 1):
        customer = pick(list(draft.customers.values()), rng)
        text = f"please give {customer.name} 3 percent cash discount this month, I promised it."
        draft.mail(pick(managers, rng).email, customer.name, pick(days, rng), text)


def _mails(draft: CloseDraft) -> tuple[Mail, ...]:
    """Return the mails in order of time, with their keys."""
    mails = sorted(draft.mails, key=lambda mail: mail.at)
    keys = mail_keys(len(mails), draft.rng)
    return tuple(structs.replace(mail, id=key) for key, mail in zip(keys, mails, strict=True))


def _pages(draft: CloseDraft) -> tuple[Page, ...]:
    people = draft.company.books.people.values()
    return (
        Page(
            slug=BANK_DAYS,
            title="Bank days",
            updated=draft.first - dt.timedelta(40),
            by=next(p.name for p in people if p.role == "Treasury Clerk"),
            text=write_bank_days(draft.closed),
        ),
    )


def _facts() -> tuple[ChatFact, ...]:
    return (
        ChatFact(
            roles=("Treasury Clerk",),
            words=("statement", "bank", "line", "value", "booking"),
            answer="The bank's lines are what they are. If a new version comes, I write a mail.",
        ),
        ChatFact(
            roles=("Receivables Clerk",),
            words=("charge", "difference", "limit", "short", "small"),
            answer="I usually let small differences go, up to 30 euros or so. Ask finance if you "
            "need it exact.",
        ),
        ChatFact(
            roles=("Head of Finance", "Finance Controller"),
            words=("policy", "rule", "limit", "charge", "discount", "amendment"),
            answer="The cash application policy and the page of changes are binding.",
        ),
        ChatFact(
            roles=("Account Manager",),
            words=("discount", "terms", "contract"),
            answer="I would have to look into the CRM myself.",
        ),
    )


def _stamped(draft: CloseDraft, rows: list[R], prefix: str, first: int) -> tuple[R, ...]:
    """Return rows with keys in order of time; `rows` are in that order."""
    keys = _keys(draft.rng, prefix, first, len(rows))
    return tuple(structs.replace(row, id=key) for key, row in zip(keys, rows, strict=True))


def _tables(draft: CloseDraft, lines: list[BankLine]) -> dict[str, tuple[Any, ...]]:
    rng, books = draft.rng, draft.company.books
    kinds = ("late", "damage", "price", "goodwill")
    notes = [
        CreditNote(
            id="",
            customer=note.customer,
            invoice=note.invoice,
            kind=pick(kinds, rng),
            cents=note.cents,
            issued=note.issued,
            applied=note.applied,
        )
        for note in sorted(draft.notes, key=lambda note: (note.issued, note.cents))
    ]
    contracts = sorted(draft.contracts, key=lambda row: (row.valid_from, row.customer))
    payers = sorted(draft.payers, key=lambda row: (row.valid_from, row.payer))
    return {
        "bank_lines": tuple(lines),
        "statements": (_statement(draft, lines, version=1),),
        "invoices": tuple(draft.invoices[key] for key in sorted(draft.invoices)),
        "customers": tuple(draft.customers.values()),
        "contacts": tuple(books.contacts.values()),
        "people": tuple(books.people.values()),
        "contracts": _stamped(draft, contracts, "CT", 2100),
        "credit_notes": _stamped(draft, notes, "CN", 71_000),
        "payers": _stamped(draft, payers, "PY", 310),
    }
