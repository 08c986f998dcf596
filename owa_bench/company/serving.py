"""Serves the systems of a world: descriptions, lists with filters and pages, pages of the wiki."""

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from owa_bench.company.messages import Page
from owa_bench.company.systems import CellForm, HostHabits, ServedCall, ServedTable, SystemHost

WIKI = "wiki.corp"
_BOUNDS = ("_from", "_to")
_MOST_FILTERS = 2_000  # values of one filter


class SystemReply(NamedTuple):
    """What a system answers.

    Attributes:
        status: Of HTTP.
        body: As JSON.
        served: "table/key" of rows and "page/slug" of pages in it.
        call: The call that writes, which the reply leaves to the case; None: the reply is whole.
        confirms: Whether the request confirms that call.
        more: Query of the next page; None: there is none.
        wrapper: Name of the list in the body, "" without one.
    """

    status: int
    body: Any
    served: tuple[str, ...] = ()
    call: ServedCall | None = None
    confirms: bool = False
    more: Mapping[str, str] | None = None
    wrapper: str = ""


def _refused(status: int, why: str) -> SystemReply:
    return SystemReply(status, {"error": why})


def cell(value: Any) -> Any:
    """Return a value as it is served: days and times in ISO, UTC with a Z.

    Args:
        value: Of a row.
    """
    if isinstance(value, dt.datetime):
        text = value.isoformat(timespec="minutes")
        return text.replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, dt.date) else value


class _LiveTable:
    """A table as a host serves it: rows as JSON, indexed by what is asked for."""

    def __init__(
        self, served: ServedTable, rows: Sequence[Any], joined: Callable[[str, str, str], Any]
    ) -> None:
        self.served = served
        self._joined = joined
        self._rows = {row.id: self._as_json(row) for row in rows if self._holds(row)}
        self._by: dict[str, dict[str, list[str]]] = {}
        self.names = {column.name for column in served.columns}

    def put(self, row: Any) -> None:
        """Replace a row, or add it; a row that the list does not hold any more is removed."""
        if self._holds(row):
            self._rows[row.id] = self._as_json(row)
        else:
            self._rows.pop(row.id, None)
        self._by.clear()

    def drop(self, key: str) -> None:
        """Remove a row if it is there."""
        self._rows.pop(key, None)
        self._by.clear()

    def select(self, filters: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """Return the rows that all filters leave, by key, in order."""
        found = self._rows
        exact = {name: value for name, value in filters.items() if name in self.names}
        if exact:
            keys = [self._keys(name, value) for name, value in exact.items()]
            least = min(keys, key=len)
            found = {key: found[key] for key in least if all(key in other for other in keys)}
        for name, value in filters.items():
            if name in exact:
                continue
            field, _, bound = name.rpartition("_")
            found = {
                key: row for key, row in found.items() if _within(row[field], value, bound == "to")
            }
        return found

    def knows(self, name: str) -> bool:
        """Return whether a filter names a field, or a bound of one."""
        ends = name.endswith(_BOUNDS) and name.rpartition("_")[0] in self.names
        return name in self.names or ends

    def _keys(self, name: str, value: str) -> dict[str, None]:
        if name not in self._by:
            index: dict[str, list[str]] = {}
            for key, row in self._rows.items():
                index.setdefault(_text(row[name]), []).append(key)
            self._by[name] = index
        wanted = dict.fromkeys(value.split(",")[:_MOST_FILTERS])
        index = self._by[name]
        keys = [key for one in wanted for key in index.get(one, ())]
        if len(wanted) > 1:  # in the order of the table
            places = {key: place for place, key in enumerate(self._rows)}
            keys.sort(key=places.__getitem__)
        return dict.fromkeys(keys)

    def _holds(self, row: Any) -> bool:
        only = self.served.only
        return only is None or str(cell(getattr(row, only[0]))) == only[1]

    def _as_json(self, row: Any) -> dict[str, Any]:
        shown = {}
        for column in self.served.columns:
            own = row
            if column.table:
                own = self._joined(column.table, self.served.table, row.id)
            value = None if own is None else getattr(own, column.column)
            shown[column.name] = formed(value, column.form)
        return shown


def formed(value: Any, form: CellForm) -> Any:
    """Return a value as it is served in a form.

    Args:
        value: Of a row.
        form: "" for the plain one.
    """
    if value is None or not form:
        return cell(value)
    if form == "euros":
        return f"{value // 100}.{value % 100:02d}"
    return value.strftime("%d.%m.%Y")


def _text(value: Any) -> str:
    """Return a cell as a filter names it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _within(value: Any, bound: str, is_upper: bool) -> bool:
    """Return whether a cell keeps a bound; numbers compare as numbers."""
    if value is None:
        return False
    if isinstance(value, int):
        try:
            limit = float(bound)
        except ValueError:
            return False
        return value <= limit if is_upper else value >= limit
    text = str(value)
    return text[: len(bound)] <= bound if is_upper else text >= bound


class SystemServer:
    """The systems of a world, as they are at a moment.

    Args:
        hosts: What they serve.
        tables: Rows by table.
        pages: Of the wiki, by slug.
    """

    def __init__(
        self,
        hosts: Sequence[SystemHost],
        tables: Mapping[str, Sequence[Any]],
        pages: Mapping[str, Page],
    ) -> None:
        self._hosts = {host.host: host for host in hosts}
        self._tables = {name: {row.id: row for row in rows} for name, rows in tables.items()}
        self._joins: dict[tuple[str, str], dict[str, Any]] = {}
        self._live: dict[tuple[str, str], _LiveTable] = {}
        self.pages = dict(pages)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all hosts."""
        return (*self._hosts, WIKI)

    def put(self, table: str, row: Any) -> None:
        """Replace a row of a table wherever it is served.

        Args:
            table: Of the world.
            row: With the key of the row that it replaces, or a new one.
        """
        self._tables[table][row.id] = row
        self._joins.clear()
        for live in self._live.values():
            if live.served.table == table:
                live.put(row)

    def drop(self, table: str, key: str) -> None:
        """Remove a row wherever it is served.

        Args:
            table: Of the world.
            key: Of the row.
        """
        self._tables[table].pop(key, None)
        self._joins.clear()
        for live in self._live.values():
            if live.served.table == table:
                live.drop(key)

    def request(self, method: str, host: str, target: str, now: dt.datetime) -> SystemReply:
        """Return what a host answers.

        Args:
            method: Of HTTP.
            host: Its name.
            target: Path and query.
            now: By the company's clock.
        """
        path, _, text = target.partition("?")
        path = path.rstrip("/") or "/"
        query = dict(parse_qsl(text, keep_blank_values=True))
        if host == WIKI:
            return self._wiki(method, path, query)
        system = self._hosts.get(host)
        if system is None:
            return _refused(404, f"no such host: {host}")
        if path == "/":
            return SystemReply(200, description(system)) if method == "GET" else _refused(405, "")
        for call in system.calls:
            if (call.method, call.path) == (method, path):
                return SystemReply(200, None, call=call)
            if call.confirm and (method, path) == ("POST", call.confirm):
                return SystemReply(200, None, call=call, confirms=True)
        for served in system.tables:
            old = served.retired
            if served.path == path or (old and old.path == path and now < old.until):
                if method != "GET":
                    return _refused(405, "method not allowed")
                return self._list(system.habits, served, query)
        return _refused(404, "not found")

    def _list(
        self, habits: HostHabits, served: ServedTable, query: Mapping[str, str]
    ) -> SystemReply:
        live = self._table(served)
        pager = {"page": "page", "offset": "offset", "cursor": "cursor"}[habits.pager]
        filters = {name: v for name, v in query.items() if name not in (pager, "fields")}
        strange = [name for name in filters if not live.knows(name)]
        if strange:
            return _refused(400, f"unknown parameter: {strange[0]}")
        found = live.select(filters)
        start = _start(habits, query.get(pager, ""))
        if start is None:
            return _refused(400, f"bad {pager}")
        keys = list(found)
        shown = keys[start : start + habits.size]
        names = [name for name in query.get("fields", "").split(",") if name]
        if bad := [name for name in names if name not in live.names]:
            return _refused(400, f"unknown field: {bad[0]}")
        rows = [found[key] for key in shown]
        if names:
            rows = [{name: row[name] for name in names} for row in rows]
        after = start + habits.size
        value = _next(habits, after) if after < len(keys) else None
        more = None if value is None else {**query, pager: str(value)}
        return SystemReply(
            200,
            {"total": len(keys), habits.wrapper: rows, f"next_{pager}": value},
            self._row_names(served, shown),
            more=more,
            wrapper=habits.wrapper,
        )

    def _row_names(self, served: ServedTable, keys: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the rows behind a page, those of joined tables among them."""
        names = [f"{served.table}/{key}" for key in keys]
        for table in dict.fromkeys(column.table for column in served.columns if column.table):
            rows = (self._joined(table, served.table, key) for key in keys)
            names += [f"{table}/{row.id}" for row in rows if row is not None]
        return tuple(names)

    def _table(self, served: ServedTable) -> _LiveTable:
        key = served.table, served.path
        if key not in self._live:
            rows = tuple(self._tables[served.table].values())
            self._live[key] = _LiveTable(served, rows, self._joined)
        return self._live[key]

    def _joined(self, table: str, owner: str, key: str) -> Any:
        """Return the row of a table that belongs to a row of another one, None without one."""
        if (table, owner) not in self._joins:
            column = owner.removesuffix("s")
            rows = self._tables[table].values()
            self._joins[table, owner] = {getattr(row, column): row for row in rows}
        return self._joins[table, owner].get(key)

    def _wiki(self, method: str, path: str, query: Mapping[str, str]) -> SystemReply:
        if method != "GET":
            return _refused(405, "method not allowed")
        if path == "/":
            return SystemReply(
                200,
                {
                    "service": WIKI,
                    "about": "Pages of the company.",
                    "calls": ["GET /pages", "GET /pages/SLUG", "GET /search?q=WORDS"],
                    "pages": self._titles(self.pages),
                },
            )
        if path == "/pages":
            return SystemReply(200, {"pages": self._titles(self.pages)})
        if path == "/search":
            words = query.get("q", "").lower().split()
            hits = {
                slug: page
                for slug, page in self.pages.items()
                if any(word in f"{page.title} {page.text}".lower() for word in words)
            }
            return SystemReply(200, {"pages": self._titles(hits)})
        page = self.pages.get(path.removeprefix("/pages/"))
        if page is None:
            return _refused(404, "no such page")
        body = {
            "slug": page.slug,
            "title": page.title,
            "updated": page.updated.isoformat(),
            "by": page.by,
            "text": page.text,
        }
        return SystemReply(200, body, (f"page/{page.slug}",))

    def _titles(self, pages: Mapping[str, Page]) -> list[dict[str, str]]:
        return [
            {
                "slug": page.slug,
                "title": page.title,
                "updated": page.updated.isoformat(),
                "by": page.by,
            }
            for page in pages.values()
        ]


_CURSOR = "k"


def _start(habits: HostHabits, value: str) -> int | None:
    """Return the first row of the page that is asked for; None: it is none."""
    if not value:
        return 0
    digits = value.removeprefix(_CURSOR) if habits.pager == "cursor" else value
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
        return None
    number = int(digits)
    if habits.pager == "page":
        return (number - 1) * habits.size if number else None
    return number


def _next(habits: HostHabits, after: int) -> int | str:
    if habits.pager == "page":
        return after // habits.size + 1
    return after if habits.pager == "offset" else f"{_CURSOR}{after}"


_PAGED = {
    "page": "{size} rows a page; `next_page` is the number for page=, null on the last page",
    "offset": "{size} rows at once; `next_offset` is the number for offset=, null at the end",
    "cursor": "{size} rows at once; `next_cursor` is the value for cursor=, null at the end",
}


def description(host: SystemHost) -> dict[str, Any]:
    """Return what a host says of itself.

    Args:
        host: Of the world.
    """
    habits = host.habits
    paged = _PAGED[habits.pager].format(size=habits.size)
    return {
        "service": host.host,
        "about": host.about,
        "lists": [_list_text(served) for served in host.tables],
        "filters": "FIELD=VALUE or FIELD=VALUE,VALUE; FIELD_from=VALUE; FIELD_to=VALUE; "
        "fields=FIELD,FIELD for some fields only",
        "replies": f"rows are in `{habits.wrapper}`; {paged}",
        "calls": [_call_text(call) for call in host.calls],
    }


def _list_text(served: ServedTable) -> dict[str, Any]:
    """Return what a host says of a list."""
    names = {column.column: column.name for column in served.columns}
    said: dict[str, Any] = {
        "get": served.path,
        "holds": served.about,
        "fields": {column.name: column.about for column in served.columns},
    }
    if served.only is not None:
        said["only"] = {names[served.only[0]]: served.only[1]}
    if served.retired is not None:
        until = served.retired.until.isoformat(timespec="minutes")
        said["note"] = f"{served.retired.path} is retired and answers until {until}"
    return said


def _call_text(call: ServedCall) -> dict[str, str]:
    """Return what a host says of a call."""
    said = {"call": f"{call.method} {call.path}", "does": call.about}
    if call.confirm:
        said["then"] = f"POST {call.confirm}"
        said["note"] = "The reply holds a receipt. The call counts once {receipt} was posted there."
    return said


def dumped(body: Any) -> str:
    """Return a body as JSON text in ASCII.

    Args:
        body: Of a reply.
    """
    return json.dumps(body, separators=(", ", ": "))
