"""The law of a mean over days that are correlated, in plain Python.

Source: docs/scoring.md#intervals.
"""

import math

import numpy as np
from scipy import optimize, stats

LAGS = [0.05 * i for i in range(15)]


def mean_law(left_out, days):
    """Return errors and weights of a mean by its values without each day."""
    count = len(left_out)
    values = (count - 1) * (np.mean(left_out) - np.array(left_out))
    gaps, errors, heights = np.abs(np.subtract.outer(days, days)), [], []
    for lag in LAGS:
        v = lag**gaps
        inverse = np.linalg.inv(v)
        rest = values - (inverse @ values).sum() / inverse.sum()
        rss = max(float(rest @ inverse @ rest), 0.0)
        if rss <= 1e-12 * float(values @ inverse @ values):
            errors.append(0.0)
            heights.append(-math.log(1 - lag))
            continue
        errors.append(math.sqrt(rss / (count - 1) * v.sum()) / count)
        heights.append(
            -(math.log(inverse.sum()) + np.linalg.slogdet(v)[1]) / 2
            - (count - 1) / 2 * math.log(rss)
            - math.log(1 - lag)
        )
    weights = np.exp(np.array(heights) - max(heights))
    return np.array(errors), weights / weights.sum(), count - 1


def with_tasks(law, left_out):
    """Return the law with the error over tasks, by values without each task and by family."""
    errors, weights, freedom = law
    square = sum((len(v) - 1) * np.var(v) for v in left_out)
    fewer = min(freedom, sum(len(v) - 1 for v in left_out))
    return np.sqrt(errors**2 + square), weights, fewer


def share_below(law, reach):
    errors, weights, freedom = law
    return float(weights @ stats.t.cdf(reach / errors, freedom))


def reach_of(law, share):
    """Return how far the quantile of a share lies above the mean."""
    far = 1e3 * law[0].max()
    return optimize.brentq(lambda x: share_below(law, x) - share, -far, far)
