"""The sink of a played episode: counts resources on their way to the recorder."""

import msgspec

from owa_bench.interfaces import Sink
from owa_bench.records.events import Event, Resource
from owa_bench.run.plan.budget import EpisodeTally


class EpisodeSink:
    """Sink that counts what passes; always active, so that nothing is skipped.

    With `evaluation` every cost is put into the evaluation stream: checkpoints and
    attempt sets of a campaign are no practice.
    """

    active = True

    def __init__(
        self, inner: Sink, tally: EpisodeTally | None = None, *, evaluation: bool
    ) -> None:
        self._tally = tally
        self._evaluation = evaluation
        self._inner = inner

    def emit(self, event: Event) -> None:
        """Count one event and pass it on."""
        if self._tally is not None:
            self._tally.take(event)
        if self._evaluation and isinstance(event, Resource):
            event = msgspec.structs.replace(event, stream="evaluation")
        self._inner.emit(event)

    def blob(self, data: bytes) -> str:
        """Pass a blob on and return its digest."""
        return self._inner.blob(data)

    def secret(self, name: str, value: str) -> None:
        """Pass a secret on.

        Args:
            name: What stands in records in its place.
            value: The secret.
        """
        self._inner.secret(name, value)
