"""Slopes, bends, levels and means over days whose errors are autocorrelated.

The lag-1 correlation of a dozen days cannot be estimated, and a plain regression rejects far too
often where it is not 0. The tests here average the t test over a grid of correlations, each
weighted by its restricted likelihood (REML).
"""

from typing import NamedTuple

import numpy as np
import scipy

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.statistics.distributions import t_quantile

CORRELATIONS = np.linspace(0.0, 0.6, 13)  # beyond .6 nothing is covered, and said so
MEAN_CORRELATIONS = np.linspace(0.0, 0.7, 15)
METHOD = "AR(1) mixture over days, correlation 0 to .6"
MEAN_METHOD = "AR(1) mixture over days, correlation 0 to .7"
_EXACT = 1e-12  # residuals below this share of the values' size are none
_HALVINGS = 60  # of a bracket, to a relative width below 1e-17


class LagMixture(NamedTuple):
    """A contrast of a regression under each correlation, and how likely each is.

    Attributes:
        estimates: (correlations, ..) generalised least squares estimate.
        errors: (correlations, ..) its standard error.
        weights: (correlations, ..) restricted likelihood, sum 1.
        freedom: Degrees of freedom of the t tail: days less coefficients.
    """

    estimates: Floats
    errors: Floats
    weights: Floats
    freedom: int

    @property
    def value(self) -> Floats:
        """The estimate (..), averaged over the correlations."""
        mean: Floats = (self.weights * self.estimates).sum(axis=0)
        return mean

    def p_above(self, null: float | Floats = 0.0) -> Floats:
        """Return the one-sided p value of "the truth is `null` or less".

        Formula:
            p = sum of w(rho) P(t > (b_rho - null) / se_rho), t on days - coefficients
        Shapes: `null` a scalar or (..); result (..). Units: a probability.
        Missing: without any residual error p is 0, 1/2 or 1 by the sign.
        Errors: none.
        Source: [R] docs/scoring.md#intervals.

        >>> rising = slope(np.arange(7.0), np.array([1.0, 2, 2, 4, 4, 5, 7]))
        >>> bool(rising.p_above() < 0.025), bool(rising.p_above(2.0) > 0.5)
        (True, True)
        """
        gap = self.estimates - null
        t = np.where(gap > 0, np.inf, np.where(gap < 0, -np.inf, 0.0))
        np.divide(gap, self.errors, out=t, where=self.errors > 0)
        p: Floats = (self.weights * scipy.special.stdtr(self.freedom, -t)).sum(axis=0)
        return p

    def lower(self, level: float) -> Floats:
        """Return the one-sided lower bound (..): the null with p = 1 - level.

        Args:
            level: One-sided level, such as .95.

        >>> rising = slope(np.arange(7.0), np.array([1.0, 2, 2, 4, 4, 5, 7]))
        >>> round(float(rising.p_above(rising.lower(0.95))), 6)
        0.05
        """
        side = max(level, 1 - level)
        wide = t_quantile((1 + side) / 2, self.freedom) + 1.0
        low = (self.estimates - wide * self.errors).min(axis=0)
        high = (self.estimates + wide * self.errors).max(axis=0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            above = self.p_above(middle) > 1 - level
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        bound: Floats = (low + high) / 2
        return bound

    def upper(self, level: float) -> Floats:
        """Return the one-sided upper bound (..) at `level`."""
        mirrored = self._replace(estimates=-self.estimates).lower(level)
        return np.negative(mirrored)

    def with_error(self, error: float | Floats, freedom: int | None = None) -> "LagMixture":
        """Return the mixture with an error in it that the days do not show.

        Args:
            error: Standard error of what all days share, a scalar or (..).
            freedom: Its degrees of freedom; None: enough.
        Returns: The mixture with both errors, on the fewer degrees of freedom.
        """
        fewer = self.freedom if freedom is None else min(self.freedom, freedom)
        return self._replace(errors=np.hypot(self.errors, error), freedom=fewer)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the two-sided interval (..) at `level`, both bounds by inversion."""
        side = (1 + level) / 2
        return self.lower(side), self.upper(side)


def slope(x: Floats, values: Floats, days: Floats | None = None) -> LagMixture:
    """Return the slope of `values` on `x`.

    Formula:
        y ~ b0 + b1 x by generalised least squares for each rho of 0, .05, .., .60,
        correlation of two days rho^|gap in days|; w(rho) the restricted likelihood
        |V|^(-1/2) |X' V^-1 X|^(-1/2) RSS^(-(days - 2) / 2) under a flat prior
    Shapes: `x` (days,), `values` (.., days): any number of series at once.
    Units: values per x.
    Missing: none; leave a day out and pass `days` so that gaps are known.
    Errors: ScoringError if shapes differ, a value is not finite, days do not rise, x
        holds one number only, or no degree of freedom is left.
    Source: [R] docs/scoring.md#intervals.

    >>> round(float(slope(np.arange(5.0), 2.0 * np.arange(5.0)).value), 9)
    2.0
    """
    design = np.stack((np.ones_like(x), x), axis=1)
    return fit(design, np.array([0.0, 1.0]), values, days)


def end_level(values: Floats, days: Floats) -> LagMixture:
    """Return the level on the last day of the line through `values`, as `slope`.

    Args:
        values: (.., days).
        days: (days,) rising.
    Returns: The mixture; units of the values.

    >>> round(float(end_level(2.0 * np.arange(5.0), np.arange(5.0)).value), 9)
    8.0
    """
    design = np.stack((np.ones_like(days), days), axis=1)
    return fit(design, np.array([1.0, days[-1]]), values, days)


def mean_level(values: Floats, days: Floats | None = None) -> LagMixture:
    """Return the plain mean over days, with the error that correlated days give it.

    Formula:
        mean(y); se_rho^2 = s_rho^2 1'V 1 / days^2, s_rho^2 the generalised residual
        variance on days - 1; w(rho) as `slope`, rho on 0, .05, .., .70, but under the
        prior 1 / (1 - rho): a flat one misses too often where the lag is .6
    Shapes: `values` (.., days), `days` (days,) rising. Units: those of the values.
    Missing, Errors: as `slope`.
    Source: [R] docs/scoring.md#intervals.

    >>> level = mean_level(np.array([1.0, 3.0, 2.0, 4.0]))
    >>> round(float(level.value), 9), bool(level.p_above(0.0) < 0.1)
    (2.5, True)
    """
    count = values.shape[-1]
    when = np.arange(float(count)) if days is None else days
    mixture = fit(np.ones((count, 1)), np.ones(1), values, when, MEAN_CORRELATIONS)
    gaps = np.abs(when[:, None] - when[None, :])
    matrices = [rho**gaps for rho in MEAN_CORRELATIONS]
    wider = np.array([np.sqrt(v.sum() * np.linalg.inv(v).sum()) for v in matrices])
    shape = (len(wider),) + (1,) * (values.ndim - 1)
    weights = mixture.weights / (1 - MEAN_CORRELATIONS).reshape(shape)
    return mixture._replace(
        estimates=np.broadcast_to(values.mean(axis=-1), mixture.estimates.shape),
        errors=mixture.errors * wider.reshape(shape) / count,
        weights=weights / weights.sum(axis=0),
    )


def bend(x: Floats, values: Floats, days: Floats | None = None) -> LagMixture:
    """Return the second derivative of the parabola through `values`, as `slope`.

    Formula: y ~ b0 + b1 x + b2 x^2; the contrast is 2 b2, on days - 3
    Shapes: `x` (days,), `values` (.., days). Units: values per x squared.
    Missing, Errors: as `slope`.
    Source: [R] docs/scoring.md#intervals; AAI paper, equation 14.

    >>> x = np.arange(6.0)
    >>> round(float(bend(x, 3.0 * x**2).value), 9)
    6.0
    """
    z = x - (x.min() + x.max()) / 2
    design = np.stack((np.ones_like(z), z, z * z), axis=1)
    return fit(design, np.array([0.0, 0.0, 2.0]), values, days)


def fit(
    design: Floats,
    contrast: Floats,
    values: Floats,
    days: Floats | None = None,
    correlations: Floats = CORRELATIONS,
) -> LagMixture:
    """Return a contrast of the coefficients of a regression, under each correlation.

    Args:
        design: (days, coefficients).
        contrast: (coefficients,).
        values: (.., days).
        days: (days,) rising, in days; consecutive where None.
        correlations: Lag-1 correlations to average over.
    Returns: The mixture over the correlations.
    Raises: ScoringError: See `slope`.
    """
    when = np.arange(len(design), dtype=np.float64) if days is None else days
    _check(design, values, when)
    gaps = np.abs(when[:, None] - when[None, :])
    parts = [_fit_one(rho**gaps, design, contrast, values) for rho in correlations]
    estimates, errors, heights = (np.stack(part) for part in zip(*parts, strict=True))
    weights = np.exp(heights - heights.max(axis=0))
    freedom = design.shape[0] - design.shape[1]
    return LagMixture(estimates, errors, weights / weights.sum(axis=0), freedom)


def _fit_one(
    correlation: Floats, design: Floats, contrast: Floats, values: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return estimate, standard error and log restricted likelihood, each (..)."""
    root = np.linalg.cholesky(correlation)
    x = np.linalg.solve(root, design)
    y = np.linalg.solve(root, np.moveaxis(values, -1, 0).reshape(len(design), -1))
    shape = values.shape[:-1]
    gram = np.linalg.inv(x.T @ x)
    coefficients = gram @ (x.T @ y)
    rest = ((y - x @ coefficients) ** 2).sum(axis=0)
    size = (y**2).sum(axis=0)
    none = rest <= _EXACT * size
    freedom = design.shape[0] - design.shape[1]
    error = np.sqrt(np.where(none, 0.0, rest) / freedom * (contrast @ gram @ contrast))
    fixed = -np.log(np.diag(root)).sum() + np.linalg.slogdet(gram)[1] / 2
    spread = np.log(np.where(none, 1.0, rest))
    height = np.where(none, 0.0, fixed - freedom / 2 * spread)
    estimate = contrast @ coefficients
    unit = np.sqrt(size * (contrast @ gram @ contrast))  # of the estimate, by x's scale
    small = none & (np.abs(estimate) <= _EXACT * unit)
    estimate = np.where(small, 0.0, estimate)
    return estimate.reshape(shape), error.reshape(shape), height.reshape(shape)


def _check(design: Floats, values: Floats, days: Floats) -> None:
    """Raise ScoringError unless a regression on these days can be fitted."""
    count, coefficients = design.shape
    if values.shape[-1] != count or days.shape != (count,):
        raise ScoringError(
            f"A slope needs one x, one value and one day each, got {count}, "
            f"{values.shape[-1]} and {days.shape}."
        )
    if count <= coefficients:
        raise ScoringError(f"A slope or bend needs {coefficients + 1} days at least, got {count}.")
    if not all(np.isfinite(array).all() for array in (design, values, days)):
        raise ScoringError("A slope cannot read NaN or infinity: leave the day out.")
    if (np.diff(days) <= 0).any():
        raise ScoringError(f"Days must rise, got {days.tolist()}.")
    if np.linalg.matrix_rank(design) < coefficients:
        raise ScoringError(
            f"A regression with {coefficients} coefficients needs as many different x, "
            f"got {len(np.unique(design[:, 1]))}."
        )
