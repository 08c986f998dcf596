"""Drift dose and response: quality over drift magnitude, by what drifted.

A suite may sort its operators into groups (ChangeSurf: DOM, Label, Layout, Flow, Auth, Friction). A
group or announcement class that was played under a calendar of its own ("nested:Label") is shown
alone; any other by the episodes of the run's calendar in which it drifted, among others. A class is
the one in effect: episodes of "nested:D1" whose vendors told nothing stand under "nested:D1", not
under D1 alone. Drifted episodes are also compared with the undrifted ones of the same tasks, pair
by pair.
"""

import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from owa_bench.records.events import Drift, RealisedDrift
from owa_bench.records.instance import ANNOUNCEMENTS
from owa_bench.records.observables import Flags, Floats, Names
from owa_bench.records.plan import Plan
from owa_bench.records.score import CellTable, Curve, Interval
from owa_bench.records.trace import Trace
from owa_bench.scoring.estimate.estimates import task_estimates
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.statistics.jackknife import JackknifeEstimate
from owa_bench.scoring.statistics.statistics_table import StatisticsTable, resampling_units

BY_GROUP = "Quality by operator class"
BY_CLASS = "Quality by announcement class"
ALL, OTHERS = "all operators", "among others"
GAPS = "Drifted minus clean, the same tasks"
SHARE = "weight share"
_SINGLE = "single:"


class DriftExposure(NamedTuple):
    """Operators that drifted in an episode, and how far by the suite's measures."""

    operators: frozenset[str]
    measures: tuple[tuple[str, float], ...] = ()


class DriftKind(NamedTuple):
    """A kind of drift: its label, the panel of its curve, the episodes that had it."""

    label: str
    panel: str
    rows: Flags


class DoseCell(NamedTuple):
    """A kind of drift at one magnitude: its episodes, those with a clean partner."""

    kind: DriftKind
    place: int
    delta: float
    rows: Flags
    paired: Flags

    @property
    def key(self) -> StatisticKey:
        """The key of its quality."""
        return StatisticKey("dose", place=self.place)

    @property
    def gap_key(self) -> StatisticKey:
        """The key of its gap to the clean partners, as a share."""
        return StatisticKey("dose", "gap", place=self.place)


class DoseResponse(NamedTuple):
    """Quality by drift: sample, cells, clean partner of each episode, estimates."""

    sample: Sample
    exposures: tuple[DriftExposure, ...]
    cells: tuple[DoseCell, ...]
    clean: Floats
    estimates: Mapping[StatisticKey, JackknifeEstimate]

    def interval(self, cell: DoseCell) -> Interval:
        """The interval of a cell's quality."""
        return self.estimates[cell.key].interval(self.sample.protocol.statistics.level)

    def gap(self, cell: DoseCell) -> tuple[float | None, ...]:
        """A cell's gap to its clean partners, in [-1, 1], with its two bounds."""
        estimate = self.estimates[cell.gap_key]
        band = estimate.interval(self.sample.protocol.statistics.level)
        return tuple(
            None if x is None else figure(2.0 * x - 1.0)
            for x in (figure(estimate.point), band.low, band.high)
        )


def drift_exposure(trace: Trace) -> DriftExposure:
    """Return the drift of one episode."""
    measures = next((event.measures for event in trace.of(RealisedDrift)), ())
    return _exposure(frozenset(event.operator for event in trace.of(Drift)), measures)


@functools.lru_cache(1 << 12)
def _exposure(operators: frozenset[str], measures: tuple[tuple[str, float], ...]) -> DriftExposure:
    """Return an exposure; many episodes share one."""
    return DriftExposure(operators, measures)


def dose_response(
    plan: Plan, sample: Sample, exposures: Mapping[int, DriftExposure]
) -> DoseResponse | None:
    """Return quality by drift of one agent, None without drift in a grouped suite.

    Args:
        plan: The run's plan.
        sample: Counted episodes of suites whose operators have groups.
        exposures: Drift of each episode, by index of the plan entry.
    Returns: Estimates of quality, and of the gap to the clean partner.
    """
    table = sample.table
    met = tuple(exposures[index] for index in table.index.tolist())
    clean = _partners(sample)
    cells = tuple(_cells(sample, tuple(_kinds(plan, sample, met)), clean))
    if not any(cell.delta for cell in cells):
        return None
    statistics = StatisticsTable(resampling_units(table, sample.families))
    gap = (1.0 + table.q - clean) / 2.0  # a share, so that its bounds are [0, 1]
    for cell in cells:
        statistics.add_mean(cell.key.column, table.q, cell.rows)
        statistics.add_mean(cell.gap_key.column, gap, cell.paired)
    keys = [key for cell in cells for key in (cell.key, cell.gap_key)]
    estimates = task_estimates(sample, statistics, keys)
    return DoseResponse(sample, met, cells, clean, estimates)


def _kinds(plan: Plan, sample: Sample, exposures: tuple[DriftExposure, ...]) -> Iterator[DriftKind]:
    """Yield every kind of drift that was played, groups before classes."""
    table = sample.table
    drifted = table.delta > 0
    plain = drifted & (table.calendar == "")
    yield DriftKind(ALL, BY_GROUP, plain)
    own = {name for name in table.calendar.tolist() if name}
    for group, operators in _groups(plan).items():
        met = np.array([bool(operators & e.operators) for e in exposures], dtype=bool)
        yield _kind(group, BY_GROUP, table.calendar, drifted, plain & met)
        own.discard(f"nested:{group}")
    for i, name in enumerate(ANNOUNCEMENTS):
        met = table.classes[:, i]
        only = table.classes.sum(axis=1) == met
        yield _kind(name, BY_CLASS, table.calendar, drifted & only, plain & met)
        calendar = f"nested:{name}"
        if not (drifted & ~only & (table.calendar == calendar)).any():
            own.discard(calendar)
    for calendar in sorted(own):
        label = calendar
        if calendar.startswith(_SINGLE):
            label = f"{calendar.rpartition('/')[2].partition('@')[0]} alone"
        yield DriftKind(label, BY_GROUP, drifted & (table.calendar == calendar))


def _kind(name: str, panel: str, calendar: Names, drifted: Flags, met: Flags) -> DriftKind:
    """Return a kind of drift alone, or among others where it was not played alone."""
    alone = drifted & (calendar == f"nested:{name}")
    if alone.any():
        return DriftKind(f"{name} alone", panel, alone)
    return DriftKind(f"{name} {OTHERS}", panel, met)


def _groups(plan: Plan) -> dict[str, frozenset[str]]:
    return {
        group: frozenset(operators) for suite in plan.suites for group, operators in suite.groups
    }


def _cells(sample: Sample, kinds: tuple[DriftKind, ...], clean: Floats) -> Iterator[DoseCell]:
    """Yield the cells of every kind that was played, the undrifted one first."""
    table = sample.table
    known = ~np.isnan(clean)
    still = (table.delta == 0) & (table.calendar == "")
    place = itertools.count()
    for kind in kinds:
        if not kind.rows.any():
            continue
        same = still & np.isin(table.pair, np.unique(table.pair[kind.rows]))
        played = [(0.0, same)] if same.any() else []
        for delta in np.unique(table.delta[kind.rows]).tolist():
            played.append((delta, kind.rows & (table.delta == delta)))
        for delta, rows in played:
            yield DoseCell(kind, next(place), delta, rows, rows & known)


def _partners(sample: Sample) -> Floats:
    """Return each episode's quality without drift: same task, same noise; else NaN."""
    table = sample.table
    still = (table.delta == 0) & (table.calendar == "")
    keys = list(zip(table.pair.tolist(), table.repeat.tolist(), strict=True))
    qualities = {keys[i]: float(table.q[i]) for i in np.flatnonzero(still).tolist()}
    return np.array([qualities.get(key, np.nan) for key in keys], dtype=np.float64)


def dose_curves(response: DoseResponse) -> tuple[Curve, ...]:
    """Return a curve per kind of drift: quality, and the gap to the clean partner."""
    by_label: dict[str, list[DoseCell]] = {}
    for cell in response.cells:
        by_label.setdefault(cell.kind.label, []).append(cell)
    qualities = [_quality_curve(response, cells) for cells in by_label.values()]
    gaps = [
        _gap_curve(response, [c for c in cells if c.delta and c.paired.any()])
        for cells in by_label.values()
    ]
    return (*qualities, *(gap for gap in gaps if gap.x))


def dose_tables(response: DoseResponse) -> tuple[CellTable, CellTable]:
    """Return quality by what drifted, and drifted against clean, as tables."""
    return _dose_table(response), _gap_table(response)


def _dose_table(response: DoseResponse) -> CellTable:
    names = _measure_names(response)
    rows: list[tuple[str | float | int | None, ...]] = []
    for cell in response.cells:
        estimate, band = response.estimates[cell.key], response.interval(cell)
        pairs = len(np.unique(response.sample.table.pair[cell.rows]))
        played = (cell.kind.label, cell.delta, int(cell.rows.sum()), pairs)
        quality = (figure(estimate.point), band.low, band.high)
        rows.append((*played, *quality, *_realised(response, cell).values()))
    columns = (*_DOSES, SHARE, *names)
    note = (
        "Q over tasks like these, 95 percent; beside it the realised magnitude: "
        "the weight share of the calendar that struck"
        + (", and as the suite measures it: " + ", ".join(names) if names else "")
        + _why_none(response)
    )
    return CellTable("quality by what drifted", columns, tuple(rows), note)


def _why_none(response: DoseResponse) -> str:
    """Return why no cell has an interval, "" where one has."""
    bands = [response.interval(cell) for cell in response.cells]
    known = any(band.low is not None for band in bands)
    return "" if known else f". No interval: {bands[0].reason}"


def _gap_table(response: DoseResponse) -> CellTable:
    table, rows = response.sample.table, []
    for cell in response.cells:
        if not cell.delta or not cell.paired.any():
            continue
        drifted, clean = table.q[cell.paired], response.clean[cell.paired]
        played = (cell.kind.label, cell.delta, int(cell.paired.sum()))
        means = (figure(float(clean.mean())), figure(float(drifted.mean())))
        signs = (drifted < clean, drifted == clean, drifted > clean)
        counts = (int(sign.sum()) for sign in signs)
        rows.append((*played, *means, *response.gap(cell), *counts))
    note = (
        "a pair is one task and noise seed at magnitude 0 and drifted; the "
        "difference weighs families as the battery does, the means do not" + _why_none(response)
        if rows
        else "No drifted episode has an undrifted partner: draw magnitude 0 too."
    )
    return CellTable("drifted against clean, pair by pair", _GAPS, tuple(rows), note)


_DOSES = ("drift", "magnitude", "episodes", "tasks", "Q", "low", "high")
_GAPS = (
    *("drift", "magnitude", "pairs", "Q clean", "Q drifted", "difference"),
    *("low", "high", "worse", "same", "better"),
)


def _realised(response: DoseResponse, cell: DoseCell) -> dict[str, float | None]:
    """Return the mean realised magnitudes of a cell by name, the weight share first."""
    rows = np.flatnonzero(cell.rows).tolist()
    share = figure(float(response.sample.table.realised[cell.rows].mean()))
    means: dict[str, float | None] = {SHARE: share}
    for name in _measure_names(response):
        if not cell.delta:
            means[name] = 0.0
            continue
        measured = [dict(response.exposures[i].measures) for i in rows]
        values = [measures[name] for measures in measured if name in measures]
        means[name] = figure(float(np.mean(values))) if values else None
    return means


def _measure_names(response: DoseResponse) -> tuple[str, ...]:
    """Return the names of what the suites measured, in order."""
    return tuple(dict.fromkeys(name for one in response.exposures for name, _ in one.measures))


def _quality_curve(response: DoseResponse, cells: list[DoseCell]) -> Curve:
    bands = [response.interval(cell) for cell in cells]
    names = _measure_names(response)
    beside = names[0] if names else SHARE
    return Curve(
        name=cells[0].kind.label,
        x_label="nominal drift magnitude",
        y_label="mean quality Q",
        x=tuple(cell.delta for cell in cells),
        y=tuple(figure(response.estimates[cell.key].point) for cell in cells),
        low=tuple(band.low for band in bands),
        high=tuple(band.high for band in bands),
        used=tuple(int(cell.rows.sum()) for cell in cells),
        note=f"band: {bands[0].method}",
        panel=cells[0].kind.panel,
        beside=tuple(_realised(response, cell)[beside] for cell in cells),
        beside_label=f"realised ({beside})",
    )


def _gap_curve(response: DoseResponse, cells: list[DoseCell]) -> Curve:
    gaps = [response.gap(cell) for cell in cells]
    return Curve(
        name=cells[0].kind.label if cells else "",
        x_label="nominal drift magnitude",
        y_label="Q drifted minus Q clean",
        x=tuple(cell.delta for cell in cells),
        y=tuple(gap[0] for gap in gaps),
        low=tuple(gap[1] for gap in gaps),
        high=tuple(gap[2] for gap in gaps),
        used=tuple(int(cell.paired.sum()) for cell in cells),
        panel=GAPS,
    )
