"""Dose and response: quality over drift magnitude, by what drifted.

A suite may sort its operators into groups (ChangeSurf: DOM, Label, Layout, Flow, Auth,
Friction). A group or announcement class that was played by a calendar of its own
("nested:Label") is shown alone; one that was not is shown by the episodes of the run's
calendar in which it struck, among others. Drifted episodes are also compared with the
undrifted ones of the same tasks, pair by pair.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from owa_bench.records.events import Drift, RealisedDrift
from owa_bench.records.instance import ANNOUNCEMENTS
from owa_bench.records.observables import Flags, Floats, Names
from owa_bench.records.plan import BootstrapSpec, Plan
from owa_bench.records.trace import Trace
from owa_bench.scoring.bootstrap import BootstrapEstimate
from owa_bench.scoring.estimates import task_estimates
from owa_bench.scoring.sample import Sample
from owa_bench.scoring.statistics_table import StatisticsTable, resampling_units

BY_GROUP = "Quality by operator class"
BY_CLASS = "Quality by announcement class"
ALL, OTHERS = "all operators", "among others"
_SINGLE = "single:"


class Struck(NamedTuple):
    """What an episode met: its operators, and how far that moved what is seen."""

    operators: frozenset[str]
    measures: tuple[tuple[str, float], ...] = ()


class Mix(NamedTuple):
    """A kind of drift: its words, the figure it stands in, the episodes it struck."""

    label: str
    panel: str
    rows: Flags


class Cell(NamedTuple):
    """A mix at one magnitude: its episodes, and those of them with a clean partner."""

    mix: Mix
    key: str
    delta: float
    rows: Flags
    paired: Flags


class Doses(NamedTuple):
    """What was laid: the sample, its cells, the gap of each episode to its partner."""

    sample: Sample
    struck: tuple[Struck, ...]
    cells: tuple[Cell, ...]
    clean: Floats
    spread: Mapping[str, BootstrapEstimate]


def note(trace: Trace) -> Struck:
    """Return what a trace says of its drift."""
    measures = next((event.measures for event in trace.of(RealisedDrift)), ())
    return Struck(frozenset(event.operator for event in trace.of(Drift)), measures)


def doses(
    plan: Plan,
    sample: Sample,
    notes: Mapping[int, Struck],
    spec: BootstrapSpec,
    root: str,
) -> Doses | None:
    """Return what one agent's episodes say, None without drift in a grouped suite."""
    table = sample.table
    struck = tuple(notes[index] for index in table.index.tolist())
    clean = _partners(sample)
    cells = tuple(_cells(sample, tuple(_mixes(plan, sample, struck)), clean))
    if not any(cell.delta for cell in cells):
        return None
    statistics = StatisticsTable(resampling_units(table, sample.families))
    gap = (1.0 + table.q - clean) / 2.0  # a share, so that its bounds are [0, 1]
    for cell in cells:
        statistics.add_mean(cell.key, table.q, cell.rows)
        statistics.add_mean(f"{cell.key}/gap", gap, cell.paired)
    names = [name for cell in cells for name in (cell.key, f"{cell.key}/gap")]
    estimates = task_estimates(sample, statistics, names, spec, root)
    return Doses(sample, struck, cells, clean, estimates)


def _mixes(plan: Plan, sample: Sample, struck: tuple[Struck, ...]) -> Iterator[Mix]:
    """Yield every kind of drift that was played, groups before classes."""
    table = sample.table
    drifted = table.delta > 0
    plain = drifted & (table.calendar == "")
    yield Mix(ALL, BY_GROUP, plain)
    own = {name for name in table.calendar.tolist() if name}
    for group, operators in _groups(plan).items():
        met = np.array([bool(operators & one.operators) for one in struck], dtype=bool)
        yield _mix(group, BY_GROUP, table.calendar, drifted, plain & met)
        own.discard(f"nested:{group}")
    for i, name in enumerate(ANNOUNCEMENTS):
        met = table.classes[:, i]
        yield _mix(name, BY_CLASS, table.calendar, drifted, plain & met)
        own.discard(f"nested:{name}")
    for calendar in sorted(own):
        label = calendar
        if calendar.startswith(_SINGLE):
            label = f"{calendar.rpartition('/')[2].partition('@')[0]} alone"
        yield Mix(label, BY_GROUP, drifted & (table.calendar == calendar))


def _mix(name: str, panel: str, calendar: Names, drifted: Flags, met: Flags) -> Mix:
    """Return a kind of drift alone, or among others where it was not played alone."""
    alone = drifted & (calendar == f"nested:{name}")
    if alone.any():
        return Mix(f"{name} alone", panel, alone)
    return Mix(f"{name} {OTHERS}", panel, met)


def _groups(plan: Plan) -> dict[str, frozenset[str]]:
    return {
        group: frozenset(operators)
        for suite in plan.suites
        for group, operators in suite.groups
    }


def _cells(sample: Sample, mixes: tuple[Mix, ...], clean: Floats) -> Iterator[Cell]:
    """Yield the cells of every mix that was played, the undrifted one first."""
    table = sample.table
    known = ~np.isnan(clean)
    still = (table.delta == 0) & (table.calendar == "")
    for number, mix in enumerate(mixes):
        if not mix.rows.any():
            continue
        same = still & np.isin(table.pair, np.unique(table.pair[mix.rows]))
        played = [(0.0, same)] if same.any() else []
        for delta in np.unique(table.delta[mix.rows]).tolist():
            played.append((delta, mix.rows & (table.delta == delta)))
        for place, (delta, rows) in enumerate(played):
            yield Cell(mix, f"dose:{number}/{place}", delta, rows, rows & known)


def _partners(sample: Sample) -> Floats:
    """Return each episode's quality without drift: same task, same noise; else NaN."""
    table = sample.table
    still = (table.delta == 0) & (table.calendar == "")
    keys = list(zip(table.pair.tolist(), table.repeat.tolist(), strict=True))
    held = {keys[i]: float(table.q[i]) for i in np.flatnonzero(still).tolist()}
    return np.array([held.get(key, np.nan) for key in keys], dtype=np.float64)
