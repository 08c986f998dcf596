"""Tables beside the episodes: probes, revisions, beliefs and how a crew worked."""

import math
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.events import (
    Action,
    Call,
    Conflict,
    Fault,
    Incident,
    Message,
    Probe,
    Resource,
    Revision,
    Tracking,
)
from owa_bench.records.observables import (
    CAPABILITIES,
    NEAR,
    NO_CAP,
    SEVERITIES,
    Crew,
    Faults,
    Probes,
    Revisions,
    Tracked,
)
from owa_bench.records.trace import Trace, sketch_distance

_LONGEST_CYCLE = 5  # calls in a cycle that is looked for
_CREW = ("conflict", "idle", "cycle", "same", "messages", "tokens", "verified")


class Beside(NamedTuple):
    """What one episode holds beside its scalars; a void episode has no probe right."""

    probes: tuple[Probe, ...]
    revisions: tuple[Revision, ...]
    crew: dict[str, int]
    same_words: tuple[int, ...]
    cap: int
    muted: bool
    side: str
    incidents: tuple[int, ...]
    exposure_s: float
    faults: tuple[Fault, ...]
    tracked: tuple[Tracking, ...]


def beside(trace: Trace, *, void: bool) -> Beside:
    """Return what an episode holds beside its scalars."""
    start = trace.start
    probes = () if void else tuple(_checked(trace))
    counts: list[str] = [event.severity for event in trace.of(Incident)]
    exposure = [e.amount for e in trace.of(Resource) if e.meter == "exposure_s"]
    return Beside(
        probes=probes,
        revisions=() if void else tuple(trace.of(Revision)),
        crew=_crew(trace),
        same_words=_near(tuple(trace.of(Message))),
        cap=NO_CAP if start.role_cap is None else start.role_cap,
        muted=start.muted,
        side=start.side,
        incidents=tuple(counts.count(name) for name in SEVERITIES),
        exposure_s=math.fsum(exposure),
        faults=tuple(trace.of(Fault)),
        tracked=tuple(_measured(trace)),
    )


def _checked(trace: Trace) -> Sequence[Probe]:
    probes = tuple(trace.of(Probe))
    for probe in probes:
        if not (0.0 <= probe.guess < 1.0 and probe.lag_days >= 0.0):
            raise ScoringError(
                f"A probe of attempt {trace.leaf.attempt_id} needs a guess rate in "
                f"[0, 1) and a lag >= 0, got {probe.guess} and {probe.lag_days}."
            )
    return probes


def _crew(trace: Trace) -> dict[str, int]:
    """Return the longest runs, and what was said and done."""
    actions = tuple(trace.of(Action))
    calls = [f"{c.method} {c.target} {c.request}" for c in trace.of(Call)]
    words = tuple(trace.of(Message))
    open_items = {event.item: event.resolved for event in trace.of(Conflict)}
    return {
        "conflict": int(not all(open_items.values())),
        "idle": _longest([not a.verified for a in actions]),
        "cycle": max(_cycle(calls, p) for p in range(2, _LONGEST_CYCLE + 1)),
        "same": _repeats(calls),
        "messages": len(words),
        "tokens": sum(m.tokens for m in words),
        "verified": sum(a.verified for a in actions),
    }


def _measured(trace: Trace) -> Sequence[Tracking]:
    samples = tuple(trace.of(Tracking))
    for sample in samples:
        if math.isnan(sample.error) or not sample.tolerance > 0:
            raise ScoringError(
                f"Tracking in attempt {trace.leaf.attempt_id} needs an error and a "
                f"tolerance above 0, got {sample.error} and {sample.tolerance}."
            )
    return samples


def _near(words: Sequence[Message]) -> tuple[int, ...]:
    """Return the longest run of alike messages by the bits that may differ."""
    gaps = [
        0 if a.digest == b.digest else sketch_distance(a.sketch, b.sketch)
        for a, b in pairwise(words)
    ]
    if not words:
        return (0,) * NEAR
    return tuple(1 + _longest([gap <= bits for gap in gaps]) for bits in range(NEAR))


def _longest(marks: Sequence[bool]) -> int:
    """Return the longest run of true marks."""
    runs = (len(list(group)) for mark, group in groupby(marks) if mark)
    return max(runs, default=0)


def _repeats(items: Sequence[str]) -> int:
    """Return the longest run of one and the same item."""
    return max((len(list(group)) for _, group in groupby(items)), default=0)


def _cycle(items: Sequence[str], period: int) -> int:
    """Return the most items in a row that repeat those `period` before.

    A run of one and the same item is no cycle: it is counted as a repeat.
    """
    marks = [
        items[i] == items[i - period] and len(set(items[i - period : i])) > 1
        for i in range(period, len(items))
    ]
    return _longest(marks)


def crews(rows: Sequence[Beside]) -> Crew:
    """Return the crew table of the episodes."""
    columns: dict[str, Any] = {
        name: np.array([row.crew[name] for row in rows], dtype=np.int64)
        for name in _CREW
    }
    columns["conflict"] = columns["conflict"].astype(np.bool_)
    return Crew(
        cap=np.array([row.cap for row in rows], dtype=np.int64),
        muted=np.array([row.muted for row in rows], dtype=np.bool_),
        same_words=np.array([row.same_words for row in rows], dtype=np.int64).reshape(
            len(rows), NEAR
        ),
        **columns,
    )


def faults(rows: Sequence[Beside]) -> Faults:
    """Return the failures of bodies."""
    held = [(i, event) for i, row in enumerate(rows) for event in row.faults]
    events = [event for _, event in held]
    return Faults(
        row=np.array([i for i, _ in held], dtype=np.int64),
        kind=np.array([e.kind for e in events], dtype=np.str_),
        injected=np.array([e.injected for e in events], dtype=np.bool_),
        recovered=np.array([e.recovered for e in events], dtype=np.bool_),
        repair_s=_reals([e.repair_s for e in events]),
    )


def tracked(rows: Sequence[Beside]) -> Tracked:
    """Return the samples of bodies against their tolerance bands."""
    held = [(i, event) for i, row in enumerate(rows) for event in row.tracked]
    return Tracked(
        row=np.array([i for i, _ in held], dtype=np.int64),
        task=np.array([e.task for _, e in held], dtype=np.str_),
        error=_reals([e.error for _, e in held]),
        tolerance=_reals([e.tolerance for _, e in held]),
    )


def probes(rows: Sequence[Beside]) -> Probes:
    """Return the probes of the episodes."""
    held = [(i, probe) for i, row in enumerate(rows) for probe in row.probes]
    events = [probe for _, probe in held]
    slots = max((len(p.returned) for p in events), default=0)
    verified = np.zeros((len(events), slots), dtype=np.bool_)
    for j, probe in enumerate(events):
        verified[j, : len(probe.returned)] = [right for _, right in probe.returned]
    return Probes(
        row=np.array([i for i, _ in held], dtype=np.int64),
        item=np.array([p.item for p in events], dtype=np.str_),
        mode=np.array([p.mode for p in events], dtype=np.str_),
        lag=np.array([p.lag_days for p in events], dtype=np.float64),
        span=np.array([p.span for p in events], dtype=np.int64),
        guess=np.array([p.guess for p in events], dtype=np.float64),
        correct=np.array([p.correct for p in events], dtype=np.bool_),
        verified=verified,
        returned=np.array([len(p.returned) for p in events], dtype=np.int64),
        contrary=_reals([p.contrary for p in events]),
    )


def revisions(rows: Sequence[Beside]) -> Revisions:
    """Return the revisions of the episodes."""
    held = [(i, event) for i, row in enumerate(rows) for event in row.revisions]
    events = [event for _, event in held]
    capability = [_reals([getattr(e, name) for name in CAPABILITIES]) for e in events]
    return Revisions(
        row=np.array([i for i, _ in held], dtype=np.int64),
        decision=np.array([e.decision for e in events], dtype=np.str_),
        family=np.array([e.family for e in events], dtype=np.str_),
        plan=np.array([e.plan for e in events], dtype=np.str_),
        fractions=np.array([e.fractions for e in events], dtype=float).reshape(-1, 3),
        capability=np.array(capability, dtype=float).reshape(-1, len(CAPABILITIES)),
        filters=_objects([e.filters for e in events]),
        evidence=_objects([e.evidence for e in events]),
    )


def _reals(values: Sequence[float | None]) -> Any:
    return np.array([math.nan if v is None else float(v) for v in values], dtype=float)


def _objects(values: Sequence[tuple[str, ...]]) -> Any:
    held = np.empty(len(values), dtype=np.object_)
    for i, value in enumerate(values):
        held[i] = value
    return held
