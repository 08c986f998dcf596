"""A model's reply, read: tool calls made uniform, and what is wrong with them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from owa_bench.errors import AgentRaised

NO_CALL = "it holds no tool call"


class ToolCall(NamedTuple):
    """One tool call as the model wrote it; `arguments` is its text."""

    id: str
    name: str
    arguments: str


class Reply(NamedTuple):
    """One reply. `counted` is false where the server reported no usage."""

    content: str
    calls: tuple[ToolCall, ...]
    tokens_in: int
    tokens_out: int
    counted: bool
    cut: bool
    text: str
    cached: bool = False


def read(text: str) -> Reply:
    """Return the reply in a response body.

    Errors: AgentRaised if the body is no chat completion.
    """
    try:
        body = json.loads(text)
        choice = body["choices"][0]
        message = choice["message"]
        calls = tuple(
            _call(raw, place)
            for place, raw in enumerate(message.get("tool_calls") or ())
        )
        content = message.get("content") or ""
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise AgentRaised(
            "the model's server answered with no chat completion (base_url must lead to"
            f" an OpenAI-compatible API, often ending in /v1): {text[:120]!r}"
        ) from error
    usage = body.get("usage") or {}
    counted = "prompt_tokens" in usage and "completion_tokens" in usage
    return Reply(
        content=content if isinstance(content, str) else json.dumps(content),
        calls=calls,
        tokens_in=int(usage.get("prompt_tokens") or 0),
        tokens_out=int(usage.get("completion_tokens") or 0),
        counted=counted,
        cut=choice.get("finish_reason") == "length",
        text=json.dumps(message, sort_keys=True),
    )


def actions(reply: Reply, tools: Sequence[str]) -> tuple[str, ...]:
    """Return the reply's tool calls as actions, one JSON text each.

    Errors: ValueError saying what is wrong with the reply.
    """
    if not reply.calls:
        raise ValueError(NO_CALL)
    return tuple(_action(call, tools) for call in reply.calls)


def surfaced(reply: Reply) -> str:
    """Return a malformed reply as the action it stands for, right or wrong."""
    if not reply.calls:
        return reply.content or "(an empty reply)"
    call = reply.calls[0]
    return json.dumps({"tool": call.name, "arguments": call.arguments})


def shown(reply: Reply) -> str:
    """Return a malformed reply as words, for the conversation that goes on."""
    written = [f"{call.name}({call.arguments})" for call in reply.calls]
    return "\n".join(part for part in (reply.content, *written) if part) or "(empty)"


def _action(call: ToolCall, tools: Sequence[str]) -> str:
    if call.name not in tools:
        raise ValueError(
            f"there is no tool {call.name!r}; the tools are {', '.join(tools)}"
        )
    try:
        arguments = msgspec.json.decode(call.arguments or "{}")
    except msgspec.DecodeError as error:
        raise ValueError(
            f"the arguments of {call.name} are no JSON ({error})"
        ) from error
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {call.name} are no JSON object")  # noqa: TRY004  the model's mistake, told to the model
    return json.dumps({"tool": call.name, "arguments": arguments})


def _call(raw: Mapping[str, Any], place: int) -> ToolCall:
    """Return a tool call; some servers give no id, or arguments as an object."""
    function = raw["function"]
    arguments = function.get("arguments") or ""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return ToolCall(str(raw.get("id") or f"call_{place}"), function["name"], arguments)
