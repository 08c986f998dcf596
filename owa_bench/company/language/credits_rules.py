"""The rules of a credit policy, applied to the facts of a request."""

import datetime as dt
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from owa_bench.company.language.credits_policy import CAUSE_WORDS, CHECKS, GROUND_WORDS
from owa_bench.company.language.policy import PolicyTerms


class ContractClause(NamedTuple):
    """A clause that counts for a request: `guarantee`, `long_limit` or `own_discount`."""

    name: str
    value: int


class CreditFacts(NamedTuple):
    """What is known of a request; dates are local days.

    Attributes:
        ground: One of `GROUNDS`.
        received: Day of receipt.
        withdrawn: Whether the customer has taken it back.
        other_desk: Whether somebody else has decided it.
        known_sender: Whether the sender is an active contact of the order's customer.
        repeated: Whether an earlier request has the same order and ground.
        delivered: Day of delivery.
        late_days: Business days after the promised day, up to the day of delivery.
        days_since: Business days after the day of delivery, up to the day of receipt.
        cause: The one with the most hours, "" without any.
        net_cents: Sum of the order's lines.
        overdue_days: The most days that an open invoice is past its due day; negative: none is.
        clauses: Of contracts that count.
        pieces: Damaged, or of the line whose price is asked about.
        unit_cents: Price a piece as billed.
        list_cents: List price on the day of the order.
        discount: Of the customer record, percent.
        remark: Whether the proof of delivery mentions damage.
        picture: Whether one was sent.
        second_cents: Net amount of the later of two invoices, 0 without one.
        credited: Whether a credit note on the ground double exists for one of the two.
        last_goodwill: Days from the last credit note for goodwill to the day of receipt; None:
            there is none.
        plan: Of the customer.
    """

    ground: str
    received: dt.date
    withdrawn: bool
    other_desk: bool
    known_sender: bool
    repeated: bool
    delivered: dt.date
    late_days: int
    days_since: int
    cause: str
    net_cents: int
    overdue_days: int
    clauses: tuple[ContractClause, ...]
    pieces: int
    unit_cents: int
    list_cents: int
    discount: int
    remark: bool
    picture: bool
    second_cents: int
    credited: bool
    last_goodwill: int | None
    plan: str


class CreditGround(NamedTuple):
    """What the checks and the ground give, before cap and approval; 0 cents with a code."""

    decision: str
    code: str
    cents: int


def share_of(cents: int, percent: int, way: str) -> int:
    """Return a percentage of an amount in whole cents.

    Args:
        cents: At least 0.
        percent: Of it.
        way: "up" or "down": what becomes of half a cent.
    """
    hundredths = cents * percent
    return (hundredths + (50 if way == "up" else 49)) // 100


def judge_ground(terms: PolicyTerms, facts: CreditFacts) -> CreditGround:
    """Return what the checks and the ground of a request give.

    Args:
        terms: Those in force for its day of receipt.
        facts: Of the request.
    """
    if facts.withdrawn:
        return CreditGround("close", "withdrawn", 0)
    if facts.other_desk:
        return CreditGround("close", "other_desk", 0)
    fails = _failing(terms, facts)
    words = {text: name for name, text in CHECKS.items()}
    for text in terms["order"]["checks"]:
        if words[text] in fails:
            return CreditGround("refuse", words[text], 0)
    return _GROUND_RULES[facts.ground](terms, facts)


def _failing(terms: PolicyTerms, facts: CreditFacts) -> set[str]:
    """Return the checks that fail."""
    found = set()
    if facts.repeated:
        found.add("duplicate")
    if not facts.known_sender:
        found.add("sender")
    limit = terms.get(f"limit_{facts.ground}", {}).get("days")
    for clause in facts.clauses:
        if clause.name == "long_limit":
            limit = clause.value
    if limit is not None and (facts.received - facts.delivered).days > limit:
        found.add("too_late")
    overdue = terms.get("overdue")
    if overdue and GROUND_WORDS[facts.ground] in overdue["grounds"]:
        late = facts.overdue_days > overdue["days"]
        found |= {"overdue"} if late else set()
    return found


def _nothing(code: str = "no_ground") -> CreditGround:
    return CreditGround("refuse", code, 0)


def _late(terms: PolicyTerms, facts: CreditFacts) -> CreditGround:
    earlier = sum(clause.value for clause in facts.clauses if clause.name == "guarantee")
    guaranteed = any(clause.name == "guarantee" for clause in facts.clauses)
    excused = tuple(terms["causes"]["causes"]) if "causes" in terms else ()
    if guaranteed:
        excused = (CAUSE_WORDS["consignee_absent"],)
    tiers = terms["tiers"]
    percent = 0
    for limit, share in (("first", "low"), ("second", "middle"), ("third", "high")):
        if facts.late_days >= max(1, tiers[limit] - earlier):
            percent = tiers[share]
    if not percent:
        return _nothing()
    if facts.cause and CAUSE_WORDS[facts.cause] in excused:
        return _nothing("excused")
    cents = share_of(facts.net_cents, percent, terms["rounding"]["way"])
    return CreditGround("approve", "late", cents) if cents else _nothing()


def _damage(terms: PolicyTerms, facts: CreditFacts) -> CreditGround:
    hidden = "concealed" in terms and not facts.remark
    if hidden and facts.days_since > terms["concealed"]["days"]:
        return _nothing()
    if "photo" in terms and not facts.picture:
        return CreditGround("ask", "photo", 0)
    return CreditGround("approve", "damage", facts.pieces * facts.unit_cents)


def _price(terms: PolicyTerms, facts: CreditFacts) -> CreditGround:
    discount = facts.discount
    for clause in facts.clauses:
        if clause.name == "own_discount":
            discount = clause.value
    agreed = share_of(facts.list_cents, 100 - discount, "up")
    cents = max(0, facts.unit_cents - agreed) * facts.pieces
    return CreditGround("approve", "price", cents) if cents else _nothing()


def _double(terms: PolicyTerms, facts: CreditFacts) -> CreditGround:
    if facts.credited:
        return _nothing("already_credited")
    if not facts.second_cents:
        return _nothing()
    return CreditGround("approve", "double", facts.second_cents)


def _goodwill(terms: PolicyTerms, facts: CreditFacts) -> CreditGround:
    rule = terms["goodwill"]
    recent = facts.last_goodwill is not None and facts.last_goodwill <= rule["days"]
    if facts.plan not in rule["plans"] or recent:
        return _nothing()
    return CreditGround("approve", "goodwill", rule["amount"])


_GROUND_RULES = {
    "late": _late,
    "damage": _damage,
    "price": _price,
    "double": _double,
    "goodwill": _goodwill,
}


def period_of(day: dt.date, period: str) -> tuple[int, int]:
    """Return the period of a cap that a day lies in.

    Args:
        day: Of receipt or issue.
        period: One of `PERIODS`.
    """
    if period == "calendar month":
        return day.year, day.month
    return day.year, (day.month - 1) // 3 if period == "calendar quarter" else 0


def cap_room(terms: PolicyTerms, ground: str, plan: str, used_cents: int) -> int | None:
    """Return what a customer may still get in a period, None without a cap.

    Args:
        terms: Those in force for the day of receipt.
        ground: Of the request.
        plan: Of the customer.
        used_cents: Of the period so far.
    """
    cap = terms.get("cap")
    if cap is None or GROUND_WORDS[ground] not in cap["grounds"]:
        return None
    return max(0, int(cap[plan.lower()]) - used_cents)


def approver_role(terms: PolicyTerms, ground: str, region: str, cents: int) -> str:
    """Return the role that approves an amount, "" for the desk itself.

    Args:
        terms: Those in force for the day of receipt.
        ground: Of the request.
        region: Of the customer.
        cents: The amount.
    """
    if cents <= terms["desk"]["amount"]:
        return ""
    if cents <= terms["lead"]["amount"]:
        return f"Team Lead {region}"
    head = terms["head"]
    return str(head["money"] if GROUND_WORDS[ground] in head["grounds"] else head["rest"])


def present_person(
    people: Sequence[Mapping[str, Any]], role: str, day: dt.date, *, absences: bool = True
) -> str:
    """Return the key of the person of a role, or of the deputy who is there.

    Args:
        people: Rows with id, role, deputy, away_from and away_to (ISO days, "" for none).
        role: One that a single person has.
        day: Of the decision.
        absences: Whether absences are looked at.
    """
    by_key = {person["id"]: person for person in people}
    person = next(one for one in people if one["role"] == role)
    today, seen = day.isoformat(), set()
    while absences and person["away_from"] and person["away_from"] <= today <= person["away_to"]:
        seen.add(person["id"])
        if person["deputy"] in seen:
            break
        person = by_key[person["deputy"]]
    return str(person["id"])


class PastCredit(NamedTuple):
    """A credit note: its ground, its amount and its day of issue."""

    ground: str
    cents: int
    issued: dt.date


class AskingCustomer(NamedTuple):
    """The customer of a request.

    Attributes:
        id: Key of the customer.
        plan: Service plan.
        region: Sales region.
        notes: Credit notes so far.
    """

    id: str
    plan: str
    region: str
    notes: tuple[PastCredit, ...]


class CreditDesk:
    """Settles requests in the order of receipt: checks and ground, limit, approver.

    Args:
        people: Rows of the staff, as `present_person` reads them.
        today: The day of the decision.
        blind: Parts of the policy that the reader leaves out: "check_order", "cap", "cap_notes",
            "cap_period", "absences". Other names are passed over.
    """

    def __init__(
        self, people: Sequence[Mapping[str, Any]], today: dt.date, blind: Set[str] = frozenset()
    ) -> None:
        self._people, self._today, self._blind = people, today, blind
        self._used: dict[tuple[str, tuple[int, int]], int] = {}
        self.answers: dict[str, dict[str, Any]] = {}

    def terms(self, terms: PolicyTerms) -> PolicyTerms:
        """Return the terms as this reader reads them.

        Args:
            terms: Those in force.
        """
        known = dict(terms)
        if "check_order" in self._blind:
            named = terms["order"]["checks"]
            known["order"] = {"checks": [text for text in CHECKS.values() if text in named]}
        if "cap" in self._blind:
            known.pop("cap", None)
        return known

    def settle(
        self, key: str, terms: PolicyTerms, facts: CreditFacts, customer: AskingCustomer
    ) -> None:
        """Settle a request; its answer is in `answers`.

        Args:
            key: Of the request.
            terms: As `terms` returned them.
            facts: Of the request.
            customer: Of the order.
        """
        decision, code, cents = judge_ground(terms, facts)
        approver = ""
        if decision == "approve":
            cents = self._limited(terms, facts, customer, cents)
            if not cents:
                decision, code = "refuse", "cap"
        if role := approver_role(terms, facts.ground, customer.region, cents):
            decision = "escalate"
            absences = "absences" not in self._blind
            approver = present_person(self._people, role, self._today, absences=absences)
        self.answers[key] = {
            "request": key,
            "decision": decision,
            "code": code,
            "amount_cents": cents,
            "approver": approver,
        }

    def _limited(
        self, terms: PolicyTerms, facts: CreditFacts, customer: AskingCustomer, cents: int
    ) -> int:
        """Return what is left of an amount within the limit of its period."""
        if "cap" not in terms:
            return cents
        kind = "calendar year" if "cap_period" in self._blind else terms["cap"]["period"]
        period = customer.id, period_of(facts.received, kind)
        if period not in self._used:
            self._used[period] = self._note_cents(terms, customer, kind, period[1])
        room = cap_room(terms, facts.ground, customer.plan, self._used[period])
        if room is None:
            return cents
        cents = min(cents, room)
        self._used[period] += cents
        return cents

    def _note_cents(
        self, terms: PolicyTerms, customer: AskingCustomer, kind: str, period: tuple[int, int]
    ) -> int:
        """Return what credit notes of capped grounds take of a period's limit."""
        if "cap_notes" in self._blind:
            return 0
        return sum(
            note.cents
            for note in customer.notes
            if GROUND_WORDS[note.ground] in terms["cap"]["grounds"]
            and period_of(note.issued, kind) == period
        )
