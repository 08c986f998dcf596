"""Slopes between checkpoints and over time: kappa times how fast an agent spends."""

from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats


class Pace(NamedTuple):
    """One window: mean slope per resource, spend rate, and their product over time."""

    kappa: float
    spend_rate: float
    time_slope: float


def differences(spent: Floats, values: Floats) -> Floats:
    """Return the slope between neighbouring checkpoints.

    Formula:
        (A_{j+1} - A_j) / (R_{j+1} - R_j)
    Shapes: two arrays (checkpoints,); result one shorter. Units: per kappa unit.
    Missing: NaN where nothing was spent in between: left out, not divided.
    Errors: ScoringError if shapes differ. Source: [S] section 3.3 of the AAI paper.

    >>> differences(np.array([0.0, 1.0, 1.0]), np.array([0.5, 0.6, 0.7])).round(6)
    array([0.1, nan])
    """
    if spent.shape != values.shape or spent.ndim != 1:
        raise ScoringError(f"Checkpoints differ: {spent.shape} and {values.shape}.")
    gap, rise = np.diff(spent), np.diff(values)
    return np.divide(rise, gap, out=np.full_like(rise, np.nan), where=gap > 0)


def window_pace(days: Floats, spent: Floats, values: Floats) -> Pace:
    """Return a window's mean slope, spend rate and time slope.

    Formula:
        kappa = dA / dR, rate = dR / dt, dA / dt = kappa dR/dt
    Shapes: three arrays (checkpoints,). Units: per kappa unit, units a day, per day.
    Missing: NaN where dR = 0 (undefined, the window is left out).
    Errors: ScoringError unless days rise and there are two.
    Source: [S] section 3.3 of the AAI paper.

    >>> window_pace(np.array([0.0, 2.0]), np.array([0.0, 4.0]), np.array([0.1, 0.3]))
    Pace(kappa=0.05, spend_rate=2.0, time_slope=0.1)
    """
    if len(days) < 2 or not days[-1] > days[0]:
        raise ScoringError(f"A window needs two rising days, got {days}.")
    rise, cost = float(values[-1] - values[0]), float(spent[-1] - spent[0])
    length = float(days[-1] - days[0])
    slope = round(rise / cost, 12) if cost > 0 else float("nan")
    return Pace(slope, cost / length, round(slope * cost / length, 12))


def per_resource(slope: float, bend: float, spend_rate: float) -> tuple[float, float]:
    """Return time-based slope and curvature brought to resources: A'/r and A''/r^2.

    Errors: ScoringError unless the spend rate is above 0.
    Source: [S] section 3.7 of the AAI paper, time-based alternative.

    >>> per_resource(0.1, 0.04, 2.0)
    (0.05, 0.01)
    """
    if not spend_rate > 0:
        raise ScoringError(f"The spend rate must be above 0, got {spend_rate}.")
    return slope / spend_rate, bend / spend_rate**2
