"""The credit policy and contract clauses: everything that they can say."""

from collections.abc import Mapping

from owa_bench.company.language.policy import ListSlot, PolicyForm, PolicySection
from owa_bench.company.language.text import COUNT, MONEY, PERCENT, NameSlot, Sentence

GROUNDS = ("late", "damage", "price", "double", "goodwill")
CAPPED = ("late", "damage", "goodwill")
GROUND_WORDS = {
    "late": "late deliveries",
    "damage": "damage",
    "price": "prices",
    "double": "double invoices",
    "goodwill": "goodwill",
}
CAUSE_WORDS = {
    "sorting_backlog": "a sorting backlog",
    "vehicle_breakdown": "a vehicle breakdown",
    "mislabelled": "wrong labels",
    "weather": "weather",
    "customs": "customs",
    "consignee_absent": "absence of the consignee",
}
CHECKS = {
    "duplicate": "duplicates",
    "sender": "the sender",
    "too_late": "the time limit",
    "overdue": "overdue invoices",
}
CODES: Mapping[str, tuple[str, ...]] = {
    "approve": GROUNDS,
    "escalate": GROUNDS,
    "refuse": (*CHECKS, "no_ground", "excused", "already_credited", "cap"),
    "ask": ("photo",),
    "close": ("withdrawn", "other_desk"),
}
PERIODS = ("calendar month", "calendar quarter", "calendar year")
_HEADS = ("Head of Customer Accounts", "Finance Controller", "Head of Finance")
_ROLE = NameSlot("|".join(_HEADS))
_PERIOD = NameSlot("|".join(PERIODS))
_WAY = NameSlot("up|down")
_STAMP = NameSlot("signature on the proof of delivery|carrier's scan")
_GROUNDS = ListSlot(tuple(GROUND_WORDS.values()))
_EITHER_GROUND = ListSlot(tuple(GROUND_WORDS.values()), last="or")
_CAUSES = ListSlot(tuple(CAUSE_WORDS.values()), last="or")
_CHECKS = ListSlot(tuple(CHECKS.values()), last="and")
_PLANS = ListSlot(("Basic", "Plus", "Prime"), last="or")
SIGNATURE = "signature on the proof of delivery"


def _days(name: str, ground: str) -> Sentence:
    """Return the sentence on the time limit of a ground."""
    return Sentence(
        name,
        (
            f"Requests for {ground} are accepted for {{days}} calendar days after the day of "
            "delivery; a later request is refused (code too_late).",
            f"A request for {ground} must arrive at most {{days}} calendar days after the day of "
            "delivery, otherwise it is refused (code too_late).",
            f"Time limit for {ground}: {{days}} calendar days after the day of delivery. Requests "
            "after that are refused (code too_late).",
        ),
        {"days": COUNT},
    )


FORM = PolicyForm(
    "Credit policy",
    (
        PolicySection(
            "order",
            ("Order of the checks", "Sequence", "How a request is checked"),
            (
                Sentence(
                    "order",
                    (
                        "Check in this order: {checks}. The first check that fails decides; only "
                        "then look at the ground.",
                        "The checks come in this order: {checks}. The first that fails decides. "
                        "The ground comes last.",
                        "First come the checks, in this order: {checks}. If one fails, it decides. "
                        "After them comes the ground.",
                    ),
                    {"checks": _CHECKS},
                ),
                Sentence(
                    "withdrawn",
                    (
                        "Before all checks, close a request that the customer has taken back "
                        "(code withdrawn).",
                        "A request that the customer has taken back is closed before any check "
                        "(code withdrawn).",
                        "If the customer has taken the request back, close it (code withdrawn) "
                        "and check nothing.",
                    ),
                    {},
                ),
                Sentence(
                    "other_desk",
                    (
                        "Before all checks, close a request that somebody else has decided (code "
                        "other_desk).",
                        "A request that a colleague has already decided is closed before any "
                        "check (code other_desk).",
                        "If a colleague has decided the request, close it (code other_desk) and "
                        "check nothing.",
                    ),
                    {},
                ),
            ),
        ),
        PolicySection(
            "people",
            ("Who may ask", "Senders", "Requests and senders"),
            (
                Sentence(
                    "sender",
                    (
                        "Only active contacts of the customer may ask; anybody else is refused "
                        "(code sender).",
                        "The sender must be an active contact of the customer. Otherwise the "
                        "request is refused (code sender).",
                        "A request from an address that is not an active contact of the customer "
                        "is refused (code sender).",
                    ),
                    {},
                ),
                Sentence(
                    "later_mails",
                    (
                        "A later mail of the sender that corrects or completes the request counts "
                        "as part of it.",
                        "If the sender corrects or completes the request in a later mail, the "
                        "later mail counts.",
                        "Corrections and pictures that the sender mails later belong to the "
                        "request.",
                    ),
                    {},
                ),
                Sentence(
                    "duplicate",
                    (
                        "A second request for the same order on the same ground is refused (code "
                        "duplicate), whoever sends it; the first one received counts.",
                        "If an order was already the subject of a request on the same ground, the "
                        "later request is refused (code duplicate).",
                        "One order, one ground, one request: the one received first counts, and "
                        "any other is refused (code duplicate).",
                    ),
                    {},
                ),
            ),
        ),
        PolicySection(
            "limits",
            ("Time limits", "How long customers have", "Deadlines"),
            (
                _days("limit_late", "late deliveries"),
                _days("limit_damage", "damage"),
                _days("limit_goodwill", "goodwill"),
                Sentence(
                    "no_limit",
                    (
                        "Requests on other grounds have no time limit.",
                        "For all other grounds there is no time limit.",
                        "Any other ground may be claimed at any time.",
                    ),
                    {},
                ),
                Sentence(
                    "delivery",
                    (
                        "The day of delivery is the day of the {stamp}, by the local time of the "
                        "customer's "
                        "country.",
                        "As day of delivery counts the day of the {stamp}, in the local time of "
                        "the "
                        "customer's country.",
                        "Delivery is dated by the {stamp}, converted to the local time of the "
                        "customer's country.",
                    ),
                    {"stamp": _STAMP},
                ),
            ),
        ),
        PolicySection(
            "overdue",
            ("Overdue invoices", "Customers in arrears"),
            (
                Sentence(
                    "overdue",
                    (
                        "Requests for {grounds} are refused (code overdue) while the customer has "
                        "an open invoice that was due more than {days} days ago, counted to the "
                        "day of the decision.",
                        "If on the day of the decision an open invoice of the customer has been "
                        "due for more than {days} days, requests for {grounds} are refused (code "
                        "overdue).",
                        "An open invoice more than {days} days past its due day, on the day of the "
                        "decision, means refusal of requests for {grounds} (code overdue).",
                    ),
                    {"grounds": _EITHER_GROUND, "days": COUNT},
                ),
            ),
        ),
        PolicySection(
            "late",
            ("Late deliveries", "Delay"),
            (
                Sentence(
                    "tiers",
                    (
                        "From {first} business days of delay on, {low} of the net value of the "
                        "order is credited, from {second} on {middle}, from {third} on {high}. "
                        "Less delay gives nothing (code no_ground).",
                        "The credit is {low} of the net value of the order if the delay is at "
                        "least {first} business days, {middle} from {second} and {high} from "
                        "{third} business days on. With less delay nothing is due (code "
                        "no_ground).",
                        "Delay of {first} or more business days: {low} of the net value of the "
                        "order; {second} or more: {middle}; {third} or more: {high}. Below that "
                        "there is no credit (code no_ground).",
                    ),
                    {
                        "first": COUNT,
                        "second": COUNT,
                        "third": COUNT,
                        "low": PERCENT,
                        "middle": PERCENT,
                        "high": PERCENT,
                    },
                ),
                Sentence(
                    "business_days",
                    (
                        "Delay is counted in business days of the customer's country after the "
                        "promised day, up to and including the day of delivery.",
                        "Count the business days of the customer's country that come after the "
                        "promised day, the day of delivery included.",
                        "The business days of the customer's country from the day after the "
                        "promised day to the day of delivery, both included, are the delay.",
                    ),
                    {},
                ),
                Sentence(
                    "net_value",
                    (
                        "The net value of an order is the sum of its lines, pieces times price a "
                        "piece.",
                        "Net value means the sum over the lines of the order: pieces times price "
                        "a piece.",
                        "Take the net value from the lines of the order: add up pieces times "
                        "price a piece.",
                    ),
                    {},
                ),
                Sentence(
                    "rounding",
                    (
                        "Credits are rounded to the nearest whole cent; exactly half a cent is "
                        "rounded "
                        "{way}.",
                        "Round each credit to the nearest whole cent, exactly half a cent {way}.",
                        "Fractions of a cent are rounded to the nearest cent, exact halves {way}.",
                    ),
                    {"way": _WAY},
                ),
                Sentence(
                    "causes",
                    (
                        "A delay that would be credited is excused, with no credit (code excused), "
                        "if the entry with the most hours names {causes}.",
                        "If the entry with the most hours of a delay that would be credited names "
                        "{causes}, nothing is credited after all (code excused).",
                        "No credit (code excused) for a delay that would be credited but whose "
                        "entry with the most hours names {causes}.",
                    ),
                    {"causes": _CAUSES},
                ),
            ),
        ),
        PolicySection(
            "damage",
            ("Damage", "Damaged goods"),
            (
                Sentence(
                    "damage",
                    (
                        "For damage, the damaged pieces are credited at the price a piece as "
                        "billed.",
                        "Damaged pieces are credited: their number times the price a piece as "
                        "billed.",
                        "The credit for damage is the number of damaged pieces times the price a "
                        "piece as billed.",
                    ),
                    {},
                ),
                Sentence(
                    "concealed",
                    (
                        "If the proof of delivery does not mention damage, the request must arrive "
                        "within {days} business days after the day of delivery; otherwise nothing "
                        "is credited (code no_ground).",
                        "Damage that the proof of delivery does not mention is credited only if "
                        "the request arrives at most {days} business days after the day of "
                        "delivery; otherwise there is no credit (code no_ground).",
                        "Without a remark on damage on the proof of delivery the customer has "
                        "{days} business days after the day of delivery. A later request gives "
                        "nothing (code no_ground).",
                    ),
                    {"days": COUNT},
                ),
                Sentence(
                    "photo",
                    (
                        "If damage would be credited but no picture was sent, ask for one "
                        "(decision ask, code photo).",
                        "A picture is needed: where damage would be credited and none was sent, "
                        "the decision is ask (code photo).",
                        "Damage that would be credited without a picture: decide ask (code photo).",
                    ),
                    {},
                ),
            ),
        ),
        PolicySection(
            "price",
            ("Prices", "Wrong prices"),
            (
                Sentence(
                    "price",
                    (
                        "The agreed price is the list price in force on the day of the order less "
                        "the customer's discount, rounded to the nearest cent, exactly half a "
                        "cent up. If the "
                        "price a piece as billed is higher, the difference times the pieces is "
                        "credited; otherwise nothing (code no_ground).",
                        "Compare the price a piece as billed with the list price of the day of "
                        "the order less the customer's discount (rounded to the nearest cent, "
                        "exactly half a "
                        "cent up). A difference too much is credited for all pieces of the line; "
                        "if there is none, nothing is credited (code no_ground).",
                        "What was billed a piece above the list price of the day of the order "
                        "less the customer's discount (to the nearest cent, exactly half a cent "
                        "up) is credited "
                        "for all pieces of the line. If that is nothing, the code is no_ground.",
                    ),
                    {},
                ),
            ),
        ),
        PolicySection(
            "double",
            ("Double invoices", "Billed twice"),
            (
                Sentence(
                    "double",
                    (
                        "If an order was billed twice, the net amount of the later invoice is "
                        "credited, unless a credit note on the ground double exists for one of "
                        "the two invoices (code already_credited).",
                        "A second invoice for an order is credited with its net amount. If one of "
                        "the two invoices already has a credit note on the ground double, nothing "
                        "is credited (code already_credited).",
                        "Billed twice: credit the net amount of the later invoice. A credit note "
                        "on the ground double for either invoice means that it is settled (code "
                        "already_credited).",
                    ),
                    {},
                ),
            ),
        ),
        PolicySection(
            "goodwill",
            ("Goodwill", "Gestures"),
            (
                Sentence(
                    "goodwill",
                    (
                        "Customers on plan {plans} get {amount} as goodwill if no credit note on "
                        "that ground was issued to them in the {days} days before the day of "
                        "receipt; everybody else gets nothing (code no_ground).",
                        "Goodwill is {amount}, for plan {plans} only, and only if the last credit "
                        "note on that ground was issued more than {days} days before the day of "
                        "receipt or never; otherwise nothing (code no_ground).",
                        "A request for goodwill gives {amount} to a customer on plan {plans} who "
                        "had no credit note on that ground in the {days} days before the day of "
                        "receipt. All others get nothing (code no_ground).",
                    ),
                    {"plans": _PLANS, "amount": MONEY, "days": COUNT},
                ),
            ),
        ),
        PolicySection(
            "cap",
            ("Upper limits", "Caps"),
            (
                Sentence(
                    "cap",
                    (
                        "Credits for {grounds} to one customer are together at most {basic} "
                        "(Basic), {plus} (Plus) or {prime} (Prime) a {period}.",
                        "In one {period} a customer gets at most {basic} on plan Basic, {plus} on "
                        "Plus and {prime} on Prime for {grounds} together.",
                        "The sum of the credits for {grounds} to a customer in a {period} may be "
                        "{basic} on plan Basic, {plus} on Plus and {prime} on Prime, not more.",
                    ),
                    {
                        "grounds": _GROUNDS,
                        "basic": MONEY,
                        "plus": MONEY,
                        "prime": MONEY,
                        "period": _PERIOD,
                    },
                ),
                Sentence(
                    "cap_count",
                    (
                        "Credit notes on these grounds count in the period of their issue; then "
                        "requests count in the period and the order of their receipt, approved or "
                        "proposed. An amount that goes beyond the limit is cut to what is left; "
                        "if nothing is left, the request is refused (code cap).",
                        "Towards the limit count first the credit notes on these grounds issued "
                        "in the period, then approved and proposed requests received in it, in the "
                        "order of receipt. What exceeds the limit is cut off; with nothing left "
                        "the request is refused (code cap).",
                    ),
                    {},
                ),
            ),
        ),
        PolicySection(
            "approval",
            ("Approval", "Who approves"),
            (
                Sentence(
                    "desk",
                    (
                        "The desk approves up to and including {amount} itself (decision approve).",
                        "Up to and including {amount} the desk decides alone (decision approve).",
                        "Amounts of at most {amount} are approved by the desk (decision approve).",
                    ),
                    {"amount": MONEY},
                ),
                Sentence(
                    "lead",
                    (
                        "Above that and up to and including {amount}, propose to the team lead of "
                        "the customer's region (decision escalate).",
                        "Larger amounts up to and including {amount} are proposed to the team lead "
                        "of the customer's region (decision escalate).",
                        "More than that, but at most {amount}, goes to the team lead of the "
                        "customer's region (decision escalate).",
                    ),
                    {"amount": MONEY},
                ),
                Sentence(
                    "head",
                    (
                        "Above that, propose requests for {grounds} to the {money} and all others "
                        "to the {rest}.",
                        "Beyond that amount, requests for {grounds} go to the {money}, all "
                        "others to the "
                        "{rest}.",
                        "Whatever is larger goes to the {money} if the request is for {grounds}, "
                        "otherwise to the {rest}.",
                    ),
                    {"grounds": _EITHER_GROUND, "money": _ROLE, "rest": _ROLE},
                ),
                Sentence(
                    "absence",
                    (
                        "If the person is absent on the day of the decision, name the deputy, and "
                        "the deputy's deputy if the deputy is absent too.",
                        "For a person who is absent on the day of the decision the deputy stands "
                        "in; if the deputy is absent as well, the deputy of the deputy does.",
                        "Absent people (on the day of the decision) are replaced by their "
                        "deputies, absent deputies by theirs.",
                    ),
                    {},
                ),
            ),
        ),
        PolicySection(
            "contracts",
            ("Contracts", "Customers with own terms"),
            (
                Sentence(
                    "contracts",
                    (
                        "A signed contract of the customer goes before this policy if it is in "
                        "force on the day of delivery, for prices on the day of the order.",
                        "If the customer has a signed contract in force on the day of delivery "
                        "(for prices: on the day of the order), its clauses replace what this "
                        "policy says.",
                        "Clauses of signed contracts override this policy. A contract counts if "
                        "it is in force on the day of delivery, for prices on the day of the "
                        "order.",
                    ),
                    {},
                ),
            ),
        ),
    ),
)

GUARANTEE = Sentence(
    "guarantee",
    (
        "For late deliveries to this customer each limit in business days is lower by {days}. "
        "Absence of the consignee alone excuses us, in place of the causes in the policy.",
        "Each limit in business days for late deliveries is {days} lower for this customer. The "
        "policy's list of excusing causes is replaced by absence of the consignee.",
        "We owe this customer credits for late deliveries {days} business days earlier than "
        "others. Of all causes absence of the consignee excuses us, and no other one.",
    ),
    {"days": COUNT},
)
LONG_LIMIT = Sentence(
    "long_limit",
    (
        "The time limit for requests of any kind is {days} calendar days after the day of "
        "delivery.",
        "This customer may send requests of any kind up to {days} calendar days after the day of "
        "delivery.",
        "Whatever the ground, {days} calendar days after the day of delivery are allowed for a "
        "request.",
    ),
    {"days": COUNT},
)
OWN_DISCOUNT = Sentence(
    "own_discount",
    (
        "A discount of {percent} on list prices applies in place of the discount in the customer "
        "record.",
        "List prices less {percent} are agreed; the discount in the customer record does not "
        "apply.",
        "In place of the discount in the customer record, {percent} is taken off list prices.",
    ),
    {"percent": PERCENT},
)
CLAUSES = (GUARANTEE, LONG_LIMIT, OWN_DISCOUNT)
