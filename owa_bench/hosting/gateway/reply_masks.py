"""Masks of replies: what differs between equal requests is hidden from an agent.

A provider's ids, clocks, counts of cached tokens and limits tell a sitting what an earlier one
asked, and a seat what another asks. An agent of a suite with sittings or seats gets ids by their
order in its own session, no clocks, and whole counts. The record and the price read the reply as it
came.

Source: docs/model-gateway.md#sittings-and-seats.
"""

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

from owa_bench.hosting.gateway.reply_contents import FREE
from owa_bench.records.model_replies import CAUSE_WORDS, EVENT_END, PASSING, ReplyJudgement, decoded
from owa_bench.records.token_usage import usage_in

_IDS = frozenset(
    {"id", "call_id", "item_id", "tool_call_id", "tool_use_id", "response_id"}
    | {"message_id", "generation_id"}
)
_CLOCKS = frozenset({"created", "created_at", "completed_at"})
_HIDDEN = re.compile(
    r"(^|_)(time|times|timings?|latency|duration|elapsed|expires|fingerprint|tier|"
    r"metrics|timestamps?|date|obfuscation|cached|cache|billing|metadata)(_|$)|"
    r"^(x_groq|provider|request_id|_request_id|user|safety_identifier|kv_\w+)$"
)
_PREFIX = re.compile(r"(call|chatcmpl|cmpl|msg|resp|fc|ctc|rs|toolu|gen)[_-]")
_TOP = {  # fields of a whole reply, and of an event, by its endpoint
    "/chat/completions": frozenset(
        {"id", "object", "created", "model", "choices", "usage", "error"}
    ),
    "/completions": frozenset({"id", "object", "created", "model", "choices", "usage", "error"}),
    "/embeddings": frozenset({"object", "data", "model", "usage", "error"}),
}
# Words of a server that name one request of all that it got.
_MARKS = re.compile(r"\b(?=\w*[0-9])[A-Za-z0-9_-]{16,}\b|\breq(uest)?[_-]\w+")
_RETRY_S = "8"  # whatever a provider asks for: its limits are those of all seats [D]
_STATUS_OF = {"quota": 429, "credit": 402, "overload": 503, "slow": 504}
_COUNTS = (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))


class ReplyMask:
    """The mask of one session: ids are counted from 0 in the order they came."""

    def __init__(self) -> None:
        self._alias_of: dict[str, str] = {}
        self._id_of: dict[str, str] = {}

    def body(self, data: bytes, path: str) -> bytes:
        """Return a reply as the agent gets it.

        Args:
            data: The reply, whole or as events.
            path: Endpoint, below /v1.
        Returns: JSON or events.
        """
        value = decoded(data)
        if value is not None:
            return _encoded(self._value(value, _TOP.get(path)))
        ends = [0, *(end.end() for end in EVENT_END.finditer(data)), len(data)]
        events = (data[a:b] for a, b in itertools.pairwise(ends))
        return b"".join(self.event(event, path) for event in events)

    def event(self, data: bytes, path: str) -> bytes:
        """Return one server-sent event as the agent gets it.

        Args:
            data: Its bytes.
            path: Endpoint, below /v1.
        Returns: The event: its type and its data alone.
        """
        lines = re.split(rb"\r\n|\n|\r", data)
        kind = [line for line in lines if line.startswith(b"event:")]
        text = b"\n".join(
            line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")
        )
        if not text:
            return b"\n".join(kind) + b"\n\n" if kind else b""
        value = decoded(text)
        if isinstance(value, dict) and value.get("error"):
            value = {"error": {"message": "the server failed", "type": "error"}}
        if value is not None:
            text = _encoded(self._value(value, _TOP.get(path)))
        return b"\n".join((*kind, b"data: " + text)) + b"\n\n"

    def request(self, value: Any) -> Any:
        """Return a request's body with the provider's ids in place of the agent's."""
        if isinstance(value, list):
            return [self.request(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {
            name: self._id_of.get(inner, inner)
            if name in _IDS and isinstance(inner, str)
            else inner
            if name in FREE and not isinstance(inner, list)
            else self.request(inner)
            for name, inner in value.items()
        }

    def _value(self, value: Any, known: frozenset[str] | None = None) -> Any:
        """Return a value of a reply, hidden at every depth."""
        if isinstance(value, list):
            return [self._value(each) for each in value]
        if not isinstance(value, dict):
            return value
        shown: dict[str, Any] = {}
        for name, inner in value.items():
            if known is not None and name not in known:
                continue
            if name in _IDS and isinstance(inner, str):
                shown[name] = self._alias(inner)
            elif name in _CLOCKS:
                shown[name] = 0
            elif name == "usage":
                shown[name] = _plain_usage(inner)
            elif name in FREE:
                shown[name] = inner
            elif not _HIDDEN.search(name):
                shown[name] = self._value(inner)
        return shown

    def _alias(self, own: str) -> str:
        """Return what stands for an id of the provider's."""
        if not own or own in self._id_of:
            return own
        alias = self._alias_of.get(own)
        if alias is None:
            prefix = _PREFIX.match(own)
            alias = f"{prefix[0] if prefix else ''}owa{len(self._alias_of)}"
            self._alias_of[own] = alias
            self._id_of[alias] = own
        return alias


def _encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _plain_usage(usage: Any) -> Any:
    """Return the counts of a reply without what a cache held."""
    if not isinstance(usage, dict):
        return None
    counted = usage_in({"usage": usage})
    for read, written in _COUNTS:
        if counted is not None and read in usage:
            whole = {read: counted.tokens_in, written: counted.tokens_out}
            return whole | {"total_tokens": counted.tokens_in + counted.tokens_out}
        if isinstance(usage.get(written), int):
            return {written: usage[written]}
    return {}


def error_of(judgement: ReplyJudgement, status: int) -> tuple[int, str]:
    """Return status and words of a reply that is no completion.

    A server's words about limits, load and credit are those of all who ask it.

    Args:
        judgement: Of the reply.
        status: Of the reply, 0 without one.
    Returns: The status of an error, and a line.
    """
    cause = judgement.cause
    if cause in PASSING or cause == "credit":
        return _STATUS_OF.get(cause, 502), CAUSE_WORDS[cause]
    return max(status, 400), _MARKS.sub("..", judgement.text)


def headers_of(headers: Mapping[str, str], status: int) -> dict[str, str]:
    """Return the headers of a reply, those that tell of time and limits left out.

    Args:
        headers: Of the reply.
        status: That the agent gets.
    Returns: The type of the content, and a fixed time to wait after a passing failure.
    """
    kept = {n: v for n, v in headers.items() if n.lower() == "content-type"}
    return kept | ({"retry-after": _RETRY_S} if status in (429, 503) else {})
