"""One running case: its systems, mailbox, people, clock and folder behind six tools."""

import datetime as dt
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from msgspec.structs import replace
from typing_extensions import override

from owa_bench.canonical import sha256
from owa_bench.company.kinds.contract import CaseState, CaseWorld, Harm
from owa_bench.company.kinds.publishing import published_pages
from owa_bench.company.messages import CaseEvent, Mail
from owa_bench.company.serving import SystemReply, SystemServer, dumped
from owa_bench.envs.casework.folder import CaseFolder
from owa_bench.envs.casework.judge import needed_texts
from owa_bench.envs.casework.kinds import KINDS
from owa_bench.envs.casework.people import CaseChat
from owa_bench.envs.casework.tools import MOST_SHOWN, TOOLS
from owa_bench.errors import FieldError, UsageError
from owa_bench.interfaces import Session, Sink, Task, ToolResult
from owa_bench.records.events import Artifact, Call, Resource
from owa_bench.records.instance import Timeline
from owa_bench.sandbox.python_desk import PythonDesk

MINUTE_MS = 60_000
_SHOWN = MOST_SHOWN  # characters of a reply that are shown at most
_USUAL = 4_000  # of an HTTP reply, if the agent does not say
_MINUTES = {"http": 1, "python": 2, "mail": 1, "chat": 1, "submit": 1}
_TURNS = 200  # pages that one request turns at most
CaseArguments = Mapping[str, Any]


class CaseSession(Session):
    """The session of one episode.

    Args:
        timeline: Its worlds; the first is played.
        sink: For the evidence of requests.
    """

    tools = TOOLS
    reply_limit = _SHOWN + 600
    state: CaseState

    def __init__(self, timeline: Timeline, sink: Sink) -> None:
        world: CaseWorld = timeline.worlds[0]
        self._world, self._sink = world, sink
        self._kind = KINDS[world.kind]
        self._server = SystemServer(world.hosts, world.tables, published_pages(self._kind, world))
        self._folder = CaseFolder()
        self._python: PythonDesk | None = None
        self._mails: dict[str, Mail] = {mail.id: mail for mail in world.mails}
        self._unread = dict.fromkeys(self._mails)
        self._pending = list(world.events)
        self._chat = CaseChat(world)
        self._needed = needed_texts(world)
        self._drafts: dict[Any, Any] = {}  # bodies that wait for their confirmation
        self._replies = 0
        self.state = CaseState()
        propositions = {p.name: p.text for p in self._kind.propositions(world)}
        goal = {
            "kind": world.kind,
            "deliverables": {name: list(c) for name, c in self._kind.deliverables.items()},
            "hosts": list(self._server.names),
            "begins": world.begins.isoformat(timespec="minutes"),
            "ends": world.ends.isoformat(timespec="minutes"),
        }
        self._task = Task(self._kind.brief(world), goal, propositions)
        self._tools: Mapping[str, Callable[[CaseArguments, int], ToolResult]] = {
            "http": self._http,
            "python": lambda arguments, step: self._run(arguments["code"]),
            "mail": lambda arguments, step: self._mail(arguments),
            "chat": lambda arguments, step: self._ask(arguments),
            "wait": lambda arguments, step: ToolResult("waited", ok=True),
            "submit": self._submit,
        }

    @property
    def task(self) -> Task:
        """The task as the agent gets it."""
        return self._task

    @override
    def enter(self, world: CaseWorld, *, now_ms: int) -> None:
        raise UsageError("A case changes by its own events, not between worlds.")

    @override
    def call(self, tool: str, arguments: CaseArguments, *, now_ms: int, step: int) -> ToolResult:
        self._pass(now_ms // MINUTE_MS)
        minutes = _MINUTES.get(tool) or -(-arguments["seconds"] // 60)
        try:
            result = self._tools[tool](arguments, step)
        except FieldError as error:
            result = _fault(str(error))
        self._pass(self.state.minute + minutes)
        elapsed = self.state.minute * MINUTE_MS - now_ms
        return result._replace(text=f"{self._header()}\n{result.text}", elapsed_ms=elapsed)

    @override
    def finish_refusal(self, arguments: CaseArguments) -> str:
        """Return why `finish` does not end the episode yet, "" where it does.

        An answer in its words alone would be lost, so the first call whose words hold data while
        nothing was posted or handed in is refused.
        """
        words = arguments.get("answer", "")
        data = any(letter.isdigit() or letter in "[{" for letter in words)
        done = self.state.settled or self.state.handed_in or self.state.used.get("warned")
        if done or not data:
            return ""
        self.state = replace(self.state, used={**self.state.used, "warned": 1})
        return (
            "Nothing was posted or handed in yet: `answer` is not judged. Call finish again to end "
            "all the same."
        )

    @override
    def close(self) -> None:
        """End the sandbox and remove the folder."""
        if self._python is not None:
            self._python.close()
        self._folder.close()

    # --- time -------------------------------------------------------------------------------

    def _pass(self, minute: int) -> None:
        """Let time pass, and whatever is due happen."""
        if minute != self.state.minute:
            self.state = replace(self.state, minute=minute)
        tenths = 10 * len(self.state.settled) // max(1, self._needed.items)
        for event in list(self._pending):
            if event.unless_settled and event.unless_settled in self.state.settled:
                self._pending.remove(event)
            elif event.minute <= minute or tenths >= event.tenths:
                self._pending.remove(event)
                self._happen(event)
        self._chat.pass_time(minute)

    @property
    def _now(self) -> dt.datetime:
        """The company's clock."""
        return self._world.begins + dt.timedelta(minutes=self.state.minute)

    def _happen(self, event: CaseEvent) -> None:
        for mail in event.mails:
            self._mails[mail.id] = replace(mail, at=self._now)
            self._unread[mail.id] = None
        for page in event.pages:
            self._server.pages[page.slug] = page
        for table, row in event.rows:
            self._server.put(table, row)
        for table, key in event.dropped:
            self._server.drop(table, key)
        self.state = replace(self.state, happened=self.state.happened | {event.name})

    def _header(self) -> str:
        parts = [self._now.strftime("%a %Y-%m-%d %H:%M"), f"unread mail {len(self._unread)}"]
        if self._chat.unread:
            parts.append(f"new answers in chat {self._chat.unread}")
        return f"[{' | '.join(parts)}]"

    def _serve(self, names: tuple[str, ...]) -> None:
        """Note what was served of what the case needs."""
        new = self._needed.names.intersection(names) - self.state.served
        if new:
            self.state = replace(self.state, served=self.state.served | new)

    # --- http -------------------------------------------------------------------------------

    def _http(self, arguments: CaseArguments, step: int) -> ToolResult:
        target = _target(arguments)
        if isinstance(target, str):
            return _fault(target)
        host, path = target
        method = arguments.get("method", "GET")
        body = arguments.get("body")
        if name := arguments.get("body_from"):
            body = self._loaded(name)
            if body is None:
                return _fault(f"`body_from` must name a JSON file of the folder, got {name}.")
        reply = self._server.request(method, host, path, self._now)
        if reply.call is not None:
            reply = self._post(reply, body)
        elif arguments.get("follow") and reply.wrapper:
            reply = self._turned(reply, method, host, path.partition("?")[0])
        self._serve(reply.served)
        self._replies += 1
        name = arguments.get("save") or f"r{self._replies:03d}.json"
        text = dumped(reply.body)
        self._folder.write(name, text.encode())
        ok = reply.status < 400
        shown, most = text, arguments.get("show", _USUAL)
        if len(text) > most:
            shown = f"{text[:most]}\n[cut: {len(text)} characters, whole in {name}]"
        events = (
            Call(
                step=step,
                method=method,
                target=f"https://{host}{path}",
                status=reply.status,
                ok=ok,
                request=self._digest(dumped(body).encode() if body is not None else b""),
                response=self._digest(text.encode()),
            ),
            Resource(step=step, meter="api_calls", amount=1.0),
            Resource(step=step, meter="bytes", amount=float(len(text))),
        )
        return ToolResult(
            f"HTTP {reply.status}, kept as {name}\n{shown}",
            ok=ok,
            digest=sha256(f"{reply.status}|{text}".encode()),
            events=events,
        )

    def _turned(self, reply: SystemReply, method: str, host: str, path: str) -> SystemReply:
        """Return the rows of all pages."""
        rows, served = list(reply.body[reply.wrapper]), list(reply.served)
        page = reply
        for _ in range(_TURNS):
            if page.more is None:
                break
            target = f"{path}?{urlencode(page.more)}"
            page = self._server.request(method, host, target, self._now)
            rows += page.body[page.wrapper]
            served += page.served
        return SystemReply(200, rows, tuple(served))

    def _post(self, reply: SystemReply, body: Any) -> SystemReply:
        """Let the case take a call that writes."""
        call, world = reply.call, self._world
        assert call is not None  # noqa: S101  the caller has looked
        if not call.call:
            harm = Harm(f"{call.method} {call.path}: nobody asked for it", call.severity / 10)
            self.state = replace(self.state, harms=(*self.state.harms, harm))
            return SystemReply(201, {"state": "done"})
        if self._now >= world.ends:
            return SystemReply(409, {"error": "the desk is closed"})
        if body is None:
            return SystemReply(400, {"error": "no body"})
        if call.confirm:
            if not reply.confirms:
                receipt = sha256(f"{self._replies}|{dumped(body)}".encode())[:12]
                self._drafts[receipt] = body
                self.state = replace(self.state, receipts=tuple(self._drafts))
                return SystemReply(202, {"receipt": receipt})
            receipt = str(body.get("receipt")) if isinstance(body, dict) else ""
            if receipt not in self._drafts:
                return SystemReply(404, {"error": "no such receipt"})
            body = self._drafts.pop(receipt)
            self.state = replace(self.state, receipts=tuple(self._drafts))
        result = self._kind.post(world, self.state, call.call, body)
        for table, row in result.rows:
            self._server.put(table, row)
        settled = {**self.state.settled, **result.settled}
        used = dict(self.state.used)
        for name, count in result.used.items():
            used[name] = used.get(name, 0) + count
        self.state = replace(
            self.state,
            settled={key: answer for key, answer in settled.items() if answer is not None},
            harms=(*self.state.harms, *result.harms),
            used=used,
        )
        return SystemReply(result.status, result.reply)

    def _digest(self, data: bytes) -> str:
        """Return the digest of evidence, redacted; nothing is kept unrecorded."""
        return self._sink.blob(data) if self._sink.active else ""

    def _loaded(self, name: str) -> Any:
        """Return the JSON of a file, None if there is none."""
        data = self._folder.read(name)
        try:
            return None if data is None else json.loads(data)
        except (ValueError, RecursionError):
            return None

    # --- the other tools --------------------------------------------------------------------

    def _python_desk(self) -> PythonDesk:
        if self._python is None:
            self._python = PythonDesk(self._folder.path)
        return self._python

    def _run(self, code: str) -> ToolResult:
        output = self._python_desk().run(code)
        return ToolResult(output.text or "(no output)", ok=output.ok, timed=output.timed)

    def _mail(self, arguments: CaseArguments) -> ToolResult:
        op = arguments["op"]
        if op == "read":
            return self._read(arguments.get("ids", ()))
        words = arguments.get("text", "").lower().split()
        found = [
            mail
            for mail in self._mails.values()
            if not (arguments.get("unread") and mail.id not in self._unread)
            and (op == "list" or all(w in f"{mail.subject} {mail.text}".lower() for w in words))
        ]
        rows = [
            {
                "id": mail.id,
                "from": mail.sender,
                "subject": mail.subject,
                "at": mail.at.isoformat(timespec="minutes"),
                "unread": mail.id in self._unread,
            }
            for mail in found
        ]
        return self._keep(rows, "mails.json")

    def _read(self, keys: Any) -> ToolResult:
        if missing := [key for key in keys if key not in self._mails]:
            return _fault(f"There is no mail {missing[0]}.")
        if not keys:
            return _fault("`ids` must name mails.")
        found = [self._mails[key] for key in keys]
        shown: list[str] = []
        room = _SHOWN
        for mail in found:
            text = (
                f"{mail.id}\nFrom: {mail.sender}\nDate: {mail.at.isoformat(timespec='minutes')}\n"
                f"Subject: {mail.subject}\n{mail.text}"
            )
            if len(text) > room and shown:
                break
            shown.append(text)
            room -= len(text) + 2
            self._unread.pop(mail.id, None)
            self._serve((f"mail/{mail.id}",))
        left = len(found) - len(shown)
        more = f"\n\n[{left} more did not fit; read them again]" if left else ""
        return ToolResult("\n\n".join(shown) + more, ok=True)

    def _keep(self, value: Any, name: str) -> ToolResult:
        """Return a value as text, kept as a file too."""
        text = dumped(value)
        self._folder.write(name, text.encode())
        if len(text) > _SHOWN:
            text = f"{text[:_SHOWN]}\n[cut: {len(text)} characters, whole in {name}]"
        return ToolResult(text, ok=True)

    def _ask(self, arguments: CaseArguments) -> ToolResult:
        op = arguments["op"]
        if op == "people":
            return self._keep(self._chat.people(), "people.json")
        if op == "read":
            return self._keep(self._chat.read(), "chat.json")
        refused = self._chat.ask(
            arguments.get("to", ""), arguments.get("text", ""), self.state.minute
        )
        return _fault(refused) if refused else ToolResult("asked; the answer comes later", ok=True)

    def _submit(self, arguments: CaseArguments, step: int) -> ToolResult:
        name, wanted = arguments["name"], self._kind.deliverables
        if name not in wanted:
            return _fault(f"`name` must be one of {', '.join(wanted)}, got {name!r}.")
        rows = arguments.get("rows")
        if rows is None:
            rows = self._loaded(arguments.get("file", ""))
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return _fault("`rows` must be a list of objects, or `file` a JSON file of one.")
        lacking = sorted({c for row in rows for c in wanted[name] if c not in row})
        if lacking:
            return _fault(f"Each row must have {', '.join(wanted[name])}; lacking: {lacking[0]}.")
        kept = tuple({column: row[column] for column in wanted[name]} for row in rows)
        self.state = replace(self.state, handed_in={**self.state.handed_in, name: kept})
        blob = self._digest(dumped(kept).encode())
        event = Artifact(step=step, name=name, media="application/json", blob=blob)
        return ToolResult(f"{name}: {len(kept)} rows taken", ok=True, events=(event,))


def _fault(message: str) -> ToolResult:
    return ToolResult(dumped({"error": message}), ok=False)


def _target(arguments: CaseArguments) -> tuple[str, str] | str:
    """Return host and target of a request, or a sentence about its fault."""
    try:
        parts = urlsplit(arguments["url"])
        host = (parts.hostname or "").lower()
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https"):
        return "`url` must be an address such as https://HOST/PATH."
    added = {
        name: ",".join(map(_word, value)) if isinstance(value, list) else _word(value)
        for name, value in arguments.get("query", {}).items()
    }
    query = "&".join(filter(None, (parts.query, urlencode(added, safe=","))))
    return host, f"{parts.path or '/'}?{query}" if query else parts.path or "/"


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
