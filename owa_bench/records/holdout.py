"""Registered tests of a revision on a holdout: the plan, its statistic, its e-value.

Pure functions of paired differences, read by the laboratory, which answers with them, and by
scoring, which computes them again. Source: `docs/selfrev.md#holdouts`.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from owa_bench.canonical import record_digest
from owa_bench.errors import FieldError

HoldoutMetric = Literal["quality", "logged"]
HoldoutRule = Literal["mean", "lower_bound", "e_process"]
FEWEST_PAIRS = 10
_Floats = npt.NDArray[np.float64]
_BETS = tuple(step / 20 for step in range(1, 20))  # stakes of the mixture
_DECIMALS = 6


class HoldoutPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A test of a candidate version against a base version, before it is played.

    `rule` "mean" answers with the mean difference, "lower_bound" with its one-sided lower bound at
    `level` by Student's t, "e_process" with the e-value, at which the test stops early once it
    reaches 1 / `level`.
    """

    hypothesis: str
    base: str
    candidate: str
    metric: HoldoutMetric
    pairs: int
    rule: HoldoutRule
    level: float

    def __post_init__(self) -> None:
        """Refuse numbers outside their range."""
        if self.pairs < FEWEST_PAIRS:
            raise FieldError("pairs", self.pairs, f"must be at least {FEWEST_PAIRS}")
        if not 0.0 < self.level <= 0.25:
            raise FieldError("level", self.level, "must be in (0, 0.25]")

    @property
    def digest(self) -> str:
        """SHA-256 of the plan, which keys the seeds of its holdout."""
        return record_digest(self)


class HoldoutStatistic(NamedTuple):
    """The declared statistic, the e-value, and the pairs that both rest on."""

    statistic: float
    e_value: float
    pairs: int


def e_value(differences: Sequence[float]) -> float:
    """Return the e-value of the hypothesis that the mean difference is at most 0.

    Args:
        differences: Candidate less base, each in [-1, 1], in order.
    Returns: The wealth after the last pair, the mean over the stakes .05, .10, .. .95; 1 before the
        first.
    Formula:
        E_t = mean over b of prod_{s <= t} (1 + b d_s)
    Source: Waudby-Smith and Ramdas, JRSS B 2024, section 4.

    >>> e_value([]), round(e_value([1.0]), 6)
    (1.0, 1.5)
    """
    growth = 1.0 + np.outer(np.array(differences), np.array(_BETS))
    return float(growth.prod(axis=0).mean())


def has_stopped(plan: HoldoutPlan, differences: Sequence[float]) -> bool:
    """Return whether a test is over: all its pairs, or an e-value that suffices.

    Args:
        plan: The plan.
        differences: What was played so far, in order.
    Returns: Whether no further pair is played.
    """
    enough = plan.rule == "e_process" and e_value(differences) >= 1.0 / plan.level
    return enough or len(differences) >= plan.pairs


def holdout_statistic(plan: HoldoutPlan, differences: Sequence[float]) -> HoldoutStatistic:
    """Return the answer to a plan.

    Args:
        plan: The plan.
        differences: Candidate less base by pair, in order, up to where it stopped.
    Returns: The statistic of its rule, and the e-value whatever the rule.
    """
    value = e_value(differences)
    table = np.array(differences, dtype=np.float64)
    mean = float(table.mean()) if len(table) else 0.0
    answers = {"mean": mean, "lower_bound": mean - _margin(table, plan.level), "e_process": value}
    return HoldoutStatistic(
        round(answers[plan.rule], _DECIMALS), round(value, _DECIMALS), len(table)
    )


def _margin(table: _Floats, level: float) -> float:
    """Return the distance of the one-sided bound from the mean."""
    from scipy import stats

    if len(table) < 2:
        return math.inf
    error = float(table.std(ddof=1)) / math.sqrt(len(table))
    return float(stats.t.ppf(1.0 - level, len(table) - 1)) * error


def e_bh(values: Sequence[float], level: float) -> tuple[bool, ...]:
    """Return which hypotheses the e-BH procedure rejects.

    Args:
        values: One e-value a hypothesis, of all that were registered.
        level: The false discovery rate that holds under any dependence.
    Returns: A flag for each.
    Source: Wang and Ramdas, JRSS B 2022, section 4.

    >>> e_bh([50.0, 1.0], 0.05), e_bh([40.0, 20.0], 0.05)
    ((True, False), (True, True))
    """
    order = sorted(range(len(values)), key=lambda i: -values[i])
    rejected = 0
    for rank, place in enumerate(order, 1):
        if values[place] * rank * level >= len(values):
            rejected = rank
    chosen = set(order[:rejected])
    return tuple(place in chosen for place in range(len(values)))
