"""Sinks for events: discarding, and in memory."""

from owa_bench.canonical import sha256
from owa_bench.records.events import Event


class NullSink:
    """Keeps nothing; `active` is False, so that no event is built for it."""

    active = False

    def emit(self, event: Event) -> None:
        """Forget the event."""

    def blob(self, data: bytes) -> str:
        """Return the SHA-256 of `data`, which is not kept."""
        return sha256(data)

    def secret(self, name: str, value: str) -> None:
        """Forget the secret. Args: name, value: as `Sink`."""


class ListSink:
    """Keeps events, blobs and secrets in memory, as they came: for tests and replay."""

    active = True

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.blobs: dict[str, bytes] = {}
        self.secrets: dict[str, str] = {}

    def emit(self, event: Event) -> None:
        """Keep the event."""
        self.events.append(event)

    def blob(self, data: bytes) -> str:
        """Keep `data` and return its SHA-256."""
        digest = sha256(data)
        self.blobs[digest] = data
        return digest

    def secret(self, name: str, value: str) -> None:
        """Keep the secret by name. Args: name, value: as `Sink`."""
        self.secrets[name] = value
