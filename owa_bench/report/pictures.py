"""Pictures of failures: which are shown is part of the report, the pixels are blobs.

A suite that drives something visible leaves its last picture as an Evidence event. The
report names, from the traces alone, failed episodes of different agents and kinds of
drift; the page holds their pictures, each read from the run's blobs and hashed again.
"""

import base64
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from owa_bench.canonical import sha256
from owa_bench.records.events import Drift, Evidence
from owa_bench.records.layout import RunLayout
from owa_bench.records.trace import Trace

_MEDIA = ("image/jpeg", "image/png")
_PER_ARM, _MOST = 6, 12
_LARGEST, _WHOLE = 200_000, 900_000  # bytes of one picture, and of all on a page
_NAMED = 4  # operators named below a picture
_WORDS = 120


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


class Shown(NamedTuple):
    """A picture as the page holds it; `uri` empty with the reason why."""

    picture: Picture
    uri: str
    missing: str


def gallery(traces: Iterable[Trace], *, transcripts: bool) -> Gallery:
    """Return which pictures are shown: per agent the first of each kind of drift.

    A failure is a counted episode below its own threshold; agents take turns.
    """
    failures, pictured = 0, 0
    found: dict[str, dict[tuple[str, float | None], Picture]] = {}
    for trace in traces:
        end = trace.end
        if end.outcome == "infrastructure" or end.q_state >= trace.start.theta:
            continue
        failures += 1
        last = _last(trace)
        if last is not None:
            pictured += 1
            made = _picture(trace, last)
            kinds = found.setdefault(made.arm, {})
            kinds.setdefault((made.drift, made.magnitude), made)
    chosen = _in_turn([list(kinds.values())[:_PER_ARM] for kinds in found.values()])
    return Gallery(
        pictures=tuple(chosen) if transcripts else (),
        failures=failures,
        pictured=pictured,
        note=_why_none(failures, pictured, transcripts=transcripts),
    )


def shown(layout: RunLayout, found: Gallery) -> tuple[Shown, ...]:
    """Return the pictures with their pixels, as far as a page has room for them."""
    room, made = _WHOLE, []
    for picture in found.pictures:
        data, why = _read(layout, picture, room)
        room -= len(data)
        uri = ""
        if data:
            uri = f"data:{picture.media};base64,{base64.b64encode(data).decode()}"
        made.append(Shown(picture, uri, why))
    return tuple(made)


def _read(layout: RunLayout, picture: Picture, room: int) -> tuple[bytes, str]:
    """Return a blob's bytes if it is what its name says, else why it is not shown."""
    try:
        data = (layout.blobs / picture.blob).read_bytes()
    except OSError:
        return b"", "the run holds no such blob"
    if sha256(data) != picture.blob:
        return b"", "the blob does not hash to its name"
    if len(data) > min(room, _LARGEST):
        return b"", "left out: the page would be too large"
    return data, ""


def _last(trace: Trace) -> Evidence | None:
    """Return an episode's last picture."""
    kept = [event for event in trace.of(Evidence) if event.media in _MEDIA]
    return kept[-1] if kept else None


def _picture(trace: Trace, last: Evidence) -> Picture:
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
        reason=" ".join(end.reason.split())[:_WORDS],
        operators=struck(trace.of(Drift)),
        step=last.step,
        media=last.media,
        blob=last.blob,
    )


def struck(changes: Iterable[Drift]) -> tuple[str, ...]:
    """Return the operators that struck, each once, in order."""
    return tuple(dict.fromkeys(change.operator for change in changes))


def _in_turn(rows: list[list[Picture]]) -> list[Picture]:
    """Return the pictures of all agents, one of each in turn, up to the most."""
    longest = max(map(len, rows), default=0)
    turns = [row[i] for i in range(longest) for row in rows if i < len(row)]
    return turns[:_MOST]


def _why_none(failures: int, pictured: int, *, transcripts: bool) -> str:
    if not failures:
        return "No counted episode failed."
    if not pictured:
        return "No failed episode left a picture."
    return "" if transcripts else "The run kept no transcripts, so it holds no picture."


def caption(picture: Picture) -> str:
    """Return what stands below a picture."""
    drift = "undrifted"
    if picture.magnitude:
        kind = picture.drift.removeprefix("nested:") or "all operators"
        names = [name.rpartition("/")[2] for name in picture.operators]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        told = f" ({', '.join(names[:_NAMED])}{more})" if names else ""
        drift = f"{kind} at {picture.magnitude:g}{told}"
    elif picture.magnitude is None:
        drift = "by day"
    return (
        f"{picture.family} T{picture.tier}, {drift}: q_state {picture.quality:.2f}, "
        f"{picture.outcome} after step {picture.step}. {picture.attempt}"
    )
