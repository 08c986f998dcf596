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
                    "tool_calls": [
                        {"id": f"a{ask.turn}", "function": call(ask.turn)["function"]}
                    ]
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
        b"\xef\xbb\xbf" + json.dumps(reply(ask.turn)).encode(),
        media_type="application/json",
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
        tool_calls=[
            _calling(0, {"name": f"v{i}"}) | {"id": f"n{i}"} for i in range(300)
        ]
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
    return reply(
        ask.turn, tool_calls=[{k: v for k, v in made.items() if v is not DROP}]
    )


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
        ask.turn,
        tool_calls=[_calling(ask.turn, {"name": None} if ask.turn == 0 else None)],
    ),
    rules=(10,),
)
row(
    "nulls",
    "tool_calls null",
    always(
        completion(
            {"content": "", "tool_calls": None},
        )
    ),
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
    "numbers as text",
    lambda ask: reply(
        ask.turn,
        tool_calls=[
            _calling(ask.turn, {"answer": "", "p": "0.25"} if ask.turn else None)
        ],
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


row(
    "reasoning",
    "reasoning_content",
    demanding("reasoning_content", "I think"),
    rules=(3,),
)
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
        iter([b'data: {"choices": [{"delta": {}}]}\n\n']),
        media_type="text/event-stream",
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
        'data: {"error": {"message": "capacity", "code": 503}}\n\n',
        media_type="text/event-stream",
    ),
    streams=True,
    chat="failure",
    client="failure",
    words="capacity",
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
row(
    "usage",
    "floats",
    using({"prompt_tokens": 900.0, "completion_tokens": 40.0}),
    rules=(6,),
)
row(
    "usage",
    "minus infinity in log-probabilities",
    lambda ask: Response(
        json.dumps({**reply(ask.turn), "logprobs": [float("-inf")]}),
        media_type="application/json",
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

# --- refused parameters and schemas ---------------------------------------------------


def refusing(name: str, words: str, **more: Any) -> Answer:
    """Refuse a request that holds a field."""
    return lambda ask: (
        error(400, words, param=name, **more) if name in ask.body else usual(ask)
    )


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
    lambda ask: (
        usual(ask)
        if ask.body.get("top_k") == 40
        else error(400, "top_k: field required")
    ),
    options='body={"top_k": 40, "x": {"y": [1]}}',
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
            t["function"].get("parameters", {"properties": 1}).get("properties")
            in ({}, None)
            for t in ask.body.get("tools", ())
        )
        else usual(ask)
    ),
)
row(
    "refused schemas",
    "tools at all",
    lambda ask: (
        error(400, "This model does not support tools")
        if ask.body.get("tools")
        else usual(ask)
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
    always(
        error(413, "Request too large: tokens per minute", code="rate_limit_exceeded")
    ),
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

# --- keys -----------------------------------------------------------------------------

row(
    "keys",
    "401 in mid-run",
    lambda ask: usual(ask) if ask.turn == 0 else error(401, "key revoked"),
    chat="failure",
    client="failure",
    words="key revoked",
    rules=(2,),
)
row(
    "keys",
    "403 in mid-run",
    lambda ask: usual(ask) if ask.turn == 0 else error(403, "forbidden for you"),
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

# --- proxies --------------------------------------------------------------------------

DEAD = "http://127.0.0.1:9"
row(
    "proxies", "http_proxy, loopback goes past it", env={"http_proxy": DEAD}, rules=(8,)
)
row(
    "proxies",
    "HTTP_PROXY and all_proxy",
    env={"HTTP_PROXY": DEAD, "all_proxy": DEAD},
    rules=(8,),
)
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


def _rambling(ask: Ask) -> dict[str, Any]:
    """Make the conversation long: five calls with long texts, then the end."""
    if ask.number < 6:
        made = call(0, id=f"r{ask.number}")
        return reply(0, tool_calls=[made], content="word " * 1200)
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
    short(
        16_000,
        error(400, "This model's maximum context length is 99 tokens"),
        _rambling,
    ),
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
            "choices": [
                {"message": {"content": "thinking .."}, "finish_reason": "length"}
            ],
        }
    ),
    tokens=None,
)

# --- the cache ------------------------------------------------------------------------


def _counted(ask: Ask) -> dict[str, Any]:
    """Answer with another p to each request, so that repeats differ."""
    if ask.turn == 0:
        return reply(0)
    return reply(
        1, tool_calls=[_calling(1, {"answer": "", "p": 0.1 + ask.number / 100})]
    )


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
row(
    "cache",
    "repeats with a seed",
    usual,
    run={"model_cache": "cache"},
    repeats=3,
    tokens=None,
)
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
