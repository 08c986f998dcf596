"""Traps in amounts and terms: discounts, charges, credit notes, surplus, instalments.

Each trap adds one payment. With `bite` the careless answer is wrong; without it the payment
looks alike and the careless answer is right.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from typing import NamedTuple

from owa_bench.company.kinds.close.draft import CloseDraft, DraftNote
from owa_bench.company.kinds.contract import NoWorldError
from owa_bench.company.language.close_policy import VALUE
from owa_bench.company.language.close_texts import DISCOUNT_TAILS
from owa_bench.company.tables import Customer, Invoice
from owa_bench.seeding import pick

_CENT_TAILS = (0, 0, 50, 45, 20)
_OWN_TERMS = ((4, 10), (3, 12), (2, 7), (5, 5), (1, 20), (6, 6))


class TermCase(NamedTuple):
    """An invoice with cash discount: its percentage, discount (cents) and last day, unmoved."""

    key: str
    percent: int
    cut: int
    last: dt.date


def _named(draft: CloseDraft, key: str, cents: int, booked: dt.date) -> None:
    """Add a payment whose text names its invoice."""
    draft.line(draft.invoices[key].customer, cents, draft.names(key), booked)


def _discounted(draft: CloseDraft, case: TermCase, booked: dt.date, value: dt.date) -> None:
    """Add a payment less discount."""
    tail = draft.pick_words(DISCOUNT_TAILS).format(percent=case.percent)
    text = draft.names(case.key) + tail
    customer = draft.invoices[case.key].customer
    draft.touched.add(customer)
    draft.line(customer, draft.gross(case.key) - case.cut, text, booked, value=value)


def _term_case(draft: CloseDraft, *, on_bank_day: bool = True, small: bool = False) -> TermCase:
    """Return an invoice whose term of discount ends in the month."""
    limit, home = draft.higher_limit(), draft.terms["charges"]["home"]

    def fits(invoice: Invoice, customer: Customer) -> bool:
        percent, days = draft.cash_terms(customer)
        if not percent or customer.id in draft.touched:
            return False
        last = invoice.issued + dt.timedelta(days)
        cut = draft.cut(invoice.id, percent)
        right = 0 < cut <= home if small else cut > limit
        moved = draft.next_bank_day(last)
        inside = draft.first <= last and moved + dt.timedelta(4) <= draft.last
        return right and inside and (moved == last) == on_bank_day

    key = draft.take(fits)
    percent, days = draft.cash_terms(draft.customers[draft.invoices[key].customer])
    last = draft.invoices[key].issued + dt.timedelta(days)
    return TermCase(key, percent, draft.cut(key, percent), last)


def _in_time(draft: CloseDraft, case: TermCase) -> dt.date:
    """Return a bank day of the month within a term."""
    issued = draft.invoices[case.key].issued
    days = [day for day in draft.month_days if issued < day <= case.last]
    if not days:
        raise NoWorldError("no bank day of the month is within the term")
    return pick(days, draft.rng)


def discount(draft: CloseDraft) -> None:
    """Add a payment less a discount that is due whatever the reading."""
    case = _term_case(draft)
    day = _in_time(draft, case)
    _discounted(draft, case, day, day)


def _late(draft: CloseDraft, bite: bool) -> None:
    """The term is over, or its last day is the payment's."""
    case = _term_case(draft)
    later = [day for day in draft.month_days if day > case.last]
    day = later[int(draft.rng.integers(min(3, len(later))))] if bite else case.last
    _discounted(draft, case, day, day)


def _discount_day(draft: CloseDraft, bite: bool) -> None:
    """Booking day and value day lie on two sides of the last day, or on one."""
    case = _term_case(draft)
    after = draft.next_bank_day(case.last + dt.timedelta(1))
    if not bite:
        before = [day for day in draft.month_days if day < case.last]
        if not before or before[-1] <= draft.invoices[case.key].issued:
            raise NoWorldError("no bank day of the month lies before the last day")
        _discounted(draft, case, case.last, before[-1])
    elif draft.terms["discount"]["day"] == VALUE:
        _discounted(draft, case, after, case.last)
    else:
        _discounted(draft, case, case.last, after)


def _bank_days(draft: CloseDraft, bite: bool) -> None:
    """The last day of the term is no bank day; payment comes on the next one, or in time."""
    if "bank_days" not in draft.terms:
        return
    case = _term_case(draft, on_bank_day=False)
    day = draft.next_bank_day(case.last) if bite else _in_time(draft, case)
    _discounted(draft, case, day, day)


def _discount_base(draft: CloseDraft, bite: bool) -> None:
    """The discount is taken of the net amount of an invoice with tax, or without tax."""

    def fits(invoice: Invoice, customer: Customer) -> bool:
        percent, days = draft.cash_terms(customer)
        last = invoice.issued + dt.timedelta(days)
        inside = draft.first + dt.timedelta(2) <= last <= draft.last
        cut = draft.cut(invoice.id, percent)
        free = customer.id not in draft.touched and cut > draft.higher_limit()
        return free and inside and bool(percent) and bool(invoice.vat_cents) == bite

    key = draft.take(fits)
    percent, days = draft.cash_terms(draft.customers[draft.invoices[key].customer])
    last = draft.invoices[key].issued + dt.timedelta(days)
    case = TermCase(key, percent, draft.cut(key, percent), last)
    day = _in_time(draft, case)
    _discounted(draft, case, day, day)


def _check_order(draft: CloseDraft, bite: bool) -> None:
    """What is missing is a discount in time and small enough for a charge, or too large."""
    case = _term_case(draft, small=bite)
    day = _in_time(draft, case)
    _discounted(draft, case, day, day)


def _contract(draft: CloseDraft, *, in_force: bool) -> tuple[str, int, int]:
    """Give a customer terms of its own; return an invoice, percentage and days."""
    limit = draft.higher_limit()
    percent, days = pick(_OWN_TERMS, draft.rng)

    def fits(invoice: Invoice, customer: Customer) -> bool:
        own = draft.cash_terms(customer)[0]
        last = invoice.issued + dt.timedelta(days)
        inside = draft.first + dt.timedelta(3) <= last and invoice.issued < draft.last
        different = own != percent and draft.cut(invoice.id, percent) > limit
        return customer.id not in draft.touched and inside and different

    key = draft.take(fits)
    customer, issued = draft.invoices[key].customer, draft.invoices[key].issued
    draft.touched.add(customer)
    long = dt.timedelta(200 + int(draft.rng.integers(200)))
    near = dt.timedelta(1 + int(draft.rng.integers(12)))
    spans = ((issued - long, issued - near), (issued + near, issued + long))
    signed = in_force or bool(draft.rng.random() < 0.67)
    first, last = (issued - long, issued + long)
    if not in_force and signed:
        first, last = pick(spans, draft.rng)
    draft.contract(customer, percent, days, first, last, signed=signed)
    return key, percent, days


def _pay_contract(draft: CloseDraft, key: str, percent: int, days: int) -> None:
    last = draft.invoices[key].issued + dt.timedelta(days)
    case = TermCase(key, percent, draft.cut(key, percent), last)
    day = _in_time(draft, case)
    _discounted(draft, case, day, day)


def _contracts(draft: CloseDraft, bite: bool) -> None:
    """A contract in force gives other terms, or a contract is over and nobody uses it."""
    if "contract" not in draft.terms:
        return
    key, percent, days = _contract(draft, in_force=bite)
    if bite:
        _pay_contract(draft, key, percent, days)
    else:
        _named(draft, key, draft.gross(key), draft.day([key]))


def _contract_dates(draft: CloseDraft, bite: bool) -> None:
    """Terms of a contract that is not in force are used, or paid in full."""
    if "contract" not in draft.terms:
        return
    key, percent, days = _contract(draft, in_force=False)
    if bite:
        _pay_contract(draft, key, percent, days)
    else:
        _named(draft, key, draft.gross(key), draft.day([key]))


def _gap_case(draft: CloseDraft, gap: int, *, near: bool | None) -> str:
    """Return an invoice of which an amount may be missing without being a discount."""

    def fits(invoice: Invoice, customer: Customer) -> bool:
        if near is not None and draft.is_near(customer) != near:
            return False
        cut = draft.cut(invoice.id, draft.cash_terms(customer)[0])
        return draft.gross(invoice.id) > 4 * gap and cut != gap and customer.id not in draft.touched

    return draft.take(fits)


def _between(draft: CloseDraft, low: int, high: int) -> int:
    """Return an amount above a low and up to a high one; the high one itself is frequent."""
    if draft.rng.random() < 0.25:
        return high
    euros = (low + int(draft.rng.integers(high - low))) // 100 * 100
    return min(high, max(low + 1, euros + pick(_CENT_TAILS, draft.rng)))


def _missing(draft: CloseDraft, low: int, high: int, *, near: bool | None) -> None:
    gap = _between(draft, low, high)
    key = _gap_case(draft, gap, near=near)
    _named(draft, key, draft.gross(key) - gap, draft.day([key]))


def _abroad_limits(draft: CloseDraft) -> tuple[int, int]:
    """Return the lowest and highest limit abroad, before and after amendments (cents)."""
    later = draft.amendment.get("charges", draft.terms["charges"])["abroad"]
    first = draft.terms["charges"]["abroad"]
    return min(first, later), max(first, later)


def _abroad(draft: CloseDraft, bite: bool) -> None:
    """A charge between the two limits from abroad, or one below both or above both."""
    home, (low, high) = draft.terms["charges"]["home"], _abroad_limits(draft)
    if bite:
        _missing(draft, home, low, near=False)
    elif draft.rng.random() < 0.5:
        _missing(draft, 0, home, near=False)
    else:
        _missing(draft, high, high + 1500, near=False)


def _home(draft: CloseDraft, bite: bool) -> None:
    """A shortage between the two limits at home, or one below both or above both."""
    least, (low, high) = draft.terms["charges"]["home"], _abroad_limits(draft)
    if bite:
        _missing(draft, least, low, near=True)
    elif draft.rng.random() < 0.5:
        _missing(draft, 0, least, near=True)
    else:
        _missing(draft, high, high + 1500, near=True)


def _amendments(draft: CloseDraft, bite: bool) -> None:
    """A shortage from abroad between the new limit and the old, after the change."""
    low, high = _abroad_limits(draft)
    if not bite or low == high:
        return
    gap = _between(draft, low, high)
    key = _gap_case(draft, gap, near=False)
    issued = draft.invoices[key].issued
    days = [day for day in draft.month_days if day >= draft.amended_from and day > issued]
    if not days:
        raise NoWorldError("the amendment leaves no day for a payment")
    _named(draft, key, draft.gross(key) - gap, pick(days, draft.rng))


def short(draft: CloseDraft) -> None:
    """Add a payment that is short whatever the reading."""
    high = _abroad_limits(draft)[1]
    _missing(draft, high, high + 30_000, near=None)


def _note_case(draft: CloseDraft) -> tuple[str, int]:
    """Return an invoice and the amount of a credit note for its customer."""
    cents = draft.higher_limit() + 300 + int(draft.rng.integers(9000))
    key = _gap_case(draft, cents, near=None)
    draft.touched.add(draft.invoices[key].customer)
    return key, cents


def _note(draft: CloseDraft, key: str, cents: int, issued: dt.date, *, applied: bool) -> None:
    customer = draft.invoices[key].customer
    others = [k for k in draft.of_customer[customer] if draft.invoices[k].issued < issued]
    draft.notes.append(
        DraftNote(customer, pick(others or [key], draft.rng), cents, issued, applied)
    )


def _credit_notes(draft: CloseDraft, bite: bool) -> None:
    """A credit note that may be used is deducted, or exists and nearly fits."""
    if "credit" not in draft.terms:
        return
    key, cents = _note_case(draft)
    day = draft.day([key], low=8)
    issued = day - dt.timedelta(2 + int(draft.rng.integers(25)))
    _note(draft, key, cents, issued, applied=False)
    cents += 0 if bite else pick((-100, 60, 250), draft.rng)
    _named(draft, key, draft.gross(key) - cents, day)


def _credit_used(draft: CloseDraft, bite: bool) -> None:
    """A credit note that may not be used is deducted, or exists and is not deducted."""
    if "credit" not in draft.terms:
        return
    key, cents = _note_case(draft)
    day = draft.day([key], low=8)
    applied = bool(draft.rng.random() < 0.6)
    issued = day + dt.timedelta(1 + int(draft.rng.integers(3)))
    if applied or issued >= draft.begins:
        applied, issued = True, day - dt.timedelta(3 + int(draft.rng.integers(25)))
    _note(draft, key, cents, issued, applied=applied)
    _named(draft, key, draft.gross(key) - (cents if bite else 0), day)


def _surplus(draft: CloseDraft, bite: bool) -> None:
    """More comes than is open, or as much."""
    key = draft.take()
    limit = draft.terms["surplus"]["limit"]
    more = _between(draft, limit, limit + pick((500, 3000, 20_000), draft.rng)) if bite else 0
    _named(draft, key, draft.gross(key) + more, draft.day([key]))


def _surplus_limit(draft: CloseDraft, bite: bool) -> None:
    """A little more comes than is open, or as much."""
    key = draft.take()
    more = _between(draft, 0, draft.terms["surplus"]["limit"]) if bite else 0
    _named(draft, key, draft.gross(key) + more, draft.day([key]))


def _instalments(draft: CloseDraft, bite: bool) -> None:
    """Two lines pay an invoice in parts, or one line pays a part and nothing follows."""
    if "instalments" not in draft.terms:
        return
    limit = draft.higher_limit()
    key = draft.take(
        lambda i, c: (
            draft.gross(i.id) > 20 * limit
            and i.issued < draft.last - dt.timedelta(16)
            and c.id not in draft.touched
        )
    )
    whole = draft.gross(key)
    part = whole * pick((30, 40, 50, 60), draft.rng) // 100 // 100 * 100
    days = sorted({draft.day([key]) for _ in range(6)})
    if len(days) < 2:
        raise NoWorldError("the month has no two days for instalments")
    _named(draft, key, part, days[0])
    if bite:
        _named(draft, key, whole - part, days[-1])


AMOUNT_TRAPS: Mapping[str, Callable[[CloseDraft, bool], None]] = {
    "late": _late,
    "discount_day": _discount_day,
    "bank_days": _bank_days,
    "discount_base": _discount_base,
    "check_order": _check_order,
    "contracts": _contracts,
    "contract_dates": _contract_dates,
    "abroad": _abroad,
    "home": _home,
    "amendments": _amendments,
    "credit_notes": _credit_notes,
    "credit_used": _credit_used,
    "surplus": _surplus,
    "surplus_limit": _surplus_limit,
    "instalments": _instalments,
}
