"""The one judge of replies from model servers, and the tokens that they count.

A reply is a completion, the model's mistake or the provider's failure, whatever its status line
says. Gateway, chat agent and report read this answer, and no other.

Source: docs/model-gateway.md#how-a-reply-is-judged.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

ReplyVerdict = Literal["completion", "mistake", "failure"]
# Of a mistake: a call that the server could not read, a request that is longer than the
# model's context, a text that the provider's filter stopped. Of a failure: whose it is.
Cause = Literal[
    "",
    "tool call",
    "too long",
    "filtered",
    "request",
    "model",
    "key",
    "credit",
    "quota",
    "overload",
    "slow",
    "no reply",
    "no completion",
]
# What a request itself may cause: a key may be good for other models, and firewalls of
# providers answer 403 to a text.
CAUSES_OF_A_REQUEST: frozenset[Cause] = frozenset({"request", "model", "key"})
# A second try may succeed without anybody's help.
PASSING: frozenset[Cause] = frozenset({"quota", "overload", "slow", "no reply", "no completion"})
CAUSE_WORDS: Mapping[Cause, str] = {
    "tool call": "the server could not read the model's tool call",
    "too long": "the request is longer than the model's context",
    "filtered": "the provider's filter stopped the text",
    "request": "the server refused the request",
    "model": "the server does not serve this model at this address",
    "key": "the key was refused",
    "credit": "the account has no credit left",
    "quota": "the account's rate limit was reached",
    "overload": "the server failed or was overloaded",
    "slow": "the server did not answer in time",
    "no reply": "the server could not be reached, or broke the connection",
    "no completion": "the answer was no completion",
}
EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")  # of a server-sent event
_EVENT_START = re.compile(rb"(?:data|event|id|retry)?:")
_MARK = "\ufeff"  # of the byte order, which some servers write first
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")  # of UTF-16; models write halves alone
_LONGEST_NUMBER = 4_000  # digits that Python reads
_SHOWN = 600  # characters of a server's words
_OK = range(200, 300)
_TOO_MANY, _SERVER_ERRORS = 429, 500


class ReplyJudgement(NamedTuple):
    """What a reply is; `words` are the server's own, `model` what it says it ran."""

    verdict: ReplyVerdict
    cause: Cause = ""
    words: str = ""
    model: str = ""

    @property
    def text(self) -> str:
        """Cause and words in one line, "" for a completion."""
        cause = CAUSE_WORDS.get(self.cause, "")
        return ": ".join(part for part in (cause, self.words) if part)


# --- reading --------------------------------------------------------------------------


def decoded(body: bytes | str) -> Any:
    """Return the JSON value of a reply, None where it is no JSON.

    Numbers that no request may hold are read as text (NaN, infinities, thousands of digits), half a
    pair of UTF-16 as a replacement sign, control characters as they are: nothing beside the counts
    of tokens may void them.
    """
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    try:
        value = json.loads(
            text.removeprefix(_MARK),
            strict=False,
            parse_int=_int_or_text,
            parse_float=_float_or_text,
            parse_constant=str,
        )
        if _HALF_PAIR.search(text):
            units = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
            value = json.loads(units.decode("utf-16-le", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    # Some servers put a list around the one object.
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _int_or_text(digits: str) -> int | str:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else digits


def _float_or_text(digits: str) -> float | str:
    value = float(digits)
    return value if math.isfinite(value) else digits


def calls_in(message: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the tool calls of a message in the usual form.

    Some servers give one call in place of a list, a call whose name and arguments have no
    `function` around them, or the `function_call` of the first chat API.

    Args:
        message: The assistant's.
    Returns: The calls, each with a `function`; None where one cannot be read.
    """
    came = message.get("tool_calls")
    if not came and isinstance(message.get("function_call"), dict):
        came = {"function": message["function_call"]}
    listing = [came] if isinstance(came, dict) else came or []
    if not isinstance(listing, list):
        return None
    calls = [call for call in map(_usual_call, listing) if call is not None]
    return calls if len(calls) == len(listing) else None


def _usual_call(raw: Any) -> dict[str, Any] | None:
    if not isinstance(raw, dict):
        return None
    if isinstance(raw.get("function"), dict):
        return raw
    if not isinstance(raw.get("name"), str):
        return None
    inner = {name: raw[name] for name in ("name", "arguments") if name in raw}
    rest = {name: value for name, value in raw.items() if name not in inner}
    return {**rest, "function": inner}


def sse_events(body: bytes) -> Iterator[Any]:
    """Yield the JSON values in server-sent events; line ends are LF, CRLF or CR."""
    for block in EVENT_END.split(body.removeprefix(_MARK.encode())):
        yield from event_data(block)


def event_data(event: bytes) -> Iterator[Any]:
    """Yield the JSON value of one server-sent event, nothing where it has none."""
    lines = re.split(rb"\r\n|\n|\r", event)
    data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
    value = decoded(b"\n".join(data)) if data else None
    if value is not None:
        yield value


# --- judging --------------------------------------------------------------------------


def judge(status: int, body: bytes, path: str = "/chat/completions") -> ReplyJudgement:
    """Return what a whole reply is.

    Args:
        status: Of the HTTP response.
        body: Its bytes, without any key.
        path: Of the request, below /v1.
    Returns: The judgement, with the server's own words where it is no completion.
    """
    value = decoded(body)
    if status not in _OK:
        return _refusal(status, value, body)
    begin = body[: 2 * _SHOWN].removeprefix(_MARK.encode()).lstrip()
    if value is None and _EVENT_START.match(begin):
        return judge_events(body, path)
    if not isinstance(value, dict):
        page = "a page or text in place of JSON" if body.strip() else "an empty body"
        return ReplyJudgement("failure", "no completion", _line(page, body))
    if error := _error_in(value):
        code = _number(error, value)
        return _refusal(code or status, {"error": error}, body)
    served = value.get("model")
    name = served if isinstance(served, str) else ""
    if error := _error_of(_first(value.get("choices"))):
        return _refusal(_number(error, {}) or 500, {"error": error}, body)
    if fault := _shape_fault(path, value):
        return ReplyJudgement("failure", "no completion", _line(fault, body), name)
    return ReplyJudgement("completion", model=name)


def judge_events(body: bytes, path: str = "/chat/completions") -> ReplyJudgement:
    """Return what a streamed reply is.

    Args:
        body: All its events.
        path: Of the request, below /v1.
    Returns: The judgement; one that ends in the middle is the provider's failure.
    """
    name, fault, answered = "", "no event", path not in _CHOOSING
    ends = _STREAM_ENDS.get(path, frozenset())
    ended = b"[DONE]" in body or path not in _STREAMED
    for value in sse_events(body):
        if not isinstance(value, dict):
            continue
        choice = _first(value.get("choices"))
        if error := _error_in(value) or _error_of(choice):
            return _refusal(_number(error, value) or 500, {"error": error}, body)
        served = value.get("model")
        name = served if isinstance(served, str) and served else name
        answered |= choice is not None
        fault = "" if answered else "no choice"
        ended |= value.get("type") in ends
        ended |= bool(choice and choice.get("finish_reason"))
    if fault:
        return ReplyJudgement("failure", "no completion", _line(fault, body), name)
    if not ended:
        return ReplyJudgement("failure", "no reply", "the stream ended in the middle", name)
    return ReplyJudgement("completion", model=name)


_CHOOSING = frozenset({"/chat/completions", "/completions"})
_STREAM_ENDS: Mapping[str, frozenset[str]] = {
    "/messages": frozenset({"message_stop"}),
    "/responses": frozenset({"response.completed", "response.incomplete", "response.cancelled"}),
}
_STREAMED = _CHOOSING | _STREAM_ENDS.keys()


def no_reply(kind: str, *, late: bool, seconds: float = 0.0) -> ReplyJudgement:
    """Return the judgement of a request that got no reply.

    Args:
        kind: Name of the library's exception; its text may hold a key.
        late: Whether the time ran out.
        seconds: How long was waited.
    Returns: A failure, by the time or by the connection.
    """
    if late:
        return ReplyJudgement("failure", "slow", f"no reply in {seconds:g} s ({kind})")
    return ReplyJudgement("failure", "no reply", kind)


def _error_in(value: Mapping[str, Any]) -> Any:
    """Return the error that a body of status 200 holds, None where it holds none."""
    error = value.get("error")
    if error and not _is_blank_error(error, value):
        return error
    if value.get("type") == "error" or value.get("object") == "error":
        return {k: v for k, v in value.items() if k not in ("type", "object")}
    if value.get("type") == "response.failed" or value.get("status") == "failed":
        inner = value.get("response")
        failed = inner if isinstance(inner, dict) else value
        return failed.get("error") or {"message": "the response failed"}
    base = value.get("base_resp")
    if isinstance(base, dict) and base.get("status_code"):
        return {"code": base["status_code"], "message": base.get("status_msg", "")}
    answered = any(name in value for name in ("choices", "output", "content", "data"))
    if not answered and isinstance(value.get("detail"), str | list):
        return {"message": value["detail"]}
    return None


def _is_blank_error(error: Any, value: Mapping[str, Any]) -> bool:
    """Return whether an error beside an answer says that there is none.

    Some servers write every field of their reply each time.
    """
    if not isinstance(error, dict) or not value.get("choices"):
        return False
    if any(error.get(name) not in _NO_CODE for name in ("code", "type", "status")):
        return False
    return "code" in error or not error.get("message")


_NO_CODE = (None, "", 0, "0", False)
# Ends of a choice that are the server's own, in its words for them.
_FAILED_ENDS = frozenset(
    {"error", "abort", "aborted", "failed", "cancelled", "timeout", "network_error"}
    | {"insufficient_system_resource", "server_error", "internal_error", "overloaded"}
)


def _error_of(choice: Mapping[str, Any] | None) -> Any:
    """Return the error that ended a choice, None where none did."""
    if choice is None:
        return None
    end = str(choice.get("finish_reason")).lower()
    message = {"message": f"the choice ended in {end}"}
    return choice.get("error") or (message if end in _FAILED_ENDS else None)


def _shape_fault(path: str, value: Mapping[str, Any]) -> str:
    """Return why a body is no reply of its endpoint, "" if it is one."""
    if path == "/chat/completions":
        choice = _first(value.get("choices"))
        message = choice.get("message") if choice else None
        if choice is None:
            return "no choice"
        if not isinstance(message, dict):
            return "a choice without a message"
        if calls_in(message) is None:
            return "tool calls of no known form"
        if not choice.get("finish_reason") and not _says_something(message):
            return "an empty message that has not finished"
    elif path == "/completions":
        choice = _first(value.get("choices"))
        return "" if choice and isinstance(choice.get("text"), str) else "no text"
    elif path == "/messages":
        return "" if isinstance(value.get("content"), list) else "no content"
    elif path == "/responses":
        return "" if isinstance(value.get("output"), list) else "no output"
    elif path == "/embeddings":
        return "" if isinstance(value.get("data"), list) else "no data"
    return ""


def _first(choices: Any) -> dict[str, Any] | None:
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else None


def _says_something(message: Mapping[str, Any]) -> bool:
    return any(value for name, value in message.items() if name != "role")


# --- errors ---------------------------------------------------------------------------
# By structure first: the code, type or parameter that a server names. Phrases are for
# servers that name none.


_NAMES: Mapping[Cause, str] = {
    "tool call": (
        "tool_use_failed invalid_tool_call tool_call_parse_error "
        "output_parse_failed json_validate_failed malformed_function_call"
    ),
    "filtered": (
        "content_filter content_policy_violation "
        "responsibleaipolicyviolation data_inspection_failed "
        "datainspectionfailed invalid_prompt moderation_blocked"
    ),
    "credit": (
        "insufficient_quota billing_not_active billing_hard_limit_reached "
        "insufficient_balance payment_required credit_limit_exceeded "
        "billing_error arrearage exceeded_current_quota_error"
    ),
    "quota": (
        "rate_limit_exceeded rate_limit_error rate_limited "
        "resource_exhausted too_many_requests requests_limit_exceeded "
        "throttling"
    ),
    "too long": (
        "context_length_exceeded exceed_context_size_error "
        "request_too_large context_window_exceeded model_context_window_exceeded"
    ),
    "key": (
        "invalid_api_key authentication_error unauthorized "
        "permission_denied unauthenticated permission_error "
        "account_deactivated"
    ),
    "model": (
        "model_not_found model_not_available deploymentnotfound unsupported_model no_such_model"
    ),
    "overload": ("overloaded_error server_overloaded overloaded"),
}
_CODES = {cause: frozenset(names.split()) for cause, names in _NAMES.items()}
_PHRASES: tuple[tuple[Cause, re.Pattern[str]], ...] = (
    (
        "tool call",
        re.compile(
            r"(failed to |error |could not |cannot |can't )"
            r"(pars\w+|validat\w+|read) (the )?(model'?s? )?"
            r"(input at|output|(tool|function)[ _-]?calls?)"
            r"|tool call validation failed|failed to call a function"
        ),
    ),
    (
        "filtered",
        re.compile(
            r"content (management |filter\w* )?polic|content filter|moderation|"
            r"content exists risk|"
            r"violat\w+ (of )?(our |the |its )?(usage|content|polic)"
        ),
    ),
    (
        "credit",
        re.compile(
            r"insufficient[ _](quota|balance|credit|fund)|credit balance|"
            r"(out of|not enough|no|all available) credit|spending limit|billing|"
            r"payment required"
        ),
    ),
    ("key", re.compile(r"api[ _-]?key (is )?(not valid|invalid|missing|expired)")),
    (
        "too long",
        re.compile(
            r"context[ _-]?(length|window|size|limit)|"
            r"maximum (context|prompt|input|sequence)|too many (input )?tokens|"
            r"(prompt|input|request) (is |was )?too (long|large|big)|"
            r"reduce (the |your )?(length|prompt|input)|exceeds? the (model'?s )?"
            r"(available )?(context|max\w*( sequence)? length|maximum number of "
            r"(input )?tokens)|range of input length|\binputs\b.{0,3} tokens|"
            r"content'?: string too long"
        ),
    ),
    (
        "request",  # that a server refuses under 500, by an exception of its own
        re.compile(
            r"jinja|chat template|roles? must|tool.?choice|grammar|not supported|"
            r"unsupported|validation error|type_error"
        ),
    ),
    (
        "model",
        re.compile(
            r"model\b.{0,80}?(does not exist|not exist|not found|is not (a )?"
            r"(valid|available|supported)|unknown)|(unknown|no such|invalid) model"
        ),
    ),
)
_BY_STATUS: Mapping[int, Cause] = {
    401: "key",
    402: "credit",
    403: "key",
    404: "model",
    405: "model",
    407: "no reply",
    408: "slow",
    409: "overload",
    410: "model",
    413: "too long",
    423: "overload",
    425: "overload",
    429: "quota",
    451: "key",
    498: "overload",
    499: "overload",
    504: "slow",
    524: "slow",
    529: "overload",
}
# Of requests that a server does not take, where its status says that all is well.
_REQUEST_CODES = frozenset(
    {"invalid_request_error", "invalid_parameter_error", "invalid_argument"}
    | {"bad_request", "badrequesterror", "unsupported_value", "unsupported_parameter"}
)
_MISTAKES: frozenset[Cause] = frozenset({"tool call", "too long", "filtered"})
# A status that says clearly whose the failure is, whatever phrase the words hold.
_CLEAR = frozenset({401, 402, 407, 408, 413, 425, 504, 524, 529})


def _refusal(status: int, value: Any, body: bytes) -> ReplyJudgement:
    """Return the judgement of an error, by its codes, phrases and status."""
    names, words = _named(value)
    said = f"HTTP {status}" if not words else f"HTTP {status}: {words}"
    if not words and body.strip():
        said = _line(f"HTTP {status}", body)
    cause = _cause(status, names, words or " ".join(_text(body).split())[:_SHOWN])
    verdict: ReplyVerdict = "mistake" if cause in _MISTAKES else "failure"
    return ReplyJudgement(verdict, cause, said[:_SHOWN])


def _cause(status: int, names: frozenset[str], words: str) -> Cause:
    if "failed_generation" in names:
        return "tool call"
    for cause, codes in _CODES.items():
        if names & codes:
            return cause
    if cause := _cause_of_words(status, words.lower()):
        return cause
    if status < 400:  # an error inside a reply that says that all is well, or a page
        return "request" if names & _REQUEST_CODES else "no completion"
    return _BY_STATUS.get(status, "overload" if status >= 500 else "request")


def _cause_of_words(status: int, words: str) -> Cause:
    """Return the cause that a server's words name, "" where its status is clearer.

    Under 429 and 5xx tokens and models are named in words about limits.
    """
    known: Iterable[Cause] = CAUSE_WORDS.keys() - {"request"}
    if status in _CLEAR:
        return ""
    if status == _TOO_MANY:
        known = ("credit",)
    elif status >= _SERVER_ERRORS:
        known = ("tool call", "too long", "request")
    for cause, phrase in _PHRASES:
        if cause in known and phrase.search(words):
            return cause
    return ""


def _named(value: Any) -> tuple[frozenset[str], str]:
    """Return the codes of an error, in lower case, and its words."""
    error = value.get("error", value) if isinstance(value, dict) else None
    if isinstance(error, str):
        return frozenset(), " ".join(error.split())[:_SHOWN]
    if not isinstance(error, dict):
        return frozenset(), ""
    names = {
        str(error[name]).lower()
        for name in ("code", "type", "status", "reason")
        if isinstance(error.get(name), str)
    }
    names |= {"failed_generation"} & error.keys()
    inner = error.get("innererror")
    if isinstance(inner, dict) and isinstance(inner.get("code"), str):
        names.add(inner["code"].lower())
    words = next((error[name] for name in ("message", "msg", "detail") if error.get(name)), "")
    text = words if isinstance(words, str) else json.dumps(words)
    beside = error.get("metadata")  # of routers, with the words of whom they asked
    if isinstance(beside, dict) and isinstance(beside.get("raw"), str):
        text = f"{text}: {beside['raw']}"
    kind = next((str(error[n]) for n in ("code", "type") if error.get(n)), "")
    shown = " ".join(text.split()) or kind
    if kind and kind not in shown and not kind.isdigit():
        shown = f"{shown} ({kind})"
    return frozenset(names), shown[:_SHOWN]


def _number(error: Any, value: Mapping[str, Any]) -> int:
    """Return the status that an error in a body of status 200 names, 0 for none."""
    found = error if isinstance(error, dict) else {}
    for code in (found.get("code"), found.get("status"), value.get("code")):
        if isinstance(code, int | str) and re.fullmatch("[345][0-9]{2}", str(code)):
            return int(code)
    return 0


def _text(body: bytes) -> str:
    return body[: 4 * _SHOWN].decode(errors="replace")


def _line(what: str, body: bytes) -> str:
    """Return what a body is, and its first characters, in one line."""
    shown = " ".join(re.sub(r"<[^>]*>", " ", _text(body)).split())[: _SHOWN // 2]
    return f"{what}: {shown!r}" if shown else what
