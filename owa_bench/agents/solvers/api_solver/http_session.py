"""HTTP session of an episode, its parts as sub-plans; the skills of its solver."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urljoin

from owa_bench.agents.solvers import probing
from owa_bench.agents.solvers.planning import PlanCall, PlanReply, ToolPlan
from owa_bench.agents.solvers.probing import HttpReply


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillConfig:
    """Switches of the skills of one solver.

    waits      goes on after the wait that a server asks for
    pages      fetches every page of a list, not only the first
    repages    takes over the pager that a refusal names
    retries    tries another proof of who it is when one is refused
    searches   looks for a collection that is gone where the refusal points
    remembers  begins with what other episodes taught about a vendor of the same title
    guesses    names renamed fields by the likeness of words
    weighs     names renamed fields by what their values must be
    adds_up    settles units of money by control totals
    grants     gets OAuth2 tokens; without it connectors alone do (`connectors.py`)
    asks_below odds under which the supervisor is asked
    carries    share of its answer's rows that it gives (a handicap)
    """

    waits: bool = True
    pages: bool = True
    repages: bool = True
    retries: bool = True
    searches: bool = True
    remembers: bool = True
    guesses: bool = True
    weighs: bool = True
    adds_up: bool = True
    grants: bool = True
    asks_below: float = 0.9
    carries: float = 1.0


ALL_SKILLS = SkillConfig()


# --- the session ----------------------------------------------------------------------


MOST_WAITS = 40
MOST_PARTS = 60
COME_BACK = (429, 503)
MOST_HOPS = 5


class VaultEntry(NamedTuple):
    """An entry of the vault by name, and what it is said to be."""

    name: str
    about: str


class HttpSession:
    """Sends requests, reads the vault, waits, asks; keeps each secret it has read.

    `hints` is how often the supervisor may still be asked, None for no limit; `statuses` counts the
    answers by status.
    """

    def __init__(self, hints: int | None, *, waits: bool = True) -> None:
        self.hints = hints
        self.statuses: Counter[int] = Counter()
        self._waits = waits
        self._served: dict[str, HttpReply] = {}
        self._known: Mapping[str, HttpReply] = {}
        self.handles: list[str] = []
        self._entries: tuple[VaultEntry, ...] | None = None
        self._secrets: dict[str, str] = {}

    def http(
        self,
        method: str,
        address: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> ToolPlan[HttpReply]:
        """Send a request, waiting as long as the server asks for.

        Args:
            method: HTTP method.
            address: Where the request goes; redirects are followed.
            headers: Headers.
            query: Query parameters.
            body: A JSON value, or the fields of a form.
        Returns: The reply.
        """
        arguments: dict[str, Any] = {"method": method, "url": address}
        parts = {"headers": headers, "query": query, "body": body}
        arguments |= {name: part for name, part in parts.items() if part}
        for _ in range(MOST_WAITS):
            reply = yield from self._follow(arguments)
            if reply.status not in COME_BACK or not self._waits:
                break
            yield PlanCall("wait", {"seconds": probing.retry_after(reply)})
        return reply

    def _follow(self, arguments: Mapping[str, Any]) -> ToolPlan[HttpReply]:
        """Send a request to where it is sent on, if it is."""
        for _ in range(MOST_HOPS):
            reply = yield from self.send(arguments)
            place = probing.redirect_target(reply)
            if place is None:
                break
            address = urljoin(str(arguments["url"]), place)
            kept = ("query",) if "?" in place else ()
            arguments = {k: v for k, v in arguments.items() if k not in kept}
            arguments["url"] = address
        return reply._replace(address=str(arguments["url"]))

    def send(self, arguments: Mapping[str, Any]) -> ToolPlan[HttpReply]:
        """Send once and read a long body to its end.

        Args: arguments: Those of the http tool.
        Returns: The reply, its body whole.
        """
        page = _page(arguments)
        if page in self._known:
            return self._known[page]
        reply = http_reply((yield PlanCall("http", arguments)))
        if reply.handle and isinstance(reply.body, Mapping) and reply.body.get("cut"):
            text = yield from self._read(reply.handle)
            reply = reply._replace(body=_value(text))
        if reply.ok and reply.handle:
            self.handles.append(reply.handle)
        self.statuses[reply.status] += 1
        if reply.ok and arguments["method"] == "GET":
            self._served[page] = reply
        return reply

    def _read(self, handle: str) -> ToolPlan[str]:
        """Return the whole text behind a handle."""
        text = ""
        for _ in range(MOST_PARTS):
            seen = yield PlanCall("read", {"handle": handle, "offset": len(text)})
            part = seen.value if isinstance(seen.value, Mapping) else {}
            piece = str(part.get("text", ""))
            text += piece
            if not piece or len(text) >= int(part.get("characters", 0)):
                break
        return text

    def cached_copy(self, *, waits: bool) -> "HttpSession":
        """Return a session that knows what this one was served and may ask nobody.

        A second look through it costs only the requests that differ.
        """
        copy = HttpSession(0, waits=waits)
        copy._known = self._served
        copy._entries, copy._secrets = self._entries, self._secrets
        return copy

    def entries(self) -> ToolPlan[tuple[VaultEntry, ...]]:
        """Return the vault's entries; they are listed once."""
        if self._entries is None:
            seen = yield PlanCall("vault", {})
            found = probing.find_list(seen.value)
            self._entries = tuple(
                VaultEntry(str(row.get("name", "")), str(row.get("about", "")))
                for row in (found.rows if found else ())
            )
        return self._entries

    def secret(self, name: str) -> ToolPlan[str]:
        """Return the value of a vault entry; each is read once."""
        if name not in self._secrets:
            seen = yield PlanCall("vault", {"name": name})
            value = seen.value.get("value") if isinstance(seen.value, Mapping) else None
            self._secrets[name] = str(value or "")
        return self._secrets[name]

    def renew(self, name: str, value: str) -> None:
        """Keep what replaces the value of an entry in this episode.

        Args:
            name: Name of the vault entry.
            value: Its value from now on.
        """
        self._secrets[name] = value

    def ask(self, question: str) -> ToolPlan[PlanCall | None]:
        """Return the step that the supervisor names, None when there is no answer."""
        if self.hints is not None and self.hints <= 0:
            return None
        seen = yield PlanCall("ask_supervisor", {"question": question})
        if self.hints is not None:
            self.hints -= 1
        return _named_call(seen.text)


def http_reply(seen: PlanReply) -> HttpReply:
    """Return what the http tool said as a reply; status 0 when it refused."""
    value = seen.value
    if not isinstance(value, Mapping) or not isinstance(value.get("status"), int):
        return HttpReply(0, {}, value if value is not None else seen.text)
    headers = {str(k).lower(): str(v) for k, v in dict(value["headers"]).items()}
    handle = str(value.get("handle") or "")
    return HttpReply(value["status"], headers, value.get("body"), handle)


def _page(arguments: Mapping[str, Any]) -> str:
    """Return what tells one page from another, whoever asks for it."""
    query = sorted((arguments.get("query") or {}).items())
    return repr((arguments["method"], arguments["url"], query))


def _value(text: str) -> Any:
    """Return JSON text as its value, any other text as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _named_call(text: str) -> PlanCall | None:
    """Return the tool call that stands in the supervisor's words."""
    value = _value(text[max(0, text.find("{")) :])
    if isinstance(value, Mapping) and isinstance(value.get("tool"), str):
        return PlanCall(value["tool"], value.get("arguments") or {})
    return None
