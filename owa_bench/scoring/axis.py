"""What an axis is, and what all axes share: names, anchors, the calibration map."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Array, Flags, Floats, Names, Observables
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol as Numbers
from owa_bench.records.protocol import Targets
from owa_bench.scoring.cells import Ledger, Totals

NAMES: Mapping[str, str] = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What an axis may read: one agent's counted episodes and the published numbers.

    `base` marks the rows the axes rest on (phase and intervention budget); the
    frontier reads the other budgets too. `crews` is `base` before it is narrowed to
    the whole crew with its channel open. `families` are those of the plan, `weights`
    sum to 1 over them.
    """

    table: Observables
    base: Flags
    crews: Flags
    families: tuple[str, ...]
    weights: Floats
    protocol: Numbers
    prices: PriceCard


class Laid(NamedTuple):
    """What an axis rests on: cells used of cells there are, and why it is missing."""

    used: int
    cells: int
    reason: str | None = None


class Anchors(NamedTuple):
    """Bounds of the calibration map per resample."""

    low: Floats
    high: Floats


class Axis(Protocol):
    """One axis: lays sufficient statistics, reads its raw statistic from totals.

    `formula` is the pure function on arrays; its docstring is the axis' definition.
    `amounts` names the statistics beside it that are no shares.
    """

    name: str
    symbol: str
    formula: Any
    amounts: tuple[str, ...]

    def lay(self, sample: Sample, ledger: Ledger) -> Laid:
        """Lay the axis' columns; a reason means that there is no evidence."""

    def raw(self, totals: Totals, sample: Sample) -> Floats:
        """Return the raw statistic per resample."""

    def anchors(self, totals: Totals, sample: Sample) -> Anchors:
        """Return the bounds: the oracle's own raw statistic on the same instances."""

    def value(self, raw: Floats, anchors: Anchors) -> Floats:
        """Return the value in [0, 1]."""

    def beside(self, totals: Totals, sample: Sample) -> Mapping[str, Floats]:
        """Return further statistics that share the weights, by name."""

    def details(self, sample: Sample) -> Mapping[str, Any]:
        """Return what is printed beside: distributions, counts, notes."""


def calibrate(raw: Floats, anchors: Anchors) -> Floats:
    """Return N(x; lo, hi) = clip((x - lo) / (hi - lo), 0, 1).

    Errors: ScoringError unless hi > lo wherever both are known.
    Source: [S] `aai-scale.md` section 0, calibration map.

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


def bounds(sample: Sample, symbol: str, oracle: Floats) -> Anchors:
    """Return the protocol's bounds of an axis; "oracle" stands for `oracle`."""
    anchor = sample.protocol.anchors[symbol]  # type: ignore[index]
    high = oracle if isinstance(anchor.high, str) else np.full_like(oracle, anchor.high)
    return Anchors(np.full_like(oracle, anchor.low), high)


def per_suite(suites: Names, targets: Targets) -> Floats:
    """Return the published number of each row's suite."""
    found = np.full(len(suites), float(targets.default))
    for suite, number in targets.suites.items():
        found[suites == suite] = number
    return found


def check_shapes(name: str, *arrays: Array) -> None:
    """Raise ScoringError unless the arrays have one shape and are not empty."""
    shapes = {array.shape for array in arrays}
    if len(shapes) != 1:
        raise ScoringError(f"{name} needs arrays of one shape, got {sorted(shapes)}.")
    if not arrays[0].size:
        raise ScoringError(f"{name} needs at least one value, got an empty array.")


def check_values(name: str, *arrays: Array) -> None:
    """Raise ScoringError unless `check_shapes` holds and no value is NaN."""
    check_shapes(name, *arrays)
    for array in arrays:
        if np.isnan(array.astype(np.float64)).any():
            raise ScoringError(
                f"{name} cannot read NaN: leave the cell out and count it."
            )
