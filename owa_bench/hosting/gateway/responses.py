"""Responses of the gateway: replies as agents get them."""

from collections.abc import Collection, Mapping
from typing import Any

import httpx
from starlette.responses import JSONResponse, Response

from owa_bench.hosting.gateway.reply_masks import ReplyMask, error_of, headers_of
from owa_bench.hosting.gateway.request_fields import TABLES, FieldValue
from owa_bench.hosting.gateway.session import GatewaySession, ModelRequest

VERDICT_HEADER = "x-owa-verdict"
_STATUS_OF = {
    "key": 401,
    "credit": 402,
    "model": 404,
    "quota": 429,
    "request": 400,
    "tool call": 400,
    "too long": 400,
    "filtered": 400,
}


def is_stream(reply: httpx.Response) -> bool:
    """Return whether a reply may be server-sent events."""
    return "json" not in reply.headers.get("content-type", "") and (
        "html" not in reply.headers.get("content-type", "")
    )


def verdict_text(record: ModelRequest) -> str:
    """Return the judgement as the agent's client reads it in a header."""
    if record.judgement is None:
        return ""
    return f"{record.judgement.verdict}; {record.judgement.cause}".rstrip("; ")


_CODE_OF = {
    "tool call": "tool_use_failed",
    "too long": "context_length_exceeded",
    "filtered": "content_filter",
    "key": "invalid_api_key",
    "credit": "insufficient_quota",
    "model": "model_not_found",
    "quota": "rate_limit_exceeded",
}


def as_judged(record: ModelRequest, headers: Mapping[str, str]) -> Response:
    """Return a reply as the agent gets it.

    Args:
        record: The request and its reply.
        headers: Of the response.
    Returns: The reply as it came; an error inside a success gets an error's status.
    """
    judgement = record.judgement
    if judgement is None or judgement.verdict == "completion" or record.status >= 300:
        return Response(record.reply, record.status, headers)
    status = _STATUS_OF.get(judgement.cause, 502)
    return error_response(
        status,
        f"The provider answered HTTP 200, but {judgement.text}",
        _CODE_OF.get(judgement.cause, ""),
    )


def as_masked(mask: ReplyMask, record: ModelRequest, response: Response) -> Response:
    """Return a response without what tells of other sessions.

    Args:
        mask: Of the session.
        record: The request and its reply.
        response: As any agent gets it.
    Returns: The reply with ids of the session's own; an error in words of its cause.
    """
    judgement = record.judgement
    if judgement is None or record.path.startswith("/models"):
        return response
    if judgement.verdict == "completion":
        headers = headers_of(response.headers, response.status_code)
        body = mask.body(record.reply, record.path)
        return Response(body, response.status_code, headers)
    status, words = error_of(judgement, response.status_code)
    failed = error_response(status, words, _CODE_OF.get(judgement.cause, ""))
    failed.headers.update(headers_of({}, status))
    return failed


def as_sent(
    session: GatewaySession, path: str, terms: dict[str, Any], passed: Collection[str]
) -> dict[str, Any]:
    """Return a request as the provider gets it: it keeps nothing, in no common cache.

    Args:
        session: Who asks.
        path: Of the request, below /v1.
        terms: Its body, every field of which is on the list.
        passed: Names of fields that the run lets pass.
    Returns: The body: responses are not stored, keys of a prompt cache are the session's.
    """
    changed: dict[str, Any] = {
        name: session.cache_key
        for name, rule in TABLES.get(path, {}).items()
        if rule is FieldValue.SESSION and terms.get(name) is not None and name not in passed
    }
    if path == "/responses" and not (terms.get("store") and "store" in passed):
        changed["store"] = False  # a server's default is true
    return {**terms, **changed} if changed else terms


def with_usage(path: str, terms: dict[str, Any]) -> dict[str, Any] | None:
    """Return a streamed request that asks for usage.

    Args:
        path: Of the request, below /v1.
        terms: Its body.
    Returns: A changed body; None where it asks already, or where nothing can be asked.
    """
    options = terms.get("stream_options") or {}
    if path != "/chat/completions" or not isinstance(options, dict):
        return None
    if options.get("include_usage") is True:
        return None
    return {**terms, "stream_options": {**options, "include_usage": True}}


def error_response(status: int, message: str, code: str = "") -> JSONResponse:
    """Return an error in the form that clients of OpenAI read.

    Args:
        status: Of the response.
        message: What is wrong, in a line.
        code: What clients know the error by.
    """
    error = {"message": message, "type": "gateway", "code": code or None}
    return JSONResponse({"error": error}, status)
