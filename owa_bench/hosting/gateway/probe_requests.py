"""Requests of the model probe, and how its checks read replies."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from owa_bench.hosting.gateway.probe_client import ProbeClient, ServerReply, dig
from owa_bench.records import model_replies

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
CAP = 256
TOOL, OTHER = TOOL_NAMES = ("add", "note")
_REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")


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

    `rows` holds verdict, detail and advice by finding. `stopped` says why the rest is not tried, ""
    where it is the time.

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

    def put(self, name: FindingName, verdict: ProbeVerdict, detail: str, advice: str = "") -> None:
        """Record a finding.

        Args:
            name: Which.
            verdict: yes, no, refused or not tried.
            detail: What was seen.
            advice: What to do about it.
        """
        clean = self.client.without_keys
        self.rows[name] = (verdict, clean(detail), clean(advice))

    def put_refusal(self, name: FindingName, reply: ServerReply, advice: str = "") -> None:
        """Record that a request was refused, or that its reply did not come.

        Only the server's word on the request is a refusal: a broken connection or a busy server
        says nothing of what the request asked for.

        Args:
            name: Which finding.
            reply: The reply.
            advice: What to do about a refusal.
        """
        if reply.is_refusal:
            self.put(name, "refused", reply.words, advice)
        else:
            self.put(name, "not tried", f"no reply to go by: {reply.words}")

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
        """
        body: dict[str, Any] = {"model": self.model, "messages": [*messages], **more}
        if tools:
            body["tools"] = [*TOOLS]
        if self.cap:
            body[self.cap] = cap
        return await self.client.chat(body)

    def measure_speed(self, reply: ServerReply, *, least: bool = False) -> None:
        """Record tokens per second of a reply.

        Args:
            reply: The reply; where it counts no tokens, pieces of text are counted.
            least: Whether the time of a long prompt may stand in it.
        """
        usage = reply.usage
        tokens = (usage and usage.tokens_out) or reply.pieces
        if not tokens or reply.seconds <= 0:
            if self.tokens_per_second is None:
                self.put("tokens per second", "not tried", "nothing to count")
            return
        self.tokens_per_second = speed = round(tokens / reply.seconds, 1)
        source = "usage" if usage else "pieces of text"
        words = f"at least {speed:g}, by the first reply"
        detail = words if least else f"{speed:g}, by {source}"
        self.put("tokens per second", "yes", detail)


def calls_in(message: Any) -> list[ProbeCall]:
    """Return the tool calls of a message."""
    read = model_replies.calls_in(message) if isinstance(message, dict) else None
    calls = []
    for call in read or ():
        name = str(call["function"].get("name") or "")
        arguments = call["function"].get("arguments")
        faults = []
        if name not in TOOL_NAMES:
            faults.append(f"calls an unknown tool {name[:40]!r}")
        if not call.get("id"):
            faults.append("calls have no id")
        if not isinstance(arguments, str):
            faults.append("arguments are no text but an object")
        elif not isinstance(model_replies.decoded(arguments), dict):
            faults.append("arguments are no JSON object")
        calls.append(ProbeCall(name, str(call.get("id") or ""), tuple(faults)))
    return calls


def is_cut(reply: ServerReply) -> bool:
    """Return whether a reply ended at its cap."""
    return bool(dig(reply.body, "choices", 0, "finish_reason") == "length")


def reasoning_in(message: Any) -> list[str]:
    """Return the fields of reasoning that a message holds."""
    return [name for name in _REASONING if dig(message, name)]


def names_in(listing: Any) -> list[str]:
    """Return the models of a list."""
    entries = dig(listing, "data")
    names = [dig(e, "id") for e in entries] if isinstance(entries, list) else []
    return [name for name in names if isinstance(name, str)]


def turns_after(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a conversation in which a message's calls are answered."""
    results: list[Mapping[str, Any]] = [
        {"role": "tool", "tool_call_id": call.id, "content": "5"} for call in calls_in(message)
    ]
    return [*ONE_CALL, {"role": "assistant", **message}, *results]
