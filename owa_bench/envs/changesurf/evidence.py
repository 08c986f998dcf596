"""What an attempt leaves behind: the HAR of its requests and the manifest.

The HAR is the interceptor's log, so it is exact; its times are simulated and the same
in every replay. What differs between machines (binary, versions) is in the manifest.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from owa_bench.canonical import canonical_json, sha256
from owa_bench.envs.changesurf.driver import Exchange

_CLOCK = "2000-01-01T{:02d}:{:02d}:{:02d}.{:03d}Z"  # simulated: hours since the reset
_HOUR_MS, _MINUTE_MS, _SECOND_MS = 3_600_000, 60_000, 1_000


class Timed(NamedTuple):
    """An exchange and the simulated time at which it was made."""

    at_ms: int
    exchange: Exchange


def har(entries: Iterable[Timed]) -> bytes:
    """Return a HAR 1.2 file as canonical JSON."""
    log = {
        "version": "1.2",
        "creator": {"name": "owa-bench", "version": "1"},
        "comment": "times are simulated",
        "entries": [_entry(timed) for timed in entries],
    }
    return canonical_json({"log": log})


def manifest(facts: Mapping[str, Any], blobs: Mapping[str, str]) -> bytes:
    """Return which browser drove and the SHA-256 of everything it left."""
    return canonical_json({"driver": dict(facts), "blobs": dict(blobs)})


def written(exchange: Exchange) -> bytes:
    """Return a request as text, the form in which it is evidence."""
    lines = [f"{exchange.method} {exchange.url}"]
    lines += [f"{name}: {value}" for name, value in exchange.request_headers]
    return "\n".join(lines).encode() + b"\n\n" + exchange.request_body


def _entry(timed: Timed) -> dict[str, Any]:
    exchange = timed.exchange
    return {
        "startedDateTime": _clock(timed.at_ms),
        "time": 0,
        "request": _request(exchange),
        "response": _response(exchange),
        "cache": {},
        "timings": {"send": 0, "wait": 0, "receive": 0},
        "_resourceType": exchange.kind.lower(),
        "_denied": exchange.denied,
    }


def _request(exchange: Exchange) -> dict[str, Any]:
    query = parse_qsl(urlsplit(exchange.url).query, keep_blank_values=True)
    request: dict[str, Any] = {
        "method": exchange.method,
        "url": exchange.url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(exchange.request_headers),
        "queryString": _pairs(query),
        "headersSize": -1,
        "bodySize": len(exchange.request_body),
    }
    if exchange.request_body:
        kinds = dict(exchange.request_headers)
        request["postData"] = {
            "mimeType": kinds.get("content-type", ""),
            "text": exchange.request_body.decode("utf-8", "replace"),
        }
    return request


def _response(exchange: Exchange) -> dict[str, Any]:
    kinds = dict(exchange.response_headers)
    return {
        "status": exchange.status,
        "statusText": "",
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(exchange.response_headers),
        "content": {
            "size": len(exchange.response_body),
            "mimeType": kinds.get("content-type", ""),
            "text": exchange.response_body.decode("utf-8", "replace"),
            "comment": sha256(exchange.response_body),
        },
        "redirectURL": kinds.get("location", ""),
        "headersSize": -1,
        "bodySize": len(exchange.response_body),
    }


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]


def _clock(at_ms: int) -> str:
    hours, rest = divmod(at_ms, _HOUR_MS)
    minutes, rest = divmod(rest, _MINUTE_MS)
    seconds, milliseconds = divmod(rest, _SECOND_MS)
    return _CLOCK.format(hours, minutes, seconds, milliseconds)
