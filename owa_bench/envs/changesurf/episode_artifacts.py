"""Episode artifacts: events of the requests, page blobs, HAR and manifest.

The HAR is the interceptor's log, so it is exact; its times are simulated and the same in every
replay. What differs between machines (binary, versions) is in the manifest.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from owa_bench.canonical import canonical_json, sha256
from owa_bench.envs.changesurf.browser.driver import ActionResult, BrowserExchange, Driver
from owa_bench.interfaces import Sink
from owa_bench.records.events import Artifact, Call, Event, Evidence, Resource

SHOWN = frozenset({"Document", "XHR", "Fetch"})  # requests that become Call events
REFUSED = 400
_JSON, _JPEG = "application/json", "image/jpeg"


class ArtifactRecorder:
    """Turns the driver's log into events, and stores what the manifest lists."""

    def __init__(self, driver: Driver, sink: Sink) -> None:
        self._driver = driver
        self._sink = sink
        self._times: list[int] = []  # of the requests taken so far, simulated
        self._kept: dict[str, str] = {}
        self._first_dom = b""

    def begin(self) -> None:
        """Keep the page that the visit begins with; its first step tells of it."""
        if self._sink.active:
            self._first_dom = self._driver.snapshot()

    def fresh(self, now_ms: int) -> Sequence[BrowserExchange]:
        """Return the requests made since last asked."""
        fresh = self._driver.exchanges()[len(self._times) :]
        self._times += [now_ms] * len(fresh)
        return fresh

    def of_step(
        self, seen: ActionResult, fresh: Sequence[BrowserExchange], step: int
    ) -> tuple[Event, ...]:
        """Return the events of a step: requests, costs and, at key steps, the page.

        Args:
            seen: the page after the step.
            fresh: the requests made since the step before.
            step: its number.
        Returns: The events in order.
        """
        events = [*self._first_page(step), *self._requests(fresh, step)]
        if not self._sink.active:
            return tuple(events)
        # A page that a script put in is a new one though the document stays.
        if seen.navigated or any(exchange.kind in SHOWN for exchange in fresh):
            events.append(self._artifact(step, "dom", self._driver.snapshot()))
        if any(exchange.method == "POST" for exchange in fresh):
            events.append(self._artifact(step, "ax", self._driver.tree()))
            shot = self._driver.picture()
            events.append(self._evidence(step, "picture", _JPEG, shot))
        return tuple(events)

    def at_end(
        self, late: Sequence[BrowserExchange], effect: Sequence[Event], step: int
    ) -> tuple[Event, ...]:
        """Return the last events: late requests, HAR, last picture and manifest.

        Args:
            late: the requests made after the last look.
            effect: the events of the drift's effect.
            step: the number of the last step.
        Returns: The events in order.
        """
        events = [*self._first_page(step), *self._requests(late, step)]
        if not self._sink.active:
            return tuple(events)
        entries = map(TimedExchange, self._times, self._driver.exchanges())
        events += [*effect, self._artifact(step, "har", har(entries))]
        events.append(self._evidence(step, "picture", _JPEG, self._driver.picture()))
        data = manifest(self._driver.facts(), self._kept)
        events.append(self._evidence(step, "manifest", _JSON, data))
        return tuple(events)

    # --- inside -----------------------------------------------------------------------

    def _first_page(self, step: int) -> tuple[Event, ...]:
        """Return the page that the visit began with, once."""
        data, self._first_dom = self._first_dom, b""
        return (self._artifact(step, "dom", data),) if data else ()

    def _requests(self, fresh: Sequence[BrowserExchange], step: int) -> tuple[Event, ...]:
        """Return what the requests for pages, and those refused, came to and cost."""
        shown = (e for e in fresh if e.kind in SHOWN or e.denied)
        return tuple(event for e in shown for event in self._call_events(e, step))

    def _call_events(self, exchange: BrowserExchange, step: int) -> tuple[Event, ...]:
        request, response = request_bytes(exchange), exchange.response_body
        size = len(exchange.request_body) + len(response)
        return (
            Call(
                step=step,
                method=exchange.method,
                target=exchange.url,
                status=exchange.status,
                ok=0 < exchange.status < REFUSED,
                request=self._digest(request),
                response=self._digest(response),
            ),
            Resource(step=step, meter="api_calls", amount=1.0),
            Resource(step=step, meter="bytes", amount=float(size)),
        )

    def _digest(self, data: bytes) -> str:
        return self._sink.blob(data) if self._sink.active else ""

    def _artifact(self, step: int, name: str, data: bytes) -> Artifact:
        blob = self._keep(f"{name}@{step}", data)
        return Artifact(step=step, name=name, media=_JSON, blob=blob, provenance=(step,))

    def _evidence(self, step: int, name: str, media: str, data: bytes) -> Evidence:
        blob = self._keep(f"{name}@{step}", data)
        return Evidence(step=step, name=name, media=media, blob=blob)

    def _keep(self, name: str, data: bytes) -> str:
        known, count = name, 1
        while name in self._kept:  # two of a kind in one step
            count += 1
            name = f"{known}.{count}"
        self._kept[name] = blob = self._sink.blob(data)
        return blob


_CLOCK = "2000-01-01T{:02d}:{:02d}:{:02d}.{:03d}Z"  # simulated: hours since the reset
_HOUR_MS, _MINUTE_MS, _SECOND_MS = 3_600_000, 60_000, 1_000


class TimedExchange(NamedTuple):
    """An exchange and the simulated time at which it was made."""

    at_ms: int
    exchange: BrowserExchange


def har(entries: Iterable[TimedExchange]) -> bytes:
    """Return a HAR 1.2 file as canonical JSON."""
    log = {
        "version": "1.2",
        "creator": {"name": "owa-bench", "version": "1"},
        "comment": "times are simulated",
        "entries": [_entry(timed) for timed in entries],
    }
    return canonical_json({"log": log})


def manifest(facts: Mapping[str, Any], blobs: Mapping[str, str]) -> bytes:
    """Return the manifest as canonical JSON.

    Args:
        facts: binary, version and flags of the browser.
        blobs: the SHA-256 of every artifact, by name.
    """
    return canonical_json({"driver": dict(facts), "blobs": dict(blobs)})


def request_bytes(exchange: BrowserExchange) -> bytes:
    """Return a request as text, the form in which it is evidence."""
    lines = [f"{exchange.method} {exchange.url}"]
    lines += [f"{name}: {value}" for name, value in exchange.request_headers]
    return "\n".join(lines).encode() + b"\n\n" + exchange.request_body


def _entry(timed: TimedExchange) -> dict[str, Any]:
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


def _request(exchange: BrowserExchange) -> dict[str, Any]:
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


def _response(exchange: BrowserExchange) -> dict[str, Any]:
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
