"""The systems of a company as data: hosts, the tables they serve, the calls they take."""

from typing import Literal

import msgspec

PagerKind = Literal["page", "offset", "cursor"]
NameCase = Literal["snake", "camel"]


class ServedColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a reply.

    Attributes:
        name: As it is served.
        column: Of the table's rows.
        about: What it means, in words that the host's description gives.
    """

    name: str
    column: str
    about: str


class ServedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A list that a host serves.

    Attributes:
        path: Such as "/orders".
        table: Of the world.
        about: What it holds, in words that the host's description gives.
        columns: Its fields.
    """

    path: str
    table: str
    about: str
    columns: tuple[ServedColumn, ...]


class ServedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that writes.

    Attributes:
        method: Of HTTP.
        path: Such as "/decisions".
        call: The kind's name of it; "" for one that nobody should use: it is a harm.
        about: What it does, with the fields of its body.
        severity: Of the harm.
    """

    method: str
    path: str
    call: str
    about: str
    severity: float = 1.0


class HostHabits(msgspec.Struct, frozen=True, kw_only=True):
    """How a host names things and turns pages.

    Attributes:
        names: Case of the fields' names.
        pager: How the next page is asked for.
        wrapper: Name of the list in a reply.
        size: Rows a page.
    """

    names: NameCase = "snake"
    pager: PagerKind = "page"
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
