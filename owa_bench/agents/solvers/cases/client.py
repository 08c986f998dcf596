"""A client of a case's tools, as plans: hosts by their descriptions, rows by their columns."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from owa_bench.agents.solvers.planning import PlanCall, PlanReply, ToolPlan
from owa_bench.company.language.vocabulary import CALLS, TABLES
from owa_bench.interfaces import Brief

_UNREAD = re.compile(r"unread mail (\d+)")
_MAIL = re.compile(
    r"(?:^|\n\n)(m-\d+)\nFrom: ([^\n]*)\nDate: ([^\n]*)\nSubject: ([^\n]*)\n(.*?)"
    r"(?=\n\nm-\d+\nFrom: |\n\n\[\d+ more did not fit|\Z)",
    re.DOTALL,
)
_CUT = "[cut: "
_CHUNK, _SLICE, _IDS = 120, 5_400, 60
Row = dict[str, Any]
Filter = str | int | Sequence[str]
_WIKI = "wiki.corp"


class ServedPlace(NamedTuple):
    """Where a table is served: its address, and the served name of each column."""

    url: str
    names: Mapping[str, str]


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
        self._tables: dict[str, ServedPlace] = {}
        self._calls: dict[str, tuple[str, str]] = {}
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
        text = yield from self.call("http", url=url, query=query, follow=True, save=name)
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
        yield from self.call("wait", minutes=minutes)

    def submit(self, name: str, rows: list[Row]) -> ToolPlan[None]:
        """Hand in a deliverable.

        Args:
            name: Of the deliverable.
            rows: Its rows.
        """
        yield from self.call("submit", name=name, rows=rows)

    def post(self, name: str, body: Any) -> ToolPlan[Any]:
        """Make a call that writes; return the JSON of its reply.

        Args:
            name: Of the call in the vocabulary.
            body: Of the request.
        """
        yield from self._learn()
        method, url = self._calls[name]
        text = yield from self.call("http", method=method, url=url, body=body)
        return json.loads(text.partition("\n")[2].partition(f"\n{_CUT}")[0] or "null")

    # --- pages and mails --------------------------------------------------------------------

    def pages(self) -> ToolPlan[list[Row]]:
        """Return slug, title, day and author of every page."""
        body = yield from self.get(f"https://{_WIKI}/pages", {})
        return list(body["pages"])

    def page(self, slug: str) -> ToolPlan[str]:
        """Return the text of a page.

        Args:
            slug: Of the page.
        """
        body = yield from self.get(f"https://{_WIKI}/pages/{slug}", {})
        return str(body["text"])

    def mails(self) -> ToolPlan[dict[str, CaseMail]]:
        """Return every mail by its key; those that are new are read."""
        if self.unread:
            text = yield from self.call("mail", op="list", unread=True)
            rows = json.loads(text) if _CUT not in text else None
            if rows is None:
                rows = yield from self._whole("mails.json", ("id",))
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
        self, table: str, columns: Iterable[str] = (), **filters: Filter
    ) -> ToolPlan[list[Row]]:
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
        found: list[Row] = []
        for start in range(0, len(values), _CHUNK):
            part = {**filters, name: values[start : start + _CHUNK]}
            found += yield from self._fetch(table, tuple(columns), part)
        return found

    def save(self, table: str, name: str, **filters: Filter) -> ToolPlan[Mapping[str, str]]:
        """Keep rows of a table in a file of the folder.

        Args:
            table: In the vocabulary.
            name: Of the file; it holds a list of objects with served names.
            **filters: As for `rows`.
        Returns: The served name of each column.
        """
        yield from self._learn()
        place = self._tables[table]
        yield from self.get(place.url, self._query(place, filters), name)
        return place.names

    def _fetch(
        self, table: str, columns: tuple[str, ...], filters: Mapping[str, Filter]
    ) -> ToolPlan[list[Row]]:
        """Return rows; a reply that was cut is printed from its file in parts."""
        place = self._tables[table]
        query = self._query(place, filters)
        if columns:
            query["fields"] = [place.names[column] for column in columns]
        name = f"f{self._saved + 1}.json"
        body = yield from self.get(place.url, query)
        if body is None:
            served = [place.names[column] for column in columns or place.names]
            body = yield from self._whole(name, tuple(served))
        back = {served: column for column, served in place.names.items()}
        return [{back[key]: value for key, value in row.items()} for row in body]

    def _query(self, place: ServedPlace, filters: Mapping[str, Filter]) -> dict[str, Any]:
        query: dict[str, Any] = {}
        for name, value in filters.items():
            ending = next((e for e in ("_from", "_to") if name.endswith(e)), "")
            column = name if name in place.names else name.removesuffix(ending)
            query[place.names[column] + name.removeprefix(column)] = value
        return query

    def _whole(self, name: str, columns: tuple[str, ...]) -> ToolPlan[list[Row]]:
        """Return the rows of a file, printed part by part."""
        code = (
            "import json\n"
            f"rows = json.load(open({name!r}))\n"
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
        tables = {about: name for name, words in TABLES.items() for about in words.about}
        calls = {words.about: name for name, words in CALLS.items()}
        for host in self._hosts:
            if host == _WIKI:
                continue
            body = yield from self.get(f"https://{host}/", {})
            for served in body["lists"]:
                table = tables[served["holds"]]
                columns = {about: name for name, about in TABLES[table].columns.items()}
                self._tables[table] = ServedPlace(
                    f"https://{host}{served['get']}",
                    {columns[about]: name for name, about in served["fields"].items()},
                )
            for served in body["calls"]:
                if name := calls.get(served["does"]):
                    method, _, path = served["call"].partition(" ")
                    self._calls[name] = method, f"https://{host}{path}"
