"""The table of server habits: what a server does, and what a run must make of it.

A row is played by the chat agent and by an agent that uses the `openai` client. Each
ends in a *completion* (the episode is played to its end), in the model's *mistake* (the
agent's own failure, scored) or in the provider's *failure* (the entry is missing). A
row `refused` before the first episode says the words that the user reads.

A new habit is one more `row`.
"""

import json
import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.field.server import (
    DROP,
    USAGE,
    Answer,
    Ask,
    as_stream,
    call,
    completion,
    error,
    page,
    reply,
    usual,
)

Ending = Literal["completion", "mistake", "failure", "refused"]
KEY = "sk-canary-5fd0a1b2c3"


class Habit(NamedTuple):
    """One row; `rules` are those of the road without which it turns out otherwise.

    `words` stand in what the user sees. `options` are the chat agent's, `run` fields of
    GatewayOptions, `env` variables of the harness; `address` follows the server's.
    `tokens` are read, written and cached, of all requests of the episode that counts.
    """

    kind: str
    name: str
    answer: Answer
    chat: Ending = "completion"
    client: Ending = "completion"
    words: str = ""
    rules: tuple[int, ...] = ()
    options: str = ""
    run: Mapping[str, Any] = {}
    env: Mapping[str, str] = {}
    address: str = "/v1"
    tokens: tuple[int, int, int] | None = (1800, 80, 0)
    act_s: float = 20.0
    requests: int | None = None
    streams: bool = False
    repeats: int = 1


HABITS: list[Habit] = []


def row(kind: str, name: str, answer: Answer = usual, **terms: Any) -> None:
    """Add a row; tokens are looked at where the chat agent plays to its end."""
    if terms.get("chat", "completion") != "completion":
        terms.setdefault("tokens", None)
    HABITS.append(Habit(kind, name, answer, **terms))


def always(answer: Any) -> Answer:
    return lambda _: answer


def first(answer: Any, then: Answer = usual) -> Answer:
    """Answer so once, to the first request that is not of the preflight."""
    return lambda ask: answer if ask.number == 0 else then(ask)


# --- shapes of replies ----------------------------------------------------------------

row(
    "shapes",
    "a list around the completion",
    lambda ask: JSONResponse([reply(ask.turn)]),
    client="mistake",
)
row(
    "shapes",
    "content as a list of parts",
    lambda ask: reply(ask.turn, content=[{"type": "text", "text": "Well."}]),
)
row(
    "shapes",
    "arguments as an object",
    lambda ask: reply(ask.turn, tool_calls=[_with_object(ask.turn)]),
    client="mistake",
)
row(
    "shapes",
    "no finish_reason, type or index",
    lambda ask: {
        "choices": [
            {
                "message": {
                    "tool_calls": [{"id": f"a{ask.turn}", "function": call(ask.turn)["function"]}]
                }
            }
        ],
        "usage": USAGE,
    },
)
row(
    "shapes",
    "a message with unknown fields",
    lambda ask: reply(ask.turn, annotations=[], x_vendor={"a": 1}, refusal=None),
)
row(
    "shapes",
    "a byte order mark before the JSON",
    lambda ask: Response(
        b"\xef\xbb\xbf" + json.dumps(reply(ask.turn)).encode(), media_type="application/json"
    ),
)
row(
    "shapes",
    "text alone, no tool call",
    always(completion({"content": "Hm."})),
    chat="mistake",
    client="mistake",
    words="tool_choice=required",
)
row(
    "shapes",
    "a call written into the text",
    always(completion({"content": '<tool_call>{"name": "vault"}</tool_call>'})),
    chat="refused",
    client="mistake",
    words="--tool-call-parser",
    rules=(4, 10),
)
row(
    "shapes",
    "hundreds of calls in one reply",
    lambda ask: reply(
        ask.turn,
        tool_calls=[_calling(0, {"name": f"v{i}"}) | {"id": f"n{i}"} for i in range(300)]
        if ask.turn == 0
        else [call(1)],
    ),
    rules=(10,),
    tokens=None,
)


def _with_object(turn: int) -> dict[str, Any]:
    made = call(turn)
    arguments = json.loads(made["function"]["arguments"])
    return {**made, "function": {**made["function"], "arguments": arguments}}


def shaped(**message: Any) -> Answer:
    """Answer with the plan's call in another shape."""
    return lambda ask: reply(
        ask.turn, **{name: made(call(ask.turn)) for name, made in message.items()}
    )


def refused_back(is_bad: Any, words: str, answer: Answer = usual) -> Answer:
    """Refuse a conversation in which a model's message is so."""
    return lambda ask: error(400, words) if any(map(is_bad, ask.replies)) else answer(ask)


def _arguments(message: Any) -> list[Any]:
    return [made["function"]["arguments"] for made in message["tool_calls"]]


row(
    "shapes",
    "a call without a function around it",
    shaped(tool_calls=lambda made: [{"id": made["id"], **made["function"]}]),
    client="mistake",
)
row("shapes", "one call that is no list", shaped(tool_calls=lambda made: made), client="mistake")
row(
    "shapes",
    "the function_call of the first API",
    shaped(tool_calls=lambda _: DROP, function_call=lambda made: made["function"]),
    client="mistake",
)
for _calls in (["vault()"], [{"id": "1", "type": "function", "function": None}]):
    row(
        "shapes",
        f"calls of no known form: {_calls}",
        always(completion({"content": "", "tool_calls": _calls})),
        chat="failure",
        client="failure",
        words="tool calls of no known form",
        rules=(1, 2),
    )
for _role in ("model", ""):
    row(
        "shapes",
        f"the role {_role!r}, refused when it comes back",
        refused_back(
            lambda message: message["role"] != "assistant",
            "no such role",
            lambda ask, role=_role: reply(ask.turn, role=role),
        ),
    )
for _empty in ("", None):
    row(
        "shapes",
        f"arguments {_empty!r}, which are no JSON when they come back",
        refused_back(
            lambda message: message["tool_calls"] and "" in _arguments(message),
            "Failed to parse tool call arguments as JSON",
            lambda ask, empty=_empty: reply(
                ask.turn,
                tool_calls=[{**call(0), "function": {"name": "vault", "arguments": empty}}]
                if ask.turn == 0
                else [call(1)],
            ),
        ),
        client="mistake",
    )
row(
    "shapes",
    "arguments as an object, wanted so when they come back",
    refused_back(
        lambda message: not isinstance(_arguments(message)[0], dict),
        "Input should be a valid dictionary",
        lambda ask: reply(ask.turn, tool_calls=[_with_object(ask.turn)]),
    ),
    client="mistake",
    rules=(3,),
)
row(
    "shapes",
    "arguments as an object, wanted as text when they come back",
    refused_back(
        lambda message: not isinstance(_arguments(message)[0], str),
        "Input should be a valid string",
        lambda ask: reply(ask.turn, tool_calls=[_with_object(ask.turn)]),
    ),
    client="mistake",
)


def written(old: str, new: str, kind: str = "application/json", **more: Any) -> Answer:
    """Answer in bytes of its own: a text of the JSON is replaced."""

    def answer(ask: Ask) -> Response:
        text = json.dumps(reply(ask.turn, **more), ensure_ascii=False)
        data = text.replace(old, new).encode("utf-8")
        return Response(data, headers={"content-type": kind})

    return answer


for _old, _new, _name in (
    ('"@"', '"a \\ud83d"', "half an emoji"),
    ('"@"', "[NaN, -Infinity, 1e999]", "numbers that JSON has not"),
    ('"@"', '"a\n\t\0"', "control characters that are not escaped"),
    ('"@"', "9" * 5000, "a number of 5,000 digits"),
):
    row(
        "shapes",
        f"{_name} in a message",
        written(_old, _new, x_note="@"),
        client="mistake",
        rules=(6,),
    )
row(
    "shapes",
    "another charset than it says, and a message that must come back",
    lambda ask: (
        error(400, "Missing thoughts")
        if any(m.get("thoughts") != "Überlegt ✓" for m in ask.replies)
        else written("", "", "application/json; charset=latin-1", thoughts="Überlegt ✓")(ask)
    ),
    rules=(3,),
)
for _error in ({"message": "", "code": None}, {"message": "success", "code": 0}):
    row(
        "shapes",
        f"beside each answer the error {_error}",
        lambda ask, error=_error: {**reply(ask.turn), "error": error},
        rules=(1,),
    )

# --- ids ------------------------------------------------------------------------------


def unique_ids(ask: Ask, answer: dict[str, Any]) -> dict[str, Any] | Response:
    """Refuse a conversation in which two calls have one id, as strict servers do."""
    ids = [c["id"] for m in ask.replies for c in m.get("tool_calls", ())]
    answered = [m["tool_call_id"] for m in ask.messages if m["role"] == "tool"]
    if len(set(ids)) < len(ids) or not set(answered) <= set(ids) or "" in ids:
        return error(400, "Duplicate tool call id", param="messages")
    return answer


LONG = (("vault", {}), ("vault", {}), ("finish", {"answer": "", "p": 0.25}))


def _long(ask: Ask, **fields: Any) -> dict[str, Any]:
    """Return the reply of a plan with two calls before its end."""
    name, arguments = LONG[min(ask.turn, 2)]
    function = {"name": name, "arguments": json.dumps(arguments)}
    made = {"id": f"k{ask.turn}", "type": "function", "function": function, **fields}
    return reply(ask.turn, tool_calls=[{k: v for k, v in made.items() if v is not DROP}])


row(
    "ids",
    "no id",
    lambda ask: unique_ids(ask, _long(ask, id=DROP)),
    rules=(3,),
    client="mistake",
    tokens=(2700, 120, 0),
)
row(
    "ids",
    "an empty id",
    lambda ask: unique_ids(ask, _long(ask, id="")),
    rules=(3,),
    client="mistake",
    tokens=(2700, 120, 0),
)
row(
    "ids",
    "the same id in every turn",
    lambda ask: unique_ids(ask, _long(ask, id="call_0")),
    rules=(3,),
    client="mistake",
    tokens=(2700, 120, 0),
)
row(
    "ids",
    "a number for an id",
    lambda ask: unique_ids(ask, _long(ask, id=ask.turn)),
    tokens=(2700, 120, 0),
)
row(
    "ids",
    "nine letters and digits alone",
    lambda ask: (
        error(400, "Tool call id must be a-z, A-Z, 0-9, with a length of 9")
        if any(len(c["id"]) != 9 for m in ask.replies for c in m["tool_calls"])
        else _long(ask, id=DROP)
    ),
    client="mistake",
    tokens=(2700, 120, 0),
)

row(
    "ids",
    "longer than it takes when they come back",
    refused_back(
        lambda message: len(message["tool_calls"][0]["id"]) > 40,
        "Invalid 'messages[2].tool_calls[0].id': string too long",
        lambda ask: reply(ask.turn, tool_calls=[call(ask.turn, id="q" * 60)]),
    ),
    chat="failure",
    client="mistake",
    words="string too long",
    rules=(2,),
)
row(
    "ids",
    "the tool's name wanted in a result",
    lambda ask: (
        error(400, "function_response.name: Name cannot be empty")
        if any(m["role"] == "tool" and not m.get("name") for m in ask.messages)
        else usual(ask)
    ),
    client="mistake",
)

# --- nulls ----------------------------------------------------------------------------

row("nulls", "content null", lambda ask: reply(ask.turn, content=None))
row("nulls", "no content", lambda ask: reply(ask.turn, content=DROP))
row(
    "nulls",
    "null fields that it refuses to get back",
    lambda ask: (
        error(422, "refusal: Extra inputs are not permitted")
        if any("refusal" in m for m in ask.replies)
        else reply(ask.turn, refusal=None, audio=None, function_call=None)
    ),
)
row("nulls", "usage null", lambda ask: {**reply(ask.turn), "usage": None}, tokens=None)
row(
    "nulls",
    "null for an optional argument",
    lambda ask: reply(
        ask.turn, tool_calls=[_calling(ask.turn, {"name": None} if ask.turn == 0 else None)]
    ),
    rules=(10,),
)
row(
    "nulls",
    "tool_calls null",
    always(completion({"content": "", "tool_calls": None})),
    chat="mistake",
    client="mistake",
    words="tool call",
)


def _calling(turn: int, arguments: Any) -> dict[str, Any]:
    made = call(turn)
    if arguments is None:
        return made
    function = {**made["function"], "arguments": json.dumps(arguments)}
    return {**made, "function": function}


row(
    "nulls",
    "a null that must come back",
    refused_back(
        lambda message: "reasoning_content" not in message,
        "reasoning_content is missing in assistant tool call message",
        lambda ask: reply(ask.turn, reasoning_content=None),
    ),
    client="mistake",
    rules=(3,),
)
row(
    "nulls",
    "empty content, refused when it comes back",
    refused_back(
        lambda message: message.get("content") == "",
        "text content blocks must be non-empty",
        lambda ask: reply(ask.turn, content=""),
    ),
    client="mistake",
)
row(
    "nulls",
    "numbers as text",
    lambda ask: reply(
        ask.turn, tool_calls=[_calling(ask.turn, {"answer": "", "p": "0.25"} if ask.turn else None)]
    ),
    rules=(10,),
    client="mistake",
)

# --- reasoning and signatures, which come back ----------------------------------------


def demanding(field: str, value: Any, where: str = "message") -> Answer:
    """Refuse a later turn without a field of the turn before, as it came."""

    def answer(ask: Ask) -> dict[str, Any] | Response:
        for message in ask.replies:
            held = message if where == "message" else message["tool_calls"][0]
            if held.get(field) != value:
                return error(400, f"Missing {field} in assistant message")
        if where == "message":
            return reply(ask.turn, **{field: value})
        return reply(ask.turn, tool_calls=[call(ask.turn, **{field: value})])

    return answer


row("reasoning", "reasoning_content", demanding("reasoning_content", "I think"), rules=(3,))
row("reasoning", "reasoning", demanding("reasoning", "I think"), rules=(3,))
row(
    "reasoning",
    "reasoning_details",
    demanding("reasoning_details", [{"type": "reasoning.encrypted", "data": "zz"}]),
    rules=(3,),
)
row(
    "reasoning",
    "thinking blocks in the content",
    demanding("content", [{"type": "thinking", "thinking": "Hm"}]),
    rules=(3,),
)
row(
    "reasoning",
    "reasoning refused when it comes back",
    lambda ask: (
        error(422, "messages.2.reasoning_content: Extra inputs not permitted")
        if any("reasoning_content" in m for m in ask.replies)
        else reply(ask.turn, reasoning_content="I think")
    ),
    client="mistake",
    rules=(),
)
row(
    "reasoning",
    "blocks in the content, in a talk that is too long",
    lambda ask: (
        error(400, "thinking block lost")
        if any(not isinstance(m.get("content"), list) for m in ask.replies)
        else _rambling(ask, [{"type": "thinking", "thinking": "word " * 1200}])
    ),
    options="context=5000,max_tokens=500",
    tokens=None,
)
for _name, _said in {
    "the thoughts alone": {"reasoning_content": '<tool_call>{"name": "vault"}'},
    "Llama's JSON": {"content": '{"name": "vault", "parameters": {}}'},
    "DeepSeek's marks": {"content": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"},
    "Harmony": {"content": "<|channel|>commentary to=functions.vault"},
    "code": {"content": "[vault()]"},
    "fenced code": {"content": "```tool_code\nvault()\n```"},
}.items():
    row(
        "reasoning",
        f"a call written into {_name}",
        always(completion({"content": None, **_said})),
        chat="refused",
        client="mistake",
        words="--tool-call-parser",
        rules=(4, 10),
    )
row(
    "signatures",
    "thought_signature of a call",
    demanding("thought_signature", "c2ln", "call"),
    rules=(3,),
)
row(
    "signatures",
    "extra_content of a call",
    demanding("extra_content", {"google": {"thought_signature": "c2ln"}}, "call"),
    rules=(3,),
)
row("signatures", "signature of a message", demanding("signature", "c2ln"), rules=(3,))
row(
    "signatures",
    "encrypted content of a message",
    demanding("encrypted_content", {"blob": "zz"}),
    rules=(3,),
)

# --- streams --------------------------------------------------------------------------

for _end, _name in (("\n", "LF"), ("\r\n", "CRLF"), ("\r", "CR")):
    row(
        "streams",
        f"lines end in {_name}",
        lambda ask, end=_end: as_stream(reply(ask.turn), end),
        streams=True,
        rules=(6,) if _end != "\n" else (),
        client="completion",
    )
row(
    "streams",
    "stream_options refused",
    lambda ask: (
        error(400, "Unrecognized request argument: stream_options")
        if "stream_options" in ask.body
        else as_stream(reply(ask.turn), usage=None)
    ),
    streams=True,
    rules=(6,),
    tokens=None,
)
row(
    "streams",
    "a stream where a whole reply was asked for",
    lambda ask: as_stream(reply(ask.turn)),
    client="mistake",
)
row(
    "streams",
    "ends in the middle",
    lambda _: StreamingResponse(
        iter([b'data: {"choices": [{"delta": {}}]}\n\n']), media_type="text/event-stream"
    ),
    streams=True,
    chat="failure",
    client="failure",
    words="ended in the middle",
    rules=(1, 2),
)
row(
    "streams",
    "an error as an event",
    lambda ask: Response(
        'data: {"error": {"message": "capacity", "code": 503}}\n\n', media_type="text/event-stream"
    ),
    streams=True,
    chat="failure",
    client="failure",
    words="capacity",
    rules=(1, 2),
)


def events(*chunks: Any, head: str = "") -> Response:
    """Return a stream of chunks."""
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    text = f"{head}{body}data: [DONE]\n\n"
    return Response(text, media_type="text/event-stream")


def delta(end: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return a chunk with one choice."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": end}]}


def _only(turn: int) -> dict[str, Any]:
    """Return the chunk that holds all of a turn."""
    return delta("tool_calls", tool_calls=[{**call(turn), "index": 0}])


for _head in ("id: 7\nretry: 30\n: PROCESSING\n\n", "\ufeff"):
    row(
        "streams",
        f"begins with {_head!r}",
        lambda ask, head=_head: events({**_only(ask.turn), "usage": USAGE}, head=head),
        streams=True,
        client="mistake",
    )
row(
    "streams",
    "parts of calls without an index",
    lambda ask: (
        events(
            delta(tool_calls=[{**call(ask.turn), "function": {"name": "vault"}}]),
            delta("tool_calls", tool_calls=[{"function": {"arguments": "{}"}}]),
            {"choices": [], "usage": USAGE},
        )
        if ask.turn == 0
        else events({**_only(1), "usage": USAGE})
    ),
    streams=True,
)
for _name, _place in {
    "in the last choice": lambda chunk: chunk["choices"][0].update(usage=USAGE),
    "in x_groq": lambda chunk: chunk.update(x_groq={"usage": USAGE}),
}.items():
    row(
        "streams",
        f"usage {_name}",
        lambda ask, place=_place: (place(chunk := _only(ask.turn)), events(chunk))[1],
        streams=True,
        rules=(6,),
    )
row(
    "streams",
    "chunks that are no objects",
    lambda ask: events([1], "x", {**_only(ask.turn), "usage": USAGE}),
    client="mistake",
)
row(
    "streams",
    "no choice before its end",
    always(events({"choices": [], "usage": USAGE})),
    streams=True,
    chat="failure",
    client="failure",
    words="was no completion",
    rules=(1, 2),
)
row(
    "streams",
    "a choice that ends in an error",
    always(events(delta(content="x"), delta("network_error"))),
    streams=True,
    chat="failure",
    client="failure",
    words="network_error",
    rules=(1, 2),
)

# --- usage ----------------------------------------------------------------------------


def using(usage: Any) -> Answer:
    return lambda ask: {**reply(ask.turn), "usage": usage}


row(
    "usage",
    "cached tokens in the details",
    using({**USAGE, "prompt_tokens_details": {"cached_tokens": 800}}),
    tokens=(1800, 80, 1600),
)
row(
    "usage",
    "cached tokens as prompt_cache_hit_tokens",
    using({**USAGE, "prompt_cache_hit_tokens": 800}),
    tokens=(1800, 80, 1600),
    rules=(6,),
)
row(
    "usage",
    "reasoning beside the completion, in the total alone",
    using({**USAGE, "total_tokens": 15_940}),
    tokens=(1800, 30_080, 0),
    rules=(6,),
)
row(
    "usage",
    "reasoning beside the completion, in the details alone",
    using(
        {
            "prompt_tokens": 900,
            "completion_tokens": 40,
            "completion_tokens_details": {"reasoning_tokens": 500},
        }
    ),
    tokens=(1800, 1080, 0),
    rules=(6,),
)
row("usage", "floats", using({"prompt_tokens": 900.0, "completion_tokens": 40.0}), rules=(6,))
row(
    "usage",
    "minus infinity in log-probabilities",
    lambda ask: Response(
        json.dumps({**reply(ask.turn), "logprobs": [float("-inf")]}), media_type="application/json"
    ),
    rules=(6,),
)
row(
    "usage",
    "none",
    lambda ask: {k: v for k, v in reply(ask.turn).items() if k != "usage"},
    tokens=None,
)
row(
    "usage",
    "fewer tokens than were sent",
    using({"prompt_tokens": 90, "completion_tokens": 9}),
    tokens=(180, 18, 0),
    words="fewer tokens than it was sent",
    rules=(4, 6),
)

for _total in (140, 940):
    row(
        "usage",
        f"cached tokens beside the prompt, in all {_total}",
        using(
            {
                "prompt_tokens": 100,
                "completion_tokens": 40,
                "cache_read_input_tokens": 800,
                "total_tokens": _total,
            }
        ),
        tokens=(1800, 80, 1600),
        rules=(6,),
    )
for _count in ("\u00b2", "9" * 5000):
    row(
        "usage",
        f"digits that are no count: {_count[:9]}",
        using({"prompt_tokens": _count, "completion_tokens": 40}),
        tokens=(0, 0, 0),
        rules=(6,),
    )

# --- errors inside 200 ----------------------------------------------------------------

row(
    "errors in 200",
    "an error with a code",
    always({"error": {"message": "Provider returned error", "code": 502}}),
    chat="failure",
    client="failure",
    words="Provider returned error",
    rules=(1, 2),
)
row(
    "errors in 200",
    "an error as a text",
    always({"error": "no capacity"}),
    chat="failure",
    client="failure",
    words="no capacity",
    rules=(1, 2),
)
row(
    "errors in 200",
    "a sign-in page",
    always(page("<html><h1>Sign in</h1></html>")),
    chat="failure",
    client="failure",
    words="Sign in",
    rules=(1, 2),
)
row(
    "errors in 200",
    "an empty body",
    always(Response("")),
    chat="failure",
    client="failure",
    words="an empty body",
    rules=(1, 2),
)
row(
    "errors in 200",
    "no choice",
    always({**completion({}), "choices": []}),
    chat="failure",
    client="failure",
    words="no choice",
    rules=(1, 2),
)
row(
    "errors in 200",
    "a choice that ended in an error",
    always(
        {
            **completion({}),
            "choices": [
                {
                    "message": {"role": "assistant", "content": ""},
                    "finish_reason": "error",
                    "error": {"message": "upstream died", "code": 502},
                }
            ],
        }
    ),
    chat="failure",
    client="failure",
    words="upstream died",
    rules=(1, 2),
)
row(
    "errors in 200",
    "a status of the vendor's own",
    always({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}),
    chat="failure",
    client="failure",
    words="insufficient balance",
    rules=(1, 2),
)
row(
    "errors in 200",
    "once, then well",
    first({"error": {"message": "x", "code": 503}}),
    rules=(1,),
    requests=3,
)

for _end in ("network_error", "insufficient_system_resource", "abort"):
    row(
        "errors in 200",
        f"the end {_end}",
        always(
            {**completion({}), "choices": [{"message": {"content": ""}, "finish_reason": _end}]}
        ),
        chat="failure",
        client="failure",
        words=_end,
        rules=(1, 2),
    )
row(
    "errors in 200",
    "the provider's filter, once",
    first({"error": {"message": "Blocked", "code": "content_filter"}}),
    client="mistake",
    rules=(1,),
    tokens=(900, 40, 0),
)
row(
    "errors in 200",
    "a default that is refused",
    lambda ask: (
        {"error": {"message": "'temperature' does not support 0", "type": "invalid_request_error"}}
        if "temperature" in ask.body
        else usual(ask)
    ),
    rules=(1,),
)

# --- the model's mistakes under an error's status -------------------------------------

row(
    "mistakes",
    "tool_use_failed",
    always(
        error(
            400,
            "Failed to call a function.",
            code="tool_use_failed",
            failed_generation="<function=vault>",
        )
    ),
    chat="mistake",
    client="mistake",
    words="",
    rules=(1,),
)
row(
    "mistakes",
    "500 for a call that does not parse",
    always(error(500, "Failed to parse tool call arguments as JSON", code=500)),
    chat="mistake",
    client="mistake",
    words="",
    rules=(1,),
)
row(
    "mistakes",
    "once, then well",
    first(error(400, "x", code="tool_use_failed", failed_generation="vault(")),
    client="mistake",
    rules=(1,),
    tokens=(900, 40, 0),
)
row(
    "mistakes",
    "the provider's filter stops a text",
    always(error(400, "The response was filtered", code="content_filter")),
    chat="mistake",
    client="mistake",
    words="",
    rules=(1,),
)

for _name, _refusal in {
    "DeepSeek": error(400, "Content Exists Risk", type="invalid_request_error"),
    "OpenAI": error(400, "flagged by our usage policy", code="invalid_prompt"),
    "xAI": JSONResponse({"error": "Content violates usage guidelines."}, 403),
}.items():
    row(
        "mistakes",
        f"the filter of {_name}",
        always(_refusal),
        chat="mistake",
        client="mistake",
        rules=(1,),
    )
row(
    "mistakes",
    "none: tools that the server cannot read, under 500",
    lambda ask: (
        error(500, "Failed to parse tools: no; tools = []") if ask.body.get("tools") else usual(ask)
    ),
    chat="refused",
    client="failure",
    words="Failed to parse tools",
    rules=(1, 4),
)

# --- refused parameters and schemas ---------------------------------------------------


def refusing(name: str, words: str, **more: Any) -> Answer:
    """Refuse a request that holds a field."""
    return lambda ask: error(400, words, param=name, **more) if name in ask.body else usual(ask)


row(
    "refused parameters",
    "max_tokens, in favour of max_completion_tokens",
    refusing(
        "max_tokens",
        "Unsupported parameter: 'max_tokens' is not supported with "
        "this model. Use 'max_completion_tokens' instead.",
    ),
)
row(
    "refused parameters",
    "temperature",
    refusing(
        "temperature",
        "Unsupported value: 'temperature' does not support 0 with "
        "this model. Only the default (1) value is supported.",
    ),
)
row("refused parameters", "seed", refusing("seed", "seed: Extra inputs not permitted"))
row(
    "refused parameters",
    "a temperature that the user chose",
    refusing("temperature", "'temperature' does not support 0.7"),
    chat="refused",
    client="completion",
    options="temperature=0.7",
    words="temperature=none",
    rules=(4,),
)
row(
    "refused parameters",
    "tool_choice",
    refusing("tool_choice", "tool_choice 'required' is not supported"),
    chat="refused",
    client="completion",
    options="tool_choice=required",
    words="tool_choice=auto",
    rules=(4, 5),
)
row(
    "refused parameters",
    "one that the server asks for",
    lambda ask: usual(ask) if ask.body.get("top_k") == 40 else error(400, "top_k: field required"),
    options='body={"top_k": 40, "chat_template_kwargs": {"y": [1]}}',
    client="failure",
    rules=(5,),
)
row(
    "refused parameters",
    "reasoning_effort and max_completion_tokens",
    lambda ask: (
        usual(ask)
        if ask.body.get("reasoning_effort") == "low"
        and ask.body.get("max_completion_tokens") == 500
        and "max_tokens" not in ask.body
        else error(400, "reasoning_effort: required")
    ),
    options="reasoning_effort=low,max_completion_tokens=500",
    client="failure",
    rules=(5,),
)
row(
    "refused schemas",
    "additionalProperties and unions",
    lambda ask: (
        error(400, 'Invalid JSON payload: Unknown name "additionalProperties"')
        if "additionalProperties" in json.dumps(ask.body.get("tools"))
        or '"anyOf"' in json.dumps(ask.body.get("tools"))
        else usual(ask)
    ),
    client="mistake",
)
row(
    "refused schemas",
    "an object without properties",
    lambda ask: (
        error(400, "tools[0].parameters.properties: should be non-empty")
        if any(
            t["function"].get("parameters", {"properties": 1}).get("properties") in ({}, None)
            for t in ask.body.get("tools", ())
        )
        else usual(ask)
    ),
)
row(
    "refused schemas",
    "tools at all",
    lambda ask: (
        error(400, "This model does not support tools") if ask.body.get("tools") else usual(ask)
    ),
    chat="refused",
    client="mistake",
    words="takes no tools",
    rules=(4,),
)
row(
    "refused schemas",
    "two tool schemas in one tool list, by name",
    lambda ask: (
        error(400, "Invalid schema for function 'http': no")
        if ask.body.get("tools")
        else usual(ask)
    ),
    chat="refused",
    client="mistake",
    words="Invalid schema for function",
    rules=(4,),
)
row(
    "refused roles",
    "a system's message",
    lambda ask: (
        error(400, "System role not supported")
        if any(m["role"] == "system" for m in ask.messages)
        else usual(ask)
    ),
    client="mistake",
)
row(
    "refused roles",
    "roles that do not alternate, under 500",
    lambda ask: (
        error(500, "jinja: Conversation roles must alternate user/assistant")
        if [m["role"] for m in ask.messages[:2]] == ["system", "user"]
        else usual(ask)
    ),
    client="mistake",
)

row(
    "refused schemas",
    "llama.cpp's grammar of long lists",
    lambda ask: (
        error(400, "Failed to initialize samplers: failed to parse grammar", code=400)
        if '"maxItems"' in json.dumps(ask.body.get("tools"))
        else usual(ask)
    ),
    client="mistake",
)

row(
    "refused parameters",
    "in the words of another server, which a router hides",
    lambda ask: (
        error(400, "Provider returned error", metadata={"raw": "seed: not permitted"})
        if "seed" in ask.body
        else usual(ask)
    ),
)

# --- quota, credit, overload ----------------------------------------------------------

row(
    "quota",
    "429 for minutes",
    always(error(429, "Rate limit reached for requests")),
    chat="failure",
    client="failure",
    words="Rate limit reached",
    rules=(2,),
)
row(
    "quota",
    "429 once, with Retry-After",
    first(error(429, "slow down", headers={"retry-after": "0.1"})),
    requests=3,
)
row(
    "quota",
    "the account's quota is used up",
    always(error(429, "You exceeded your current quota", code="insufficient_quota")),
    chat="failure",
    client="failure",
    words="no credit left",
    rules=(2,),
)
row(
    "quota",
    "402",
    always(error(402, "Insufficient credits")),
    chat="failure",
    client="failure",
    words="Insufficient credits",
    rules=(2,),
)
row(
    "quota",
    "400 for credit",
    always(error(400, "Your credit balance is too low")),
    chat="failure",
    client="failure",
    words="credit balance",
    rules=(1, 2),
)
row(
    "quota",
    "413 for tokens a minute",
    always(error(413, "Request too large: tokens per minute", code="rate_limit_exceeded")),
    chat="failure",
    client="failure",
    words="tokens per minute",
    rules=(1, 2),
)
row(
    "overload",
    "503",
    always(error(503, "overloaded")),
    chat="failure",
    client="failure",
    words="overloaded",
    rules=(2,),
)
row(
    "overload",
    "529",
    always(error(529, "Overloaded", type="overloaded_error")),
    chat="failure",
    client="failure",
    words="Overloaded",
    rules=(2,),
)
row(
    "overload",
    "a proxy's page under 502",
    always(page("<h1>Bad Gateway</h1>", 502)),
    chat="failure",
    client="failure",
    words="Bad Gateway",
    rules=(2,),
)
row("overload", "500 once, then well", first(error(500, "internal")), requests=3)

for _name, _refusal in {
    "Moonshot": error(429, "check your balance", type="exceeded_current_quota_error"),
    "xAI": JSONResponse({"error": "Your team has used all available credits."}, 403),
}.items():
    row(
        "quota",
        f"no credit, in the words of {_name}",
        always(_refusal),
        chat="failure",
        client="failure",
        words="no credit left",
        rules=(2,),
    )
row("overload", "498 once, then well", first(error(498, "capacity")), requests=3)

# --- keys -----------------------------------------------------------------------------

row(
    "keys",
    "401 in mid-run",
    lambda ask: usual(ask) if ask.number == 0 else error(401, "key revoked"),
    chat="failure",
    client="failure",
    words="key revoked",
    rules=(2,),
)
row(
    "keys",
    "403 in mid-run",
    lambda ask: usual(ask) if ask.number == 0 else error(403, "forbidden for you"),
    chat="failure",
    client="failure",
    words="forbidden for you",
    rules=(2,),
)
row(
    "keys",
    "404 in mid-run, for every request",
    lambda ask: usual(ask) if ask.number == 0 else error(404, "model stub is gone"),
    chat="failure",
    client="failure",
    words="model stub is gone",
    rules=(2,),
)


def echoing(ask: Ask) -> dict[str, Any]:
    """Repeat the key in each reply, in several forms."""
    import base64
    from urllib.parse import quote

    given = ask.headers.get("authorization", "") + ask.headers.get("api-key", "")
    key = given.removeprefix("Bearer ")
    coded = base64.b64encode(given.encode()).decode()
    forms = (given, quote(key), coded, key.encode().hex())
    return reply(ask.turn, content=" ".join(forms))


for _tail, _name in (
    ("\n", "a line end"),
    ("\r\n", "CR and LF"),
    (" ", "a blank"),
    ("\t", "a tab"),
):
    row(
        "keys",
        f"a key that ends in {_name}",
        echoing,
        env={"OWA_FIELD_KEY": KEY + _tail},
        run={"model_key_env": "OWA_FIELD_KEY"},
        rules=(7,),
    )
row(
    "keys",
    "the key in an error under 401",
    lambda ask: error(401, f"Incorrect key {ask.headers.get('authorization')}"),
    env={"OWA_FIELD_KEY": KEY},
    run={"model_key_env": "OWA_FIELD_KEY"},
    chat="failure",
    client="failure",
    words="Incorrect key",
    rules=(2, 7),
)
row(
    "keys",
    "a key with a line end inside",
    usual,
    env={"OWA_FIELD_KEY": f"{KEY}\nab"},
    run={"model_key_env": "OWA_FIELD_KEY"},
    chat="refused",
    client="refused",
    words="printable ASCII characters in one line",
    rules=(7,),
)
for _key, _words in ((f'"{KEY}"', "quote marks"), (f"\ufeff{KEY}", "printable ASCII")):
    row(
        "keys",
        f"a key in {_words}",
        env={"OWA_FIELD_KEY": _key},
        run={"model_key_env": "OWA_FIELD_KEY"},
        chat="refused",
        client="refused",
        words=_words,
        rules=(7,),
    )
row(
    "keys",
    "the key in headers, names and escapes of JSON",
    lambda ask: Response(
        json.dumps({**reply(ask.turn, content="@"), "model": KEY, "id": KEY}).replace(
            "@", "".join(f"\\u{ord(sign):04x}" for sign in KEY)
        ),
        media_type="application/json",
        headers={"x-request-id": KEY, "retry-after": KEY},
    ),
    env={"OWA_FIELD_KEY": KEY},
    run={"model_key_env": "OWA_FIELD_KEY"},
)
row(
    "keys",
    "a header of another name",
    lambda ask: (
        usual(ask)
        if ask.headers.get("api-key") == KEY and "authorization" not in ask.headers
        else error(401, "no api-key")
    ),
    env={"OWA_FIELD_KEY": f"{KEY}\n"},
    run={"model_header": ("api-key=OWA_FIELD_KEY",)},
    rules=(5,),
)

# --- addresses ------------------------------------------------------------------------


def only_at(path: str, query: str = "") -> Answer:
    return lambda ask: (
        usual(ask)
        if (ask.path, ask.query) == (path, query)
        else page(f"<h1>Not Found</h1>{ask.path}", 404)
    )


row(
    "addresses",
    "a whole endpoint, as pasted",
    only_at("/v1/chat/completions"),
    address="/v1/chat/completions",
    rules=(5,),
)
row("addresses", "a slash at the end", only_at("/v1/chat/completions"), address="/v1/")
row(
    "addresses",
    "a deployment with a query",
    only_at("/openai/deployments/d/chat/completions", "api-version=2024-10-21"),
    address="/openai/deployments/d?api-version=2024-10-21",
    rules=(5,),
)
row(
    "addresses",
    "the wrong place",
    only_at("/v1/chat/completions"),
    address="/api",
    chat="refused",
    client="failure",
    words="Not Found",
    rules=(4,),
)
row(
    "addresses",
    "a user and a password",
    usual,
    address="@",
    chat="refused",
    client="refused",
    words="must hold no user, password or key",
    rules=(7,),
)

row(
    "addresses",
    "a signature in the query",
    usual,
    address="/v1?sig=s3cr3tpw",
    chat="refused",
    client="refused",
    words="must hold no user, password or key",
    rules=(7,),
)
row(
    "addresses",
    "it sends requests on",
    always(Response("", 308, headers={"location": "https://other.example/v1?k=1"})),
    chat="refused",
    client="failure",
    words="it sends requests on to https://other.example",
    rules=(4,),
)

# --- proxies --------------------------------------------------------------------------

DEAD = "http://127.0.0.1:9"
row("proxies", "http_proxy, loopback goes past it", env={"http_proxy": DEAD}, rules=(8,))
row("proxies", "HTTP_PROXY and all_proxy", env={"HTTP_PROXY": DEAD, "all_proxy": DEAD}, rules=(8,))
row(
    "proxies",
    "a SOCKS proxy, loopback goes past it",
    env={"all_proxy": "socks5h://127.0.0.1:9"},
    rules=(8,),
)
row(
    "proxies",
    "a proxy of an unknown kind",
    env={"https_proxy": "ftp://x:s3cr3tpw@p:1"},
    run={"model_url": "https://models.example/v1"},
    chat="refused",
    client="refused",
    words="$https_proxy must be one of",
    rules=(8,),
)
row(
    "proxies",
    "a proxy of an unknown kind that no_proxy passes by, unreachable",
    env={"https_proxy": "ftp://p:1", "no_proxy": "models.invalid"},
    run={"model_url": "https://models.invalid/v1"},
    chat="failure",
    client="failure",
    words="could not be reached",
    rules=(2,),
    act_s=8.0,
)

for _env, _words in (
    ({"https_proxy": "http://p:port"}, "$https_proxy is no address"),
    ({"http_proxy": "http://p:1", "all_proxy": "ftp://p:1"}, "$all_proxy must be"),
    ({"SSL_CERT_FILE": "/nowhere/ca.pem"}, "$SSL_CERT_FILE names /nowhere/ca.pem"),
):
    row(
        "proxies",
        f"an environment without a way: {_words}",
        env=_env,
        run={"model_url": "https://models.invalid/v1"},
        chat="refused",
        client="refused",
        words=_words,
        rules=(8,),
    )

# --- slow answers ---------------------------------------------------------------------


def sleepy(seconds: float, answer: Answer = usual) -> Answer:
    def wait(ask: Ask) -> Any:
        time.sleep(seconds)
        return answer(ask)

    return wait


row(
    "slow",
    "slower than an act",
    sleepy(6),
    act_s=3.0,
    chat="failure",
    client="failure",
    words="--act-seconds",
    rules=(2,),
)
row(
    "slow",
    "504 of its own proxy",
    always(error(504, "upstream timed out")),
    chat="failure",
    client="failure",
    words="upstream timed out",
    rules=(2,),
)
row("slow", "slow but in time", sleepy(0.5), act_s=10.0)
row(
    "slow",
    "408",
    always(error(408, "request timeout")),
    chat="failure",
    client="failure",
    words="request timeout",
    rules=(2,),
)

# --- cut prompts and long conversations -----------------------------------------------


def short(most: int, refusal: Response, answer: Answer = usual) -> Answer:
    """Refuse requests of more characters; the usual first one has about 5,000."""
    return lambda ask: refusal if ask.characters > most else answer(ask)


def _rambling(ask: Ask, content: Any = "word " * 1200) -> dict[str, Any]:
    """Make the conversation long: five calls with long texts, then the end."""
    if ask.number < 6:
        return reply(0, tool_calls=[call(0, id=f"r{ask.number}")], content=content)
    return reply(1)


row(
    "cut prompts",
    "context_length_exceeded",
    short(16_000, error(400, "too long", code="context_length_exceeded"), _rambling),
    client="mistake",
    tokens=None,
    rules=(11,),
)
row(
    "cut prompts",
    "words alone",
    short(16_000, error(400, "This model's maximum context length is 99 tokens"), _rambling),
    client="mistake",
    tokens=None,
    rules=(11,),
)
row(
    "cut prompts",
    "a refusal without a reason",
    short(16_000, error(400, "Bad request"), _rambling),
    client="mistake",
    tokens=None,
    rules=(11,),
)
row(
    "cut prompts",
    "413 as a page",
    short(16_000, page("<h1>413</h1>", 413), _rambling),
    client="mistake",
    tokens=None,
    rules=(11,),
)
row(
    "cut prompts",
    "however short it is",
    always(error(400, "x", code="context_length_exceeded")),
    chat="mistake",
    client="mistake",
    words="context=",
    rules=(),
)
row(
    "cut prompts",
    "a reply that is cut at the default cap",
    lambda ask: (
        usual(ask)
        if ask.body.get("max_tokens", 10**6) > 4096
        else {
            **completion({"content": "thinking .."}),
            "choices": [{"message": {"content": "thinking .."}, "finish_reason": "length"}],
        }
    ),
    tokens=None,
)

for _words in (
    "The input token count exceeds the maximum number of tokens allowed (9).",
    "input length and `max_tokens` exceed context limit: 9 + 8 > 9",
    "Range of input length should be [1, 9]",
    "This model's maximum prompt length is 9 but the request contains 10 tokens.",
    "`inputs` tokens + `max_new_tokens` must be <= 9",
):
    row(
        "cut prompts",
        f"in the words {_words[:20]}",
        short(16_000, error(400, _words), _rambling),
        client="mistake",
        tokens=None,
        requests=7,
        rules=(11,),
    )
row(
    "cut prompts",
    "a default cap that leaves no room",
    lambda ask: (
        error(400, "'max_tokens' is too large: this model's maximum context length is 9")
        if ask.body.get("max_tokens", 0) > 2000
        else usual(ask)
    ),
    rules=(11,),
)

# --- the cache ------------------------------------------------------------------------


def _counted(ask: Ask) -> dict[str, Any]:
    """Answer with another p to each request, so that repeats differ."""
    if ask.turn == 0:
        return reply(0)
    return reply(1, tool_calls=[_calling(1, {"answer": "", "p": 0.1 + ask.number / 100})])


row(
    "cache",
    "repeats without a seed",
    _counted,
    options="temperature=1,seed=none",
    run={"model_cache": "cache"},
    repeats=3,
    rules=(9,),
    tokens=None,
    requests=6,
)
row(
    "cache",
    "an error inside 200",
    first({"error": {"message": "x", "code": 503}}),
    run={"model_cache": "cache"},
    rules=(1, 9),
    requests=3,
)
row("cache", "repeats with a seed", usual, run={"model_cache": "cache"}, repeats=3, tokens=None)
row(
    "cache",
    "a page in 200",
    always(page("<html>Sign in</html>")),
    run={"model_cache": "cache"},
    chat="failure",
    client="failure",
    words="Sign in",
    rules=(1, 2),
)
