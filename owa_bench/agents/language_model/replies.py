"""Replies of a chat model: tool calls and their arguments, as actions.

Arguments are read as the tool's schema can mean them: null for an optional one is
absent, and a number, a truth value, a list or an object written as text is that value
where the schema allows no text.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from owa_bench.errors import AgentRaised
from owa_bench.records.model_replies import decoded, sse_events
from owa_bench.records.token_usage import usage_in, usage_of

NO_CALL = "it holds no tool call"
MOST_CALLS = 32  # of one reply that are played; some models repeat a call for ever [D]
_MARKS = re.compile(
    r"<tool_call>|<\|?tool[_▁]calls?|\[TOOL_CALLS\]|<function[=_ ]|<\|python_tag\|>|"
    r"<invoke name=|<\|channel\|>commentary to=|functions\.\w+[:(]|"
    r'"(?:tool_calls?|function_call)"\s*:',
    re.IGNORECASE,
)
PARSER = (
    "the server does not read the model's tool calls: start it with the tool parser of "
    "this model (vLLM: --enable-auto-tool-choice --tool-call-parser NAME; SGLang: "
    "--tool-call-parser NAME; llama.cpp: --jinja)"
)


class ModelToolCall(NamedTuple):
    """One tool call as the model wrote it; `arguments` is its text.

    `id` "" where the server gave none; `raw` holds every field as it came.
    """

    id: str
    name: str
    arguments: str
    raw: Mapping[str, Any] = {}

    @property
    def function(self) -> dict[str, Any]:
        """The call's function, as it is sent back."""
        came = self.raw.get("function")
        fields = dict(came) if isinstance(came, dict) else {}
        return {**fields, "name": self.name, "arguments": self.arguments}


class ModelReply(NamedTuple):
    """One reply; `tokens_in` is 0 where the server reported no usage.

    `message` holds every field as it came, `more_calls` counts the calls that were left
    out as too many.
    """

    content: str
    calls: tuple[ModelToolCall, ...]
    tokens_in: int
    cut: bool
    message: Mapping[str, Any] = {}
    more_calls: int = 0


def parse_reply(text: str) -> ModelReply:
    """Return the reply in a response body.

    Raises:
        AgentRaised: the body is no chat completion.
    """
    body = decoded(text)
    if body is None and (chunks := [*sse_events(text.encode())]):
        body = _assembled(chunks) | {"usage": _usage_of_stream(text)}
    try:
        choice = body["choices"][0]
        message = choice["message"]
        raw = message.get("tool_calls") or ()
        calls = tuple(_call(each) for each in raw[:MOST_CALLS])
        content = message.get("content") or ""
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise AgentRaised(
            "the model's server answered with no chat completion (base_url must lead to"
            f" an OpenAI-compatible API, often ending in /v1): {text[:120]!r}"
        ) from error
    usage = usage_in(body)
    return ModelReply(
        content=_words(content),
        calls=calls,
        tokens_in=usage.tokens_in if usage else 0,
        cut=choice.get("finish_reason") == "length",
        message=message,
        more_calls=max(0, len(raw) - MOST_CALLS),
    )


def _words(content: Any) -> str:
    """Return the text of a message; some servers give a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return json.dumps(content)


def _call(raw: Mapping[str, Any]) -> ModelToolCall:
    """Return a tool call; some servers give no id, or arguments as an object."""
    function = raw["function"]
    arguments = function.get("arguments")
    if arguments is None:
        arguments = ""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return ModelToolCall(str(raw.get("id") or ""), function["name"], arguments, raw)


def _assembled(chunks: Sequence[Any]) -> dict[str, Any]:
    """Return the completion of a stream that came where a whole reply was asked for."""
    message: dict[str, Any] = {"role": "assistant"}
    calls: dict[int, dict[str, Any]] = {}
    ended = None
    for chunk in chunks:
        choices = chunk.get("choices") if isinstance(chunk, dict) else None
        for choice in choices or ():
            ended = choice.get("finish_reason") or ended
            delta = choice.get("delta") or choice.get("message") or {}
            for name, value in delta.items():
                if name == "tool_calls":
                    _add_calls(calls, value or ())
                elif isinstance(value, str) and name != "role":
                    message[name] = message.get(name, "") + value
                elif value is not None:
                    message[name] = value
    if calls:
        message["tool_calls"] = [calls[place] for place in sorted(calls)]
    return {"choices": [{"message": message, "finish_reason": ended}]}


def _add_calls(calls: dict[int, dict[str, Any]], parts: Sequence[Any]) -> None:
    """Add the parts of tool calls in one chunk to the calls so far."""
    for part in parts:
        place = part.get("index", len(calls))
        call = calls.setdefault(place, {"function": {"name": "", "arguments": ""}})
        given = part.get("function") or {}
        for name in ("name", "arguments"):
            if isinstance(given.get(name), str):
                call["function"][name] += given[name]
        call |= {
            name: value
            for name, value in part.items()
            if name not in ("function", "index") and value is not None
        }


def _usage_of_stream(text: str) -> dict[str, int] | None:
    usage = usage_of(text.encode())
    if usage is None:
        return None
    return {"prompt_tokens": usage.tokens_in, "completion_tokens": usage.tokens_out}


def actions(
    reply: ModelReply, tools: Mapping[str, Mapping[str, Any]] | Sequence[str]
) -> tuple[str, ...]:
    """Return the reply's tool calls as actions, one JSON text each.

    Args:
        reply: the model's.
        tools: the tools there are by name, with their schemas; or their names alone.

    Returns:
        One action a tool call, in order.

    Raises:
        ValueError: it says what is wrong with the reply.
    """
    schemas = tools if isinstance(tools, Mapping) else {name: {} for name in tools}
    if not reply.calls:
        if is_call_as_text(reply.content, schemas):
            raise ValueError(f"{NO_CALL}, but one written into its text: {PARSER}")
        raise ValueError(NO_CALL)
    return tuple(_action(call, schemas) for call in reply.calls)


def is_call_as_text(content: str, tools: Mapping[str, Any] | Sequence[str]) -> bool:
    """Return whether a text holds a tool call in one of the forms that models write.

    Args:
        content: The text of a reply without tool calls.
        tools: Names of the tools there are.

    Returns:
        True for a mark of a call, and for JSON that names one of the tools.
    """
    if _MARKS.search(content):
        return True
    named = re.search(r'"name"\s*:\s*"([^"]+)"', content)
    return bool(named and named[1] in tools and '"arguments"' in content)


def malformed_action(reply: ModelReply) -> str:
    """Return the action that a malformed reply is played as."""
    if not reply.calls:
        return reply.content or "(an empty reply)"
    call = reply.calls[0]
    return json.dumps({"tool": call.name, "arguments": call.arguments})


def reply_text(reply: ModelReply) -> str:
    """Return a malformed reply as plain text, for the conversation that continues.

    A call is named and not written out: a model copies what it sees itself write.
    """
    calls = [f"[a call of {call.name} that cannot be run]" for call in reply.calls]
    return "\n".join(part for part in (reply.content, *calls) if part) or "(empty)"


def is_cut_off(reply: ModelReply) -> bool:
    """Return whether the limit of its length left nothing of a reply to run."""
    if not reply.cut or not reply.calls:
        return reply.cut
    return decoded(reply.calls[-1].arguments or "{}") is None


# --- arguments ------------------------------------------------------------------------


def _action(call: ModelToolCall, tools: Mapping[str, Mapping[str, Any]]) -> str:
    if call.name not in tools:
        raise ValueError(
            f"there is no tool {call.name!r}; the tools are {', '.join(tools)}"
        )
    try:
        arguments = json.loads(call.arguments.strip() or "{}")
        if isinstance(arguments, str):  # an object that was written as text twice
            arguments = json.loads(arguments)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"the arguments of {call.name} are no JSON ({error})"
        ) from error
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {call.name} are no JSON object")  # noqa: TRY004  the model's mistake, told to the model
    given = _as_schema_says(arguments, tools[call.name])
    return json.dumps({"tool": call.name, "arguments": given})


def _as_schema_says(
    arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> dict[str, Any]:
    """Return arguments as the schema can mean them."""
    required = schema.get("required") or ()
    fields = schema.get("properties") or {}
    read: dict[str, Any] = {}
    for name, value in arguments.items():
        field = fields.get(name) if isinstance(fields, Mapping) else None
        kinds = _kinds(field)
        if value is None and name not in required and "null" not in kinds:
            continue
        read[name] = _as_kind(value, kinds) if isinstance(value, str) else value
    return read


def _kinds(field: Any) -> frozenset[str]:
    """Return the JSON types that a schema allows, none where it does not say."""
    if not isinstance(field, Mapping):
        return frozenset()
    kind = field.get("type")
    kinds = {kind} if isinstance(kind, str) else set(kind or ())
    for group in ("anyOf", "oneOf"):
        for each in field.get(group) or ():
            inner = _kinds(each)
            if not inner:
                return frozenset()
            kinds |= inner
    return frozenset(kinds)


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def _as_kind(text: str, kinds: frozenset[str]) -> Any:
    """Return the value that a text has as one of several types, else the text."""
    if not kinds or "string" in kinds:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float) and value.is_integer() and "number" not in kinds:
        value = int(value)
    for kind in kinds & _TYPES.keys():
        is_truth = isinstance(value, bool)
        if isinstance(value, _TYPES[kind]) and is_truth == (kind == "boolean"):
            return value
    return text
