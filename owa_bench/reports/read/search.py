"""Search of a run's episodes: by success, drift, kind of failure, agent, and words of transcripts.

Source: docs/read-a-run.md#what-went-wrong.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from owa_bench.errors import FieldError, TraceError, one_of
from owa_bench.records import events
from owa_bench.records.events import AnyEvent
from owa_bench.records.instance import ANNOUNCEMENTS
from owa_bench.records.packs import Transcripts
from owa_bench.reports.read.bundle import Bundle
from owa_bench.reports.read.failures import KINDS, EpisodeReading, readings

_AROUND = 40  # characters of a text that are shown on each side of words found in it


class EpisodeFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which episodes are asked for; what is left out admits all.

    `drift` are magnitudes or classes ("D2"); `kinds` are kinds of failure, "budget:steps" for one
    detail of one; `words` stand in a transcript, upper or lower case.
    """

    success: bool | None = None
    arm: str = ""
    drift: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    words: str = ""


class EpisodeMatch(NamedTuple):
    """An episode that a filter admits; `step` and `text` are where its words stand first."""

    episode: EpisodeReading
    step: int | None = None
    text: str = ""


def check_filter(query: EpisodeFilter, arms: tuple[str, ...]) -> None:
    """Refuse names that no run has.

    Args:
        query: The filter.
        arms: Of the run.
    Raises: FieldError: Naming flag, value and rule.
    """
    for kind in query.kinds:
        if kind.partition(":")[0] not in KINDS:
            raise FieldError("--kind", kind, one_of(kind, KINDS))
    if query.arm and query.arm not in arms:
        raise FieldError("--arm", query.arm, one_of(query.arm, arms))
    for text in query.drift:
        if text not in ANNOUNCEMENTS and _magnitude(text) is None:
            rule = f"must be magnitudes such as 0.5, or classes: {', '.join(ANNOUNCEMENTS)}"
            raise FieldError("--drift", text, rule)


def matching_episodes(bundle: Bundle, query: EpisodeFilter) -> Iterator[EpisodeMatch]:
    """Yield the episodes that a filter admits, in the order of `readings`.

    Args:
        bundle: The run directory.
        query: The filter, checked.
    """
    rows = [row for row in readings(bundle) if _admits(query, row)]
    if not query.words:
        yield from map(EpisodeMatch, rows)
        return
    by_name = {row.attempt: row for row in rows}
    search = _WordSearch(query.words, Transcripts(bundle.layout))
    for attempt in bundle.attempts():
        row = by_name.get(attempt.attempt_id)
        if row is not None and (place := search.first(attempt.events)):
            yield EpisodeMatch(row, *place)


def _admits(query: EpisodeFilter, row: EpisodeReading) -> bool:
    """Return whether an episode is asked for, its words left out."""
    if query.success is not None and row.success is not query.success:
        return False
    if query.arm and row.arm != query.arm:
        return False
    if query.kinds and not {row.kind, f"{row.kind}:{row.detail}"}.intersection(query.kinds):
        return False
    magnitudes = [_magnitude(text) for text in query.drift]
    if not query.drift or row.drift in query.drift:
        return True
    return row.delta is not None and row.delta in magnitudes


def _magnitude(text: str) -> float | None:
    """Return a drift magnitude, None for a text that is none."""
    try:
        return float(text)
    except ValueError:
        return None


class _WordSearch:
    """Looks for words in the texts of attempts; a blob is read once."""

    def __init__(self, words: str, transcripts: Transcripts) -> None:
        self._words = words.lower()
        self._transcripts = transcripts
        self._shown: dict[str, str] = {}  # by digest of a blob, "" where the words are not in it

    def first(self, sequence: tuple[AnyEvent, ...]) -> tuple[int, str] | None:
        """Return the step and the text around the first place of the words, if any."""
        for event in sequence:
            step = getattr(event, "step", 0)
            if isinstance(event, events.Action) and (text := self._around(event.action)):
                return step, text
            if isinstance(event, events.EpisodeEnd) and (text := self._around(event.reason)):
                return event.steps, text
            for digest in _texts_of(event):
                if text := self._in_blob(digest):
                    return step, text
        return None

    def _in_blob(self, digest: str) -> str:
        if digest not in self._shown:
            try:
                data = self._transcripts.read(digest)
            except TraceError:
                data = b""
            self._shown[digest] = self._around(data.decode("utf-8", "replace"))
        return self._shown[digest]

    def _around(self, text: str) -> str:
        """Return the words with what stands around them, "" where they do not stand."""
        place = text.lower().find(self._words)
        if place < 0:
            return ""
        return " ".join(text[max(place - _AROUND, 0) : place + len(self._words) + _AROUND].split())


def _texts_of(event: AnyEvent) -> tuple[str, ...]:
    """Return the digests of the texts of an event, in the order in which they came."""
    match event:
        case events.Action():
            return (event.observation,)
        case events.Observation():
            return (event.blob,)
        case events.Call():
            return (event.request, event.response)
        case events.ModelCall():
            return (event.prompt, event.reply)
        case events.Execution():
            return (event.output,)
        case events.Message():
            return (event.digest,)
        case events.Intervention():
            return (event.question, event.answer)
        case events.Artifact() | events.Evidence() if event.media.startswith("text/"):
            return (event.blob,)
    return ()
