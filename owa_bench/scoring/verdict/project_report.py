"""Project report: acceptance by day, regressions, service, releases and integration.

Read from the `project_day` events of each suite of projects. No axis reads them; the project gate
stands beside for the suite that the protocol names.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import Array, Flags, Floats, Observables, ProjectDays
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import CellTable, Curve, GateResult
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.statistics.task_means import interval_columns, mean_over_tasks

LAST_DAYS = 10  # of a project; delivery asks for acceptance over these
_Row = tuple[str | float | int | None, ...]
_Mean = tuple[float | None, float | None, float | None]  # with its interval


class ProjectFigure(NamedTuple):
    """A figure of each project (projects,), NaN: it has none; `share`: in [0, 1]."""

    name: str
    values: Floats
    share: bool
    note: str = ""


def per_project(days: ProjectDays, values: Array, rows: Flags, count: int) -> Floats:
    """Return the mean of each project's days.

    Formula:
        x_i = sum over days d of project i with a value (v_d) / number of them
    Shapes: `values` and `rows` (days,); (count,). Units: those of the values.
    Missing: NaN for a project without a day that counts. Errors: none.
    Source: [D] docs/projforge.md#report.

    >>> one = np.array([0, 0, 1])
    >>> table = ProjectDays(row=one, **{name: one for name in
    ...     ("day", "acceptance", "service", "held", "regressed", "minutes", "green",
    ...      "release", "stopped", "postmortem")})
    >>> per_project(table, np.array([1.0, 0.5, np.nan]), one >= 0, 2).tolist()
    [0.75, nan]
    """
    known = rows & ~np.isnan(values)
    sums = np.bincount(days.row[known], weights=values[known], minlength=count)
    counts = np.bincount(days.row[known], minlength=count)
    means: Floats = np.full(count, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def project_figures(table: Observables) -> tuple[ProjectFigure, ...]:
    """Return the figures of projects.

    Formula:
        zero-regression rate = share of days on which nothing broke that worked on the
        evening before, among days with such a thing; a project is without regression
        if it has such days and no other
    Shapes: a row per project in `table`; (projects,) each.
    Units: shares; regressions and minutes are numbers.
    Missing: as `per_project`. Errors: none. Source: [D] docs/projforge.md#report.
    """
    days, count = table.project_days, len(table)
    every = np.ones(len(days.row), dtype=np.bool_)
    last = days.day >= _length(days, count)[days.row] - LAST_DAYS
    clean = np.where(days.held > 0, days.regressed == 0, np.nan).astype(float)
    calm = per_project(days, clean, every, count)

    def mean(values: Array, rows: Flags = every) -> Floats:
        return per_project(days, values.astype(float), rows, count)

    whole = np.where(np.isnan(calm), np.nan, calm == 1.0).astype(float)
    broken = np.bincount(days.row, weights=days.regressed.astype(float), minlength=count).astype(
        float
    )
    ever = "of days with something to break"
    return (
        ProjectFigure("delivered", table.u, True, "by the suite's own rule"),
        ProjectFigure("acceptance", mean(days.acceptance), True, "days with work due"),
        ProjectFigure(f"acceptance, last {LAST_DAYS} days", mean(days.acceptance, last), True),
        ProjectFigure("zero-regression rate", calm, True, ever),
        ProjectFigure("projects without a regression", whole, True),
        ProjectFigure("regressions", broken, False, "a project"),
        ProjectFigure("service", mean(days.service), True, "deployed and right"),
        ProjectFigure(
            "service after an incident",
            mean(days.service, days.stopped.astype(bool)),
            True,
            "that day",
        ),
        ProjectFigure("release notes", mean(days.release), True, "mean of the weeks"),
        ProjectFigure("postmortems", mean(days.postmortem), True, "name the cause"),
        ProjectFigure("days that end green", mean(days.green), True),
        ProjectFigure("minutes of integration", mean(days.minutes), False, "a day"),
    )


def _length(days: ProjectDays, count: int) -> Array:
    """Return the number of days that each project was played."""
    return np.bincount(days.row, minlength=count)


def project_tables(
    sample: Sample, gates: Sequence[GateResult], protocol: Protocol
) -> tuple[CellTable, ...]:
    """Return two tables for each suite of projects, nothing without one.

    Args:
        sample: Counted episodes of one agent.
        gates: The judged gates.
        protocol: Names the suite whose projects a gate counts.
    Returns: Figures with the project gate, and acceptance by day.
    """
    tables = []
    for suite, table in _suites(sample):
        rows: list[_Row] = [("projects", len(table), None, None, _span(table))]
        for name, values, share, note in project_figures(table):
            known = ~np.isnan(values)
            means: Sequence[float | None] = (None, None, None)
            if known.any():
                means = mean_over_tasks(values[known], table.pair[known], share=share)
            rows.append((name, *means, note))
        if suite == protocol.projects.suite:
            rows += [
                (
                    f"project gate, AAI-{gate.level}",
                    *(gate.status, None, None),
                    f"{gate.required}; {gate.measured}",
                )
                for gate in gates
                if gate.gate == "project"
            ]
        note = "in brackets 95 percent, jackknife over tasks"
        columns = ("figure", "value", "low", "high", "note")
        tables.append(CellTable(f"projects of {suite}", columns, tuple(rows), note))
        tables.append(_by_day(suite, table))
    return tuple(tables)


def _suites(sample: Sample) -> Iterator[tuple[str, Observables]]:
    base = sample.table.take(sample.base)
    for suite in np.unique(base.suite[base.project_days.row]).tolist():
        yield suite, base.take(base.suite == suite)


def _span(table: Observables) -> str:
    played = _length(table.project_days, len(table))
    return f"{played.min()} to {played.max()} days"


class DayMeans(NamedTuple):
    """A day's means over the projects that played it, two of them with intervals."""

    day: int
    projects: int
    acceptance: _Mean
    service: _Mean
    regressions: float | None
    minutes: float | None


def _day_means(table: Observables) -> tuple[DayMeans, ...]:
    days = table.project_days

    def mean(column: Floats, own: Flags) -> _Mean:
        known = own & ~np.isnan(column)
        if not known.any():
            return None, None, None
        return mean_over_tasks(column[known], table.pair[days.row[known]])

    return tuple(
        DayMeans(
            day,
            int(own.sum()),
            mean(days.acceptance, own),
            mean(days.service, own),
            figure(float(days.regressed[own].mean())),
            figure(float(days.minutes[own].mean())),
        )
        for day in np.unique(days.day).tolist()
        for own in (days.day == day,)
    )


def _by_day(suite: str, table: Observables) -> CellTable:
    columns = (
        *("day", "projects"),
        *interval_columns("acceptance", "service"),
        *("regressions", "minutes of integration"),
    )
    note = "a project that ended early has no later days; blank where nothing was due"
    rows = tuple(
        (d.day, d.projects, *d.acceptance, *d.service, d.regressions, d.minutes)
        for d in _day_means(table)
    )
    return CellTable(f"{suite} by day", columns, rows, note)


def project_curves(sample: Sample) -> tuple[Curve, ...]:
    """Return acceptance over days of each suite of projects, with its interval."""
    curves = []
    for suite, table in _suites(sample):
        drawn = [d for d in _day_means(table) if d.acceptance[0] is not None]
        curves.append(
            Curve(
                name=f"acceptance of {suite} by day",
                x_label="day of the project",
                y_label="weight share of due features that work",
                x=tuple(d.day for d in drawn),
                y=tuple(d.acceptance[0] for d in drawn),
                low=tuple(d.acceptance[1] for d in drawn),
                high=tuple(d.acceptance[2] for d in drawn),
                used=tuple(d.projects for d in drawn),
                note="mean over projects; band: jackknife over tasks",
            )
        )
    return tuple(curves)
