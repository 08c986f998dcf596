"""Novelty: APTI and the other SAIL-ON metrics over trials.

A trial plays instances before and after a novelty is introduced; the agent states of each the
probability that it is novel. Source: sail-on-client's metric page [R]; APTI from the AIQ paper,
section 3.4.2 [S]; `docs/companions.md#novelty`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.statistics import arrays


class NoveltyTrial(NamedTuple):
    """One trial, in the order played.

    agent, baseline: performance >= 0 per instance. novelty, threshold: as the agent stated them; an
    instance counts as detected if novelty >= threshold. introduced: index of the first novel
    instance.
    """

    agent: Floats
    baseline: Floats
    novelty: Floats
    threshold: Floats
    introduced: int


class NoveltyResult(NamedTuple):
    """The SAIL-ON metrics over trials; NaN where none of its trials exists.

    m1: mean novel instances still called normal, over correctly detected trials. m2: share of
    trials correctly detected. m2_1: share of trials with a false alarm. m3: novelty reaction
    performance. m4: the same over trials of Given Detection. m5: OPTI. m6: APTI. trials, detected,
    given: counts.
    """

    m1: float
    m2: float
    m2_1: float
    m3: float
    m4: float
    m5: float
    m6: float
    trials: int
    detected: int
    given: int


def task_improvement(agent: npt.ArrayLike, baseline: npt.ArrayLike) -> float:
    """Return the task improvement of an agent over a baseline.

    Formula: P_agent / (P_agent + P_baseline), sums over the instances given: the last
        ones of a trial give APTI, all novel ones OPTI; 0.5 where both are 0
    Shapes: (instances,) each; a scalar in [0, 1], 0.5 = parity.
    Units: performance.
    Missing: nothing may be missing.
    Errors: ScoringError for NaN, negative performance or lengths that differ.
    Source: AIQ paper, section 3.4.2 [S]; 0 / 0 [R].

    >>> task_improvement([3.0, 3.0], [1.0, 1.0]), task_improvement([0.0], [0.0])
    (0.75, 0.5)
    """
    own, other = arrays.vector(agent, "agent"), arrays.vector(baseline, "baseline")
    arrays.check_lengths(own, other, "`agent` and `baseline`")
    for values, name in ((own, "agent"), (other, "baseline")):
        arrays.check_range(values, name, 0.0, math.inf)
    total = float(own.sum() + other.sum())
    return float(own.sum()) / total if total > 0.0 else 0.5


def detection(trial: NoveltyTrial) -> int | None:
    """Return the index of the first instance called novel, None if none was.

    Formula: first i with novelty_i >= threshold_i
    Shapes: a trial; an index.
    Units: instances.
    Missing: None without a detection.
    Errors: none.
    Source: `docs/companions.md#novelty` [R: the comparison].

    >>> one = np.ones(3)
    >>> detection(NoveltyTrial(one, one, np.array([0.1, 0.6, 0.9]), 0.5 * one, 1))
    1
    """
    called = np.flatnonzero(trial.novelty >= trial.threshold)
    return int(called[0]) if called.size else None


def measure(
    trials: Sequence[NoveltyTrial], given: Sequence[NoveltyTrial] = (), *, last: int = 5
) -> NoveltyResult:
    """Return the SAIL-ON metrics over trials of System and of Given Detection.

    Formula:
        CDT: first detection at or after the introduction
        M1 = mean over CDTs of (novel instances not called novel); M2 = share of CDTs;
        M2.1 = share of trials with a detection before the introduction
        M3 = mean of P_post(agent, last) / P_pre(baseline); M4 over `given`
        M5 = mean `task_improvement` after the introduction; M6 over the last instances
    Shapes: trials; scalars.
    Units: instances, shares, ratios.
    Missing: M1 is NaN without a CDT, M4 without trials of Given Detection; a trial
        whose baseline scores 0 before the novelty is left out of M3 and M4.
    Errors: ScoringError for no trial, arrays that differ in length, NaN, an
        introduction outside 1 .. length - 1, or `last` outside the novel part.
    Source: `docs/companions.md#novelty` [R].

    >>> one = np.ones(4)
    >>> said = np.array([0.0, 0.0, 0.0, 1.0])
    >>> metrics = measure([NoveltyTrial(one, 0.5 * one, said, 0.5 * one, 2)], last=1)
    >>> metrics.m1, metrics.m2, metrics.m3, round(metrics.m6, 3)
    (1.0, 1.0, 2.0, 0.667)
    """
    if not trials:
        raise ScoringError("`trials` is empty: at least one trial is needed.")
    for trial in (*trials, *given):
        _check(trial, last)
    delays = [
        math.nan if at is None else at - trial.introduced
        for trial in trials
        for at in [detection(trial)]
    ]
    right, early = np.greater_equal(delays, 0), np.less(delays, 0)
    detected = [trial for trial, correct in zip(trials, right, strict=True) if correct]
    novel = [trial.agent.size - trial.introduced for trial in trials]
    return NoveltyResult(
        m1=_mean([_missed(trial) for trial in detected]),
        m2=float(np.mean(right)),
        m2_1=float(np.mean(early)),
        m3=_mean([_reaction(trial, last) for trial in trials]),
        m4=_mean([_reaction(trial, last) for trial in given]),
        m5=_mean([_improvement(*pair) for pair in zip(trials, novel, strict=True)]),
        m6=_mean([_improvement(trial, last) for trial in trials]),
        trials=len(trials),
        detected=len(detected),
        given=len(given),
    )


def _missed(trial: NoveltyTrial) -> float:
    """Return the number of novel instances that were not called novel."""
    after = slice(trial.introduced, None)
    return float(np.sum(trial.novelty[after] < trial.threshold[after]))


def _reaction(trial: NoveltyTrial, last: int) -> float:
    """Return late performance over the baseline's before the novelty."""
    before = float(trial.baseline[: trial.introduced].mean())
    return float(trial.agent[-last:].mean()) / before if before > 0.0 else math.nan


def _improvement(trial: NoveltyTrial, last: int) -> float:
    return task_improvement(trial.agent[-last:], trial.baseline[-last:])


def _mean(values: list[float]) -> float:
    """Return the mean of the values that are not NaN, NaN without any."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def _check(trial: NoveltyTrial, last: int) -> None:
    """ScoringError unless a trial's arrays fit together."""
    columns = {name: arrays.vector(getattr(trial, name), name) for name in _COLUMNS}
    lengths = {name: values.size for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        raise ScoringError(f"the columns of a trial must be of one length, got {lengths}.")
    novel = trial.agent.size - trial.introduced
    if trial.introduced < 1 or not 1 <= last <= novel:
        raise ScoringError(
            "`introduced` needs an instance before it and `last` instances after it, "
            f"got {trial.introduced} of {trial.agent.size} with last = {last}."
        )


_COLUMNS = ("agent", "baseline", "novelty", "threshold")
