"""Gateway sessions: requests of a seat in one episode, their token usage and events."""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import msgspec

from owa_bench import bounded_json
from owa_bench.canonical import sha256
from owa_bench.interfaces import Sink
from owa_bench.records.events import Egress, Event, Meter, ModelCall, Resource, fixed
from owa_bench.seeding import fresh_bytes

# --- token usage in replies -----------------------------------------------------------


MOST_TOKENS = 10**8  # of one reply; a larger count is no usage


class TokenUsage(NamedTuple):
    """Tokens that a provider counted: read, written, and of those read from a cache."""

    tokens_in: int
    tokens_out: int
    tokens_cached: int = 0


def usage_in(reply: Any) -> TokenUsage | None:
    """Return the usage in a decoded reply, None where it holds none.

    Chat completions and embeddings count `prompt_tokens` and `completion_tokens`,
    responses `input_tokens` and `output_tokens`.
    """
    usage = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(usage, dict):
        return None
    for read, written in (
        ("prompt_tokens", "completion_tokens"),
        ("input_tokens", "output_tokens"),
    ):
        if read in usage:
            details = usage.get(f"{read}_details") or {}
            counts = (usage[read], usage.get(written, 0), details.get("cached_tokens"))
            tokens = [count or 0 for count in counts]
            if all(type(n) is int and 0 <= n <= MOST_TOKENS for n in tokens):
                return TokenUsage(*tokens)
    return None


def usage_of(body: bytes) -> TokenUsage | None:
    """Return the usage in the body of a reply, None where it holds none."""
    try:
        return usage_in(bounded_json.decode(body))
    except (ValueError, AttributeError):
        return None


class EventStream:
    """Server-sent events of a reply, with the usage that one of them holds.

    `hide_usage`: a chunk of usage alone is for the gateway, which asked for it.
    """

    def __init__(self, *, hide_usage: bool) -> None:
        self.usage: TokenUsage | None = None
        self._hide_usage = hide_usage
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the events that are whole now and that the agent gets."""
        *events, self._rest = (self._rest + data).split(b"\n\n")
        for event in events:
            if not self._is_hidden(event):
                yield event + b"\n\n"

    def end(self) -> bytes:
        """Return what is left after the last whole event."""
        rest, self._rest = self._rest, b""
        return b"" if self._is_hidden(rest) else rest

    def _is_hidden(self, event: bytes) -> bool:
        if b'"usage"' not in event:
            return False
        lines = [line[5:] for line in event.splitlines() if line.startswith(b"data:")]
        try:
            chunk = bounded_json.decode(b"\n".join(lines))
        except ValueError:
            return False
        if not isinstance(chunk, dict):
            return False
        usage = usage_in(chunk) or usage_in(chunk.get("response"))
        self.usage = usage or self.usage
        return self._hide_usage and usage is not None and chunk.get("choices") == []


# --- sessions -------------------------------------------------------------------------


END_S = 10.0  # a request that is under way when the agent has ended gets so long
_REFUSALS = frozenset({401, 402, 403, 404})  # of a key, a quota or a model's name
_OK = 200
_SHOWN = 2_000  # characters of a request's parameters
_PICTURE = re.compile(rb"(data:image/\w+);base64,([A-Za-z0-9+/=]{200,})")
_TEXTS = ("messages", "input", "tools", "instructions")


class GatewayRecord(Protocol):
    """Something a session did, to be written down."""

    def events(self, step: int, role: str, sink: Sink) -> Iterator[Event]:
        """Yield its events.

        Args:
            step: The step it belongs to.
            role: The seat.
            sink: Stores blobs.

        Yields:
            The events.
        """


@dataclass(slots=True, kw_only=True)
class ModelRequest:
    """One request to a model and its reply.

    `status` is the provider's, 0 without a reply. `failure` says why the provider is
    to blame, "" where it is not. `usage` None: the provider counted nothing.
    """

    path: str
    body: bytes
    reply: bytes = b""
    status: int = 0
    failure: str = ""
    usage: TokenUsage | None = None
    latency_s: float = 0.0
    cached: bool = False

    @property
    def refusal(self) -> str:
        """Why the provider failed or refused, in its own words; "" where it did not."""
        cause = self.failure or f"HTTP {self.status}" * (self.status in _REFUSALS)
        words = " ".join(self.reply.decode(errors="replace").split())
        return f"{cause}: {words}" if cause and words else cause

    def events(self, step: int, role: str, sink: Sink) -> Iterator[Event]:
        """Yield the call and its metered tokens.

        Args:
            step: The step it belongs to.
            role: The seat.
            sink: Stores request and reply.

        Yields:
            The events.
        """
        silent = self.status == _OK or not (self.status or self.failure)
        tokens = self.usage or TokenUsage(0, 0)
        model, parameters = _terms(self.body)
        yield ModelCall(
            step=step,
            source="harness",
            role=role,
            model=model,
            parameters=parameters,
            prompt=sink.blob(_PICTURE.sub(_picture_digest, self.body)),
            reply=sink.blob(self.reply),
            cached=self.cached,
            path=self.path,
            status=self.status,
            failure=self.failure,
            latency_s=fixed(self.latency_s),
            metered=self.usage is not None or self.path == "/models" or not silent,
            **tokens._asdict(),
        )
        yield from _metered(step, role, "tokens_in", tokens.tokens_in)
        yield from _metered(step, role, "tokens_out", tokens.tokens_out)


def _picture_digest(match: re.Match[bytes]) -> bytes:
    """Return what stands in a record for a picture: its digest."""
    return match[1] + b";sha256," + sha256(match[2]).encode()


def _terms(body: bytes) -> tuple[str, str]:
    """Return the model that a request names, and its parameters as JSON."""
    try:
        terms = bounded_json.decode(body) if body else {}
        model = str(terms.get("model", ""))
        short = {name: terms[name] for name in terms if name not in _TEXTS}
    except (ValueError, AttributeError):
        return "", "{}"
    text = msgspec.json.encode(short, order="sorted").decode()
    return model[:_SHOWN], text if len(text) <= _SHOWN else "{}"


@dataclass(slots=True, kw_only=True)
class Tunnel:
    """One connection to another host, or the refusal of one."""

    host: str
    refused: bool = False
    sent: int = 0
    received: int = 0

    def events(self, step: int, role: str, sink: Sink) -> Iterator[Event]:
        """Yield the connection and its metered bytes.

        Args:
            step: The step it belongs to.
            role: The seat.
            sink: Not needed.

        Yields:
            The events.
        """
        yield Egress(
            step=step,
            source="harness",
            role=role,
            host=self.host,
            refused=self.refused,
            sent=self.sent,
            received=self.received,
        )
        yield from _metered(step, role, "bytes", self.sent + self.received)


def _metered(step: int, role: str, meter: Meter, amount: int) -> Iterator[Event]:
    """Yield the resource of an amount above 0."""
    if amount:
        yield Resource(
            step=step, source="harness", role=role, meter=meter, amount=float(amount)
        )


class GatewaySession:
    """What one seat asks of the gateway during one episode.

    The server's thread adds records, the episode's thread takes them. `token` stands
    for the session in every request, and `registry` holds it until it is closed.
    `failure` says why the provider is to blame for the last request, "" if it is not;
    `refusal` also tells of a refused key, quota or model, in the provider's words.
    """

    def __init__(self, registry: dict[str, "GatewaySession"]) -> None:
        self._registry = registry
        self.token = f"owa-{fresh_bytes(24).hex()}"
        self.failure = ""
        self.refusal = ""
        self._changed = threading.Condition()
        self._records: list[GatewayRecord] = []
        self._open: list[GatewayRecord] = []
        registry[self.token] = self

    def begin(self, record: GatewayRecord) -> None:
        """Note that a request has begun."""
        with self._changed:
            self._open.append(record)

    def end(self, record: GatewayRecord) -> None:
        """Note that a request has ended; one that was taken unended is dropped."""
        with self._changed:
            still = [each for each in self._open if each is not record]
            if len(still) == len(self._open):
                return
            self._open = still
            self._records.append(record)
            if isinstance(record, ModelRequest):
                self.failure, self.refusal = record.failure, record.refusal
            self._changed.notify_all()

    def take(self) -> list[GatewayRecord]:
        """Return what ended since the last call."""
        with self._changed:
            records, self._records = self._records, []
            return records

    def close(self) -> list[GatewayRecord]:
        """Take no more requests; return what is left, ended or not after `END_S`."""
        self._registry.pop(self.token, None)
        with self._changed:
            self._changed.wait_for(lambda: not self._open, END_S)
            records = [*self._records, *self._open]
            self._records, self._open = [], []
            return records
