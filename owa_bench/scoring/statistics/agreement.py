"""Agreement of two raters: Cohen's kappa and Krippendorff's alpha with intervals."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.statistics.distributions import t_quantile

Metric = Literal["nominal", "interval"]


class RaterAgreement(NamedTuple):
    """Agreement of two raters on `items` items; None: not computable."""

    items: int
    kappa: tuple[float | None, float | None, float | None]
    alpha: tuple[float | None, float | None, float | None]


def cohen_kappa(one: Floats, two: Floats) -> float:
    """Return Cohen's kappa, the agreement beyond chance over what chance leaves.

    Formula:
        (p_o - p_e) / (1 - p_e), p_o the share of equal scores, p_e the share expected
        from the two raters' own marginals
    Shapes: two arrays (items,). Units: at most 1.
    Missing: NaN where both raters always give one and the same score.
    Errors: ScoringError if the shapes differ or there is no item.
    Source: Cohen, Educational and Psychological Measurement 20, 1960.

    >>> one = np.repeat([1.0, 1.0, 0.0, 0.0], [20, 5, 10, 15])
    >>> round(cohen_kappa(one, np.repeat([1.0, 0.0, 1.0, 0.0], [20, 5, 10, 15])), 3)
    0.4
    """
    _check(one, two)
    chance = sum(float((one == score).mean() * (two == score).mean()) for score in np.unique(one))
    if chance >= 1.0:
        return float("nan")
    return (float((one == two).mean()) - chance) / (1.0 - chance)


def krippendorff_alpha(one: Floats, two: Floats, metric: Metric = "nominal") -> float:
    """Return Krippendorff's alpha of two raters who rated every item.

    Formula:
        1 - D_o / D_e, D_o the mean difference within items, D_e that of all pairs of
        the pooled scores; difference [a != b] (nominal) or (a - b)^2 (interval)
    Shapes: two arrays (items,). Units: at most 1.
    Missing: NaN where all scores are equal.
    Errors: ScoringError if the shapes differ or there is no item.
    Source: Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011, example B.

    >>> ben = np.array([ord(c) for c in "aabbdcccedda"], dtype=float)
    >>> gerry = np.array([ord(c) for c in "babbbccceddd"], dtype=float)
    >>> round(krippendorff_alpha(ben, gerry), 3)
    0.692
    """
    _check(one, two)
    pooled = np.concatenate((one, two))
    n = len(pooled)
    expected = float(_difference(pooled[:, None], pooled, metric).sum()) / (n * (n - 1))
    if expected == 0.0:
        return float("nan")
    return 1.0 - float(_difference(one, two, metric).mean()) / expected


def rater_agreement(one: Floats, two: Floats, metric: Metric, level: float) -> RaterAgreement:
    """Return both coefficients with jackknife intervals over items.

    Args:
        one: (items,) scores of the first rater.
        two: (items,) scores of the second.
        metric: Of alpha.
        level: Of the intervals, a share.
    Returns: Each as (value, low, high); the bounds are at most 1.
    """

    def alpha(a: Floats, b: Floats) -> float:
        return krippendorff_alpha(a, b, metric)

    return RaterAgreement(
        len(one), _with_bounds(cohen_kappa, one, two, level), _with_bounds(alpha, one, two, level)
    )


def _with_bounds(
    coefficient: Callable[[Floats, Floats], float], one: Floats, two: Floats, level: float
) -> tuple[float | None, float | None, float | None]:
    value, n = coefficient(one, two), len(one)
    if n < 3 or np.isnan(value):
        return figure(value), None, None
    rows = np.arange(n)
    left = np.array([coefficient(one[rows != i], two[rows != i]) for i in rows])
    error = float(np.sqrt((n - 1) / n * ((left - left.mean()) ** 2).sum()))
    reach = t_quantile((1 + level) / 2, n - 1) * error
    return figure(value), figure(value - reach), figure(min(value + reach, 1.0))


def _difference(one: Floats, two: Floats, metric: Metric) -> Floats:
    if metric == "nominal":
        return np.asarray(one != two, dtype=np.float64)
    squared: Floats = (one - two) ** 2
    return squared


def _check(one: Floats, two: Floats) -> None:
    if one.shape != two.shape or one.ndim != 1 or not one.size:
        raise ScoringError(
            f"Two raters need the same items, at least 1, got {one.shape}, {two.shape}."
        )
