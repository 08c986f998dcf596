"""The one judge of replies from model servers, and the tokens that they count.

A reply is a completion, the model's mistake or the provider's failure, whatever its
status line says. Gateway, chat agent and report read this answer, and no other.

Source: docs/model-gateway.md#how-a-reply-is-judged.
"""

import json
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
CAUSES_OF_A_REQUEST: frozenset[Cause] = frozenset({"request", "model"})
# A second try may succeed without anybody's help.
PASSING: frozenset[Cause] = frozenset(
    {"quota", "overload", "slow", "no reply", "no completion"}
)
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

    NaN, infinities and bytes that are no UTF-8 are read too: nothing beside the counts
    of tokens may void them.
    """
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    try:
        value = json.loads(text.removeprefix("\ufeff"))
        # Some servers put a list around the one object.
        return value[0] if isinstance(value, list) and len(value) == 1 else value
    except (ValueError, RecursionError):
        return None


def sse_events(body: bytes) -> Iterator[Any]:
    """Yield the JSON values in server-sent events; line ends are LF, CRLF or CR."""
    for block in EVENT_END.split(body):
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

    Returns:
        The judgement, with the server's own words where it is no completion.
    """
    value = decoded(body)
    if status not in _OK:
        return _refusal(status, value, body)
    if value is None and body.lstrip()[:6].startswith((b"data:", b"event:", b":")):
        return judge_events(body, path)
    if not isinstance(value, dict):
        page = "a page or text in place of JSON" if body.strip() else "an empty body"
        return ReplyJudgement("failure", "no completion", _line(page, body))
    if error := _error_in(value):
        code = _number(error, value)
        return _refusal(code or status, {"error": error}, body)
    served = value.get("model")
    name = served if isinstance(served, str) else ""
    fault = _shape_fault(path, value)
    if fault == "error":
        choice = value["choices"][0]
        error = choice.get("error") or {"message": "finish_reason is error"}
        return _refusal(_number(error, {}) or 500, {"error": error}, body)
    if fault:
        return ReplyJudgement("failure", "no completion", _line(fault, body), name)
    return ReplyJudgement("completion", model=name)


def judge_events(body: bytes, path: str = "/chat/completions") -> ReplyJudgement:
    """Return what a streamed reply is.

    Args:
        body: All its events.
        path: Of the request, below /v1.

    Returns:
        The judgement; one that ends in the middle is the provider's failure.
    """
    name, empty, ended = "", True, b"[DONE]" in body
    for value in sse_events(body):
        if not isinstance(value, dict):
            continue
        if error := _error_in(value):
            return _refusal(_number(error, value) or 500, {"error": error}, body)
        served = value.get("model")
        name = served if isinstance(served, str) and served else name
        empty = False
        choice = _first(value.get("choices"))
        ended |= bool(choice and choice.get("finish_reason"))
    if empty:
        return ReplyJudgement("failure", "no completion", _line("no event", body))
    if path in ("/chat/completions", "/completions") and not ended:
        return ReplyJudgement(
            "failure", "no reply", "the stream ended in the middle", name
        )
    return ReplyJudgement("completion", model=name)


def no_reply(kind: str, *, late: bool, seconds: float = 0.0) -> ReplyJudgement:
    """Return the judgement of a request that got no reply.

    Args:
        kind: Name of the library's exception; its text may hold a key.
        late: Whether the time ran out.
        seconds: How long was waited.

    Returns:
        A failure, by the time or by the connection.
    """
    if late:
        return ReplyJudgement("failure", "slow", f"no reply in {seconds:g} s ({kind})")
    return ReplyJudgement("failure", "no reply", kind)


def _error_in(value: Mapping[str, Any]) -> Any:
    """Return the error that a body of status 200 holds, None where it holds none."""
    if value.get("error"):
        return value["error"]
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


def _shape_fault(path: str, value: Mapping[str, Any]) -> str:
    """Return why a body is no reply of its endpoint, "" if it is one."""
    if path == "/chat/completions":
        choice = _first(value.get("choices"))
        if choice is None:
            return "no choice"
        if choice.get("finish_reason") == "error" or choice.get("error"):
            return "error"
        message = choice.get("message")
        if not isinstance(message, dict):
            return "a choice without a message"
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
        "moderation_blocked"
    ),
    "credit": (
        "insufficient_quota billing_not_active billing_hard_limit_reached "
        "insufficient_balance payment_required credit_limit_exceeded "
        "billing_error arrearage"
    ),
    "quota": (
        "rate_limit_exceeded rate_limit_error rate_limited "
        "resource_exhausted too_many_requests requests_limit_exceeded "
        "throttling"
    ),
    "too long": (
        "context_length_exceeded exceed_context_size_error "
        "request_too_large string_above_max_length context_window_exceeded"
    ),
    "key": (
        "invalid_api_key authentication_error unauthorized "
        "permission_denied unauthenticated permission_error "
        "account_deactivated"
    ),
    "model": (
        "model_not_found model_not_available deploymentnotfound "
        "unsupported_model no_such_model"
    ),
    "overload": ("overloaded_error server_overloaded overloaded"),
}
_CODES = {cause: frozenset(names.split()) for cause, names in _NAMES.items()}
_PHRASES: tuple[tuple[Cause, re.Pattern[str]], ...] = (
    (
        "tool call",
        re.compile(
            r"(failed to |error |could not |cannot |can't )"
            r"(pars\w+|validat\w+|read) (the )?(model'?s? )?(input|tool|function)"
            r"|tool call validation failed|failed to call a function"
        ),
    ),
    (
        "filtered",
        re.compile(r"content (management |filter\w* )?polic|content filter|moderation"),
    ),
    (
        "credit",
        re.compile(
            r"insufficient[ _](quota|balance|credit|fund)|credit balance|"
            r"(out of|not enough|no) credit|billing|payment required"
        ),
    ),
    ("key", re.compile(r"api[ _-]?key (is )?(not valid|invalid|missing|expired)")),
    (
        "too long",
        re.compile(
            r"context[ _-]?(length|window|size)|maximum context|too many (input )?"
            r"tokens|(prompt|input|request) (is |was )?too (long|large|big)|"
            r"reduce (the |your )?(length|prompt|input)|exceeds? the (model'?s )?"
            r"(available )?(context|max\w*( sequence)? length)"
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
    504: "slow",
    524: "slow",
    529: "overload",
}
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
        return "no completion"
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
    words = next(
        (error[name] for name in ("message", "msg", "detail") if error.get(name)), ""
    )
    text = words if isinstance(words, str) else json.dumps(words)
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
