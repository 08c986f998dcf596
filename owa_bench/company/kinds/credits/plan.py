"""Which scenes a credit case has, by level: some always, the others with odds."""

import datetime as dt
from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from owa_bench.company.kinds.contract import NoWorldError
from owa_bench.company.kinds.credits.scenes import CreditScenes, OrderPlace, note_cents, overseas
from owa_bench.company.language.credits_letters import (
    CORRECTED,
    LATER_PICTURE,
    NOT_WITHDRAWN,
    WITHDRAWN,
)
from owa_bench.company.language.credits_policy import (
    CAUSE_WORDS,
    GROUND_WORDS,
    GUARANTEE,
    LONG_LIMIT,
    OWN_DISCOUNT,
    SIGNATURE,
)
from owa_bench.company.language.credits_rules import share_of
from owa_bench.company.tables import OrderLine
from owa_bench.seeding import pick

_FALSE = 0.25  # odds that a plain letter states something wrongly


def _late_days(s: CreditScenes) -> int:
    """Return a delay that is credited."""
    tiers = s.policy.terms["tiers"]
    return int(tiers[pick(("first", "first", "second", "third"), s.rng)]) + int(s.rng.integers(2))


def _amount(s: CreditScenes, place: OrderPlace, late: int) -> int:
    """Return what a late order gives by the policy as it began."""
    terms = s.policy.terms
    tiers, percent = terms["tiers"], 0
    for limit, share in (("first", "low"), ("second", "middle"), ("third", "high")):
        percent = tiers[share] if late >= tiers[limit] else percent
    return share_of(place.order.net_cents, percent, terms["rounding"]["way"])


def _small(s: CreditScenes, late: int) -> Callable[[OrderPlace], bool]:
    return lambda place: 0 < _amount(s, place, late) <= s.policy.terms["desk"]["amount"]


def _line(s: CreditScenes, place: OrderPlace) -> OrderLine | None:
    """Return a line of several pieces at a middling price."""
    lines = [row for row in s.lines(place) if row.quantity > 1 and 1_000 < row.unit_cents < 40_000]
    return pick(lines, s.rng) if lines else None


def _line_order(s: CreditScenes) -> tuple[OrderPlace, OrderLine]:
    place = s.order(lambda place: _line(s, place) is not None)
    line = _line(s, place)
    assert line is not None  # noqa: S101  the order was chosen for it
    return place, line


# --- late deliveries ------------------------------------------------------------------


def late(s: CreditScenes) -> None:
    """A delivery that is credited, at an amount that the desk approves."""
    days = _late_days(s)
    s.ask(s.late_order(days, _small(s, days)), "late", false=_FALSE)


def late_in_grace(s: CreditScenes) -> None:
    """A delay that is too small for a credit."""
    first = s.policy.terms["tiers"]["first"]
    s.ask(s.late_order(int(s.rng.integers(first))), "late", false=_FALSE)


def late_large(s: CreditScenes) -> None:
    """A credit that somebody else must approve."""
    days, desk = _late_days(s), s.policy.terms["desk"]["amount"]
    s.ask(s.late_order(days, lambda place: _amount(s, place, days) > desk), "late", false=_FALSE)


def late_excused(s: CreditScenes) -> None:
    """Two causes, one of which excuses: the one with more hours decides, in whatever order."""
    excused = s.policy.terms["causes"]["causes"]
    bad = [name for name, words in CAUSE_WORDS.items() if words in excused]
    good = [name for name, words in CAUSE_WORDS.items() if words not in excused]
    names = [pick(bad, s.rng), pick(good, s.rng)]
    if s.rng.random() < 0.5:
        names.reverse()
    days = _late_days(s)
    place = s.late_order(days, _small(s, days))
    s.causes(place, names, days)
    s.ask(place, "late")


def late_evening(s: CreditScenes) -> None:
    """Delivered in the evening overseas: in UTC it is the next day."""
    tiers = s.policy.terms["tiers"]
    days = int(tiers[pick(("first", "second", "third"), s.rng)]) - 1
    s.ask(s.late_order(days, overseas, hour=20 + int(s.rng.integers(2))), "late")


def late_over_holiday(s: CreditScenes) -> None:
    """A holiday lies between the promised day and the delivery."""
    days = int(s.policy.terms["tiers"][pick(("first", "second"), s.rng)]) - 1

    def holiday(place: OrderPlace) -> bool:
        promised = s.books.shipments[place.order.shipment].promised
        span = (promised + dt.timedelta(n) for n in range(1, (place.delivered - promised).days + 1))
        return any(d.weekday() < 5 and not s.days(place.customer).is_open(d) for d in span)

    s.ask(s.late_order(days, holiday), "late")


def late_two_stamps(s: CreditScenes) -> None:
    """The carrier's scan and the signature name different days."""
    tiers = s.policy.terms["tiers"]
    days = int(tiers["first"]) + int(s.rng.integers(2))
    place = s.late_order(days)
    other = s.days(place.customer).add(place.delivered, 2 + int(s.rng.integers(3)))
    if other >= s.today:
        raise NoWorldError("no later day")
    if s.policy.terms["delivery"]["stamp"] == SIGNATURE:
        s.deliver(place, other, signed=place.delivered)
    else:
        s.deliver(place, place.delivered, signed=other)
    s.ask(place, "late", received=_after(s, other))


def _after(s: CreditScenes, day: dt.date) -> dt.date:
    """Return a day of receipt after a day, soon."""
    last = s.today - dt.timedelta(1)
    if day >= last:
        return last
    return min(last, day + dt.timedelta(1 + int(s.rng.integers(3))))


def late_stale_total(s: CreditScenes) -> None:
    """The total of the order was not updated when a line was changed."""
    days = _late_days(s)
    place = s.late_order(days, lambda p: p.order.net_cents > 20_000 and _small(s, days)(p))
    line = s.lines(place)[0]
    order = s.books.orders[place.order.id]
    s.books.orders.put(replace(order, net_cents=order.net_cents + line.unit_cents))
    s.ask(place, "late")


def late_too_late(s: CreditScenes) -> None:
    """A request after the time limit."""
    days = _late_days(s)
    limit = s.policy.terms.get("limit_late", {}).get("days", 14)
    oldest = s.today - dt.timedelta(limit + 2)
    place = s.late_order(days, lambda place: place.delivered < oldest)
    earliest = place.delivered + dt.timedelta(limit + 1)
    received = max(earliest, s.today - dt.timedelta(10))
    s.ask(place, "late", received=min(received, s.today - dt.timedelta(1)))


def late_contract(s: CreditScenes) -> None:
    """A contract whose clause matters, in force or not."""
    tiers = s.policy.terms["tiers"]
    state = pick(("live", "live", "expired", "unsigned"), s.rng)
    if s.rng.random() < 0.5:
        earlier = 1 + int(s.rng.integers(max(1, tiers["first"] - 1)))
        days = max(1, int(tiers["first"]) - earlier)
        place = s.late_order(days)
        s.contract(place.customer.id, GUARANTEE, state=state, days=earlier)
        s.ask(place, "late")
        return
    limit = s.policy.terms.get("limit_late", {}).get("days", 14)
    days = _late_days(s)
    oldest = s.today - dt.timedelta(limit + 2)
    place = s.late_order(days, lambda place: place.delivered < oldest)
    s.contract(place.customer.id, LONG_LIMIT, state=state, days=30)
    received = min(s.today - dt.timedelta(1), place.delivered + dt.timedelta(limit + 1))
    s.ask(place, "late", received=max(received, s.today - dt.timedelta(12)))


def late_overdue(s: CreditScenes) -> None:
    """The customer has an old open invoice; or it is open and not that old."""
    rule = s.policy.terms.get("overdue")
    if rule is None:
        raise NoWorldError("the policy has no rule on overdue invoices")
    days = _late_days(s)
    limit = s.today - dt.timedelta(rule["days"])

    def old(place: OrderPlace) -> bool:
        return any(bill.due < limit for bill in s.books.invoices.of("customer", place.customer.id))

    place = s.late_order(days, old)
    bills = s.books.invoices.of("customer", place.customer.id)
    bill = pick([bill for bill in bills if bill.due < limit], s.rng)
    s.books.invoices.put(replace(bill, status="open"))
    s.ask(place, "late")


def late_stranger(s: CreditScenes) -> None:
    """A sender who is no contact of the customer, or has left."""
    days = _late_days(s)
    place = s.late_order(days)
    draft = s.ask(place, "late", vague=False)
    left = s.level > 1 and bool(s.rng.random() < 0.5)
    draft.sender, draft.name = s.stranger(place.customer, left=left)


def late_two_checks(s: CreditScenes) -> None:
    """Two checks fail, so that their order decides the code."""
    limit = s.policy.terms.get("limit_late", {}).get("days", 14)
    days = _late_days(s)
    oldest = s.today - dt.timedelta(limit + 2)
    place = s.late_order(days, lambda place: place.delivered < oldest)
    received = max(place.delivered + dt.timedelta(limit + 1), s.today - dt.timedelta(9))
    received = min(received, s.today - dt.timedelta(1))
    draft = s.ask(place, "late", received=received, vague=False)
    draft.sender, draft.name = s.stranger(place.customer, left=False)


def late_withdrawn(s: CreditScenes) -> None:
    """The customer takes the request back, or only asks about it."""
    days = _late_days(s)
    draft = s.ask(s.late_order(days, _small(s, days)), "late", vague=False)
    if s.rng.random() < 0.6:
        draft.withdrawn, draft.follow_up = "mail", WITHDRAWN
    else:
        draft.follow_up = NOT_WITHDRAWN


def late_twice(s: CreditScenes) -> None:
    """A second request for the order, on the same ground or another one."""
    days = _late_days(s)
    place = s.late_order(days, lambda place: _line(s, place) is not None)
    yesterday = s.today - dt.timedelta(1)
    first = s.ask(
        place, "late", received=min(_after(s, place.delivered), yesterday - dt.timedelta(1))
    )
    second = min(yesterday, first.received.date() + dt.timedelta(1 + int(s.rng.integers(2))))
    if s.rng.random() < 0.6:
        s.ask(place, "late", received=second).repeated = True
    else:
        s.proof_remark(place, damage=True)
        line = _line(s, place)
        s.ask(place, "damage", received=second, line=line, pieces=1, picture=True)


def late_amended(s: CreditScenes) -> None:
    """A delay of the lowest tier, received before or after an amendment."""
    first = s.policy.terms["tiers"]["first"]
    place = s.late_order(int(first), _small(s, int(first)))
    s.ask(place, "late", received=_around(s, place))


def late_around_limit(s: CreditScenes) -> None:
    """Inside the old time limit and outside the new one, received before or after the change."""
    news = [a for a in s.policy.amendments if a.sentence == "limit_late"]
    if not news:
        raise NoWorldError("no change of the limit")
    new, old = news[0].values["days"], s.policy.terms["limit_late"]["days"]
    days = _late_days(s)
    first = s.today - dt.timedelta(old)
    place = s.late_order(days, lambda p: first <= p.delivered < s.today - dt.timedelta(new + 2))
    received = place.delivered + dt.timedelta(new + 1 + int(s.rng.integers(old - new)))
    s.ask(place, "late", received=min(received, s.today - dt.timedelta(1)))


def _around(s: CreditScenes, place: OrderPlace) -> dt.date | None:
    """Return a day of receipt just before or after the first amendment."""
    if not s.policy.amendments:
        return None
    first = s.policy.amendments[0].first
    day = first - dt.timedelta(1) if s.rng.random() < 0.4 else first
    later = place.delivered + dt.timedelta(1)
    return min(max(day, later), s.today - dt.timedelta(1))


def late_capped(s: CreditScenes) -> None:
    """Requests of one customer around the end of a period, with a limit that is nearly reached."""
    cap = s.policy.terms.get("cap")
    if cap is None or GROUND_WORDS["late"] not in cap["grounds"]:
        raise NoWorldError("the policy has no cap on late deliveries")
    days = _late_days(s)
    place = s.late_order(days, lambda place: _amount(s, place, days) > 2_000)
    first = s.ask(place, "late")
    limit = cap[place.customer.plan.lower()]
    left = _amount(s, place, days) * pick((0, 1, 1, 2), s.rng) // 2
    before = limit - left
    for part in (before // 3, before - before // 3):
        age = 1 + int(s.rng.integers(24)) + 60 * int(s.rng.integers(2))
        issued = first.received.date() - dt.timedelta(age)
        if part > 0:
            s.note(place, pick(("late", "late", "damage"), s.rng), part, issued)
    other = s.another_order(place)
    late_days = cap_days(s)
    day = s.late_day(other, late_days)
    if s.today - dt.timedelta(20) <= day <= s.today - dt.timedelta(3):
        s.deliver(other, day)
        s.causes(other, s.plain_causes(), late_days)
        s.ask(other._replace(delivered=day), "late", vague=False)


def cap_days(s: CreditScenes) -> int:
    """Return a delay of the lowest tier."""
    return int(s.policy.terms["tiers"]["first"])


# --- other grounds --------------------------------------------------------------------


def damage(s: CreditScenes) -> None:
    """Damage that the proof of delivery mentions, with a picture."""
    place, line = _line_order(s)
    s.proof_remark(place, damage=True)
    pieces = 1 + int(s.rng.integers(min(line.quantity, 4)))
    s.ask(place, "damage", line=line, pieces=pieces, picture=True, false=_FALSE)


def damage_hidden(s: CreditScenes) -> None:
    """No remark on the proof: reported just in time, or just too late, by business days."""
    rule = s.policy.terms.get("concealed")
    if rule is None:
        raise NoWorldError("the policy has no rule on hidden damage")
    place, line = _line_order(s)
    s.proof_remark(place, damage=False)
    late = int(s.rng.integers(2))
    received = s.days(place.customer).add(place.delivered, rule["days"] + late)
    if not s.today - dt.timedelta(20) <= received < s.today:
        raise NoWorldError("no day of receipt")
    s.ask(place, "damage", received=received, line=line, pieces=1, picture=True)


def damage_no_picture(s: CreditScenes) -> None:
    """Damage without a picture; a later mail may bring it."""
    place, line = _line_order(s)
    s.proof_remark(place, damage=True)
    draft = s.ask(place, "damage", line=line, pieces=1, vague=False)
    if s.level > 1 and s.rng.random() < 0.6:
        draft.picture_later, draft.follow_up = True, LATER_PICTURE


def damage_corrected(s: CreditScenes) -> None:
    """A later mail corrects the number of pieces."""
    place, line = _line_order(s)
    s.proof_remark(place, damage=True)
    pieces = 1 + int(s.rng.integers(min(line.quantity, 4)))
    draft = s.ask(place, "damage", line=line, pieces=pieces, picture=True, vague=False)
    draft.corrected = pieces + 1 if pieces == 1 else pieces - 1
    draft.follow_up = CORRECTED


def price(s: CreditScenes) -> None:
    """A price that is too high."""
    place, line = _line_order(s)
    higher = line.unit_cents * (103 + int(s.rng.integers(8))) // 100 + 1
    line = s.bill_again(place, line, higher)
    s.ask(place, "price", line=line, false=_FALSE)


def price_right(s: CreditScenes) -> None:
    """A price that is right."""
    place, line = _line_order(s)
    s.ask(place, "price", line=line, false=_FALSE)


def price_contract(s: CreditScenes) -> None:
    """A contract gives a discount of its own, in force or not."""
    place, line = _line_order(s)
    state = pick(("live", "live", "expired", "unsigned"), s.rng)
    percent = place.customer.discount + 2 + int(s.rng.integers(4))
    s.contract(place.customer.id, OWN_DISCOUNT, state=state, percent=percent)
    s.ask(place, "price", line=line)


def double(s: CreditScenes) -> None:
    """Two invoices for an order; a credit note settles it, or is for something else."""
    place = s.order(lambda place: place.order.net_cents < 150_000)
    numbers = s.second_bill(place)
    draft = s.ask(place, "double", invoices=numbers)
    if s.rng.random() < 0.5:
        kind = pick(("double", "double", "price"), s.rng)
        issued = draft.received.date() - dt.timedelta(1 + int(s.rng.integers(4)))
        cents = place.order.net_cents if kind == "double" else note_cents(s.rng)
        s.note(place, kind, cents, issued)


def goodwill(s: CreditScenes) -> None:
    """A gesture, with or without one in the past."""
    plans = s.policy.terms["goodwill"]["plans"]
    place = s.order(lambda place: place.customer.plan in plans)
    draft = s.ask(place, "goodwill")
    if s.rng.random() < 0.8:
        days = s.policy.terms["goodwill"]["days"]
        age = days + pick((-40, -20, 15, 40), s.rng)
        s.note(place, "goodwill", note_cents(s.rng), draft.received.date() - dt.timedelta(age))


def goodwill_other_plan(s: CreditScenes) -> None:
    """A customer whose plan has no goodwill."""
    plans = s.policy.terms["goodwill"]["plans"]
    s.ask(s.order(lambda place: place.customer.plan not in plans), "goodwill")


def _try(scene: Callable[[CreditScenes], None], s: CreditScenes) -> bool:
    """Play a scene; return whether the company has facts for it."""
    try:
        scene(s)
    except NoWorldError:
        return False
    return True


SceneFunction = Callable[[CreditScenes], None]


class ScenePlan(NamedTuple):
    """How often a scene is played.

    Attributes:
        scene: What is arranged.
        level: The lowest level that has it.
        odds: That a case of the level has it.
        times: How often a case that has it plays it, by level.
    """

    scene: SceneFunction
    level: int
    odds: float
    times: tuple[int, int, int]


ALWAYS: Mapping[int, tuple[tuple[SceneFunction, int], ...]] = {
    1: ((late, 2), (late_in_grace, 1), (damage, 1), (price, 1)),
    2: ((late, 3), (late_in_grace, 1), (damage, 2), (price, 1), (price_right, 1)),
    3: ((late, 4), (late_in_grace, 1), (damage, 2), (price, 2), (price_right, 1)),
}
SCENES: tuple[ScenePlan, ...] = (
    ScenePlan(late_large, 1, 0.6, (1, 2, 2)),
    ScenePlan(late_excused, 1, 0.6, (1, 2, 3)),
    ScenePlan(late_stranger, 1, 0.55, (1, 2, 2)),
    ScenePlan(double, 1, 0.6, (1, 2, 2)),
    ScenePlan(late_too_late, 1, 0.6, (1, 1, 2)),
    ScenePlan(damage_hidden, 1, 0.6, (1, 2, 2)),
    ScenePlan(damage_no_picture, 2, 0.5, (1, 2, 3)),
    ScenePlan(goodwill, 2, 0.6, (1, 2, 2)),
    ScenePlan(goodwill_other_plan, 2, 0.5, (1, 1, 1)),
    ScenePlan(late_withdrawn, 2, 0.35, (1, 2, 2)),
    ScenePlan(late_twice, 2, 0.6, (1, 1, 2)),
    ScenePlan(late_overdue, 2, 0.6, (1, 1, 2)),
    ScenePlan(late_capped, 2, 0.6, (1, 1, 2)),
    ScenePlan(late_amended, 2, 0.6, (1, 2, 3)),
    ScenePlan(late_stale_total, 2, 0.55, (1, 2, 2)),
    ScenePlan(late_two_checks, 2, 0.45, (1, 1, 2)),
    ScenePlan(late_evening, 2, 0.5, (1, 1, 2)),
    ScenePlan(late_over_holiday, 2, 0.6, (1, 1, 2)),
    ScenePlan(damage_corrected, 3, 0.45, (1, 1, 2)),
    ScenePlan(late_two_stamps, 3, 0.6, (1, 1, 2)),
    ScenePlan(late_contract, 3, 0.5, (1, 1, 4)),
    ScenePlan(price_contract, 3, 0.45, (1, 1, 2)),
    ScenePlan(late_around_limit, 3, 0.6, (1, 1, 3)),
)
COUNTS = {1: 12, 2: 24, 3: 46}  # requests of a case


def play_scenes(s: CreditScenes) -> None:
    """Arrange a case: what every case has, what is drawn, and plain requests up to its size.

    Args:
        s: The scenes of the case.
    """
    for scene, times in ALWAYS[s.level]:
        for _ in range(times):
            _try(scene, s)
    chosen = [p for p in SCENES if p.level <= s.level and s.rng.random() < p.odds]
    for plan in chosen:
        for _ in range(plan.times[s.level - 1]):
            if len(s.drafts) < COUNTS[s.level]:
                _try(plan.scene, s)
    plain = (late, late_in_grace, damage, price, price_right)
    for _ in range(10 * COUNTS[s.level]):
        if len(s.drafts) >= COUNTS[s.level]:
            return
        _try(pick(plain, s.rng), s)
    raise NoWorldError("too few requests")
