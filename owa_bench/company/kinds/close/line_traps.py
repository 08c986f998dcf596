"""Traps in lines, payers and numbers: whose line it is, and which invoices it names.

Each trap adds one payment. With `bite` the careless answer is wrong; without it the payment
looks alike and the careless answer is right.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence, Set

from msgspec.structs import replace

from owa_bench.company.kinds.close.draft import CloseDraft, DraftLine
from owa_bench.company.kinds.contract import NoWorldError
from owa_bench.company.language.close_policy import TEXT_ORDER
from owa_bench.company.language.close_records import percent_of, sums
from owa_bench.company.language.close_texts import (
    ADVICE,
    ADVICE_PART,
    DEBIT,
    NAMES_ADVICE,
    NOTICE,
    PAID_TAILS,
    RETURNED,
    capitals,
)
from owa_bench.company.tables import Contact, RegisteredPayer
from owa_bench.seeding import pick

AdviceParts = Sequence[tuple[str, int]]
_POOL = 14  # open invoices of a family among which sums are drawn
_LONG = dt.timedelta(900)


def paid(draft: CloseDraft, key: str, booked: dt.date, *, plain: bool = False) -> DraftLine:
    """Return a payment in full that is added; its text names the invoice.

    Args:
        draft: Of the month.
        key: Of the invoice.
        booked: Booking day.
        plain: Whether nothing else refers to it.
    """
    invoice = draft.invoices[key]
    tail = draft.pick_words(PAID_TAILS).format(day=invoice.issued, customer=invoice.customer)
    text = draft.names(key) + tail
    return draft.line(invoice.customer, draft.gross(key), text, booked, plain=plain)


def _month(draft: CloseDraft, bite: bool) -> None:
    """Booking day and value day lie in two months, or both in the next one."""
    rng = draft.rng
    key = draft.take()
    customer, text = draft.invoices[key].customer, draft.names(key)
    if not bite:
        day = pick(draft.after_days, rng)
        draft.line(customer, draft.gross(key), text, day, value=day)
        return
    before = draft.first - dt.timedelta(1)
    while not draft.is_bank_day(before):
        before -= dt.timedelta(1)
    if rng.random() < 0.5 and draft.invoices[key].issued < before:
        booked, value = draft.month_days[0], before
    else:
        booked, value = draft.after_days[0], draft.month_days[-1]
    draft.line(customer, draft.gross(key), text, booked, value=value)


def _repeats(draft: CloseDraft, bite: bool) -> None:
    """A line comes twice with one bank reference."""
    if "repeats" not in draft.terms or not bite:
        return
    key = draft.take()
    day = draft.day([key], high=20)
    first = paid(draft, key, day)
    later = [one for one in draft.month_days if one >= day]
    again = draft.line(
        draft.invoices[key].customer,
        first.cents,
        first.text,
        later[int(draft.rng.integers(min(3, len(later))))],
        value=first.value,
        payer=(first.payer, first.account),
    )
    again.reference = first.reference
    first.rank, again.rank = sorted((first.rank, again.rank))


def _taken_back(draft: CloseDraft, key: str, texts: tuple[str, str]) -> None:
    """Add a line and the one that takes it back."""
    day = draft.day([key], high=20)
    later = [one for one in draft.month_days if one > day]
    if not later:
        raise NoWorldError("no bank day of the month is left for a return")
    customer, cents = draft.invoices[key].customer, draft.gross(key)
    first = draft.line(customer, cents, texts[0], day)
    back = later[int(draft.rng.integers(min(4, len(later))))]
    payer = (first.payer, first.account)
    draft.line(customer, -cents, texts[1], back, payer=payer)


def _returns(draft: CloseDraft, bite: bool) -> None:
    """A debit is returned, or is not."""
    key = draft.take()
    number = draft.names(key)
    word = draft.pick_words(DEBIT)
    text = f"{word} {number}"
    if bite:
        _taken_back(draft, key, (text, f"{RETURNED[DEBIT.index(word)]} {number}"))
    else:
        draft.line(draft.invoices[key].customer, draft.gross(key), text, draft.day([key]))


def _storno(draft: CloseDraft, bite: bool) -> None:
    """The bank reverses an entry of its own."""
    if "storno" not in draft.terms or not bite:
        return
    key = draft.take()
    number = draft.names(key)
    _taken_back(draft, key, (number, f"STORNO {number}"))


def _names(draft: CloseDraft, bite: bool) -> None:
    """A line without account has a name that is cut off, or a whole one."""
    key = draft.take()
    customer = draft.invoices[key].customer
    name = draft.cut_name(customer) if bite else capitals(draft.customers[customer].name)
    day = draft.day([key])
    draft.line(customer, draft.gross(key), draft.names(key), day, payer=(name, ""))


def _parent(draft: CloseDraft, bite: bool) -> None:
    """A parent pays for a subsidiary, or a subsidiary for itself."""
    if "parent" not in draft.terms:
        return
    key = draft.take(lambda i, c: bool(c.parent))
    payer = draft.customers[draft.invoices[key].customer]
    if bite:
        payer = draft.customers[payer.parent]
    draft.line(payer.id, draft.gross(key), draft.names(key), draft.day([key]))


def _register(draft: CloseDraft, key: str, day: dt.date, kind: str, *, in_force: bool) -> str:
    """Register a payer for an invoice's customer; return its name."""
    customer, name = draft.invoices[key].customer, draft.other_payer()
    draft.touched.add(customer)
    first = day - dt.timedelta(30 + int(draft.rng.integers(500)))
    last = day + dt.timedelta(30 + int(draft.rng.integers(500)))
    if not in_force:
        near = dt.timedelta(1 + int(draft.rng.integers(20)))
        first, last = pick(((first, day - near), (day + near, last)), draft.rng)
    draft.payers.append(
        RegisteredPayer(
            id="", customer=customer, payer=name, kind=kind, valid_from=first, valid_to=last
        )
    )
    return name


def _third_party(draft: CloseDraft, name: str, key: str, cents: int, day: dt.date) -> None:
    """Add a payment by somebody who is no customer."""
    payer = (capitals(name), draft.other_account())
    draft.line(draft.invoices[key].customer, cents, draft.names(key), day, payer=payer)


def _registered(draft: CloseDraft, bite: bool) -> None:
    """A registered payer pays, or the customer itself."""
    if "registered" not in draft.terms:
        return
    key = draft.take(lambda i, c: c.id not in draft.touched)
    day = draft.day([key])
    name = _register(draft, key, day, pick(("factor", "treasury"), draft.rng), in_force=True)
    if bite:
        _third_party(draft, name, key, draft.gross(key), day)
    else:
        paid(draft, key, day)


def _registered_dates(draft: CloseDraft, bite: bool) -> None:
    """A registered payer pays before or after its days, or the customer itself."""
    if "registered" not in draft.terms:
        return
    key = draft.take(lambda i, c: c.id not in draft.touched)
    day = draft.day([key])
    name = _register(draft, key, day, pick(("factor", "treasury"), draft.rng), in_force=False)
    if bite:
        _third_party(draft, name, key, draft.gross(key), day)
    else:
        paid(draft, key, day)


def _factor(draft: CloseDraft, bite: bool) -> None:
    """A factor keeps its share, or the customer pays in full."""
    if "factor" not in draft.terms or "registered" not in draft.terms:
        return
    percent = draft.terms["factor"]["percent"]
    key = draft.take(
        lambda i, c: (
            c.id not in draft.touched
            and percent_of(draft.gross(i.id), percent) > draft.higher_limit()
            and draft.cash_terms(c)[0] != percent
        )
    )
    day = draft.day([key])
    name = _register(draft, key, day, "factor", in_force=True)
    fee = percent_of(draft.gross(key), percent)
    if bite:
        _third_party(draft, name, key, draft.gross(key) - fee, day)
    else:
        paid(draft, key, day)


def _announce(draft: CloseDraft, contact: Contact, name: str, first: dt.date) -> None:
    """Add a mail that announces a payer."""
    at = first - dt.timedelta(3 + int(draft.rng.integers(20)))
    text = NOTICE.write(draft.rng, practice=draft.practice, first=first, payer=name)
    draft.mail(
        contact.email, draft.pick_words(("Payments", "Our invoices", "Information")), at, text
    )


def _notice(draft: CloseDraft, *, active: bool, pays: bool) -> None:
    books = draft.company.books
    key = draft.take(lambda i, c: c.id not in draft.touched)
    customer, day, name = draft.invoices[key].customer, draft.day([key]), draft.other_payer()
    draft.touched.add(customer)
    contact = pick(books.contacts.of("customer", customer), draft.rng)
    if not active:
        books.contacts.put(replace(contact, status="left"))
    _announce(draft, contact, name, day - dt.timedelta(int(draft.rng.integers(25))))
    if pays:
        _third_party(draft, name, key, draft.gross(key), day)
    else:
        paid(draft, key, day)


def _notices(draft: CloseDraft, bite: bool) -> None:
    """A payer that a contact has announced pays, or the customer itself."""
    if "notice" in draft.terms:
        _notice(draft, active=True, pays=bite)


def _notice_senders(draft: CloseDraft, bite: bool) -> None:
    """A payer pays that somebody announced who has left, or the customer itself."""
    if "notice" in draft.terms:
        _notice(draft, active=False, pays=bite)


def unknown(draft: CloseDraft) -> None:
    """Add a payment by somebody who pays for nobody."""
    cents, day = odd_amount(draft), pick(draft.month_days, draft.rng)
    payer = (capitals(draft.other_payer()), draft.other_account())
    draft.line("", cents, draft.names_nothing(), day, payer=payer)


def odd_amount(draft: CloseDraft) -> int:
    """Return an amount like those of invoices."""
    keys = list(draft.invoices)
    return draft.gross(keys[int(draft.rng.integers(len(keys)))]) + 100 + int(draft.rng.integers(99))


def _no_number(draft: CloseDraft, bite: bool) -> None:
    """No invoice is named: one open invoice has the amount, or none."""
    key = draft.take()
    cents = draft.gross(key) if bite else odd_amount(draft)
    draft.line(draft.invoices[key].customer, cents, draft.names_nothing(), draft.day([key]))


def _wrong_number(draft: CloseDraft, bite: bool) -> None:
    """The number does not exist: one open invoice has the amount, or none."""
    key = draft.take()
    cents = draft.gross(key) if bite else odd_amount(draft)
    text = draft.names(draft.wrong_number(key))
    draft.line(draft.invoices[key].customer, cents, text, draft.day([key]))


def _foreign_number(draft: CloseDraft, bite: bool) -> None:
    """The number is another customer's; the amount is an own invoice's."""
    if not bite:
        return
    key, other = draft.take(), draft.take()
    own, theirs = draft.invoices[key].customer, draft.invoices[other].customer
    if theirs in draft.family(own) or draft.gross(key) == draft.gross(other):
        raise NoWorldError("the other invoice is not foreign")
    draft.line(own, draft.gross(key), draft.names(other), draft.day([key, other]))


def _paid_number(draft: CloseDraft, bite: bool) -> None:
    """The named invoice was paid before the month; another has the amount, or none."""

    def old(customer: str, cents: int) -> list[str]:
        return [
            key
            for key in draft.of_customer.get(customer, ())
            if draft.invoices[key].status == "paid" and draft.gross(key) != cents
        ]

    key = draft.take(lambda i, c: bool(old(c.id, draft.gross(i.id))))
    customer = draft.invoices[key].customer
    before = pick(old(customer, draft.gross(key)), draft.rng)
    cents = draft.gross(key) if bite else draft.gross(before)
    if not bite and any(draft.gross(one) == cents for one in draft.open_of(customer)):
        raise NoWorldError("an open invoice has the amount of a paid one")
    draft.line(customer, cents, draft.names(before), draft.day([key]))


def _several(draft: CloseDraft, bite: bool) -> None:
    """A text names several invoices, or one and the number of its order."""
    if bite:
        keys = draft.take_several(2 + int(draft.rng.integers(2)))
        keys = draft.rng.permutation(keys).tolist()
        cents = sum(map(draft.gross, keys))
        text = draft.names_several(keys)
        draft.line(draft.invoices[keys[0]].customer, cents, text, draft.day(keys))
        return
    key = draft.take()
    text = f"{draft.names(key)} BST {draft.invoices[key].order[3:]}"
    draft.line(draft.invoices[key].customer, draft.gross(key), text, draft.day([key]))


def _fill_order(draft: CloseDraft, bite: bool) -> None:
    """Several invoices are named and one gets too little; or all are paid."""
    keys = draft.take_several(2 + int(draft.rng.integers(2)))
    order = draft.terms["several"]["order"]
    if order.endswith("due days"):
        filled = sorted(keys, key=lambda key: (draft.invoices[key].due, key))
    else:
        filled = sorted(keys, key=lambda key: (draft.gross(key), key))
    if not bite or order == TEXT_ORDER:
        text, missing = draft.names_several(filled), 0
    else:
        text = draft.names_several(filled[::-1])
        missing = min(map(draft.gross, keys)) * pick((20, 35, 50), draft.rng) // 100
    cents = sum(map(draft.gross, keys)) - missing
    draft.line(draft.invoices[keys[0]].customer, cents, text, draft.day(keys))


def replaced(draft: CloseDraft, bite: bool, *, over: bool) -> None:
    """A cancelled invoice is named that was replaced, with a difference or without one.

    Args:
        draft: Of the month.
        bite: Whether the amount does not find the replacement by itself.
        over: Whether the difference may be a surplus.
    """
    if "replaced" not in draft.terms:
        return
    limit = draft.terms["surplus"]["limit"]
    key = draft.take(
        lambda i, c: (
            c.id not in draft.touched
            and draft.gross(i.id) > 40 * limit
            and i.issued < draft.last - dt.timedelta(12)
        )
    )
    old = draft.invoices[key]
    share = pick((80, 88, 93), draft.rng)
    later = dt.timedelta(1 + int(draft.rng.integers(5)))
    new = replace(
        old,
        id=draft.free_number(key, 60 + int(draft.rng.integers(200))),
        net_cents=percent_of(old.net_cents, share),
        vat_cents=percent_of(old.vat_cents, share),
        issued=old.issued + later,
        due=old.due + later,
    )
    draft.put(new)
    draft.put(replace(old, status="cancelled", replaced_by=new.id))
    cents = draft.gross(new.id)
    if bite and over and draft.rng.random() < 0.5:
        cents = draft.gross(key)
    elif bite:
        cut = draft.cut(new.id, draft.cash_terms(draft.customers[old.customer])[0])
        least = draft.terms["charges"]["home"]
        cents -= next(gap for gap in (least, least - 50) if gap != cut)
    draft.touched.add(old.customer)
    draft.line(old.customer, cents, draft.names(key), draft.day([new.id]))


def _advice_mail(
    draft: CloseDraft, name: str, customer: str, parts: AdviceParts, at: dt.date
) -> None:
    """Add a mail with an advice."""
    rng, practice = draft.rng, draft.practice
    total = sum(cents for _, cents in parts)
    rows = [
        ADVICE_PART.write(rng, practice=practice, invoice=key, cents=cents) for key, cents in parts
    ]
    head = ADVICE.write(rng, practice=practice, advice=name, total=total)
    contact = pick(draft.company.books.contacts.of("customer", customer), rng)
    subject = draft.pick_words(("Zahlungsavis {}", "Remittance advice {}", "Avis {}"))
    draft.mail(contact.email, subject.format(name), at, "\n".join((head, *rows)))


def _advice(draft: CloseDraft, bite: bool) -> None:
    """A line names an advice whose parts are not all in full; or names its invoice as well."""
    if "advice" not in draft.terms:
        return
    keys = draft.take_several(2 + int(draft.rng.integers(3)) if bite else 1)
    day, customer, name = draft.day(keys), draft.invoices[keys[0]].customer, draft.advice_name()
    draft.touched.add(customer)
    parts = [(key, draft.gross(key)) for key in keys]
    text = NAMES_ADVICE.write(draft.rng, practice=draft.practice, advice=name)
    if bite:
        gap = draft.higher_limit() + 200 + int(draft.rng.integers(2000))
        place = max(range(len(parts)), key=lambda n: parts[n][1])
        parts[place] = (parts[place][0], _less(draft, keys[place], gap))
    else:
        text = f"{draft.names(keys[0])} {text}"
    cents = sum(cents for _, cents in parts)
    draft.line(customer, cents, text, day)
    _advice_mail(draft, name, customer, parts, day)


def _less(draft: CloseDraft, key: str, gap: int) -> int:
    """Return the amount of an invoice less a gap that is no discount (cents)."""
    customer = draft.customers[draft.invoices[key].customer]
    gap += gap == draft.cut(key, draft.cash_terms(customer)[0])
    if draft.gross(key) <= 2 * gap:
        raise NoWorldError("the invoice is too small for a gap")
    return draft.gross(key) - gap


def _advice_latest(draft: CloseDraft, bite: bool) -> None:
    """A second mail with an advice has other parts, or the same."""
    if "advice" not in draft.terms:
        return
    keys = draft.take_several(2)
    day, customer, name = draft.day(keys), draft.invoices[keys[0]].customer, draft.advice_name()
    draft.touched.add(customer)
    gap = draft.higher_limit() + 200 + int(draft.rng.integers(2000))
    first = [(keys[0], _less(draft, keys[0], gap)), (keys[1], draft.gross(keys[1]))]
    second = [(keys[0], draft.gross(keys[0])), (keys[1], _less(draft, keys[1], gap))]
    second[1] = (keys[1], sum(c for _, c in first) - second[0][1])
    text = NAMES_ADVICE.write(draft.rng, practice=draft.practice, advice=name)
    draft.line(customer, sum(c for _, c in first), text, day)
    _advice_mail(draft, name, customer, first, day)
    later = day + dt.timedelta(1 + int(draft.rng.integers(2)))
    _advice_mail(draft, name, customer, second if bite else first, min(later, draft.last))


def tie(draft: CloseDraft, bite: bool, *, searches: Set[str]) -> None:
    """Two open invoices have one amount and none is named; or one is named.

    Args:
        draft: Of the month.
        bite: Whether none is named.
        searches: Classes of text for which a search by amount may be needed.
    """
    low, high = sorted(draft.take_several(2))
    one, two = draft.invoices[low], draft.invoices[high]
    if not (one.issued < two.issued and one.due < two.due):
        raise NoWorldError("the invoices do not follow each other")
    draft.put(replace(two, net_cents=one.net_cents, vat_cents=one.vat_cents))
    text = draft.names(low)
    if bite and "no_number" in searches:
        text = draft.names_nothing()
    elif bite:
        text = draft.names(draft.wrong_number(low))
    draft.line(one.customer, draft.gross(low), text, draft.day([low, high]))


def _sums(draft: CloseDraft, bite: bool) -> None:
    """No invoice is named and exactly one set adds up, or none."""
    if "sums" not in draft.terms:
        return
    count = draft.terms["sums"]["count"]
    keys = draft.take_several(2 + int(draft.rng.integers(count - 1)))
    customer, cents = draft.invoices[keys[0]].customer, sum(map(draft.gross, keys))
    pool = [key for one in draft.family(customer) for key in draft.open_of(one)]
    values = [(key, draft.gross(key)) for key in pool]
    if len(pool) > 2 * _POOL or len(list(sums(values, cents, count))) != 1:
        raise NoWorldError("more than one set adds up")
    cents += 0 if bite else 1 + int(draft.rng.integers(5))
    draft.line(customer, cents, draft.names_nothing(), draft.day(keys))


def _double(draft: CloseDraft, bite: bool) -> None:
    """An invoice is paid twice in the month, or was paid before it and again in it."""
    if not bite:
        _paid_number(draft, bite=False)
        return
    key = draft.take(lambda i, c: i.issued < draft.last - dt.timedelta(8))
    day = draft.day([key], high=20)
    paid(draft, key, day)
    later = [one for one in draft.month_days if one > day] or [day]
    paid(draft, key, pick(later, draft.rng))


LINE_TRAPS: Mapping[str, Callable[[CloseDraft, bool], None]] = {
    "month": _month,
    "repeats": _repeats,
    "returns": _returns,
    "storno": _storno,
    "names": _names,
    "parent": _parent,
    "registered": _registered,
    "registered_dates": _registered_dates,
    "factor": _factor,
    "notices": _notices,
    "notice_senders": _notice_senders,
    "no_number": _no_number,
    "wrong_number": _wrong_number,
    "foreign_number": _foreign_number,
    "paid_number": _paid_number,
    "several": _several,
    "fill_order": _fill_order,
    "advice": _advice,
    "advice_latest": _advice_latest,
    "double": _double,
    "sums": _sums,
}
