"""Requests of the model probe, and how its checks read replies."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from owa_bench.run.gateway.probe_client import ProbeClient, ServerReply, dig

FindingName = Literal[
    "chat",
    "tools",
    "second turn",
    "tool_choice=required",
    "tool_choice=NAME",
    "reply cap",
    "usage",
    "usage in streams",
    "tokens per second",
    "temperature=0",
    "parallel calls",
    "reasoning",
    "reasoning echoed",
    "seed",
    "context told",
    "cached counts",
    "context reached",
]
ProbeVerdict = Literal["yes", "no", "refused", "not tried"]

CAPS = ("max_tokens", "max_completion_tokens", "")  # fields that cap a reply
REFUSALS = frozenset({400, 404, 405, 415, 422, 500, 501})  # of a field, in some form
CAP = 256
TOOL, OTHER = "add", "note"
_REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
_FEW_CHUNKS = 3
_MARKS = re.compile(
    r"<tool_call>|\[TOOL_CALLS\]|<\|python_tag\|>|<function[=_]|<\|tool|functools\["
    rf'|"(name|function)"\s*:\s*"({TOOL}|{OTHER})"|\b{TOOL}\(\s*(a\s*=|\d)'
)


def _tool(name: str, about: str, **parameters: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {each: {"type": kind} for each, kind in parameters.items()},
        "required": [*parameters],
    }
    function = {"name": name, "description": about, "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = (
    _tool(TOOL, "Add two whole numbers.", a="integer", b="integer"),
    _tool(OTHER, "Write a short note.", text="string"),
)


def _user(text: str) -> tuple[dict[str, Any], ...]:
    return ({"role": "user", "content": text},)


ONE_CALL = _user("Call the tool add with a=2 and b=3. Write no text.")
TWO_CALLS = _user(
    "Call the tool add twice in one reply: with a=2, b=3 and with a=4, b=5. Both calls "
    "belong in the same reply. Write no text."
)
PROSE = _user("Hello! Who are you?")
SHORT = _user("Say yes.")
COUNT = _user("Count from 1 to 40 in words.")
DRAW = _user("Invent a name for a small boat, and say in one sentence why.")


class ProbeCall(NamedTuple):
    """A tool call of a reply, and what is unusual about it."""

    name: str
    id: str
    faults: tuple[str, ...]


class ProbeState:
    """What the checks of one server share: the client, first reply and findings.

    `rows` holds verdict, detail and advice by finding. `stopped` says why the rest is
    not tried, "" where it is the time.

    Args:
        client: Asks the server.
        model: Name of the model.
    """

    def __init__(self, client: ProbeClient, model: str) -> None:
        self.client = client
        self.model = model
        self.cap = CAPS[0]
        self.refused_caps: list[str] = []
        self.first = ServerReply(0, "")
        self.rows: dict[FindingName, tuple[ProbeVerdict, str, str]] = {}
        self.stopped = ""
        self.thinks = False
        self.context_told: int | None = None
        self.context_limit: int | None = None
        self.context_reached: int | None = None
        self.tokens_per_second: float | None = None

    def put(
        self, name: FindingName, verdict: ProbeVerdict, detail: str, advice: str = ""
    ) -> None:
        """Record a finding.

        Args:
            name: Which.
            verdict: yes, no, refused or not tried.
            detail: What was seen.
            advice: What to do about it.
        """
        clean = self.client.without_keys
        self.rows[name] = (verdict, clean(detail), clean(advice))

    def put_refusal(
        self, name: FindingName, reply: ServerReply, advice: str = ""
    ) -> None:
        """Record that a request was refused, or that its reply did not come.

        Only the server's word on the request is a refusal: a broken connection or a
        busy server says nothing of what the request asked for.

        Args:
            name: Which finding.
            reply: The reply.
            advice: What to do about a refusal.
        """
        if reply.status in REFUSALS:
            self.put(name, "refused", reply.cause, advice)
        else:
            self.put(name, "not tried", f"no reply to go by: {reply.cause}")

    async def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: bool = False,
        cap: int = CAP,
        **more: Any,
    ) -> ServerReply:
        """Return the reply to a chat request.

        Args:
            messages: The conversation.
            tools: Whether the tools go along.
            cap: Most tokens of the reply, by the field that the server accepts.
            more: Other fields of the request.

        Returns:
            The reply.
        """
        body: dict[str, Any] = {"model": self.model, "messages": [*messages], **more}
        if tools:
            body["tools"] = [*TOOLS]
        if self.cap:
            body[self.cap] = cap
        return await self.client.chat(body)

    def measure_first(self, seconds: float, written: int) -> None:
        """Record the least speed that a whole reply shows.

        Args:
            seconds: That it took, reading the prompt among them.
            written: Its tokens.
        """
        if seconds > 0 and written:
            self.tokens_per_second = round(written / seconds, 1)
            detail = f"at least {self.tokens_per_second:g}, by the first reply"
            self.put("tokens per second", "yes", detail)

    def measure_speed(self, reply: ServerReply, written: int | None) -> None:
        """Record tokens per second of a streamed reply.

        Args:
            reply: The reply.
            written: Its tokens by usage; None counts pieces of text.
        """
        pieces = dig(reply.body, "pieces") or 0
        tokens, source = (written, "usage") if written else (pieces, "pieces of text")
        moments = reply.chunks
        span = moments[-1] - moments[0] if moments else 0.0
        if len(moments) <= _FEW_CHUNKS or not tokens or span <= 0:
            span = reply.seconds
        if not tokens or span <= 0:
            if self.tokens_per_second is None:
                self.put("tokens per second", "not tried", "nothing to count")
            return
        self.tokens_per_second = round(tokens / span, 1)
        detail = f"{self.tokens_per_second:g}, by {source}"
        self.put("tokens per second", "yes", detail)


def calls_in(message: Any) -> list[ProbeCall]:
    """Return the tool calls of a message."""
    listing = dig(message, "tool_calls")
    calls = []
    for call in listing if isinstance(listing, list) else ():
        name = str(dig(call, "function", "name") or "")
        arguments = dig(call, "function", "arguments")
        id_ = dig(call, "id")
        faults = []
        if name not in {TOOL, OTHER}:
            faults.append(f"calls an unknown tool {name[:40]!r}")
        if not id_:
            faults.append("calls have no id")
        if not isinstance(arguments, str):
            faults.append("arguments are no text but an object")
        elif not _is_object(arguments):
            faults.append("arguments are no JSON object")
        calls.append(ProbeCall(name, str(id_ or ""), tuple(faults)))
    return calls


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def has_call_in_text(message: Any) -> bool:
    """Return whether a message's text holds what reads like a tool call."""
    texts = (dig(message, name) for name in ("content", *_REASONING))
    return any(isinstance(text, str) and _MARKS.search(text) for text in texts)


def is_cut(reply: ServerReply) -> bool:
    """Return whether a reply ended at its cap."""
    return bool(dig(reply.body, "choices", 0, "finish_reason") == "length")


def reasoning_in(message: Any) -> list[str]:
    """Return the fields of reasoning that a message holds."""
    return [name for name in _REASONING if dig(message, name)]


def said_in(message: Any) -> str:
    """Return all text of a message, reasoning too."""
    texts = (dig(message, name) for name in ("content", *_REASONING))
    return "\n".join(str(text) for text in texts if text)


def count_of(reply: ServerReply, name: str) -> int | None:
    """Return a count of a reply's usage, None where it has none.

    Args:
        reply: The reply.
        name: Of the count.

    Returns:
        The count.
    """
    count = dig(reply.body, "usage", name)
    if isinstance(count, float) and count.is_integer():
        return int(count)
    return count if type(count) is int else None


def names_in(listing: Any) -> list[str]:
    """Return the models of a list."""
    entries = dig(listing, "data")
    names = [dig(e, "id") for e in entries] if isinstance(entries, list) else []
    return [name for name in names if isinstance(name, str)]


def turns_after(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a conversation in which a message's calls are answered."""
    results: list[Mapping[str, Any]] = [
        {"role": "tool", "tool_call_id": call.id, "content": "5"}
        for call in calls_in(message)
    ]
    return [*ONE_CALL, {"role": "assistant", **message}, *results]
