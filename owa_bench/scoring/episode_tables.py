"""Tables beside the episodes: crews, probes, revisions and other entries."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records import events
from owa_bench.records.observables import (
    CAPABILITIES,
    NEAR,
    NO_CAP,
    Array,
    Crew,
    EntryTable,
    Flags,
    Floats,
    Integers,
    Names,
    Probes,
    Revisions,
)
from owa_bench.records.trace import Trace, sketch_distance

_DTYPES: Mapping[Any, Any] = {
    Floats: np.float64,
    Integers: np.int64,
    Flags: np.bool_,
    Names: np.str_,
    Array: np.object_,
}
_PERIODS = range(2, 6)  # calls in a cycle that is searched for


def crew_row(trace: Trace) -> dict[str, Any]:
    """Return the columns of one episode: limits, longest runs, messages, actions.

    Runs without a verified action count rounds, in which every seat acts once; cycles
    and repeats are each seat's own. Of a suite with seats only messages count that
    passed its fabric.
    """
    start, actions = trace.start, tuple(trace.of(events.Action))
    seats = max(1, len(start.seats))
    calls: dict[str, list[str]] = {}
    for c in trace.of(events.Call):
        calls.setdefault(c.role, []).append(f"{c.method} {c.target} {c.request}")
    messages = tuple(
        m for m in trace.of(events.Message) if m.source != "agent" or not start.seats
    )
    resolved = {event.item: event.resolved for event in trace.of(events.Conflict)}
    return {
        "cap": NO_CAP if start.role_cap is None else start.role_cap,
        "muted": start.muted,
        "conflict": not all(resolved.values()),
        "idle": _longest([not a.verified for a in actions]) // seats,
        "cycle": max(
            (_cycle(own, p) for own in calls.values() for p in _PERIODS), default=0
        ),
        "same": max(
            (len(list(group)) for own in calls.values() for _, group in groupby(own)),
            default=0,
        ),
        "same_words": _alike(messages),
        "messages": len(messages),
        "tokens": sum(m.tokens for m in messages),
        "verified": sum(a.verified for a in actions),
    }


def _alike(messages: Sequence[events.Message]) -> tuple[int, ...]:
    """Return the longest run of similar messages, by the bits that may differ."""
    if not messages:
        return (0,) * NEAR
    gaps = [
        0 if a.digest == b.digest else sketch_distance(a.sketch, b.sketch)
        for a, b in pairwise(messages)
    ]
    return tuple(1 + _longest([gap <= bits for gap in gaps]) for bits in range(NEAR))


def _longest(marks: Sequence[bool]) -> int:
    """Return the length of the longest run of true marks."""
    runs = (len(list(group)) for mark, group in groupby(marks) if mark)
    return max(runs, default=0)


def _cycle(items: Sequence[str], period: int) -> int:
    """Return the most items in a row that repeat those `period` before.

    A run of one and the same item is no cycle: it is counted as a repeat.
    """
    marks = [
        items[i] == items[i - period] and len(set(items[i - period : i])) > 1
        for i in range(period, len(items))
    ]
    return _longest(marks)


def crew_table(rows: Sequence[Mapping[str, Any]]) -> Crew:
    """Return the crews of the episodes, from their columns."""
    alike = matrix([row["same_words"] for row in rows], NEAR, np.int64)
    return Crew(**arrays(Crew, rows, leave_out=("same_words",)), same_words=alike)


def checked_probes(trace: Trace) -> tuple[events.Probe, ...]:
    """Return the probes of an episode; ScoringError for an impossible number."""
    probes = tuple(trace.of(events.Probe))
    for probe in probes:
        if not (0.0 <= probe.guess < 1.0 and probe.lag_days >= 0.0):
            raise ScoringError(
                f"A probe of attempt {trace.leaf.attempt_id} needs a guess rate in "
                f"[0, 1) and a lag >= 0, got {probe.guess} and {probe.lag_days}."
            )
    return probes


def checked_tracking(trace: Trace) -> tuple[events.Tracking, ...]:
    """Return the tracking samples of an episode; ScoringError without a band."""
    samples = tuple(trace.of(events.Tracking))
    for sample in samples:
        if math.isnan(sample.error) or not sample.tolerance > 0:
            raise ScoringError(
                f"Tracking in attempt {trace.leaf.attempt_id} needs an error and a "
                f"tolerance above 0, got {sample.error} and {sample.tolerance}."
            )
    return samples


def probe_table(episodes: Sequence[Sequence[events.Probe]]) -> Probes:
    """Return the probes of the episodes."""
    probes = [probe for episode in episodes for probe in episode]
    slots = max((len(probe.returned) for probe in probes), default=0)
    verified = np.zeros((len(probes), slots), dtype=np.bool_)
    for i, probe in enumerate(probes):
        verified[i, : len(probe.returned)] = [right for _, right in probe.returned]
    return entry_table(
        Probes,
        episodes,
        lag=np.array([probe.lag_days for probe in probes], dtype=float),
        verified=verified,
        returned=np.array([len(p.returned) for p in probes], dtype=np.int64),
    )


def revision_table(episodes: Sequence[Sequence[events.Revision]]) -> Revisions:
    """Return the revisions of the episodes."""
    revisions = [revision for episode in episodes for revision in episode]
    capability = [[getattr(r, name) for name in CAPABILITIES] for r in revisions]
    return entry_table(
        Revisions,
        episodes,
        fractions=matrix([r.fractions for r in revisions], 3, float),
        capability=matrix(capability, len(CAPABILITIES), float),
        filters=_objects([r.filters for r in revisions]),
        evidence=_objects([r.evidence for r in revisions]),
    )


def entry_table(
    record: type[EntryTable], entries: Sequence[Sequence[Any]], **columns: Array
) -> EntryTable:
    """Return a table with a row per entry of the episodes.

    Args:
        record: Table to build; its columns are attributes of the entries.
        entries: Entries of each episode.
        columns: Columns that are given, not read from the entries.

    Returns:
        The table; None is NaN in a column of reals.
    """
    pairs = [(row, entry) for row, episode in enumerate(entries) for entry in episode]
    names = [item.name for item in fields(record) if item.name not in ("row", *columns)]
    rows = [
        {n: getattr(entry, n) for n in names} | {"row": row} for row, entry in pairs
    ]
    return record(**arrays(record, rows, leave_out=tuple(columns)), **columns)


def arrays(
    record: type, rows: Sequence[Mapping[str, Any]], *, leave_out: Sequence[str]
) -> dict[str, Any]:
    """Return columns with the types that the fields of a record declare.

    Args:
        record: Dataclass of arrays.
        rows: Its rows, by name of a column.
        leave_out: Fields to leave out.

    Returns:
        Arrays (rows,) by name.
    """
    return {
        item.name: np.array([row[item.name] for row in rows], dtype=_DTYPES[item.type])
        for item in fields(record)
        if item.name not in leave_out
    }


def matrix(rows: Sequence[Any], width: int, kind: Any) -> Any:
    """Return a table (rows, width), also where there is no row.

    Args:
        rows: Rows of `width` values.
        width: Number of columns.
        kind: Type of the values.

    Returns:
        The array.
    """
    return np.array(rows, dtype=kind).reshape(len(rows), width)


def _objects(values: Sequence[tuple[str, ...]]) -> Any:
    """Return tuples as entries of one column."""
    column = np.empty(len(values), dtype=np.object_)
    for i, value in enumerate(values):
        column[i] = value
    return column
