"""Pictures of failed episodes: the report names them, the run's packs hold the pixels.

A suite that drives something visible records its last picture as an Evidence event. The report
names, from the traces alone, failed episodes of different agents and kinds of drift; the page holds
their pictures, each read from the run's packs and hashed again.
"""

import base64
from collections.abc import Iterable
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from owa_bench.errors import TraceError
from owa_bench.records.events import Drift, Evidence
from owa_bench.records.layout import RunLayout
from owa_bench.records.packs import Transcripts
from owa_bench.records.trace import Trace

_MEDIA = ("image/jpeg", "image/png")
_PER_ARM, _MOST = 6, 12  # pictures of one agent, and of all
_LARGEST, _PAGE_LIMIT = 200_000, 900_000  # bytes of one picture, of all on a page
_OPERATORS = 4  # operators named below a picture
_REASON = 120  # characters of an outcome's reason


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """The last picture of one failed episode, by the digest of its blob."""

    attempt: str
    arm: str
    family: str
    tier: int
    drift: str
    magnitude: float | None
    quality: float
    outcome: str
    reason: str
    operators: tuple[str, ...]
    step: int
    media: str
    blob: str


class Gallery(msgspec.Struct, frozen=True, kw_only=True):
    """The pictures a report shows, of how many failures; `note` why there are none."""

    pictures: tuple[Picture, ...] = ()
    failures: int = 0
    pictured: int = 0
    note: str = ""


class PageImage(NamedTuple):
    """A picture as the page holds it; where `uri` is empty, `missing` says why."""

    picture: Picture
    uri: str
    missing: str


def select_pictures(traces: Iterable[Trace], *, transcripts: bool) -> Gallery:
    """Return the pictures to show: per agent the first of each kind of drift.

    A failure is a counted episode below its own threshold. Agents alternate.

    Args:
        traces: the counted attempts in plan order.
        transcripts: whether the run kept its blobs.
    Returns: The pictures, and of how many failures they are.
    """
    choice = PictureChoice()
    for trace in traces:
        choice.add(trace)
    return choice.gallery(transcripts=transcripts)


class PictureChoice:
    """The failures of a run and the pictures of them, added one by one."""

    def __init__(self) -> None:
        self._failures = self._pictured = 0
        self._by_arm: dict[str, dict[tuple[str, float | None], Picture]] = {}

    def add(self, trace: Trace) -> None:
        """Add a counted episode, if it failed."""
        end = trace.end
        if end.outcome == "infrastructure" or end.q_state >= trace.start.theta:
            return
        self._failures += 1
        images = [e for e in trace.of(Evidence) if e.media in _MEDIA]
        if images:
            self._pictured += 1
            picture = _picture(trace, images[-1])
            kinds = self._by_arm.setdefault(picture.arm, {})
            kinds.setdefault((picture.drift, picture.magnitude), picture)

    def gallery(self, *, transcripts: bool) -> Gallery:
        """Return the pictures to show: none where the run did not keep its blobs."""
        by_arm = self._by_arm.values()
        chosen = _alternate([list(kinds.values())[:_PER_ARM] for kinds in by_arm])
        return Gallery(
            pictures=tuple(chosen) if transcripts else (),
            failures=self._failures,
            pictured=self._pictured,
            note=_missing_note(self._failures, self._pictured, transcripts=transcripts),
        )


def page_images(layout: RunLayout, gallery: Gallery) -> tuple[PageImage, ...]:
    """Return the pictures with their pixels, as far as a page has room for them.

    Args:
        layout: paths of the run directory.
        gallery: the pictures that the report names.
    Returns: One image a picture, in their order.
    """
    room, images = _PAGE_LIMIT, []
    transcripts = Transcripts(layout)
    for picture in gallery.pictures:
        data, missing = _read(transcripts, picture, room)
        room -= len(data)
        encoded = base64.b64encode(data).decode()
        uri = f"data:{picture.media};base64,{encoded}" if data else ""
        images.append(PageImage(picture, uri, missing))
    return tuple(images)


def _read(transcripts: Transcripts, picture: Picture, room: int) -> tuple[bytes, str]:
    """Return a blob's bytes, or why the picture is not shown."""
    try:
        data = transcripts.read(picture.blob)
    except TraceError:
        return b"", "the run holds no such blob"
    if len(data) > min(room, _LARGEST):
        return b"", "left out: the page would be too large"
    return data, ""


def _picture(trace: Trace, image: Evidence) -> Picture:
    start, end = trace.start, trace.end
    return Picture(
        attempt=trace.leaf.attempt_id,
        arm=start.arm,
        family=f"{start.instance.suite}/{start.instance.family}",
        tier=start.instance.tier,
        drift=start.calendar if start.delta else "",
        magnitude=start.delta,
        quality=end.q_state,
        outcome=end.outcome,
        reason=" ".join(end.reason.split())[:_REASON],
        operators=operator_names(trace.of(Drift)),
        step=image.step,
        media=image.media,
        blob=image.blob,
    )


def operator_names(changes: Iterable[Drift]) -> tuple[str, ...]:
    """Return the names of the operators that were applied, each once, in order."""
    return tuple(dict.fromkeys(change.operator for change in changes))


def _alternate(rows: list[list[Picture]]) -> list[Picture]:
    """Return the pictures of all agents, one of each in turn, `_MOST` at most."""
    turns = zip_longest(*rows)
    return [picture for turn in turns for picture in turn if picture][:_MOST]


def _missing_note(failures: int, pictured: int, *, transcripts: bool) -> str:
    if not failures:
        return "No counted episode failed."
    if not pictured:
        return "No failed episode left a picture."
    return "" if transcripts else "The run kept no transcripts, so it holds no picture."


def caption(picture: Picture) -> str:
    """Return the caption of a picture."""
    drift = "undrifted"
    if picture.magnitude:
        kind = picture.drift.removeprefix("nested:") or "all operators"
        names = [name.rpartition("/")[2] for name in picture.operators]
        more = f" and {len(names) - _OPERATORS} more" if len(names) > _OPERATORS else ""
        listed = f" ({', '.join(names[:_OPERATORS])}{more})" if names else ""
        drift = f"{kind} at {picture.magnitude:g}{listed}"
    elif picture.magnitude is None:
        drift = "by day"
    return (
        f"{picture.family} T{picture.tier}, {drift}: q_state {picture.quality:.2f}, "
        f"{picture.outcome} after step {picture.step}. {picture.attempt}"
    )
