"""History of a plan entry: what its earlier attempts, all of them lost, leave behind.

Help that a lost attempt was given counts as used in the next. A failure of the model's
provider excuses one attempt of an entry; a second death of a worker scores 0.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from owa_bench.errors import ProviderFailure
from owa_bench.records.events import (
    DECODER,
    EpisodeEnd,
    EpisodeStart,
    Event,
    Intervention,
    Resource,
)
from owa_bench.records.layout import RunLayout
from owa_bench.records.shards import scan
from owa_bench.records.trace import attempt_id
from owa_bench.run.store import files

MAX_WORKER_DEATHS = 2


class EntryHistory(NamedTuple):
    """Help given in lost attempts, and who failed them."""

    help: tuple[Intervention, ...] = ()
    provider_failed: bool = False
    worker_deaths: int = 0

    def allowed(self, interventions: int | None) -> int | None:
        """Return how often the supervisor may still be asked; None: not limited."""
        return None if interventions is None else interventions - len(self.help)

    def help_events(self) -> Iterator[Event]:
        """Yield the events of help, as they stand at the start of an attempt."""
        for event in self.help:
            yield msgspec.structs.replace(event, step=0, source="harness")
            yield Resource(
                step=0,
                source="harness",
                meter="supervisor_min",
                amount=event.minutes,
                stream="human",
            )


NO_HISTORY = EntryHistory()


def read_history(
    layout: RunLayout, index: int, attempt: int, *, died: bool
) -> EntryHistory:
    """Return the history of an entry before one of its attempts.

    Args:
        layout: The run directory.
        index: The entry.
        attempt: The attempt that is to be made, from 0.
        died: Whether the worker of the attempt before died.

    Returns:
        What the frames of the attempts before it say.
    """
    names = {attempt_id(index, number) for number in range(attempt)}
    given: list[Intervention] = []
    deaths, provider_failed = {0: 0}, False
    for path in files.shard_paths(layout) if names else ():
        for frame in scan(path):
            if frame.segment.attempt_id not in names:
                continue
            for event in map(DECODER.decode, frame.lines):
                if isinstance(event, EpisodeStart):
                    deaths[event.attempt] = event.worker_deaths
                elif isinstance(event, EpisodeEnd):
                    provider_failed |= event.reason.startswith(ProviderFailure.__name__)
                elif isinstance(event, Intervention) and _is_given(event):
                    given.append(event)
    return EntryHistory(tuple(given), provider_failed, deaths[max(deaths)] + died)


def _is_given(event: Intervention) -> bool:
    return event.kind != "refused" and event.source != "harness"
