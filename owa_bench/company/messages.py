"""Mails, pages, what people know, and what happens while a case runs."""

import datetime as dt
from typing import Any

import msgspec


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """A mail in the mailbox of the desk; times are those of the company's clock."""

    id: str
    sender: str
    to: str
    subject: str
    at: dt.datetime
    text: str


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the wiki, with the day of its last change and its author."""

    slug: str
    title: str
    updated: dt.date
    by: str
    text: str


class ChatFact(msgspec.Struct, frozen=True, kw_only=True):
    """What a role answers to a question that holds one of these words.

    Attributes:
        roles: Who knows it.
        words: Any of them in a question asks for it, in lower case; none: the answer to what
            nothing else answers.
        answer: What they say; people of other roles say that it is not their area.
    """

    roles: tuple[str, ...]
    words: tuple[str, ...]
    answer: str


class CaseEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happens while a case runs, at a time or when a share of it is settled.

    It happens at whichever comes first, never because something was handed in.

    Attributes:
        name: Of what has happened from then on.
        minute: Minutes after the case began.
        tenths: Of the items that are settled.
        mails: Delivered then; their `at` is set to the time.
        pages: Put into the wiki then, in place of those of the same slug.
        rows: (table, row): put into a table then, in place of the row of the same key.
        dropped: (table, key): taken out of a table then.
        unless_settled: An item; if the agent has settled it, the event does not happen.
    """

    name: str
    minute: int
    tenths: int
    mails: tuple[Mail, ...] = ()
    pages: tuple[Page, ...] = ()
    rows: tuple[tuple[str, Any], ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    unless_settled: str = ""
