"""The systems of a company as data: hosts, the tables they serve, the calls they take."""

import datetime as dt
from typing import Literal

import msgspec

HostPager = Literal["page", "offset", "cursor"]
NameCase = Literal["snake", "camel"]
CellForm = Literal["", "euros", "dotted"]


class ServedColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a reply.

    Attributes:
        name: As it is served.
        column: Of the table's rows.
        about: What it means, in words that the host's description gives.
        form: "euros" for cents that are served as "12.50", "dotted" for days as "31.12.2030".
        table: Of another table, whose row belongs to the list's row by the column that bears its
            name; "" for the list's own.
    """

    name: str
    column: str
    about: str
    form: CellForm = ""
    table: str = ""


class RetiredPath(msgspec.Struct, frozen=True, kw_only=True):
    """An old path of a list that goes on answering for some time.

    Attributes:
        path: The old one.
        until: From this time of the company's clock on it answers no more.
    """

    path: str
    until: dt.datetime


class ServedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A list that a host serves.

    Attributes:
        path: Such as "/orders".
        table: Of the world.
        about: What it holds, in words that the host's description gives.
        columns: Its fields.
        only: (column, value): the rows that it holds; None: all of them.
        retired: Its old path, if it has one.
    """

    path: str
    table: str
    about: str
    columns: tuple[ServedColumn, ...]
    only: tuple[str, str] | None = None
    retired: RetiredPath | None = None


class ServedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that writes.

    Attributes:
        method: Of HTTP.
        path: Such as "/decisions".
        call: The kind's name of it; "" for one that nobody should use: it is a harm.
        about: What it does, with the fields of its body.
        severity: Of the harm, in tenths.
        confirm: Path to which the receipt of the reply must be posted before the call counts; ""
            for a call that counts at once.
    """

    method: str
    path: str
    call: str
    about: str
    severity: int = 10
    confirm: str = ""


class HostHabits(msgspec.Struct, frozen=True, kw_only=True):
    """How a host names things and turns pages.

    Attributes:
        names: Case of the fields' names.
        pager: How the next page is asked for.
        wrapper: Name of the list in a reply.
        size: Rows a page.
    """

    names: NameCase = "snake"
    pager: HostPager = "page"
    wrapper: str = "items"
    size: int = 200


class SystemHost(msgspec.Struct, frozen=True, kw_only=True):
    """A system of the company.

    Attributes:
        host: Such as "orders.corp".
        about: What it is for.
        habits: How it serves.
        tables: The lists that it serves.
        calls: The calls that write.
    """

    host: str
    about: str
    habits: HostHabits = HostHabits()
    tables: tuple[ServedTable, ...] = ()
    calls: tuple[ServedCall, ...] = ()
