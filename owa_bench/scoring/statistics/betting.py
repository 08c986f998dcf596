"""Betting: evidence about a mean that holds however long one goes on looking.

A gambler bets on every world that its value lies above a mean m. If the true mean is at most m,
no way of betting and no time of stopping multiplies the stake by 20 with more than probability .05
(Ville's inequality). The unit of a bet is the world: episodes of one world are alike.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import Array, Floats
from owa_bench.records.placement import FRACTIONS

# [D] Fractions of the largest stake that cannot be lost whole; the evidence is their mean.
BETS: Floats = np.arange(1, FRACTIONS + 1) / (FRACTIONS + 1)
_HALVINGS = 24  # of (0, 1): finer than six decimals


class Bets(NamedTuple):
    """Worlds as bets, one row each, in the order in which they were played.

    Attributes:
        low: (worlds,) value for a bet on "above"; 0 where the world was lost.
        high: (worlds,) value for a bet on "below"; 1 where the world was lost.
        slope: (worlds,) s of a value x + s m that depends on the mean m that is tested; 0 of a
            plain mean. low + slope and high + slope lie in [0, 1].
        share: (worlds,) part of the stake, in (0, 1]: in a batch in proportion to the weight of
            the world's stratum over the number of its worlds there.
    """

    low: Floats
    high: Floats
    slope: Floats
    share: Floats

    def __len__(self) -> int:
        return len(self.low)

    def joined(self, more: "Bets") -> "Bets":
        """Return these bets and then `more`."""
        return Bets(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))

    def of(self, rows: Array) -> "Bets":
        """Return the chosen bets."""
        return Bets(*(column[rows] for column in self))


NO_BETS = Bets(*(np.zeros(0) for _ in Bets._fields))


def log_above(bets: Bets, mean: float) -> float:
    """Return the logarithm of the evidence that the weighted mean is above `mean`.

    Formula:
        ln( mean over f in BETS of prod_i (1 + f c_i ((x_i + s_i m) / m - 1)) )
    Shapes: scalars. Units: natural logarithm of an e-value.
    Missing: 0 without a bet. Errors: none.
    Source: [R] docs/placement.md#bets; Waudby-Smith and Ramdas (2024). Strata that share a stake:
        by the inequality of the means a batch of weighted mean m wins nothing on average.

    >>> ones = Bets(np.ones(1), np.ones(1), np.zeros(1), np.ones(1))
    >>> round(log_above(ones, 0.5), 6)  # ln(1 + mean of BETS)
    0.405465
    """
    return float(mixture(wins_above(bets, mean).sum(axis=0)))


def log_below(bets: Bets, mean: float) -> float:
    """Return the logarithm of the evidence that the weighted mean is below `mean`.

    Args:
        bets: Bets so far.
        mean: The mean that is tested.
    """
    return float(mixture(wins_below(bets, mean).sum(axis=0)))


def wins_above(bets: Bets, mean: float | Floats) -> Floats:
    """Return what each bet on "above" multiplies its stake by, as logarithms.

    Args:
        bets: Bets.
        mean: What is tested, one for all or one per world.
    Returns: (worlds, BETS); summed over worlds, `mixture` is their evidence.
    """
    return _wins(bets.low + bets.slope * mean, bets.share, mean)


def wins_below(bets: Bets, mean: float | Floats) -> Floats:
    """Return what each bet on "below" multiplies its stake by, as logarithms.

    Args:
        bets: Bets.
        mean: What is tested, one for all or one per world.
    Returns: (worlds, BETS), as of `wins_above`.
    """
    return _wins(1 - bets.high - bets.slope * mean, bets.share, 1 - mean)


def _wins(values: Floats, share: Floats, mean: float | Floats) -> Floats:
    gains = share * (values / mean - 1.0)
    return np.log1p(gains[:, None] * BETS)


def mixture(logs: Floats) -> Floats:
    """Return the logarithm of the evidence of bets with all fractions.

    Args:
        logs: (.., BETS) what each fraction won, as a logarithm.
    Returns: (..) logarithm of their mean.
    """
    most = logs.max(axis=-1)
    found: Floats = most + np.log(np.exp(logs - most[..., None]).mean(axis=-1))
    return found


def lower_bound(bets: Bets, log_bar: float) -> float:
    """Return the largest mean that the bets refute, 0 where they refute none.

    Args:
        bets: Bets so far.
        log_bar: Logarithm of the evidence that refutes.
    Returns: A bound that holds at all looks at once.
    """
    return _last(lambda mean: log_above(bets, mean) >= log_bar)


def upper_bound(bets: Bets, log_bar: float) -> float:
    """Return the smallest mean that the bets refute from above, 1 where they refute none.

    Args:
        bets: Bets so far.
        log_bar: Logarithm of the evidence that refutes.
    """
    return 1.0 - _last(lambda rest: log_below(bets, 1.0 - rest) >= log_bar)


def _last(holds: Callable[[float], bool]) -> float:
    """Return the end of the part of (0, 1) from 0 on in which a condition holds."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def weighted_mean(bets: Bets) -> float | None:
    """Return the weighted mean, lost worlds as 0; None without a bet."""
    room = float((bets.share * (1 - bets.slope)).sum())
    return float((bets.share * bets.low).sum()) / room if room > 0 else None


def partial_conjunction(logs: Floats, least: int) -> float:
    """Return the logarithm of the evidence that at least `least` of several claims are true.

    Formula:
        sum of the K - least + 1 smallest of the K logarithms
    Shapes: logs (K,); result a scalar. Units: natural logarithms of e-values of independent data.
    Missing: a claim without data has logarithm 0. Errors: none.
    Source: [R] docs/placement.md#bets: fewer than `least` true claims leave K - least + 1 false
        ones, whose product is no smaller and wins nothing on average.

    >>> partial_conjunction(np.array([3.0, 0.0, 2.0]), 2)
    2.0
    """
    return float(np.sort(logs)[: len(logs) - least + 1].sum())
