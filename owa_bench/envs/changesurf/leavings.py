"""What a visit leaves, step by step: events of its requests, and blobs of its pages."""

from collections.abc import Sequence

from owa_bench.envs.changesurf.driver import Driver, Exchange, Seen
from owa_bench.envs.changesurf.evidence import Timed, har, manifest, written
from owa_bench.interfaces import Sink
from owa_bench.records.events import Artifact, Call, Event, Evidence, Resource

SHOWN = frozenset({"Document", "XHR", "Fetch"})  # requests that become Call events
REFUSED = 400
_JSON, _JPEG = "application/json", "image/jpeg"


class Leavings:
    """Turns what a driver saw into events, and keeps what the manifest lists."""

    def __init__(self, driver: Driver, sink: Sink, *, site: str) -> None:
        self._driver = driver
        self._sink = sink
        self._site = site
        self._times: list[int] = []  # of the requests taken so far, simulated
        self._kept: dict[str, str] = {}
        self._first_dom = b""

    def begin(self) -> None:
        """Keep the page that the visit begins with; its first step tells of it."""
        if self._sink.active:
            self._first_dom = self._driver.snapshot()

    def fresh(self, now_ms: int) -> Sequence[Exchange]:
        """Return the requests made since last asked."""
        fresh = self._driver.exchanges()[len(self._times) :]
        self._times += [now_ms] * len(fresh)
        return fresh

    def of_step(
        self, seen: Seen, fresh: Sequence[Exchange], step: int
    ) -> tuple[Event, ...]:
        """Return requests and costs and, at key steps, what the page looked like."""
        events = [*self._first(step), *self._requests(fresh, step)]
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
        self, late: Sequence[Exchange], came_to: Sequence[Event], step: int
    ) -> tuple[Event, ...]:
        """Return what came late, what it came to, HAR, last picture and manifest."""
        left = [*self._first(step), *self._requests(late, step)]
        if not self._sink.active:
            return tuple(left)
        entries = map(Timed, self._times, self._driver.exchanges())
        left += [*came_to, self._artifact(step, "har", har(entries))]
        left.append(self._evidence(step, "picture", _JPEG, self._driver.picture()))
        whole = manifest(self._driver.facts(), self._kept)
        left.append(self._evidence(step, "manifest", _JSON, whole))
        return tuple(left)

    # --- inside -----------------------------------------------------------------------

    def _first(self, step: int) -> tuple[Event, ...]:
        """Return the page that the visit began with, once."""
        data, self._first_dom = self._first_dom, b""
        return (self._artifact(step, "dom", data),) if data else ()

    def _requests(self, fresh: Sequence[Exchange], step: int) -> tuple[Event, ...]:
        """Return what the requests for pages, and those refused, came to and cost."""
        told = (e for e in fresh if e.kind in SHOWN or e.denied)
        return tuple(event for e in told for event in self._call_events(e, step))

    def _call_events(self, exchange: Exchange, step: int) -> tuple[Event, ...]:
        request, response = written(exchange), exchange.response_body
        size = len(exchange.request_body) + len(response)
        return (
            Call(
                step=step,
                method=exchange.method,
                target=exchange.url,
                status=exchange.status,
                category=self._site,
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
        return Artifact(
            step=step, name=name, media=_JSON, blob=blob, provenance=(step,)
        )

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
