"""Array checks of the companion measures, and percentile intervals of resamples."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats


class IntervalEstimate(NamedTuple):
    """An interval; where it is NaN, with the reason."""

    low: float
    high: float
    reason: str | None = None


def percentile_interval(draws: Floats, *, level: float = 0.95) -> IntervalEstimate:
    """Return the percentile interval of resampled values.

    Args:
        draws: (resamples,); NaN is left out.
        level: share of the resamples inside.
    Returns: NaN with a reason where half of the resamples or more are NaN.
    """
    known = draws[~np.isnan(draws)]
    if known.size < max(2, draws.size // 2):
        return no_interval(f"only {known.size} of {draws.size} resamples give a number")
    low, high = np.quantile(known, ((1 - level) / 2, (1 + level) / 2))
    return IntervalEstimate(float(low), float(high))


def no_interval(reason: str | None = None) -> IntervalEstimate:
    """Return an interval of NaN with its reason."""
    return IntervalEstimate(math.nan, math.nan, reason)


def vector(values: npt.ArrayLike, name: str) -> Floats:
    """Return a finite vector that is not empty.

    Args:
        values: (n,) numbers.
        name: name of the argument, for the message.
    Returns: (n,) floats.
    Raises: ScoringError: `values` has another shape, is empty, or holds NaN.
    """
    array = _numbers(values, name)
    if array.ndim != 1:
        raise ScoringError(f"`{name}` must be one row of numbers, got shape {array.shape}.")
    if not array.size:
        raise ScoringError(f"`{name}` needs at least 1 values, got 0.")
    check_finite(array, name)
    return array


def matrix(values: npt.ArrayLike, name: str, *, axes: str) -> Floats:
    """Return a matrix that is not empty.

    Args:
        values: (rows, columns) numbers; NaN is allowed.
        name: name of the argument, for the message.
        axes: names of both dimensions, for the message.
    Returns: (rows, columns) floats.
    Raises: ScoringError: `values` has another shape or is empty.
    """
    array = _numbers(values, name)
    if array.ndim != 2 or not array.size:
        raise ScoringError(f"`{name}` must be ({axes}) and not empty, got shape {array.shape}.")
    return array


def check_finite(array: Floats, name: str) -> None:
    """Raise if an array holds NaN or infinity.

    Args:
        array: any shape.
        name: name of the argument, for the message.
    Raises: ScoringError: with the first place that holds no finite number.
    """
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        place = tuple(int(i) for i in bad[0])
        raise ScoringError(f"`{name}` must hold finite numbers, got {array[place]} at {place}.")


def check_range(array: Floats, name: str, low: float, high: float) -> None:
    """Raise if an array leaves [low, high]; NaN is allowed.

    Args:
        array: any shape.
        name: name of the argument, for the message.
        low: least value allowed.
        high: largest value allowed.
    Raises: ScoringError: with the first place outside.
    """
    bad = np.argwhere((array < low) | (array > high))
    if bad.size:
        place = tuple(int(i) for i in bad[0])
        raise ScoringError(
            f"`{name}` must lie in [{low:g}, {high:g}], got {array[place]} at {place}."
        )


def check_lengths(first: Floats, second: Floats, names: str) -> None:
    """Raise if two arrays differ in length.

    Args:
        first: (n, ...) array.
        second: (n, ...) array.
        names: names of both arguments, for the message.
    Raises: ScoringError: the lengths differ.
    """
    if first.shape[0] != second.shape[0]:
        lengths = (first.shape[0], second.shape[0])
        raise ScoringError(f"{names} must be of one length, got {lengths}.")


def _numbers(values: npt.ArrayLike, name: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ScoringError(f"`{name}` must hold numbers only: {error}.") from error
