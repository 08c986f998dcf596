"""The look-ups of the queue view: each opens some sources of a credit case."""

from functools import cache
from typing import NamedTuple


class LookUp(NamedTuple):
    """One look-up.

    Attributes:
        name: Of the look-up.
        minutes: That it takes.
        sources: That it opens (`CaseKind.sources`).
        shared: Whether it is made once for all requests.
    """

    name: str
    minutes: int
    sources: tuple[str, ...]
    shared: bool = False


# Two sources are never in two look-ups; those of events are opened by looking again. [D] minutes
LOOK_UPS = (
    LookUp("pages", 6, ("amendments", "check_order", "cap", "cap_period"), shared=True),
    LookUp("calendars", 4, ("holidays", "zones"), shared=True),
    LookUp("delivery", 3, ("proofs", "hours")),
    LookUp("order", 2, ("lines", "price_lists")),
    LookUp("contracts", 3, ("contracts", "contract_dates")),
    LookUp("contacts", 1, ("senders", "left_contacts")),
    LookUp("account", 2, ("arrears",)),
    LookUp("notes", 2, ("goodwill_history", "credited", "cap_notes")),
    LookUp("thread", 2, ("follow_ups", "withdrawals", "duplicates")),
    LookUp("approver", 1, ("absences",)),
)
EVENT_SOURCES = ("news", "other_desk")
SHARED = sum(1 << number for number, one in enumerate(LOOK_UPS) if one.shared)
ALL = (1 << len(LOOK_UPS)) - 1
THREAD = 1 << next(n for n, one in enumerate(LOOK_UPS) if one.name == "thread")


@cache
def blind_sources(mask: int) -> frozenset[str]:
    """Return the sources that are not looked at.

    Args:
        mask: A bit for each look-up that was made, the first is the lowest.
    """
    left = (one.sources for number, one in enumerate(LOOK_UPS) if not mask >> number & 1)
    return frozenset(source for sources in left for source in sources)
