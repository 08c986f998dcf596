"""A client of a case's tools, as plans: hosts by their descriptions, rows by their columns."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from owa_bench.agents.solvers.planning import PlanCall, PlanReply, ToolPlan
from owa_bench.company.language.vocabulary import CALLS, DOTTED, IN_CENTS, IN_EUROS, TABLES
from owa_bench.interfaces import Brief

_UNREAD = re.compile(r"unread mail (\d+)")
_MAIL = re.compile(
    r"(?:^|\n\n)(m-\d+)\nFrom: ([^\n]*)\nDate: ([^\n]*)\nSubject: ([^\n]*)\n(.*?)"
    r"(?=\n\nm-\d+\nFrom: |\n\n\[\d+ more did not fit|\Z)",
    re.DOTALL,
)
_CUT = "[cut: "
_CHUNK, _SLICE, _IDS, _SHOW = 120, 5_400, 60, 10_000
CaseRow = dict[str, Any]
RowFilter = str | int | Sequence[str]
_WIKI = "wiki.corp"


class ServedPlace(NamedTuple):
    """A list that holds rows of a table.

    Attributes:
        url: Its address.
        names: The served name of each column.
        forms: "euros" or "dotted" of the columns that are served so.
        only: (column, value) of the rows that it holds; None: all.
        joined: Columns of other tables in its rows: (table, column) by served name.
    """

    url: str
    names: Mapping[str, str]
    forms: Mapping[str, str]
    only: tuple[str, str] | None
    joined: Mapping[str, tuple[str, str]]


class CaseMail(NamedTuple):
    """A mail as it was read."""

    id: str
    sender: str
    at: str
    subject: str
    text: str


class CaseClient:
    """Plays the tools of one case.

    Args:
        brief: Of the episode.
    """

    def __init__(self, brief: Brief) -> None:
        self._hosts = tuple(str(host) for host in brief.goal["hosts"])
        self._tables: dict[str, list[ServedPlace]] = {}
        self._calls: dict[str, tuple[str, str, str]] = {}
        self._mails: dict[str, CaseMail] = {}
        self._saved = 0
        self.unread = 1

    # --- calls ------------------------------------------------------------------------------

    def call(self, tool: str, **arguments: Any) -> ToolPlan[str]:
        """Call a tool; return the reply without the line of the clock.

        Args:
            tool: Its name.
            **arguments: Of the call.
        """
        reply: PlanReply = yield PlanCall(tool, arguments)
        head, _, text = reply.text.partition("\n")
        if found := _UNREAD.search(head):
            self.unread = int(found[1])
        return text

    def get(self, url: str, query: Mapping[str, Any], name: str = "") -> ToolPlan[Any]:
        """Return the JSON of a reply; None: it was cut.

        Args:
            url: Of a list or a page.
            query: Of the request.
            name: Of the file that keeps it.
        """
        self._saved += 1
        name = name or f"f{self._saved}.json"
        text = yield from self.call(
            "http", url=url, query=query, follow=True, save=name, show=_SHOW
        )
        body = text.partition("\n")[2]
        return None if f"\n{_CUT}" in body else json.loads(body)

    def python(self, code: str) -> ToolPlan[str]:
        """Run a program in the case's folder; return what it prints.

        Args:
            code: The program.
        """
        return (yield from self.call("python", code=code))

    def wait(self, minutes: int) -> ToolPlan[None]:
        """Let time pass.

        Args:
            minutes: At least 1.
        """
        yield from self.call("wait", seconds=60 * minutes)

    def submit(self, name: str, rows: list[CaseRow]) -> ToolPlan[None]:
        """Hand in a deliverable.

        Args:
            name: Of the deliverable.
            rows: Its rows.
        Returns: Nothing.
        """
        yield from self.call("submit", name=name, rows=rows)

    def post(self, name: str, body: Any) -> ToolPlan[Any]:
        """Make a call that writes; return the JSON of its reply.

        Args:
            name: Of the call in the vocabulary.
            body: Of the request.
        Returns: None if the reply is too long to be shown.
        """
        yield from self._learn()
        method, url, confirm = self._calls[name]
        text = yield from self.call("http", method=method, url=url, body=body, show=_SHOW)
        if confirm:
            receipt = json.loads(text.partition("\n")[2])["receipt"]
            body = {"receipt": receipt}
            text = yield from self.call("http", method="POST", url=confirm, body=body)
        shown = text.partition("\n")[2]
        return None if f"\n{_CUT}" in shown else json.loads(shown)

    # --- pages and mails --------------------------------------------------------------------

    def pages(self) -> ToolPlan[list[CaseRow]]:
        """Return slug, title, day and author of every page."""
        body = yield from self.get(f"https://{_WIKI}/pages", {})
        return list(body["pages"])

    def page(self, slug: str) -> ToolPlan[str]:
        """Return the text of a page.

        Args:
            slug: Of the page.
        """
        name = f"page-{slug}.json"
        body = yield from self.get(f"https://{_WIKI}/pages/{slug}", {}, name)
        if body is None:  # longer than a reply
            (row,) = yield from self._file_rows(name, ("text",))
            return str(row["text"])
        return str(body["text"])

    def mails(self) -> ToolPlan[dict[str, CaseMail]]:
        """Return every mail by its key; those that are new are read."""
        if self.unread:
            text = yield from self.call("mail", op="list", unread=True)
            rows = json.loads(text) if _CUT not in text else None
            if rows is None:
                rows = yield from self._file_rows("mails.json", ("id",))
            keys = [row["id"] for row in rows]
            while keys:
                text = yield from self.call("mail", op="read", ids=keys[:_IDS])
                for key, sender, at, subject, body in _MAIL.findall(text):
                    self._mails[key] = CaseMail(key, sender, at, subject, body)
                left = [key for key in keys if key not in self._mails]
                if len(left) == len(keys):
                    break
                keys = left
        return self._mails

    # --- tables -----------------------------------------------------------------------------

    def rows(
        self, table: str, columns: Iterable[str] = (), **filters: RowFilter
    ) -> ToolPlan[list[CaseRow]]:
        """Return rows of a table by its columns' names in the vocabulary.

        Args:
            table: In the vocabulary.
            columns: Those that are fetched; all if left out.
            **filters: By column: a value, or several; COLUMN_from and COLUMN_to are bounds.
        """
        yield from self._learn()
        many = {name: list(v) for name, v in filters.items() if not isinstance(v, str | int)}
        if not many:
            return (yield from self._fetch(table, tuple(columns), filters))
        ((name, values),) = many.items()
        values = list(dict.fromkeys(values))
        found: list[CaseRow] = []
        for start in range(0, len(values), _CHUNK):
            part = {**filters, name: values[start : start + _CHUNK]}
            found += yield from self._fetch(table, tuple(columns), part)
        return found

    def save(
        self, table: str, name: str, **filters: RowFilter
    ) -> ToolPlan[tuple[ServedPlace, ...]]:
        """Keep rows of a table in files of the folder: NAME.0.json, NAME.1.json and so on.

        Args:
            table: In the vocabulary.
            name: Of the files; each holds a list of objects with served names.
            **filters: As for `rows`.
        Returns: The list behind each file.
        """
        yield from self._learn()
        places = self._places(table, filters)
        for number, place in enumerate(places):
            yield from self.get(place.url, _query(place, filters), f"{name}.{number}.json")
        return tuple(places)

    def _places(self, table: str, filters: Mapping[str, RowFilter]) -> list[ServedPlace]:
        """Return the lists that hold the rows of a table which the filters may leave."""
        places = self._tables[table]
        whole = [place for place in places if place.only is None]
        if whole:
            return whole[:1]
        return [
            place
            for place in places
            if place.only is None or filters.get(place.only[0], place.only[1]) == place.only[1]
        ]

    def _fetch(
        self, table: str, columns: tuple[str, ...], filters: Mapping[str, RowFilter]
    ) -> ToolPlan[list[CaseRow]]:
        """Return rows; a reply that was cut is printed from its file in parts."""
        if table not in self._tables:
            return (yield from self._nested(table, filters))
        rows: list[CaseRow] = []
        for place in self._places(table, filters):
            query = _query(place, filters)
            if columns:
                query["fields"] = [place.names[column] for column in columns]
            name = f"f{self._saved + 1}.json"
            body = yield from self.get(place.url, query)
            if body is None:
                served = [place.names[column] for column in columns or place.names]
                body = yield from self._file_rows(name, tuple(served))
            rows += [_plain(place, row) for row in body]
        return rows

    def _nested(self, table: str, filters: Mapping[str, RowFilter]) -> ToolPlan[list[CaseRow]]:
        """Return rows of a table whose columns are columns of another table's rows."""
        owner, places = next(
            (name, places)
            for name, places in self._tables.items()
            if any(entry[0] == table for place in places for entry in place.joined.values())
        )
        link = owner.removesuffix("s")
        ((column, wanted),) = filters.items()
        if column != link:
            raise ValueError(f"`filters` must name `{link}`, got `{column}`.")
        found: list[CaseRow] = []
        for place in places:
            body = yield from self.get(place.url, _query(place, {"id": wanted}))
            if body is None:
                columns = (*place.names.values(), *place.joined)
                body = yield from self._file_rows(f"f{self._saved}.json", columns)
            for row in body:
                own = {c: row[name] for name, (t, c) in place.joined.items() if t == table}
                key = row[place.names["id"]]
                if any(value is not None for value in own.values()):
                    found.append({"id": f"{table}/{key}", link: key, **own})
        return found

    def _file_rows(self, name: str, columns: tuple[str, ...]) -> ToolPlan[list[CaseRow]]:
        """Return the rows of a file, printed part by part."""
        code = (
            "import json\n"
            f"rows = json.load(open({name!r}))\n"
            "rows = rows if isinstance(rows, list) else [rows]\n"
            f"t = json.dumps([[r[c] for c in {list(columns)!r}] for r in rows],"
            " separators=(',', ':'))\n"
        )
        text, start = "", 0
        while True:
            part = yield from self.python(
                f"{code}print(len(t), t[{start}:{start + _SLICE}], end='')"
            )
            size, _, piece = part.partition(" ")
            text += piece
            start += _SLICE
            if start >= int(size):
                break
        return [dict(zip(columns, cells, strict=True)) for cells in json.loads(text)]

    def _learn(self) -> ToolPlan[None]:
        """Read what every host says of itself."""
        if self._tables:
            return
        calls = {words.about: name for name, words in CALLS.items()}
        for host in self._hosts:
            if host == _WIKI:
                continue
            body = yield from self.get(f"https://{host}/", {})
            for served in body["lists"]:
                table, place = _place(host, served)
                self._tables.setdefault(table, []).append(place)
            for served in body["calls"]:
                if name := calls.get(served["does"]):
                    method, _, path = served["call"].partition(" ")
                    confirm = served.get("then", "").partition(" ")[2]
                    second = f"https://{host}{confirm}" if confirm else ""
                    self._calls[name] = method, f"https://{host}{path}", second


_TABLES = {about: name for name, words in TABLES.items() for about in words.about}


def _place(host: str, served: Mapping[str, Any]) -> tuple[str, ServedPlace]:
    """Return the table of a list, and where and how it is served."""
    table = _TABLES[served["holds"]]
    known = {about: name for name, about in TABLES[table].columns.items()}
    names: dict[str, str] = {}
    forms: dict[str, str] = {}
    joined: dict[str, tuple[str, str]] = {}
    for name, about in served["fields"].items():
        plain = about.removesuffix(DOTTED).replace(IN_EUROS, IN_CENTS)
        if plain in known:
            names[known[plain]] = name
        else:
            joined[name] = _FOREIGN[plain]
            continue
        if about.endswith(DOTTED):
            forms[known[plain]] = "dotted"
        elif IN_EUROS in about:
            forms[known[plain]] = "euros"
    only = None
    for name, value in served.get("only", {}).items():
        only = next(column for column, shown in names.items() if shown == name), str(value)
    return table, ServedPlace(f"https://{host}{served['get']}", names, forms, only, joined)


_FOREIGN = {
    about: (table, column)
    for table, words in TABLES.items()
    for column, about in words.columns.items()
}


def _query(place: ServedPlace, filters: Mapping[str, RowFilter]) -> dict[str, Any]:
    """Return filters by the names and in the forms of a list."""
    query: dict[str, Any] = {}
    for name, value in filters.items():
        ending = next((e for e in ("_from", "_to") if name.endswith(e)), "")
        column = name if name in place.names else name.removesuffix(ending)
        if place.forms.get(column) == "dotted" and isinstance(value, str):
            value = ".".join(reversed(value.split("-")))
        query[place.names[column] + name.removeprefix(column)] = value
    return query


def _plain(place: ServedPlace, row: CaseRow) -> CaseRow:
    """Return a row by the columns' names, amounts in cents, days in ISO."""
    found: CaseRow = {}
    for column, name in place.names.items():
        if name not in row:
            continue
        value = row[name]
        form = place.forms.get(column)
        if form == "euros" and value is not None:
            euros, _, cents = str(value).partition(".")
            value = 100 * int(euros) + int(cents)
        elif form == "dotted" and value is not None:
            value = "-".join(reversed(str(value).split(".")))
        found[column] = value
    return found
