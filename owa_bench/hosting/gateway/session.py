"""Gateway sessions: requests of a seat in one episode, how they ended, their events."""

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import msgspec

from owa_bench import bounded_json
from owa_bench.canonical import sha256
from owa_bench.hosting.gateway.reply_contents import ReplyEchoes
from owa_bench.hosting.gateway.reply_masks import ReplyMask
from owa_bench.interfaces import Sink
from owa_bench.records.events import Egress, Event, Meter, ModelCall, Resource, fixed
from owa_bench.records.model_replies import (
    CAUSES_OF_A_REQUEST,
    EVENT_END,
    ReplyJudgement,
    event_data,
)
from owa_bench.records.token_usage import TokenUsage, add_usage, usage_in
from owa_bench.seeding import fresh_bytes

# --- streams --------------------------------------------------------------------------


class EventStream:
    """Server-sent events of a reply, with the usage that they hold.

    `hide_usage`: a chunk of usage alone is for the gateway, which asked for it.
    """

    def __init__(self, *, hide_usage: bool) -> None:
        self._counts: dict[str, Any] = {}
        self._hide_usage = hide_usage
        self._rest = b""

    @property
    def usage(self) -> TokenUsage | None:
        """The usage so far, None where no event held one."""
        return usage_in({"usage": self._counts})

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the events that are whole now and that the agent gets."""
        self._rest += data
        start = 0
        for end in EVENT_END.finditer(self._rest):
            event = self._rest[start : end.end()]
            start = end.end()
            if not self._is_hidden(event):
                yield event
        self._rest = self._rest[start:]

    def end(self) -> bytes:
        """Return what is left after the last whole event."""
        rest, self._rest = self._rest, b""
        return b"" if self._is_hidden(rest) else rest

    def _is_hidden(self, event: bytes) -> bool:
        if b'"usage"' not in event:
            return False
        for chunk in event_data(event):
            counted = add_usage(self._counts, chunk)
            if self._hide_usage and counted and not chunk.get("choices"):
                return True
        return False


# --- sessions -------------------------------------------------------------------------


END_S = 10.0  # a request that is under way when the agent has ended gets so long
_SHOWN = 2_000  # characters of a request's parameters
# Text of these suites has 3 to 5 characters a token; a count far below that means that
# a server read a part of the prompt. [D]
_MOST_PER_TOKEN = 9.0
_PROMPT_MIN = 4_000  # characters, below which nothing is said
_PICTURE = re.compile(rb"(data:image/\w+);base64,([A-Za-z0-9+/=]{200,})")
INNER_PORT = 8473  # of a sandbox's loopback, behind which the Unix socket lies
COUNT = "/messages/count_tokens"
_TEXTS = ("messages", "input", "tools", "instructions")


LATE = "--act-seconds gives a model more time for each act, max_tokens= makes its replies shorter"


class GatewayRecord(Protocol):
    """Something a session did, to be written down."""

    def events(self, step: int, role: str, sink: Sink) -> Iterator[Event]:
        """Yield its events.

        Args:
            step: The step it belongs to.
            role: The seat.
            sink: Stores blobs.
        """


@dataclass(slots=True, kw_only=True)
class ModelRequest:
    """One request to a model and its reply.

    `status` is the provider's, 0 without a reply. `judgement` is None until it ended, and where the
    agent hung up. `usage` None: the provider counted nothing. `ordinal` counts the requests of the
    session from 0. `headers` are passed on to the provider. `fresh`: it goes on a connection of its
    own. `sent` is the body that the provider gets: `body` may name a field twice, of which servers
    read either. `unlisted` are fields that the run let pass, and work that the provider did.
    """

    path: str
    body: bytes
    model: str = ""
    ordinal: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    reply: bytes = b""
    status: int = 0
    judgement: ReplyJudgement | None = None
    usage: TokenUsage | None = None
    latency_s: float = 0.0
    cached: bool = False
    fresh: bool = False
    sent: dict[str, Any] = field(default_factory=dict)
    unlisted: tuple[str, ...] = ()
    begun: float = field(default_factory=time.monotonic)

    @property
    def failure(self) -> str:
        """Why the provider is to blame, in a few words; "" where it is not."""
        if self.judgement is None or self.judgement.verdict != "failure":
            return ""
        if self.status:
            return f"HTTP {self.status} ({self.judgement.cause})"
        return f"{self.judgement.cause}: {self.judgement.words}"

    @property
    def is_completion(self) -> bool:
        """Whether the reply is one."""
        return self.judgement is not None and self.judgement.verdict == "completion"

    @property
    def _is_free(self) -> bool:
        """Whether no model reads or writes for it."""
        return self.path.startswith("/models") or self.path == COUNT

    def is_truncated(self) -> bool:
        """Return whether the server counted fewer tokens than it can have been sent.

        Some servers cut a prompt that is too long without a word.
        """
        if self.usage is None or self.path != "/chat/completions" or self.cached:
            return False
        sent = _characters(self.body)
        return sent > _PROMPT_MIN and sent > _MOST_PER_TOKEN * self.usage.tokens_in

    def events(self, step: int, role: str, sink: Sink) -> Iterator[Event]:
        """Yield the call and its metered tokens.

        Args:
            step: The step it belongs to.
            role: The seat.
            sink: Stores request and reply.
        """
        judgement = self.judgement
        verdict = judgement.verdict if judgement else ""
        # A reply that is no completion used nothing that the provider could count.
        counted = verdict in ("mistake", "failure")
        tokens = self.usage or TokenUsage(0, 0)
        parameters = _parameters(self.body)
        yield ModelCall(
            step=step,
            source="harness",
            role=role,
            model=self.model,
            parameters=parameters,
            prompt=sink.blob(_PICTURE.sub(_picture_digest, self.body)),
            reply=sink.blob(self.reply),
            cached=self.cached,
            path=self.path,
            status=self.status,
            failure=self.failure,
            latency_s=fixed(self.latency_s),
            metered=self.usage is not None or self._is_free or counted,
            verdict=verdict,
            served=judgement.model[:_SHOWN] if judgement else "",
            truncated=self.is_truncated(),
            unlisted=", ".join(self.unlisted)[:_SHOWN],
            **tokens._asdict(),
        )
        uncached = tokens.tokens_in - tokens.tokens_cached
        yield from _metered(step, role, "tokens_in", uncached)
        yield from _metered(step, role, "tokens_cached", tokens.tokens_cached)
        yield from _metered(step, role, "tokens_out", tokens.tokens_out)


def _picture_digest(match: re.Match[bytes]) -> bytes:
    """Return what stands in a record for a picture: its digest."""
    return match[1] + b";sha256," + sha256(match[2]).encode()


def _parameters(body: bytes) -> str:
    """Return the parameters of a request as JSON, its texts left out."""
    try:
        terms = bounded_json.decode(body) if body else {}
        short = {name: terms[name] for name in terms if name not in _TEXTS}
    except (ValueError, AttributeError):
        return "{}"
    text = msgspec.json.encode(short, order="sorted").decode()
    return text if len(text) <= _SHOWN else "{}"


def _characters(body: bytes) -> int:
    """Return the characters of text in a request's messages."""
    try:
        messages = bounded_json.decode(body).get("messages", [])
    except (ValueError, AttributeError):
        return 0
    characters = 0
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        parts = content if isinstance(content, list) else [{"text": content}]
        for part in parts:
            text = part.get("text") if isinstance(part, dict) else None
            characters += len(text) if isinstance(text, str) else 0
    return characters


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
        yield Resource(step=step, source="harness", role=role, meter=meter, amount=float(amount))


class ProviderBlame(NamedTuple):
    """Why a model's provider failed a seat's last request, in its own words.

    `may_be_request`: the request itself may have caused it, by a model's name or a parameter that
    the server does not take. `failed_at` is when, by the monotonic clock.
    """

    reason: str
    model: str
    may_be_request: bool
    failed_at: float = 0.0


class GatewaySession:
    """What one seat asks of the gateway during one episode.

    The server's thread adds records, the episode's thread takes them. `token` stands for the
    session in every request, and `registry` holds it until it is closed. `scope` names run, entry,
    seat and sitting: no other session reads its cached replies. `reads_cache` is false where the
    provider itself must answer. `hides`: the agent must learn nothing of other sessions from a
    reply.
    """

    def __init__(
        self,
        registry: dict[str, "GatewaySession"],
        scope: str = "",
        *,
        reads_cache: bool = True,
        hides: bool = False,
    ) -> None:
        self.reads_cache = reads_cache
        self.mask = ReplyMask() if hides else None
        self.echoes = ReplyEchoes()
        self._registry = registry
        self.token = f"owa-{fresh_bytes(24).hex()}"
        self.scope = scope
        self._last: ModelRequest | None = None
        self._ordinals = 0
        self._changed = threading.Condition()
        self._records: list[GatewayRecord] = []
        self._open: list[GatewayRecord] = []
        registry[self.token] = self

    def begin(self, record: GatewayRecord) -> None:
        """Note that a request has begun."""
        with self._changed:
            self._open.append(record)
            if isinstance(record, ModelRequest):
                record.ordinal = self._ordinals
                self._ordinals += 1

    def end(self, record: GatewayRecord) -> None:
        """Note that a request has ended; one that was taken unended is dropped."""
        with self._changed:
            still = [each for each in self._open if each is not record]
            if len(still) == len(self._open):
                return
            self._open = still
            self._records.append(record)
            if isinstance(record, ModelRequest) and record.judgement is not None:
                self._last = record
            self._changed.notify_all()

    def blame(self, patience_s: float = 0.0) -> ProviderBlame | None:
        """Return why the provider is to blame for the last request, None if it is not.

        Args:
            patience_s: A request that is still open after so long is one that the provider is late
                with; 0: open ones are left out.
        """
        with self._changed:
            now = time.monotonic()
            for record in self._open:
                waited_s = now - record.begun if isinstance(record, ModelRequest) else 0
                if patience_s and waited_s > patience_s:
                    words = f"no reply in {waited_s:.0f} s. {LATE}"
                    return ProviderBlame(words, "", may_be_request=False, failed_at=now)
            last = self._last
        if last is None or last.judgement is None:
            return None
        if last.judgement.verdict != "failure":
            return None
        advice = f". {LATE}" if last.judgement.cause == "slow" else ""
        return ProviderBlame(
            last.judgement.text + advice,
            last.model,
            last.judgement.cause in CAUSES_OF_A_REQUEST,
            last.begun + last.latency_s,
        )

    @property
    def cache_key(self) -> str:
        """The session's own key in a provider's prompt cache."""
        return sha256(f"prompt cache {self.token}".encode())[:32]

    @property
    def requests(self) -> int:
        """How many requests to models have begun."""
        return self._ordinals

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
