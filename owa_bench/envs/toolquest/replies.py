"""Replies and problems, and the headers of the protocol around them.

Sources: RFC 9457 (problem+json), RFC 9110 (ETag, 304, Retry-After, gzip), RFC 8288
(Link), RFC 9745 (Deprecation), RFC 8594 (Sunset), RateLimit header fields (IETF draft).
"""

import gzip
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import blake2b

from starlette.responses import Response

from owa_bench.envs.toolquest.state import RateWindow
from owa_bench.envs.toolquest.wire_format import encode
from owa_bench.envs.toolquest.world import ApiResource, Contract, Provider

JSON = "application/json"
PROBLEM = "application/problem+json"
# The moment of the simulated clock at which every episode begins.
EPOCH = datetime(2031, 12, 1, 8, 0, tzinfo=UTC)


class ProblemResponse(Response):
    """An error that says what is wrong and how to put it right."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] | None,
        more: Mapping[str, object],
    ) -> None:
        self.code, self.message, self.more = code, message, more
        body = {"error": code, "message": message, **more}
        super().__init__(encode(body), status, headers, JSON)


def json_reply(status: int, body: object, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response.

    Args:
        status: HTTP status.
        body: A JSON value.
        headers: More headers.
    """
    return Response(encode(body), status, headers, JSON)


def problem(
    status: int,
    code: str,
    message: str,
    *,
    headers: Mapping[str, str] | None = None,
    collections: list[str] | None = None,
) -> ProblemResponse:
    """Return an error.

    Args:
        status: HTTP status.
        code: Machine word.
        message: What is wrong and how to put it right.
        headers: More headers.
        collections: Paths that are served, where the path is wrong.
    """
    more = {} if collections is None else {"collections": collections}
    return ProblemResponse(status, code, message, headers, more)


def in_error_format(contract: Contract, reply: Response) -> Response:
    """Return an error as the vendor writes errors: plain JSON or problem+json.

    Args:
        contract: The vendor's contract.
        reply: Any response.
    Returns: The response, rewritten if it is an error and the vendor uses problem+json.
    """
    if not contract.problems or not isinstance(reply, ProblemResponse):
        return reply
    body = {
        "type": f"about:blank#{reply.code}",
        "title": reply.code.replace("_", " ").capitalize(),
        "status": reply.status_code,
        "detail": reply.message,
        **reply.more,
    }
    headers = {n: v for n, v in reply.headers.items() if not n.startswith("content-")}
    return Response(encode(body), reply.status_code, headers, PROBLEM)


def retry_headers(contract: Contract, now_ms: int, wait_ms: int) -> dict[str, str]:
    """Return the headers that say when to come back, in seconds or as a date.

    Args:
        contract: The vendor's contract.
        now_ms: Simulated clock, milliseconds.
        wait_ms: Milliseconds until the next request is taken.
    Returns: Retry-After, and Date where it is a date.
    """
    seconds = -(-wait_ms // 1000)
    if not contract.dated:
        return {"retry-after": str(seconds)}
    now = EPOCH + timedelta(seconds=now_ms // 1000)
    back = EPOCH + timedelta(seconds=-(-(now_ms + wait_ms) // 1000))
    return {
        "date": format_datetime(now, usegmt=True),
        "retry-after": format_datetime(back, usegmt=True),
    }


def rate_limit_headers(
    contract: Contract, window: RateWindow | None, now_ms: int
) -> dict[str, str]:
    """Return the RateLimit headers of a vendor that sends them.

    Args:
        contract: The vendor's contract.
        window: The running window, None before the first request.
        now_ms: Simulated clock, milliseconds.
    Returns: Headers by name; none where the vendor sends none.
    """
    if not contract.counted or window is None:
        return {}
    limit = contract.limit
    left = max(0, limit.requests - window.used)
    reset = max(0, -(-(window.start_ms + limit.window_ms - now_ms) // 1000))
    return {
        "ratelimit-policy": f'"default";q={limit.requests};w={limit.window_ms // 1000}',
        "ratelimit": f'"default";r={left};t={reset}',
    }


def sunset_headers(provider: Provider, resource: ApiResource, former: str) -> dict[str, str]:
    """Return the headers of a collection on its way out, or of its former path.

    Args:
        provider: The vendor.
        resource: The collection.
        former: The old path by which the request came, "" for the present one.
    Returns: Headers by name.
    """
    if not resource.sunset and not former:
        return {}
    found = {"deprecation": f"@{int(EPOCH.timestamp()) - 86_400}"}
    if resource.sunset:
        day = datetime.fromisoformat(resource.sunset).replace(tzinfo=UTC)
        found["sunset"] = format_datetime(day, usegmt=True)
    if former:
        address = f"https://{provider.host}{resource.path}"
        found["link"] = f'<{address}>; rel="successor-version"'
    return found


def conditional(reply: Response, wanted: Mapping[str, str]) -> Response:
    """Return the reply with its ETag, 304 for a body that the client has already.

    Args:
        reply: The response.
        wanted: Headers of the request.
    Returns: The response or a 304.
    """
    tag = f'"{blake2b(reply.body, digest_size=8).hexdigest()}"'
    if tag in wanted.get("if-none-match", "").replace("W/", "").split(", "):
        return Response(status_code=304, headers={"etag": tag})
    reply.headers["etag"] = tag
    return reply


def compressed(reply: Response, wanted: Mapping[str, str]) -> Response:
    """Return the reply, compressed where the client takes gzip.

    Args:
        reply: The response.
        wanted: Headers of the request.
    Returns: The response, gzip or as it is.
    """
    if "gzip" not in wanted.get("accept-encoding", "") or not reply.body:
        return reply
    headers = {n: v for n, v in reply.headers.items() if n != "content-length"}
    headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
    body = gzip.compress(bytes(reply.body), mtime=0)
    return Response(body, reply.status_code, headers)
