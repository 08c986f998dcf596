"""One weight matrix drives an agent's axes, index, frontier and curves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from owa_bench.records.observables import Floats, Integers
from owa_bench.records.plan import BootstrapSpec
from owa_bench.scoring.axis import Axis, Laid, Sample
from owa_bench.scoring.cells import Columns, Ledger, Totals, Units, totals, units_of
from owa_bench.scoring.cognition import Cognition, cognition_statistics, lay_cognition
from owa_bench.scoring.curves import Line, curve_statistics, lay_curves
from owa_bench.scoring.frontier import Grid, frontier_statistics, lay_frontier
from owa_bench.scoring.index import embodied_index, index_statistics
from owa_bench.scoring.projects import DELIVERED, Projects, lay_projects
from owa_bench.scoring.spread import Sampling, Spread, sampling
from owa_bench.scoring.weights import resampled

TASKS = "tasks like these"
SEEDS = "same tasks, new seeds"
Statistics = dict[str, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Every statistic of one agent by name, with its resamples.

    Names: "A" (value), "A/raw", "A/low", "A/high", "A/beside/NAME", and those of the
    index, the frontier and the curves. `laid` says what each axis rests on.
    """

    point: Mapping[str, float]
    tasks: Mapping[str, Floats]
    seeds: Mapping[str, Floats]
    by_tasks: Sampling
    by_seeds: Sampling
    laid: Mapping[str, Laid]
    grid: Grid
    lines: tuple[Line, ...]
    cognition: Cognition
    projects: Projects
    smallest: int  # tasks in the smallest family

    def like_these(self, name: str, *, bounded: bool = True) -> Spread:
        """Return a statistic's spread over *tasks like these*."""
        return Spread(
            self.point.get(name, np.nan), self.tasks.get(name), self.by_tasks, bounded
        )

    def same_tasks(self, name: str, *, bounded: bool = True) -> Spread:
        """Return a statistic's spread over *same tasks, new seeds*."""
        return Spread(
            self.point.get(name, np.nan), self.seeds.get(name), self.by_seeds, bounded
        )


def measure(
    sample: Sample,
    axes: Sequence[Axis],
    spec: BootstrapSpec,
    root: str,
    *,
    seeds: bool = True,
) -> Measured:
    """Return every statistic of `sample`, resampled twice under the replay root.

    Without `seeds` only tasks are resampled.
    """
    units = units_of(sample.table, sample.families)
    ledger = Ledger(units)
    laid = {axis.symbol: axis.lay(sample, ledger) for axis in axes}
    grid = lay_frontier(sample, ledger)
    lines = lay_curves(sample, ledger)
    cognition, projects = lay_cognition(sample, ledger), lay_projects(sample, ledger)
    columns = ledger.columns()
    ready = _reader(sample, axes, laid, grid, lines)

    def read(sums: Totals) -> Statistics:
        found = ready(sums) | cognition_statistics(sums, cognition)
        if projects.played:
            found[DELIVERED] = sums.overall(sums.mean(DELIVERED))
        return found

    by_tasks, by_seeds = _samplings(units, sample)
    if not seeds:
        by_seeds = by_seeds._replace(reason="seeds were not resampled")
    return Measured(
        point={name: float(x[0]) for name, x in _point(read, columns, units, sample)},
        tasks=_draw(read, columns, units, sample, spec, root, by_tasks),
        seeds=_draw(read, columns, units, sample, spec, root, by_seeds),
        by_tasks=by_tasks,
        by_seeds=by_seeds,
        laid=laid,
        grid=grid,
        lines=lines,
        cognition=cognition,
        projects=projects,
        smallest=int(np.unique(units.family, return_counts=True)[1].min()),
    )


def task_spreads(
    sample: Sample,
    units: Units,
    ledger: Ledger,
    read: Callable[[Totals], Statistics],
    spec: BootstrapSpec,
    root: str,
) -> Callable[[str], Spread]:
    """Return what gives a statistic's spread over *tasks like these*, by its name."""
    columns = ledger.columns()
    how, _ = _samplings(units, sample)
    point = {name: float(x[0]) for name, x in _point(read, columns, units, sample)}
    drawn = _draw(read, columns, units, sample, spec, root, how)
    return lambda name: Spread(point.get(name, np.nan), drawn.get(name), how)


def _samplings(units: Units, sample: Sample) -> tuple[Sampling, Sampling]:
    """Return how tasks inside families and seeds inside tasks are resampled."""
    small = sample.protocol.statistics.small_family
    sizes = np.bincount(units.family, minlength=len(sample.families))
    by_tasks = sampling(
        TASKS,
        units.family,
        sample.weights[sizes > 0],
        small=small,
        lonely="a family holds one task",
    )
    by_seeds = sampling(
        SEEDS,
        units.task,
        (sample.weights / np.maximum(sizes, 1))[units.family],
        small=small,
        lonely="a task was played with one repeat",
    )
    return by_tasks, by_seeds


def _reader(
    sample: Sample,
    axes: Sequence[Axis],
    laid: Mapping[str, Laid],
    grid: Grid,
    lines: tuple[Line, ...],
) -> Callable[[Totals], Statistics]:
    """Return the function from weighted sums to every statistic."""
    present = [axis for axis in axes if laid[axis.symbol].reason is None]

    def read(sums: Totals) -> Statistics:
        found: Statistics = {}
        for axis in present:
            raw, anchors = axis.raw(sums, sample), axis.anchors(sums, sample)
            found[axis.symbol] = axis.value(raw, anchors)
            found[f"{axis.symbol}/raw"] = raw
            found[f"{axis.symbol}/low"], found[f"{axis.symbol}/high"] = anchors
            for name, values in axis.beside(sums, sample).items():
                found[f"{axis.symbol}/beside/{name}"] = values
        scores = {axis.symbol: found[axis.symbol] for axis in present}
        found |= index_statistics(scores, sample.protocol.index)
        found |= embodied_index(scores, sample.protocol.robotics)
        found |= frontier_statistics(sums, grid)
        return found | curve_statistics(sums, lines)

    return read


def _point(
    read: Callable[[Totals], Statistics], columns: Columns, units: Units, sample: Sample
) -> Iterator[tuple[str, Floats]]:
    """Return the statistics under weight 1 for every unit."""
    ones = np.ones((1, len(units.task)))
    sums = totals(ones, columns, units.unit_family, sample.weights)
    return iter(read(sums).items())


def _draw(
    read: Callable[[Totals], Statistics],
    columns: Columns,
    units: Units,
    sample: Sample,
    spec: BootstrapSpec,
    root: str,
    how: Sampling,
) -> Statistics:
    """Return every statistic's resamples; nothing where there is nothing to draw.

    Tasks are resampled inside families with their seeds whole, or seeds inside tasks.
    """
    if how.reason:
        return {}
    drawn, strata, family = _strata(columns, units, how)
    parts: list[Statistics] = []
    label = how.method.partition(":")[0]
    for weights in resampled(strata, spec.resamples, root, label):
        parts.append(read(totals(weights, drawn, family, sample.weights)))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _strata(
    columns: Columns, units: Units, how: Sampling
) -> tuple[Columns, Integers, Integers]:
    """Return the columns to weigh, the stratum of their rows and their family."""
    if how.method.startswith(TASKS):
        return columns.by_task(units), units.family, units.family
    return columns, units.task, units.unit_family
