"""Responses of the gateway: replies as agents get them."""

from collections.abc import Mapping
from typing import Any

import httpx
from starlette.responses import JSONResponse, Response

from owa_bench.run.gateway.session import ModelRequest

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

    Returns:
        The reply as it came; an error inside a success gets an error's status.
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


def with_usage(path: str, terms: dict[str, Any]) -> dict[str, Any] | None:
    """Return a streamed request that asks for usage.

    Args:
        path: Of the request, below /v1.
        terms: Its body.

    Returns:
        A changed body; None where it asks already, or where nothing can be asked.
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

    Returns:
        The response.
    """
    error = {"message": message, "type": "gateway", "code": code or None}
    return JSONResponse({"error": error}, status)
