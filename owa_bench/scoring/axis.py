"""Axes: the declaration around a formula, anchors and the calibration map.

An axis names a formula and the columns that it reads. What all axes do in the same way has its
default in `Axis`: means over the counted episodes, missing evidence, anchors of the protocol and
calibration. Weights, resamples and intervals are the same for all axes and are no business of an
axis: see `estimates`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from owa_bench.discovery import find
from owa_bench.errors import ScoringError, UsageError
from owa_bench.records.observables import Array, Floats
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.statistics_table import StatisticsTable, Totals

AXIS_NAMES: Mapping[str, str] = {
    "A": "autonomy",
    "G": "generality",
    "P": "planning",
    "M": "memory",
    "T": "tool economy",
    "R": "self-revision",
    "S": "sociality",
    "E": "embodiment",
    "W": "world model",
    "$": "economic throughput",
}
NO_GATE = "gates have no evidence"  # key of the reason among an axis' details
SOURCE = "source"  # key of what an axis rests on, where there are several sources


class Coverage(NamedTuple):
    """Cells used of the cells there are; `reason` says why an axis is missing."""

    used: int
    cells: int
    reason: str | None = None


class Anchors(NamedTuple):
    """Bounds of the calibration map per resample."""

    low: Floats
    high: Floats


Diagnostics = Mapping[str, Any]
FloatsByName = Mapping[str, Floats]
EpisodeColumns = Mapping[str, Callable[[Sample], Array]]
ColumnFunction = Callable[[Sample, StatisticsTable], Coverage]


@dataclass(frozen=True, slots=True)
class Axis:
    """Declaration of an axis.

    Attributes:
        symbol: Short sign of the axis, also the prefix of its columns.
        name: Name of the axis, as in the registry and in reports.
        formula: Pure function on arrays; its docstring is the definition of the axis.
        columns: Quantities per episode by name; their means over the base rows are
            read as "SYMBOL:NAME".
        missing: Returns why there is no evidence, None where there is.
        collect: Adds columns that are no means over the base rows (other rows, or
            entries such as probes); replaces `columns` and `missing`.
        raw: Raw statistic per resample; by default `formula` of the columns' means.
        high: The oracle's raw statistic, the upper anchor where the protocol says
            "oracle" or does not know the axis.
        anchors: Replaces the protocol's anchors.
        log_scale: Whether the value is the position between the anchors on a log scale.
        factor: What the calibrated value is multiplied by, in [0, 1].
        secondary: Further statistics per resample, by name.
        amounts: Names of those secondary statistics that are no shares.
        gated: Name of the secondary statistic that gates read in place of the value.
        diagnostics: What is printed beside: distributions, counts, notes.
    """

    symbol: str
    name: str
    formula: Callable[..., Floats]
    columns: EpisodeColumns = field(default_factory=dict)
    missing: Callable[[Sample], str | None] = lambda sample: None
    collect: ColumnFunction | None = None
    raw: Callable[[Totals, Sample], Floats] | None = None
    high: float | Callable[[Totals], Floats] = 1.0
    anchors: Callable[[Totals, Sample], Anchors] | None = None
    log_scale: bool = False
    factor: Callable[[Totals, Sample], Floats] | None = None
    secondary: Callable[[Totals, Sample], FloatsByName] = lambda *_: {}
    amounts: tuple[str, ...] = ()
    gated: str | None = None
    diagnostics: Callable[[Sample], Diagnostics] = lambda sample: {}

    def __post_init__(self) -> None:
        if not self.columns and (self.collect is None or self.raw is None):
            raise UsageError(f"Axis `{self.name}` must declare `columns`, or `collect` and `raw`.")

    def add_columns(self, sample: Sample, statistics: StatisticsTable) -> Coverage:
        """Add the columns of the axis to the table.

        Args:
            sample: Counted episodes and published numbers.
            statistics: Table that all axes share.
        Returns: The cells used; with a reason where there is no evidence.
        """
        if self.collect is not None:
            return self.collect(sample, statistics)
        cells = int(sample.base.sum())
        reason = self.missing(sample)
        if reason or not cells:
            return Coverage(0, cells, reason or "no counted episode without help")
        for name, quantity in self.columns.items():
            statistics.add_mean(f"{self.symbol}:{name}", quantity(sample), sample.base)
        return Coverage(cells, cells)

    def raw_statistic(self, totals: Totals, sample: Sample) -> Floats:
        """Return the raw statistic.

        Args:
            totals: Weighted sums of the columns.
            sample: Counted episodes and published numbers.
        Returns: (resamples,).
        """
        if self.raw is not None:
            return self.raw(totals, sample)
        means = (totals.overall_mean(f"{self.symbol}:{name}") for name in self.columns)
        return self.formula(*means)

    def anchor_bounds(self, totals: Totals, sample: Sample) -> Anchors:
        """Return the bounds of the calibration map.

        Args:
            totals: Weighted sums of the columns.
            sample: Counted episodes and published numbers.
        Returns: Two arrays (resamples,). The lower bound is 0 and the upper one the oracle's raw
            statistic where the protocol does not know the axis.
        """
        if self.anchors is not None:
            return self.anchors(totals, sample)
        size = len(totals.table)
        oracle = self.high(totals) if callable(self.high) else np.full(size, self.high)
        return protocol_anchors(sample, self.symbol, oracle)

    def value(self, raw: Floats, anchors: Anchors) -> Floats:
        """Return the value of the axis.

        Args:
            raw: (resamples,) raw statistic.
            anchors: Bounds per resample.
        Returns: (resamples,) in [0, 1].
        Raises: ScoringError: An upper anchor does not lie above its lower one.
        """
        return (log_position if self.log_scale else calibrate)(raw, anchors)


def all_axes() -> tuple[Axis, ...]:
    """Return the axes of this package and of installed plug-ins, by name.

    Raises: UsageError: A plug-in is no `Axis`, or its symbol is taken.
    """
    entries = find("axes").values()
    return checked_axes((entry.plugin, entry.package) for entry in entries)


def checked_axes(entries: Iterable[tuple[Any, str]]) -> tuple[Axis, ...]:
    """Return axes whose declarations fit together.

    Args:
        entries: Pairs of an axis and its package, "" for our own.
    Returns: The axes, in order.
    Raises: UsageError: A plug-in is no `Axis`, or its symbol is taken.
    """
    axes, symbols = [], dict.fromkeys(AXIS_NAMES, "owa_bench")
    names = dict.fromkeys(AXIS_NAMES.values(), "owa_bench")
    for axis, package in entries:
        if not isinstance(axis, Axis):
            raise UsageError(
                "An axis must be an instance of owa_bench.scoring.axis.Axis, got a "
                f"{type(axis).__name__} from package {package or 'owa_bench'}."
            )
        for kind, value, taken in (("symbol", axis.symbol, symbols), ("name", axis.name, names)):
            if package and value in taken:
                raise UsageError(
                    f"The {kind} `{value}` of axis `{axis.name}` from package "
                    f"{package} is taken by {taken[value]}: choose another."
                )
            taken[value] = package or "owa_bench"
        axes.append(axis)
    return tuple(axes)


def calibrate(raw: Floats, anchors: Anchors) -> Floats:
    """Return N(x; lo, hi) = clip((x - lo) / (hi - lo), 0, 1).

    Args:
        raw: (resamples,).
        anchors: Bounds per resample.
    Returns: (resamples,) in [0, 1].
    Raises: ScoringError: An upper anchor does not lie above its lower one.
    Source: [S] calibration map; docs/scoring.md#axes.

    >>> calibrate(np.array([0.2, 0.9]), Anchors(np.zeros(2), np.full(2, 0.8)))
    array([0.25, 1.  ])
    """
    bad = anchors.high <= anchors.low
    if bad.any():
        at = int(np.argmax(bad))
        raise ScoringError(
            f"An axis' upper anchor must lie above its lower one, got "
            f"{anchors.low[at]} and {anchors.high[at]}."
        )
    return np.clip((raw - anchors.low) / (anchors.high - anchors.low), 0.0, 1.0)


def log_position(raw: Floats, anchors: Anchors) -> Floats:
    """Return clip(ln(x / lo) / ln(hi / lo), 0, 1).

    Args:
        raw: (resamples,), at least 0.
        anchors: Bounds per resample, above 0.
    Returns: (resamples,) in [0, 1].

    >>> log_position(np.array([1.0]), Anchors(np.array([0.1]), np.array([10.0])))
    array([0.5])
    """
    ratio = np.log(np.maximum(raw, np.finfo(np.float64).tiny) / anchors.low)
    return np.clip(ratio / np.log(anchors.high / anchors.low), 0.0, 1.0)


def protocol_anchors(sample: Sample, symbol: str, oracle: Floats) -> Anchors:
    """Return the protocol's bounds of an axis.

    Args:
        sample: Counted episodes and published numbers.
        symbol: Symbol of the axis.
        oracle: (resamples,) the oracle's raw statistic on the same instances.
    Returns: Two arrays (resamples,).
    """
    anchor = sample.protocol.anchors.get(symbol)  # type: ignore[call-overload]
    if anchor is None:
        return Anchors(np.zeros_like(oracle), oracle)
    high = oracle if isinstance(anchor.high, str) else np.full_like(oracle, anchor.high)
    return Anchors(np.full_like(oracle, anchor.low), high)


def check_shapes(name: str, *arrays: Array) -> None:
    """Raise unless the arrays have one shape and are not empty.

    Args:
        name: Name of the formula, for the message.
        arrays: Arguments of the formula.
    Raises: ScoringError: Shapes differ, or an array is empty.
    """
    shapes = {array.shape for array in arrays}
    if len(shapes) != 1:
        raise ScoringError(f"{name} needs arrays of one shape, got {sorted(shapes)}.")
    if not arrays[0].size:
        raise ScoringError(f"{name} needs at least one value, got an empty array.")


def check_values(name: str, *arrays: Array) -> None:
    """Raise unless `check_shapes` holds and no value is NaN.

    Args:
        name: Name of the formula, for the message.
        arrays: Arguments of the formula.
    Raises: ScoringError: Shapes differ, an array is empty or holds NaN.
    """
    check_shapes(name, *arrays)
    for array in arrays:
        if np.isnan(array.astype(np.float64)).any():
            raise ScoringError(f"{name} cannot read NaN: leave the cell out and count it.")
