"""Quantiles and tails of the t, normal and chi-squared laws.

They are those of `scipy.stats`, from the functions of `scipy.special` behind them: importing
`scipy.stats` takes longer than most commands that judge a run.
"""

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray


def t_quantile(level: float, freedom: float) -> float:
    """Return the value below which Student's t lies with a probability.

    Args:
        level: The probability, between 0 and 1.
        freedom: Degrees of freedom, above 0.

    >>> round(t_quantile(0.975, 4), 6)
    2.776445
    """
    return float(scipy.special.stdtrit(freedom, level))


def t_tail(value: Any, freedom: float) -> NDArray[np.float64]:
    """Return the probability that Student's t is larger than a value.

    Args:
        value: One value or an array of them.
        freedom: Degrees of freedom, above 0.
    Returns: A probability for each value, of the same shape.

    >>> t_tail([0.0, t_quantile(0.95, 7)], 7).round(6)
    array([0.5 , 0.05])
    """
    return np.asarray(scipy.special.stdtr(freedom, -np.asarray(value)), dtype=np.float64)


def normal_quantile(level: float) -> float:
    """Return the value below which a standard normal variable lies with a probability.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    return float(scipy.special.ndtri(level))


def normal_share(value: float) -> float:
    """Return the probability that a standard normal variable is at most `value`.

    >>> normal_share(0.0)
    0.5
    """
    return float(scipy.special.ndtr(value))


def chi2_quantile(level: float, freedom: float) -> float:
    """Return the value below which a chi-squared variable lies with a probability.

    Args:
        level: The probability, between 0 and 1.
        freedom: Degrees of freedom, above 0.

    >>> round(chi2_quantile(0.95, 1), 6)
    3.841459
    """
    return float(2 * scipy.special.gammaincinv(freedom / 2, level))
