"""Tables beside the episodes: crews, probes, revisions and other entries."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from owa_bench.errors import ScoringError
from owa_bench.records import events
from owa_bench.records.observables import (
    NEAR,
    NO_CAP,
    Array,
    Crew,
    EntryTable,
    Flags,
    Floats,
    Integers,
    MemoryChanges,
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
# Tools that look nothing up: an item asked with these alone is without tools.
_ANSWERING = frozenset({"answer", "go_on", "finish", "declare_infeasible"})


def crew_row(trace: Trace) -> dict[str, Any]:
    """Return the columns of one episode: limits, longest runs, messages, actions.

    Runs without a novel result count rounds, in which every seat acts once; cycles, repeats and
    near-duplicate messages are each seat's own. Only messages and conflicts of the suite's own
    channel count; what an agent declares is counted apart.
    """
    start, actions = trace.start, tuple(trace.of(events.Action))
    seats = max(1, len(start.seats))
    calls: dict[str, list[str]] = {}
    for c in trace.of(events.Call):
        calls.setdefault(c.role, []).append(f"{c.method} {c.target} {c.request}")
    said = tuple(trace.of(events.Message))
    messages = tuple(m for m in said if m.source == "env")
    conflicts = (event for event in trace.of(events.Conflict) if event.source == "env")
    resolved = {event.item: event.resolved for event in conflicts}
    return {
        "cap": NO_CAP if start.role_cap is None else start.role_cap,
        "seats": seats,
        "muted": start.muted,
        "control": start.control,
        "channel": bool(messages) or seats > 1,
        "conflict": not all(resolved.values()),
        "idle": _longest([not a.novel for a in actions]) // seats,
        "cycle": max((_cycle(own, p) for own in calls.values() for p in _PERIODS), default=0),
        "same": max(
            (len(list(group)) for own in calls.values() for _, group in groupby(own)), default=0
        ),
        "same_words": _alike(messages),
        "messages": len(messages),
        "tokens": sum(m.tokens for m in messages),
        "declared": len(said) - len(messages),
        "answers": len({(a.role, a.observation) for a in actions}),
        "verified": sum(a.verified for a in actions),
        **_together(trace, messages),
        "bound": np.nan if start.crew_bound is None else start.crew_bound,
        "no_lift": bool(start.no_lift),
    }


def _together(trace: Trace, messages: Sequence[events.Message]) -> dict[str, int]:
    """Return how the seats asked, told, answered and kept to the rules.

    A question counts as answered once a seat that it reached tells the asker that fact.
    """
    asks = [m for m in messages if m.asks]
    reached = [m for m in asks if m.reached]
    answered = (
        any(
            answer.step > ask.step
            and answer.sender in ask.receivers
            and ask.sender in answer.receivers
            and ask.asks in answer.gives
            for answer in messages
        )
        for ask in reached
    )
    handoffs = tuple(trace.of(events.Handoff))
    return {
        "asks": len(asks),
        "reached": len(reached),
        "answered": sum(answered),
        "gives": sum(len(m.gives) for m in messages),
        "news": sum(m.news for m in messages),
        "refused": sum(1 for _ in trace.of(events.CallRefusal)),
        "handoffs": len(handoffs),
        "untrue": sum(1 for passed in handoffs if passed.untrue),
    }


def _alike(messages: Sequence[events.Message]) -> tuple[int, ...]:
    """Return one sender's longest run of similar messages, by bits that may differ."""
    senders: dict[str, list[events.Message]] = {}
    for message in messages:
        senders.setdefault(message.sender, []).append(message)
    longest = [0] * NEAR
    for own in senders.values():
        gaps = [
            0 if a.digest == b.digest else sketch_distance(a.sketch, b.sketch)
            for a, b in pairwise(own)
        ]
        runs = (1 + _longest([gap <= bits for gap in gaps]) for bits in range(NEAR))
        longest = [max(pair) for pair in zip(longest, runs, strict=True)]
    return tuple(longest)


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


class ProbeRecord(NamedTuple):
    """A probe, and what the events before it say of how it was asked."""

    event: events.Probe
    zero_tool: bool
    helped: bool
    new_sitting: bool


def probe_records(trace: Trace, *, void: bool) -> tuple[ProbeRecord, ...]:
    """Return the probes of an episode with how they were asked.

    An item is without tools only where the last `tools` event of its seat offers nothing but
    answering, going on and ending; without such an event it is not.

    Args:
        trace: The episode.
        void: Whether it is disqualified: then every answer counts as wrong, so that no agent can
            drop the items that it does not know.
    Returns: The probes, in order.
    """
    records: list[ProbeRecord] = []
    offers: dict[str, frozenset[str]] = {}
    sittings: dict[str, int] = {}
    helped = False
    if not any(trace.of(events.Probe)):
        return ()
    for event in trace.events:
        if isinstance(event, events.ToolOffer):
            offers[event.role] = frozenset(event.names)
        elif isinstance(event, events.Sitting):
            sittings[event.role] = event.number
        elif isinstance(event, events.Intervention):
            helped |= event.kind != "refused"
        elif isinstance(event, events.Probe):
            offer, shown = offers.get(event.role), event.sitting
            zero_tool = offer is not None and offer <= _ANSWERING
            later = shown is None or shown < sittings.get(event.role, 0)
            probe = _as_failed(event) if void else event
            records.append(ProbeRecord(probe, zero_tool, helped, later))
    return tuple(records)


def _as_failed(probe: events.Probe) -> events.Probe:
    """Return a probe with nothing right, and all that was returned false."""
    returned = tuple((entry, False) for entry, _ in probe.returned)
    contrary = len(returned) if returned else probe.contrary
    return structs.replace(probe, correct=False, returned=returned, contrary=contrary)


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


def project_days(trace: Trace, *, void: bool) -> tuple[events.ProjectDay, ...]:
    """Return the days of a project; one that is disqualified earned nothing on any.

    Args:
        trace: The episode.
        void: Whether it is disqualified.
    Returns: The days, in order.
    """
    days = tuple(trace.of(events.ProjectDay))
    return tuple(map(_unearned, days)) if void else days


def _unearned(day: events.ProjectDay) -> events.ProjectDay:
    """Return a day of which nothing counts; what was not due stays missing."""
    marks = {
        name: None if getattr(day, name) is None else 0.0
        for name in ("acceptance", "service", "release", "postmortem")
    }
    return structs.replace(day, green=False, **marks)


def probe_table(episodes: Sequence[Sequence[ProbeRecord]]) -> Probes:
    """Return the probes of the episodes."""
    records = [record for episode in episodes for record in episode]
    probes = [record.event for record in records]
    slots = max((len(probe.returned) for probe in probes), default=0)
    verified = np.zeros((len(probes), slots), dtype=np.bool_)
    for i, probe in enumerate(probes):
        verified[i, : len(probe.returned)] = [right for _, right in probe.returned]
    return entry_table(
        Probes,
        [[record.event for record in episode] for episode in episodes],
        lag=np.array([probe.lag_days for probe in probes], dtype=float),
        verified=verified,
        returned=np.array([len(p.returned) for p in probes], dtype=np.int64),
        zero_tool=np.array([record.zero_tool for record in records], dtype=np.bool_),
        helped=np.array([record.helped for record in records], dtype=np.bool_),
        new_sitting=np.array([r.new_sitting for r in records], dtype=np.bool_),
    )


def revision_table(episodes: Sequence[Sequence[events.Revision]]) -> Revisions:
    """Return what the agents of the episodes said of changes of themselves."""
    said = [revision.proposal for episode in episodes for revision in episode]
    return entry_table(Revisions, episodes, proposal=_objects(said))


def change_table(episodes: Sequence[Sequence[events.MemoryChange]]) -> MemoryChanges:
    """Return the changes of memory folders that the episodes played without."""
    changes = [change for episode in episodes for change in episode]
    lines = [sum(f.added + f.removed for f in change.files) for change in changes]
    return entry_table(
        MemoryChanges,
        episodes,
        lines=np.array(lines, dtype=np.int64),
        families=_objects([change.families for change in changes]),
    )


def entry_table(
    record: type[EntryTable], entries: Sequence[Sequence[Any]], **columns: Array
) -> EntryTable:
    """Return a table with a row per entry of the episodes.

    Args:
        record: Table to build; its columns are attributes of the entries.
        entries: Entries of each episode.
        columns: Columns that are given, not read from the entries.
    Returns: The table; None is NaN in a column of reals.
    """
    pairs = [(row, entry) for row, episode in enumerate(entries) for entry in episode]
    names = [item.name for item in fields(record) if item.name not in ("row", *columns)]
    rows = [{n: getattr(entry, n) for n in names} | {"row": row} for row, entry in pairs]
    return record(**arrays(record, rows, leave_out=tuple(columns)), **columns)


def arrays(
    record: type, rows: Sequence[Mapping[str, Any]], *, leave_out: Sequence[str]
) -> dict[str, Any]:
    """Return columns with the types that the fields of a record declare.

    Args:
        record: Dataclass of arrays.
        rows: Its rows, by name of a column.
        leave_out: Fields to leave out.
    Returns: Arrays (rows,) by name.
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
    """
    return np.array(rows, dtype=kind).reshape(len(rows), width)


def _objects(values: Sequence[Any]) -> Any:
    """Return tuples or texts of any length as entries of one column."""
    column = np.empty(len(values), dtype=np.object_)
    for i, value in enumerate(values):
        column[i] = value
    return column
