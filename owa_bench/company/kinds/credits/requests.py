"""The requests of a case: who asks for a credit on which order, and what became of it."""

import datetime as dt

import msgspec

from owa_bench.company.language.credits_letters import RequestLetter


class CreditRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request in the queue.

    Attributes:
        id: Such as "R-07", in order of receipt.
        mail: Key of the mail.
        sender: Mail address.
        subject: Of the mail.
        received: By the company's clock.
        order: The order that it is about.
        line: Key of the order's line that it is about, "" without one.
        letter: What it says.
        corrected: Damaged pieces by a later mail; 0: none corrects them.
        picture_later: Whether a later mail brings the picture.
        withdrawn: How it is taken back: "" not at all, "mail" by a mail before the case, else the
            event's name.
        other_desk: The event by which somebody else decides it, "" for none.
    """

    id: str
    mail: str
    sender: str
    subject: str
    received: dt.datetime
    order: str
    line: str
    letter: RequestLetter
    corrected: int = 0
    picture_later: bool = False
    withdrawn: str = ""
    other_desk: str = ""


class CreditMatter(msgspec.Struct, frozen=True, kw_only=True):
    """The case's own part of a world: its requests in order of receipt."""

    requests: tuple[CreditRequest, ...]
