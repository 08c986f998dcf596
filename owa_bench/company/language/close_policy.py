"""The cash application policy and discount clauses: everything that they can say."""

from owa_bench.company.language.policy import ListSlot, PolicyForm, PolicySection
from owa_bench.company.language.text import COUNT, MONEY, PERCENT, NameSlot, Sentence

POLICY = "cash-application"  # slug of the page
BOOKING, VALUE = "booking day", "value day"
GROSS, NET = "gross amount", "net amount"
DISCOUNT, CREDIT, CHARGE = "cash discount", "credit notes", "bank charges"
CHECKS = (DISCOUNT, CHARGE, CREDIT)
LOWEST = "with the lowest number"
TIES = (LOWEST, "due first", "due last", "issued last", "with the highest number")
TEXT_ORDER = "in the order of the text"
FILLS = (TEXT_ORDER, "in the order of their due days", "from the smallest open amount up")
LEFT_OUT, DEDUCTED = "left out", "deducted"
AREA = ("DE", "FR", "NL", "SE", "PL", "IT", "GB", "CH")
CODES = (
    *("discount_not_due", "short_payment", "overpayment", "double_payment", "returned"),
    *("bank_reversal", "unknown_payer", "repeated_line", "unmatched"),
)
_DAY = NameSlot(f"{BOOKING}|{VALUE}")


def _fixed(name: str, *wordings: str) -> Sentence:
    """Return a sentence without values: a policy has it or lacks it."""
    return Sentence(name, wordings, {})


_SCOPE = PolicySection(
    "scope",
    ("Which lines count", "Lines of the month", "Scope"),
    (
        Sentence(
            "month",
            (
                "A line belongs to the month of its {basis}; ignore lines of other months.",
                "The {basis} of a line says to which month it belongs. Ignore lines of other "
                "months.",
                "Work on lines whose {basis} is in the month and ignore all others.",
            ),
            {"basis": _DAY},
        ),
        _fixed(
            "receipt",
            "For amendments of this policy, a line is received on its booking day.",
            "Where an amendment speaks of receipt, it means the booking day of a line.",
            "The booking day is the day of receipt that amendments of this policy speak of.",
        ),
        _fixed(
            "repeats",
            "A line with the bank reference of an earlier line of the month is a repetition: "
            "allocate nothing; exception repeated_line, amount of the line.",
            "If an earlier line of the month has the same bank reference, the later line gets no "
            "allocation and the exception repeated_line with its amount.",
            "A bank reference occurs once a month. A later line with the same reference gets no "
            "allocation; report it as repeated_line with its amount.",
        ),
        _fixed(
            "returns",
            "A negative line takes back the last earlier positive line of the month that has the "
            "same payer, account and amount and is not taken back yet. Allocate neither; the "
            "negative line is the exception returned, amount without the sign.",
            "Each negative line cancels the latest positive line of the month before it with equal "
            "payer, account and amount that no other negative line cancels. Neither is allocated. "
            "Report the negative line as returned, with its amount without the sign.",
            "For a negative line, look for the nearest positive line of the month before it that "
            "has its payer, account and amount and is not taken back yet. Allocate neither line "
            "and report the negative one: returned, amount without the sign.",
        ),
        _fixed(
            "storno",
            "If the text of a negative line begins with STORNO, its exception is bank_reversal "
            "instead of returned.",
            "A negative line whose text begins with STORNO is reported as bank_reversal, not as "
            "returned.",
            "Use bank_reversal in place of returned where the text of the negative line begins "
            "with STORNO.",
        ),
    ),
)
_PAYERS = PolicySection(
    "payers",
    ("Who pays for whom", "Payers", "The payer of a line"),
    (
        _fixed(
            "payer",
            "A line's payer is the customer who has the line's account. If the line has no account "
            "or nobody has it, the payer is the only customer whose registered name, in capitals, "
            "begins with the payer's name on the line (the bank cuts names off). A customer pays "
            "for itself, for others only as stated here.",
            "Find the payer by the line's account. Without an account, or with one that no "
            "customer has, take the customer whose registered name in capitals begins with the "
            "payer's name on the line, if there is exactly one: the bank cuts names off. Customers "
            "pay for themselves, for others only as stated here.",
            "The account of a line names its payer. If there is no account, or no customer has it, "
            "the name decides: capitals of the registered name must begin with the payer's name, "
            "which the bank may have cut off, and only one customer may fit. Each customer pays "
            "for itself, for others only as stated here.",
        ),
        _fixed(
            "parent",
            "A parent firm also pays for the customers whose parent it is.",
            "A payer that is the parent of other customers pays for these customers, too.",
            "Parents pay for their subsidiaries as well: the customer record names the parent.",
        ),
        _fixed(
            "registered",
            "A payer in the list of registered payers also pays for the customer of its entry, on "
            "booking days from the first to the last day of the entry.",
            "Registered payers also pay for the customer of their entry, if the booking day is not "
            "before its first and not after its last day.",
            "The list of registered payers says who else pays for a customer; an entry counts for "
            "booking days from its first to its last day, both included.",
        ),
        Sentence(
            "factor",
            (
                "A registered payer of the kind factor keeps {percent} of the gross amount, "
                "rounded half up to the cent. If exactly this is missing, book it as charge; the "
                "invoice is paid. This comes before all other checks.",
                "Factors in the list of registered payers keep {percent} of the gross amount "
                "(rounded half up to the cent). Before any other check: if exactly this is "
                "missing, it is a charge and the invoice is paid.",
                "First of all: where a registered payer of the kind factor pays an invoice less "
                "exactly {percent} of its gross amount, rounded half up to the cent, book the "
                "missing part as charge; the invoice is paid.",
            ),
            {"percent": PERCENT},
        ),
        _fixed(
            "notice",
            "If a mail of an active contact of a customer announces a payer, this payer also pays "
            "for the customer, on booking days from the announced day on. Announcements of others "
            "do not count.",
            "A payer also pays for a customer if an active contact of this customer has announced "
            "it by mail, for booking days from the announced day on. Nobody else can announce one.",
            "Active contacts of a customer may announce by mail who else pays for it. This counts "
            "for booking days from the announced day on. Ignore announcements by anybody else.",
        ),
        _fixed(
            "unknown",
            "If the payer pays for no customer, allocate nothing; exception unknown_payer, amount "
            "of the line.",
            "A line whose payer pays for no customer gets no allocation; report unknown_payer with "
            "the amount of the line.",
            "Lines of a payer who pays for no customer stay unallocated: exception unknown_payer, "
            "amount of the line.",
        ),
    ),
)
_INVOICES = PolicySection(
    "invoices",
    ("Which invoices a line pays", "Finding the invoices", "Lines and invoices"),
    (
        _fixed(
            "passes",
            "Go through the lines three times, each time by line number. First: lines whose text "
            "names a usable invoice. Second: of the others, lines that one open invoice fits by "
            "its amount. Third: the rest.",
            "There are three rounds, each by line number: in the first, lines that name a usable "
            "invoice; in the second, of the lines left, those with the exact amount of an open "
            "invoice; in the third, all that are left.",
            "Work in three rounds and by line number in each. Round one takes lines that name a "
            "usable invoice, round two lines that an open invoice fits by its amount, round three "
            "what is left.",
        ),
        _fixed(
            "named",
            "A text names an invoice by six digits, also with a hyphen after the third. A named "
            "invoice is usable if the payer pays for its customer and something is open on it in "
            "that moment. A number that does not exist, or of a cancelled invoice, names none.",
            "Six digits in a text, with or without a hyphen after the third, are the number of an "
            "invoice. It is usable if the payer pays for its customer and it is not fully paid in "
            "that moment. Numbers of cancelled invoices and numbers that do not exist name "
            "nothing.",
            "Invoices are named by six digits, a hyphen may follow the third. Use a named invoice "
            "if its customer is one for whom the payer pays and if it is still open in that "
            "moment. Numbers that do not exist, or that were cancelled, name no invoice.",
        ),
        _fixed(
            "replaced",
            "The number of a cancelled invoice that was replaced names the invoice that replaces "
            "it.",
            "If a cancelled invoice has a replacement, its number names the replacement.",
            "A cancelled invoice with a replacement does name something: the replacement.",
        ),
        _fixed(
            "advice",
            "If the text names a payment advice (AV and five digits), the newest mail with this "
            "advice counts. If its amounts add up to the line, the line pays each listed invoice "
            "its listed amount, as if each came alone (one that is not usable: exception "
            "unmatched, listed amount); if not, ignore the advice.",
            "A text may name a payment advice: AV and five digits. Take the newest mail with it. "
            "If its amounts make the line's amount in sum, each listed invoice gets its amount as "
            "from a line of its own, and a listed invoice that is not usable is the exception "
            "unmatched with its amount; otherwise the advice does not count.",
            "Where a text names an advice (AV and five digits), look into the newest mail that "
            "has it: the listed invoices get the listed amounts, each like a single payment; "
            "report the amount of one that is not usable as unmatched. An advice whose amounts do "
            "not add up to the line is ignored.",
        ),
        Sentence(
            "several",
            (
                "If a text names several usable invoices: if the line equals their open amounts in "
                "sum, all are paid. If it equals these less the cash discounts that are due, all "
                "are paid with discount. Otherwise pay them {order} until the money is used up, "
                "without any check of differences; exception short_payment with all that is "
                "missing (whatever comes later), or a surplus.",
                "Several usable invoices in one text: the sum of their open amounts pays all of "
                "them; this sum less the due cash discounts pays all of them with discount. With "
                "any other amount pay {order} as far as the money goes and check no differences. "
                "What is missing in sum is one short_payment, even if it comes later; what is left "
                "is a surplus.",
                "Where several usable invoices are named, compare the line with their open amounts "
                "in sum: equal, all are paid; equal after due cash discounts, all are paid with "
                "discount. In all other cases the money goes to them {order}, and no check of "
                "differences applies. The missing total is the exception short_payment and stays "
                "one; money left over is a surplus.",
            ),
            {"order": NameSlot("|".join(FILLS))},
        ),
        Sentence(
            "amount",
            (
                "In the second round a line pays the open invoice whose open amount equals the "
                "line, among invoices of the customers for whom the payer pays that are issued on "
                "or before the booking day. If several fit: the one {tie}, then the lowest number.",
                "Second round: the open amount of one invoice equals the line. The payer must pay "
                "for its customer, and it is issued on or before the booking day. Of several such "
                "invoices take the one {tie}; if still equal, the lowest number.",
                "In round two, look at open invoices of the customers for whom the payer pays, "
                "issued on or before the booking day, whose open amount is exactly the line's. "
                "Choose the one {tie} if there are several, and by the lowest number after that.",
            ),
            {"tie": NameSlot("|".join(TIES))},
        ),
        _fixed(
            "paid",
            "In the third round, a line that names invoices for which the payer pays (all of them "
            "are paid by then): allocate nothing; exception double_payment, amount of the line.",
            "Third round: if the text names an invoice for which the payer pays, it is paid "
            "already. Allocate nothing; exception double_payment, amount of the line.",
            "A line of the third round whose text names an invoice for which the payer pays is a "
            "double_payment: no allocation, amount of the line.",
        ),
        Sentence(
            "sums",
            (
                "Other lines of the third round pay a set of two to {count} open invoices, of "
                "customers for whom the payer pays and issued on or before the booking day, whose "
                "open amounts add up to the line, if exactly one such set exists.",
                "Any other line of the third round: if exactly one set of two to {count} open "
                "invoices (customers for whom the payer pays, issued on or before the booking day) "
                "has the line as its sum, it pays this set.",
                "For the others in round three, try sets of two to {count} open invoices of "
                "customers for whom the payer pays, issued on or before the booking day. If "
                "exactly one set adds up to the line, it is paid.",
            ),
            {"count": COUNT},
        ),
        _fixed(
            "unmatched",
            "What is left then gets no allocation: exception unmatched, amount of the line.",
            "Lines that still have no invoice are the exception unmatched, amount of the line.",
            "Report all lines that are left as unmatched with their amounts; allocate nothing.",
        ),
    ),
)
_TERMS = PolicySection(
    "discount",
    ("Cash discount", "Terms of cash discount", "Discount for early payment"),
    (
        Sentence(
            "discount",
            (
                "Cash discount is the percentage of the invoice's customer, taken of the {base} "
                "and rounded half up to the cent. It is due if the {day} is not after the last day "
                "of the term; terms count calendar days after the day of issue. If exactly the "
                "discount is missing and it is due, book it as discount; the invoice is paid.",
                "A discount is due up to the last day of its term, by the {day} of the line; a "
                "term counts calendar days after the day of issue. Term and percentage are those "
                "of the invoice's customer; the percentage of the {base} is rounded half up to the "
                "cent. Where exactly a due discount is missing, book it as discount and the "
                "invoice is paid.",
                "Terms of discount are those of the invoice's customer. They count calendar days "
                "after the day of issue, and the {day} must not be after the last of them. The "
                "percentage is taken of the {base} and rounded half up to the cent. If just this "
                "is missing in time, book it as discount; the invoice is paid.",
            ),
            {"day": _DAY, "base": NameSlot(f"{GROSS}|{NET}")},
        ),
        _fixed(
            "bank_days",
            "If the last day of a term is no bank day, the next bank day is the last one (page "
            "bank-days).",
            "A term that ends on a day that is no bank day goes on to the next bank day; see the "
            "page bank-days.",
            "Terms end on bank days: if the last day is none by the page bank-days, the next bank "
            "day takes its place.",
        ),
        _fixed(
            "contract",
            "A contract on cash discount replaces the terms of the customer record if it is signed "
            "and in force on the day of issue.",
            "If a signed contract in force on the day of issue gives terms of discount, they count "
            "instead of the customer record's.",
            "Signed contracts come before the customer record: what counts are their terms of "
            "discount, if they are in force on the day of issue.",
        ),
        _fixed(
            "not_due",
            "If exactly the discount is missing, it is not due and no other check fits: allocate "
            "what came; exception discount_not_due with the discount.",
            "A discount taken although it is not due, where no other check fits: allocate what "
            "came and report discount_not_due with the discount.",
            "Where no check fits and what is missing is exactly a discount that is not due, "
            "allocate what came; the exception is discount_not_due, amount the discount.",
        ),
    ),
)
_DIFFERENCES = PolicySection(
    "differences",
    ("Differences", "Too little and too much", "Amounts that do not fit"),
    (
        Sentence(
            "order",
            (
                "If an invoice gets less than is open on it, check in this order and stop at the "
                "first that fits: {checks}.",
                "Too little for an invoice is explained by the first that fits of these, in this "
                "order: {checks}.",
                "Less than is open: try {checks}, in this order; the first that fits decides.",
            ),
            {"checks": ListSlot(CHECKS)},
        ),
        Sentence(
            "charges",
            (
                "Bank charges: at most {home} may be missing where the invoice's customer sits in "
                "{area}, at most {abroad} for all other countries. Book it as charge; the invoice "
                "is paid.",
                "As bank charges we accept up to {home} for customers in {area} and up to "
                "{abroad} for customers elsewhere, by the customer of the invoice and both limits "
                "included. Book them as charge; the invoice is paid.",
                "Small missing amounts are bank charges: not more than {abroad}, or not more than "
                "{home} if the invoice's customer is in {area}. Book them as charge; the invoice "
                "is paid.",
            ),
            {"home": MONEY, "abroad": MONEY, "area": ListSlot(AREA, last="or")},
        ),
        _fixed(
            "credit",
            "Credit notes: if exactly a credit note of the invoice's customer is missing that is "
            "not applied yet and issued on or before the booking day, book it as credit; the "
            "invoice is paid. Each note counts once.",
            "A customer may deduct its own credit note once, if it is not applied yet and issued "
            "on or before the booking day. If exactly its amount is missing, book it as credit; "
            "the invoice is paid.",
            "Where just the amount of a credit note is missing (the invoice's customer has it, "
            "issued on or before the booking day, not applied yet, not used by another line), book "
            "it as credit; the invoice is paid.",
        ),
        _fixed(
            "short",
            "Anything else that is missing stays open: allocate what came; exception short_payment "
            "with what is missing.",
            "Otherwise allocate what came and report short_payment with the missing amount, which "
            "stays open.",
            "If nothing explains it, the rest stays open: allocate what came; the exception is "
            "short_payment, amount what is missing.",
        ),
        _fixed(
            "instalments",
            "Exceptions for a single invoice that stays open (short_payment, discount_not_due) are "
            "seen at the end of the month: none if later lines pay the rest; otherwise only the "
            "last line that pays a part of it has one.",
            "If later lines of the month pay the rest of an invoice, its earlier lines are no "
            "short_payment and no discount_not_due. If it stays open, only the last line that pays "
            "a part of it is an exception.",
            "Whether a single invoice is a short_payment or discount_not_due is decided when the "
            "month is done: not if its rest came by then; else for the last line alone that pays a "
            "part of it.",
        ),
        Sentence(
            "surplus",
            (
                "If more comes than is open, allocate what is open. A surplus of more than {limit} "
                "is the exception overpayment with the surplus; a smaller one is none.",
                "Allocate never more than is open. What comes in addition is the exception "
                "overpayment, amount the surplus, if it is more than {limit}.",
                "Too much: allocate what is open and report the surplus as overpayment, but not if "
                "it is {limit} or less.",
            ),
            {"limit": MONEY},
        ),
    ),
)
_OPEN = PolicySection(
    "open_items",
    ("Open items", "What is open", "After the month"),
    (
        Sentence(
            "open_items",
            (
                "Open items of a customer: gross amounts of its open invoices issued up to the end "
                "of the month, less all that is allocated to them. Credit notes that are not "
                "applied and were not used are {credits}.",
                "What a customer owes is the gross amount of its open invoices issued up to the "
                "end of the month less all allocations. Credit notes neither applied nor used are "
                "{credits}.",
                "A customer's open items are its open invoices issued up to the end of the month: "
                "gross, less allocations of every kind; unused credit notes that are not applied "
                "are {credits}.",
            ),
            {"credits": NameSlot(f"{LEFT_OUT}|{DEDUCTED}")},
        ),
    ),
)
FORM = PolicyForm(
    "Cash application policy", (_SCOPE, _PAYERS, _INVOICES, _TERMS, _DIFFERENCES, _OPEN)
)
OPTIONAL = (
    *("repeats", "storno", "parent", "registered", "factor", "notice", "replaced", "advice"),
    *("sums", "bank_days", "contract", "not_due", "credit", "instalments"),
)
DISCOUNT_CLAUSE = Sentence(
    "discount_clause",
    (
        "In place of the usual terms, {percent} cash discount applies to payment within {days} "
        "days after the day of issue.",
        "For payment within {days} days after the day of issue this customer deducts {percent} "
        "cash discount.",
        "Cash discount of {percent} is agreed, if payment comes within {days} days after the day "
        "of issue.",
        "Payment within {days} days after the day of issue earns this customer {percent} cash "
        "discount.",
    ),
    {"percent": PERCENT, "days": COUNT},
)
