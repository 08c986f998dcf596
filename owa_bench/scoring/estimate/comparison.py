"""Paired comparison of two agents: quality, success and cost on the pairs both played.

A pair is one instance under the same terms. Differences are second minus first; costs are compared
by their ratio. Intervals over *tasks like these* are those of every other statistic: a difference d
in [-1, 1] is treated as the share (1 + d) / 2, and a ratio of costs as the second's share of both.

Source: docs/scoring.md#intervals.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from owa_bench.records.instance import ANNOUNCEMENTS
from owa_bench.records.observables import Flags, Floats, Integers, Names, Observables
from owa_bench.records.price_card import usd_of
from owa_bench.records.score import Interval
from owa_bench.scoring.estimate.estimates import task_estimates
from owa_bench.scoring.estimate.statistic_key import StatisticKey, StatisticKind
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.statistics.jackknife import TASKS, JackknifeEstimate
from owa_bench.scoring.statistics.statistics_table import StatisticsTable, resampling_units

QUALITY, SUCCESS, HELP, COST = "quality", "success", "help", "cost"
UNDRIFTED = "no drift"


class PairedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A measure of two agents over the pairs of one group, with its difference.

    `difference` is second minus first, of cost the second over the first. Costs are USD an
    episode, the agent's own: a supervisor is simulated, and help stands as the share of episodes in
    which it was given. Tasks weigh within families alike, families as in the battery.
    """

    measure: str
    group: str
    name: str
    pairs: int
    tasks: int
    first: float | None
    second: float | None
    difference: float | None
    interval: Interval


class PairedOutcomes(NamedTuple):
    """What is compared of one agent, a row a pair; costs in micro-USD, NaN unknown."""

    quality: Floats
    success: Floats
    help: Floats
    cost: Floats
    classes: Flags  # (pairs, classes): struck in the episode


def outcomes_of(table: Observables, rows: Integers) -> PairedOutcomes:
    """Return what is compared of the episodes of an agent.

    Args:
        table: Its episodes.
        rows: (pairs,) row of each pair's episode.
    Returns: The outcomes, in order of `rows`.
    """
    helped = (table.helped[rows] > 0).astype(np.float64)
    cost = table.cost_agent[rows]
    return PairedOutcomes(table.q[rows], table.u[rows], helped, cost, table.classes[rows])


class _Cell(NamedTuple):
    """A measure over the pairs of a group; `place` is that of the group."""

    measure: str
    place: int
    group: str
    name: str
    rows: Flags

    def key(self, part: StatisticKind) -> StatisticKey:
        return StatisticKey(self.measure, part, place=self.place)


def paired_figures(sample: Sample, second: PairedOutcomes) -> tuple[PairedFigure, ...]:
    """Return every measure of two agents, over all pairs and by group of pairs.

    Args:
        sample: The first agent's episodes, one a pair; families, weights and level.
        second: Those of the second agent, in the same order.
    Returns: Figures: overall, by family, tier and drift class in effect (the highest that struck in
        either episode). A group that is all pairs is not repeated.
    """
    table = sample.table
    first = outcomes_of(table, np.arange(len(table)))
    statistics = StatisticsTable(resampling_units(table, sample.families))
    costs = np.stack((first.cost, second.cost))
    largest = max(float(np.nan_to_num(costs).max()), 1.0)
    sides = {
        QUALITY: (first.quality, second.quality),
        SUCCESS: (first.success, second.success),
        HELP: (first.help, second.help),
        COST: (first.cost / largest, second.cost / largest),
    }
    groups = list(_groups(table, first.classes | second.classes))
    unknown = np.isnan(costs.sum(axis=0))
    cells = [
        _Cell(measure, place, group, name, rows)
        for measure in sides
        for place, (group, name, rows) in enumerate(groups)
        if measure != COST or not unknown[rows].any()
    ]
    means: list[StatisticKey] = []
    shares: dict[StatisticKey, tuple[StatisticKey, StatisticKey]] = {}
    for cell in cells:
        one, other = sides[cell.measure]
        quantities = {cell.key("first"): one, cell.key("second"): other}
        if cell.measure == COST:
            shares[cell.key("gap")] = (cell.key("second"), cell.key("first"))
        else:
            quantities[cell.key("gap")] = (1.0 + other - one) / 2.0
        for key, values in quantities.items():
            statistics.add_mean(key.column, values, cell.rows)
        means += quantities
    estimates = task_estimates(sample, statistics, means, shares)
    figures = [_figure(cell, sample, statistics, estimates, largest) for cell in cells]
    figures += [
        _unknown_cost(_Cell(COST, place, group, name, rows), statistics, unknown[rows])
        for place, (group, name, rows) in enumerate(groups)
        if unknown[rows].any()
    ]
    return tuple(figures)


def _groups(table: Observables, struck: Flags) -> Iterator[tuple[str, str, Flags]]:
    """Yield the groups of pairs: all, then each family, tier and class."""
    yield "all", "", np.ones(len(table), dtype=np.bool_)
    highest = np.where(struck, np.arange(1, len(ANNOUNCEMENTS) + 1), 0).max(axis=1)
    keys: dict[str, Names] = {
        "family": table.family,
        "tier": np.char.add("T", table.tier.astype(str)),
        "class": np.array([UNDRIFTED, *ANNOUNCEMENTS])[highest],
    }
    for group, values in keys.items():
        names = np.unique(values).tolist()
        for name in names if len(names) > 1 else ():
            yield group, name, values == name


def _figure(
    cell: _Cell,
    sample: Sample,
    statistics: StatisticsTable,
    estimates: Mapping[StatisticKey, JackknifeEstimate],
    largest: float,
) -> PairedFigure:
    """Return the figure of a cell; costs were kept as shares of the `largest`."""
    estimate = estimates[cell.key("gap")]
    band = estimate.interval(sample.protocol.statistics.level)
    back = _ratio if cell.measure == COST else _difference
    first, second = estimates[cell.key("first")].point, estimates[cell.key("second")].point
    return PairedFigure(
        measure=cell.measure,
        group=cell.group,
        name=cell.name,
        pairs=int(cell.rows.sum()),
        tasks=statistics.count_tasks(cell.rows),
        first=usd_of(round(first * largest)) if cell.measure == COST else figure(first),
        second=usd_of(round(second * largest)) if cell.measure == COST else figure(second),
        difference=back(figure(estimate.point)),
        interval=msgspec.structs.replace(band, low=back(band.low), high=back(band.high)),
    )


def _unknown_cost(cell: _Cell, statistics: StatisticsTable, unknown: Flags) -> PairedFigure:
    """Return the missing figure of a cost: to leave pairs out would hide dear ones."""
    why = f"the cost of {int(unknown.sum())} of {len(unknown)} pairs is unknown"
    return PairedFigure(
        measure=COST,
        group=cell.group,
        name=cell.name,
        pairs=len(unknown),
        tasks=statistics.count_tasks(cell.rows),
        first=None,
        second=None,
        difference=None,
        interval=Interval(method=TASKS, reason=why),
    )


def _difference(share: float | None) -> float | None:
    return None if share is None else figure(2.0 * share - 1.0)


def _ratio(share: float | None) -> float | None:
    """Return s / (1 - s), None where the first cost nothing."""
    return None if share is None or share >= 1.0 else figure(share / (1.0 - share))
