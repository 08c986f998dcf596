"""One episode's live vendors behind five tools: the suite's side of the env shell."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from typing_extensions import override

from owa_bench.canonical import sha256
from owa_bench.envs.toolquest import app, transport, vector
from owa_bench.envs.toolquest.answers import ANSWER, judged_answer
from owa_bench.envs.toolquest.backend import Backend, instance_key
from owa_bench.envs.toolquest.goal import truths
from owa_bench.envs.toolquest.replies import JSON, PROBLEM
from owa_bench.envs.toolquest.state import ApiState, Artefact
from owa_bench.envs.toolquest.table import DataTable, Handles, TableError, from_records
from owa_bench.envs.toolquest.tool_calls import TOOLS
from owa_bench.envs.toolquest.transport import CredentialMonitor
from owa_bench.envs.toolquest.world import ApiWorld
from owa_bench.errors import UsageError
from owa_bench.interfaces import Session, Sink, Task, ToolResult
from owa_bench.records.events import Artifact, Call, Resource
from owa_bench.records.instance import Timeline
from owa_bench.seeding import stream

TEXT_ROOM = 4_000  # characters of an answer; the shell's own limit is a little above
_HEAD = 1_500  # characters of a long body that are shown at once
_LATENCY_MS = 40  # every request takes this and up to as much again
_RULES = (
    "Fetch the records that your result follows from. A right result without them is a "
    "guess, and disqualifies the episode."
)
_VAULT_MS = 5
_DRAWS = 256
_JSON_HEADERS = tuple(("content-type", media) for media in (JSON, PROBLEM))
ToolArguments = Mapping[str, Any]


class ToolQuestSession(Session):
    """Brings a timeline's first world to life; `state` is what has come of it."""

    tools = TOOLS

    def __init__(self, timeline: Timeline, *, sink: Sink, wire: bool) -> None:
        self.process = "a server on a port of this machine" if wire else ""
        world: ApiWorld = timeline.worlds[0]
        instance = timeline.instance
        self._key = instance_key(instance.seed)
        self._sink = sink
        self._outage_noise = stream(instance.seed, "noise", instance.repeat, "outages")
        self._backend = Backend(world, self._key, sink, self._noise)
        self._monitor = CredentialMonitor(sink)
        self._monitor.learn(world)
        self._transport = transport.connect(app.build(self._backend), wire=wire)
        noise = stream(instance.seed, "noise", instance.repeat, "latency")
        self._latency: list[int] = noise.integers(0, _LATENCY_MS + 1, _DRAWS).tolist()
        self._requests = 0
        self._attempts: dict[str, int] = {}
        self._handles = Handles()
        self._warned = False
        self._task = Task(
            text=f"{world.goal.text}\n\n{_RULES}",
            goal=json.loads(world.goal.spec),
            propositions={p.name: p.text for p in truths(world)},
        )
        self._tools: dict[str, Callable[[ToolArguments, int], ToolResult]] = {
            "http": self._http,
            "wait": self._wait,
            "vault": self._vault,
            "read": self._read,
            "table": self._table,
            "write_artifact": self._write_artifact,
        }

    @property
    def task(self) -> Task:
        """The task as the agent gets it."""
        return self._task

    @property
    def state(self) -> ApiState:
        """Everything that has happened, frozen."""
        return self._backend.state

    @override
    def call(self, tool: str, arguments: ToolArguments, *, now_ms: int, step: int) -> ToolResult:
        """Run a tool; what is wrong with its arguments is its answer.

        Returns: What the agent sees, time passed, and events.
        Raises: UsageError: The suite has no such tool.
        """
        if tool not in self._tools:
            raise UsageError(f"`tool` must be one of {', '.join(self._tools)}, got {tool!r}.")
        self._backend.at(now_ms)
        try:
            return self._tools[tool](arguments, step)
        except TableError as error:
            return _fault(str(error))

    @override
    def enter(self, world: ApiWorld, *, now_ms: int) -> None:
        """Go on in another world; its new secrets are taught to the sink at once."""
        self._monitor.learn(world)
        self._backend.enter(world)
        self._backend.at(now_ms)
        self._transport.use(app.build(self._backend))

    @override
    def finish_refusal(self, arguments: ToolArguments) -> str:
        """Return why `finish` does not end the episode yet, "" where it does.

        An answer in its words alone would be lost, so the first call whose words hold data (a digit
        or a bracket) while nothing was handed in is refused.
        """
        state = self.state
        data = any(c.isdigit() or c in "[{" for c in arguments.get("answer", ""))
        handed_in = state.artefact is not None or bool(state.records)
        if self._warned or handed_in or not data:
            return ""
        self._warned = True
        way = "records that you post" if state.world.writes else "write_artifact"
        return (
            f"Nothing was handed in yet: `answer` is not judged, {way} is. Call finish"
            " again to end all the same."
        )

    @override
    def features(self) -> npt.NDArray[np.float32]:
        return vector.features(self.state)

    @override
    def macros(self) -> tuple[Mapping[str, Any] | None, ...]:
        return vector.macros(self.state, self._key)

    @override
    def close(self) -> None:
        """Release the transport."""
        self._transport.close()

    # --- http -------------------------------------------------------------------------

    def _http(self, arguments: ToolArguments, step: int) -> ToolResult:
        request = transport.prepare(arguments)
        if isinstance(request, str):
            return _fault(request)
        if refused := self._monitor.inspect(request, self._backend):
            return _fault(refused)
        reply = self._transport.send(request)
        elapsed = _LATENCY_MS + self._latency[self._requests % _DRAWS]
        self._requests += 1
        self._backend.at(self.state.now_ms + elapsed)
        shown = _reply_text(reply, self._handles.keep(reply.body, step))
        url = f"https://{request.host}{request.target}"
        attempt = self._attempts.get(url, 0)
        self._attempts[url] = attempt + 1
        size = len(request.body) + len(reply.body)
        events = (
            Call(
                step=step,
                method=request.method,
                target=url,
                status=reply.status,
                ok=reply.status < 400,
                request=self._digest(_request_bytes(request)),
                response=self._digest(shown.evidence),
                headers=self._monitor.credential_headers(request),
                attempt=attempt,
            ),
            Resource(step=step, meter="api_calls", amount=1.0),
            Resource(step=step, meter="bytes", amount=float(size)),
        )
        return ToolResult(
            text=shown.text,
            ok=reply.status < 400,
            elapsed_ms=elapsed,
            digest=sha256(b"%d|%s" % (reply.status, reply.body)),
            events=events,
        )

    def _noise(self) -> int:
        """Return the next number of the noise stream."""
        return int(self._outage_noise.integers(1 << 30))

    def _digest(self, data: bytes) -> str:
        """Return the digest of evidence, redacted; nothing is kept unrecorded."""
        return self._sink.blob(data) if self._sink.active else ""

    # --- the other tools --------------------------------------------------------------

    def _wait(self, arguments: ToolArguments, step: int) -> ToolResult:
        elapsed = round(arguments["seconds"] * 1000)
        self._backend.at(self.state.now_ms + elapsed)
        seconds = self.state.now_ms / 1000
        return ToolResult(f'{{"now_s":{seconds:.3f}}}', ok=True, elapsed_ms=elapsed)

    def _vault(self, arguments: ToolArguments, step: int) -> ToolResult:
        name = arguments.get("name")
        entries = [(p, s) for p in self._backend.world.providers for s in p.secrets]
        if name is None:
            listing = [{"name": s.name, "about": s.about} for _, s in entries]
            return self._vault_answer("", 200, {"entries": listing}, step)
        for provider, secret in entries:
            if secret.name == name:
                self._backend.note_secret(provider.key, secret)
                self._monitor.read(secret)
                found = {"name": name, "value": secret.value}
                return self._vault_answer(name, 200, found, step)
        missing = {"error": f"The vault has no entry `{name}`; call vault() to list."}
        return self._vault_answer(name, 404, missing, step)

    def _vault_answer(
        self, name: str, status: int, body: Mapping[str, Any], step: int
    ) -> ToolResult:
        text = msgspec.json.encode(body)
        self._backend.at(self.state.now_ms + _VAULT_MS)
        call = Call(
            step=step,
            method="VAULT",
            target=name,
            status=status,
            ok=status == 200,
            request=self._digest(name.encode()),
            response=self._digest(text),
        )
        return ToolResult(text.decode(), ok=status == 200, elapsed_ms=_VAULT_MS, events=(call,))

    def _read(self, arguments: ToolArguments, step: int) -> ToolResult:
        text = self._handles.read(
            arguments["handle"],
            offset=arguments.get("offset", 0),
            pointer=arguments.get("pointer", ""),
            room=TEXT_ROOM,
        )
        return ToolResult(text, ok=True)

    def _table(self, arguments: ToolArguments, step: int) -> ToolResult:
        return ToolResult(self._handles.table(arguments, room=TEXT_ROOM), ok=True)

    def _write_artifact(self, arguments: ToolArguments, step: int) -> ToolResult:
        rows = self._artifact_rows(arguments)
        sources = self._handles.steps_of(arguments.get("sources", ()))
        name, world = arguments["name"], self.state.world
        words: dict[str, Any] = {"artifact": name, "rows": len(rows.rows)}
        if world.writes:
            words["judged"] = "No: this goal is reached by the records that are posted."
        elif name != ANSWER:
            words["judged"] = f"No: only the artifact named `{ANSWER}` is."
        else:
            judged = judged_answer(world, rows)
            if judged.ignored:
                words["not_judged"] = judged.ignored
            self._backend.note_artefact(Artefact(name, judged.columns, judged.rows))
        document = {"columns": rows.columns, "rows": rows.rows}
        event = Artifact(
            step=step,
            name=name,
            media="application/json",
            blob=self._digest(msgspec.json.encode(document)),
            provenance=tuple(sorted({*rows.steps, *sources})),
        )
        text = msgspec.json.encode(words).decode()
        return ToolResult(text, ok=True, events=(event,))

    def _artifact_rows(self, arguments: ToolArguments) -> DataTable:
        """Return the rows that are handed in, in the order of the columns named."""
        columns, given = tuple(arguments["columns"]), arguments["rows"]
        if isinstance(given, str):
            found = self._handles.rows_of(given)
        elif given and all(isinstance(row, dict) for row in given):
            found = from_records(given)
        else:
            found = _literal(columns, given)
        return _plain_cells(_in_order(found, columns))


def _literal(columns: tuple[str, ...], given: list[Any]) -> DataTable:
    for i, row in enumerate(given):
        if not isinstance(row, list) or len(row) != len(columns):
            raise TableError(f"`rows[{i}]` must be a list of {len(columns)} cells.")
    return DataTable(columns, tuple(tuple(row) for row in given))


def _in_order(table: DataTable, columns: tuple[str, ...]) -> DataTable:
    missing = [name for name in columns if name not in table.columns]
    if missing and table.rows:
        raise TableError(f"The rows lack the columns {', '.join(missing)}.")
    places = [table.columns.index(name) for name in columns if not missing]
    rows = tuple(tuple(row[i] for i in places) for row in table.rows)
    return DataTable(columns, rows, table.steps)


def _plain_cells(table: DataTable) -> DataTable:
    """Return the table if every cell is text, a number or a truth value."""
    for row in table.rows:
        for cell in row:
            if not isinstance(cell, str | int | float | None):
                raise TableError(f"A cell must be text, a number or true / false, got {cell!r}.")
    return table


def _fault(message: str) -> ToolResult:
    """Return a call that never left: words for the agent, no time passed."""
    return ToolResult(msgspec.json.encode({"error": message}).decode(), ok=False)


def _request_bytes(request: transport.HttpRequest) -> bytes:
    """Return a request as text, the form in which it is evidence."""
    lines = [f"{request.method} https://{request.host}{request.target}"]
    lines += [f"{name}: {value}" for name, value in request.headers]
    return "\n".join(lines).encode() + b"\n\n" + request.body


class ReplyText(NamedTuple):
    """What the agent sees of a reply, and what stands for it in the record.

    The evidence is the same text, so that it is kept once; the whole body where the text is cut.
    """

    text: str
    evidence: bytes


def _reply_text(reply: transport.HttpResponse, handle: str) -> ReplyText:
    """Return a reply as JSON text that fits; a long body is cut, never broken."""
    body = reply.body.decode("utf-8", "replace")
    is_json = any(h in reply.headers for h in _JSON_HEADERS)
    written = body if is_json and body.isascii() else json.dumps(body)
    if is_json and not body.isascii():
        written = json.dumps(json.loads(body))
    headers = json.dumps(dict(reply.headers))
    frame = '{"status":%d,"headers":%s,"body":%s,"handle":"%s"}'
    text = frame % (reply.status, headers, written, handle)
    if len(text) <= TEXT_ROOM:
        return ReplyText(text, text.encode())
    cut = json.dumps({"cut": True, "characters": len(body), "head": body[:_HEAD]})
    return ReplyText(frame % (reply.status, headers, cut, handle), reply.body)
