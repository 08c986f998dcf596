"""What every companion measure asks of its arrays, with one wording for each fault."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats


class Span(NamedTuple):
    """An interval with the reason why it is NaN, where it is."""

    low: float
    high: float
    reason: str | None = None


def percentiles(draws: Floats, *, level: float = 0.95) -> Span:
    """Return the percentile interval of resampled values; NaN draws are left out."""
    known = draws[~np.isnan(draws)]
    if known.size < max(2, draws.size // 2):
        return Span(
            math.nan,
            math.nan,
            f"only {known.size} of {draws.size} resamples give a number",
        )
    low, high = np.quantile(known, ((1 - level) / 2, (1 + level) / 2))
    return Span(float(low), float(high))


def vector(values: npt.ArrayLike, name: str, *, least: int = 1) -> Floats:
    """Return `values` as a finite vector of at least `least` numbers."""
    array = _numbers(values, name)
    if array.ndim != 1:
        raise ScoringError(
            f"`{name}` must be one row of numbers, got shape {array.shape}."
        )
    if array.size < least:
        raise ScoringError(f"`{name}` needs at least {least} values, got {array.size}.")
    finite(array, name)
    return array


def matrix(values: npt.ArrayLike, name: str, *, axes: str) -> Floats:
    """Return `values` as a matrix that is not empty; `axes` names its two sides."""
    array = _numbers(values, name)
    if array.ndim != 2 or not array.size:
        raise ScoringError(
            f"`{name}` must be ({axes}) and not empty, got shape {array.shape}."
        )
    return array


def finite(array: Floats, name: str) -> None:
    """ScoringError with the first place that holds no finite number."""
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        place = tuple(int(i) for i in bad[0])
        raise ScoringError(
            f"`{name}` must hold finite numbers, got {array[place]} at {place}."
        )


def within(array: Floats, name: str, low: float, high: float) -> None:
    """ScoringError with the first place outside [low, high]; NaN is let through."""
    bad = np.argwhere((array < low) | (array > high))
    if bad.size:
        place = tuple(int(i) for i in bad[0])
        raise ScoringError(
            f"`{name}` must lie in [{low:g}, {high:g}], got {array[place]} at {place}."
        )


def same_length(first: Floats, second: Floats, names: str) -> None:
    """ScoringError if two vectors differ in length."""
    if first.shape[0] != second.shape[0]:
        lengths = (first.shape[0], second.shape[0])
        raise ScoringError(f"{names} must be of one length, got {lengths}.")


def _numbers(values: npt.ArrayLike, name: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ScoringError(f"`{name}` must hold numbers only: {error}.") from error
