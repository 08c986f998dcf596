"""Replies of a chat model: tool calls and their arguments, as actions.

Arguments are read as the tool's schema can mean them: null for an optional one is absent, and a
number, a truth value, a list or an object written as text is that value where the schema allows no
text.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from owa_bench.errors import AgentRaised
from owa_bench.records.calls_as_text import PARSER, is_call_as_text, said_in
from owa_bench.records.model_replies import calls_in, decoded, sse_events
from owa_bench.records.token_usage import usage_in, usage_of

NO_CALL = "it holds no tool call"
MOST_CALLS = 32  # of one reply that are played; some models repeat a call for ever [D]
_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})


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
        """The call's function, as it is sent back; no arguments are an empty object."""
        came = self.raw.get("function")
        fields = dict(came) if isinstance(came, dict) else {}
        given = fields.get("arguments")
        arguments = given if isinstance(given, dict) else self.arguments.strip() or "{}"
        return {**fields, "name": self.name, "arguments": arguments}


class ModelReply(NamedTuple):
    """One reply; `tokens_in` is 0 where the server reported no usage.

    `message` holds every field as it came, `more_calls` counts the calls that were left out as too
    many.
    """

    content: str
    calls: tuple[ModelToolCall, ...]
    tokens_in: int
    cut: bool
    message: Mapping[str, Any] = {}
    more_calls: int = 0


def parse_reply(data: bytes) -> ModelReply:
    """Return the reply in a response body.

    Raises: AgentRaised: the body is no chat completion.
    """
    body = decoded(data)
    if body is None and (chunks := [*sse_events(data)]):
        body = _assembled(chunks) | {"usage": _usage_of_stream(data)}
    try:
        choice = body["choices"][0]
        message = choice["message"]
        raw = calls_in(message) or []
        calls = tuple(_call(each) for each in raw[:MOST_CALLS])
        content = message.get("content") or ""
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise AgentRaised(
            "the model's server answered with no chat completion (base_url must lead to"
            f" an OpenAI-compatible API, often ending in /v1): {data[:120]!r}"
        ) from error
    usage = usage_in(body)
    return ModelReply(
        content=_words(content),
        calls=calls,
        tokens_in=usage.tokens_in if usage else 0,
        cut=str(choice.get("finish_reason")).lower() in _CUT,
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
    function, name = raw["function"], raw.get("id")
    arguments = function.get("arguments")
    if arguments is None:
        arguments = ""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    called = str(function.get("name") or "")
    return ModelToolCall("" if name is None else str(name), called, arguments, raw)


def _assembled(chunks: Sequence[Any]) -> dict[str, Any]:
    """Return the completion of a stream that came where a whole reply was asked for."""
    message: dict[str, Any] = {"role": "assistant"}
    calls: list[dict[str, Any]] = []
    ended = None
    for choice in _choices(chunks):
        ended = choice.get("finish_reason") or ended
        delta = choice.get("delta") or choice.get("message") or {}
        for name, value in delta.items():
            if name == "tool_calls":
                for part in calls_in(_with_functions(value)) or ():
                    _add_part(calls, part)
            elif isinstance(value, str) and name != "role":
                message[name] = str(message.get(name) or "") + value
            elif value is not None:
                message[name] = value
    if calls:
        message["tool_calls"] = [
            {name: value for name, value in call.items() if name != "index"} for call in calls
        ]
    return {"choices": [{"message": message, "finish_reason": ended}]}


def _choices(chunks: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the choices of a stream's chunks."""
    for chunk in chunks:
        choices = chunk.get("choices") if isinstance(chunk, dict) else None
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                yield choice


def _with_functions(parts: Any) -> dict[str, Any]:
    """Return a delta's parts of calls; one of an id alone has an empty function."""
    if not isinstance(parts, list):
        return {"tool_calls": parts}
    whole = [{**part, "function": {}} if _lacks_function(part) else part for part in parts]
    return {"tool_calls": whole}


def _lacks_function(part: Any) -> bool:
    return isinstance(part, dict) and not (part.get("function") or "name" in part)


def _add_part(calls: list[dict[str, Any]], part: Mapping[str, Any]) -> None:
    """Add one part of a tool call to the calls so far.

    A part begins a call where its index is a new one, or its id is another than that of the call
    before: some servers give each call the index 0, or no index.
    """
    id_, index = part.get("id"), part.get("index")
    same = [call for call in calls if index is None or call.get("index") == index]
    call = same[-1] if same else None
    if call is None or (id_ and call.get("id") and call["id"] != id_):
        call = {"function": {"name": "", "arguments": ""}}
        calls.append(call)
    given = part["function"]
    for name, value in given.items():
        if isinstance(value, str) and name in ("name", "arguments"):
            call["function"][name] += value
        elif value is not None:
            call["function"][name] = value
    call |= {
        name: value for name, value in part.items() if name != "function" and value is not None
    }


def _usage_of_stream(data: bytes) -> dict[str, int] | None:
    usage = usage_of(data)
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
    Returns: One action a tool call, in order.
    Raises: ValueError: it says what is wrong with the reply.
    """
    schemas = tools if isinstance(tools, Mapping) else {name: {} for name in tools}
    if not reply.calls:
        if is_call_as_text(said_in(reply.message) or reply.content, schemas):
            raise ValueError(f"{NO_CALL}, but one written into its text: {PARSER}")
        raise ValueError(NO_CALL)
    return tuple(_action(call, schemas) for call in reply.calls)


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
        raise ValueError(f"there is no tool {call.name!r}; the tools are {', '.join(tools)}")
    try:
        arguments = json.loads(call.arguments.strip() or "{}")
        if isinstance(arguments, str):  # an object that was written as text twice
            arguments = json.loads(arguments)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the arguments of {call.name} are no JSON ({error})") from error
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {call.name} are no JSON object")  # noqa: TRY004  the model's mistake, told to the model
    given = _as_schema_says(arguments, tools[call.name])
    return json.dumps({"tool": call.name, "arguments": given})


def _as_schema_says(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
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
