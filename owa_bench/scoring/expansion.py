"""Expansion closure: the gain of a tool family that a revision installed."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.observables import CAPABILITIES, NO_DAY, Floats, Observables
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import ClosureResult
from owa_bench.scoring.bootstrap import bootstrap_weights

NAME = "expansion"
_SMALL = 1e-12


class Capabilities(NamedTuple):
    """Quality of each task that needs the family, under the five conditions."""

    before: Floats
    after: Floats
    control_before: Floats
    control_after: Floats
    ablated: Floats


class Expansion(NamedTuple):
    """Paired test of one family; `p` one-sided, before Holm."""

    gain: float
    gain_low: float
    p: float
    lost_low: float
    equivalence_p: float
    equivalence_power: float
    tasks: int


def _check(found: Capabilities) -> None:
    shapes = {part.shape for part in found}
    if len(shapes) != 1 or found.before.ndim != 1 or len(found.before) < 2:
        raise ScoringError(
            f"Expansion needs five arrays of 2 tasks at least, got {sorted(shapes)}."
        )
    for part in found:
        if np.isnan(part).any() or ((part < 0) | (part > 1)).any():
            raise ScoringError("Capabilities must be numbers in [0, 1].")


def expansion_test(
    found: Capabilities, protocol: Protocol, *, resamples: int, root: str
) -> Expansion:
    """Return the paired test of one tool family.

    Formula:
        gain = mean((after - before) - (control after - control before)), paired
        bootstrap error, t with tasks - 1 degrees of freedom
        lost = (after - ablated) - 0.5 (after - before): lower bound > 0
        beside: |ablated - before| < half the gain (TOST) and its power
    Shapes: five arrays (tasks,). Units: capability.
    Missing: none. Errors: ScoringError if shapes differ, a value is NaN or outside
        [0, 1], or there are fewer than two tasks.
    Source: [S] section 3.4 of the AAI paper; the test [R].
    """
    _check(found)
    rules, gain_lost = protocol.statistics, protocol.closures.gain_lost
    gains = (found.after - found.before) - (found.control_after - found.control_before)
    lost = (found.after - found.ablated) - gain_lost * (found.after - found.before)
    left = found.ablated - found.before
    table, free = np.stack([gains, lost, left], axis=1), len(gains) - 1
    means, errors = table.mean(axis=0), _errors(table, resamples, root)
    reach = float(stats.t.ppf((1 + rules.level) / 2, free))
    once = float(stats.t.ppf(rules.gate_level, free))
    half = means[0] / 2
    p_left = max(
        float(stats.t.sf((half - means[2]) / errors[2], free)),
        float(stats.t.sf((half + means[2]) / errors[2], free)),
    )
    power = 2 * float(stats.norm.cdf(half / errors[2] - once)) - 1
    return Expansion(
        gain=float(means[0]),
        gain_low=float(means[0] - reach * errors[0]),
        p=float(stats.t.sf(means[0] / errors[0], free)),
        lost_low=float(means[1] - once * errors[1]),
        equivalence_p=p_left,
        equivalence_power=max(0.0, power),
        tasks=len(gains),
    )


def _errors(table: Floats, resamples: int, root: str) -> Floats:
    """Return the paired bootstrap errors of the column means, above 0."""
    strata = np.zeros(len(table), dtype=np.int64)
    draws = bootstrap_weights(strata, resamples, root, "expansion")
    means = [weights @ table / weights.sum(axis=1, keepdims=True) for weights in draws]
    errors: Floats = np.maximum(np.concatenate(means).std(axis=0), _SMALL)
    return errors


def holm(values: Sequence[float], alpha: float) -> tuple[bool, ...]:
    """Return which hypotheses Holm's procedure rejects.

    Args:
        values: A p-value per hypothesis.
        alpha: Family-wise level.

    Returns:
        Whether each is rejected.

    >>> holm([0.001, 0.04, 0.03], 0.05)
    (True, False, False)
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    rejected = [False] * len(values)
    for rank, place in enumerate(order):
        if values[place] > alpha / (len(values) - rank):
            break
        rejected[place] = True
    return tuple(rejected)


def passes(tests: Sequence[Expansion], level: float) -> tuple[bool, ...]:
    """Return which families expand: a significant gain that the ablation removes.

    Args:
        tests: Tests of the families that were tried.
        level: Level of two-sided intervals.

    Returns:
        Whether each expands.
    """
    significant = holm([test.p for test in tests], (1 - level) / 2)
    return tuple(
        real and test.lost_low > 0
        for real, test in zip(significant, tests, strict=True)
    )


def _paired_capabilities(
    every_arm: Observables, evidence: Sequence[str]
) -> Capabilities | None:
    """Return the five conditions paired by instance, None where one is missing.

    `evidence` names attempts as "before=000012.0".
    """
    place = {name: i for i, name in enumerate(every_arm.attempt.tolist())}
    qualities: dict[str, dict[tuple[str, int, str], float]]
    qualities = {name: {} for name in CAPABILITIES}
    for text in evidence:
        condition, _, attempt = text.partition("=")
        row = place.get(attempt)
        if condition not in qualities or row is None:
            return None
        key = (
            str(every_arm.pair[row]),
            int(every_arm.repeat[row]),
            repr(float(every_arm.delta[row])),
        )
        qualities[condition][key] = float(every_arm.q[row])
    keys = set(qualities["before"])
    if not keys or any(set(part) != keys for part in qualities.values()):
        return None
    return Capabilities(**{n: _by_task(part) for n, part in qualities.items()})


def _by_task(part: Mapping[tuple[str, int, str], float]) -> Floats:
    """Return the mean of each pair, in order of their names."""
    pairs = sorted({key[0] for key in part})
    means = [
        float(np.mean([value for key, value in sorted(part.items()) if key[0] == pair]))
        for pair in pairs
    ]
    return np.array(means)


class _InstalledFamily(NamedTuple):
    """A tool family that a revision installed, with its test (None: not tested).

    `day` is the day of its adoption, `needing` the task families it was tested on.
    """

    family: str
    evidence: tuple[str, ...]
    day: int
    needing: frozenset[str]
    test: Expansion | None


def expansion(
    table: Observables,
    every_arm: Observables,
    frozen: Observables | None,
    protocol: Protocol,
    *,
    resamples: int,
    root: str,
) -> ClosureResult:
    """Return PASS if a family that a revision installed expands, else why not.

    Args:
        table: Counted episodes of the agent.
        every_arm: Those of every arm.
        frozen: Those of its frozen control; without one no day keeps the gain.
        protocol: Published numbers.
        resamples: Number of resamples.
        root: Replay root, from which the weights are drawn.

    Returns:
        The record of the closure.
    """
    events, installed = table.revisions, dict[str, _InstalledFamily]()
    for i in range(len(events.row)):
        family, evidence = str(events.family[i]), tuple(events.evidence[i])
        if events.decision[i] != "adopted" or not family:
            continue
        attempts = [text.partition("=")[2] for text in evidence]
        tested_on = every_arm.family[np.isin(every_arm.attempt, attempts)]
        paired, test = _paired_capabilities(every_arm, evidence), None
        if paired is not None and len(paired.before) > 1:
            test = expansion_test(paired, protocol, resamples=resamples, root=root)
        day, needing = int(table.day[events.row[i]]), frozenset(tested_on.tolist())
        installed[family] = _InstalledFamily(family, evidence, day, needing, test)
    return _decided(tuple(installed.values()), table, frozen, protocol)


def _decided(
    installed: Sequence[_InstalledFamily],
    table: Observables,
    frozen: Observables | None,
    protocol: Protocol,
) -> ClosureResult:
    """Return the closure from the tests of the families."""
    if not installed:
        why = "no tool family was installed and confirmed by ablation in this run"
        return ClosureResult(name=NAME, status="NOT TESTED", reason=why)
    tested = [(one, one.test) for one in installed if one.test is not None]
    if not tested:
        names = ", ".join(one.family for one in installed)
        why = f"the five conditions are not counted on the same instances for {names}"
        return ClosureResult(name=NAME, status="NOT TESTED", reason=why)
    expands = passes([test for _, test in tested], protocol.statistics.level)
    words, days = [], [0]
    for (one, test), passed in zip(tested, expands, strict=True):
        verb = "expands" if passed else "does not"
        words.append(f"{one.family} {verb}: {_words(test)}")
        if passed:
            days.append(_days_kept(table, frozen, one, test.gain, protocol))
    return ClosureResult(
        name=NAME,
        status="PASS" if any(expands) else "FAIL",
        reason="; ".join(words),
        evidence=tuple(text for one, _ in tested for text in one.evidence),
        days=max(days),
    )


def _days_kept(
    table: Observables,
    frozen: Observables | None,
    installed: _InstalledFamily,
    gain: float,
    protocol: Protocol,
) -> int:
    """Return on how many consecutive days from its adoption on a gain was kept.

    Formula:
        a day keeps it iff the one-sided upper bound of the mean over checkpoint tasks
        of (agent - frozen control) reaches half the gain (the share that an ablation
        must remove); tasks are those of the families it was tested on; the count is
        the longest run of calendar days that keep it
    Shapes: tables of one campaign. Units: days.
    Missing: 0 without a campaign or a control, and a day is not counted where the
        control played other tasks or fewer than two.
    Errors: none. Source: docs/scoring.md#closures, closures sustained [S]; rule [R].
    """
    if frozen is None or installed.day == NO_DAY:
        return 0
    checkpoints = (table.phase == "checkpoint") & (table.day >= installed.day)
    kept = []
    for day in sorted(set(table.day[checkpoints].tolist())):
        gaps = _gaps((table, frozen), int(day), installed.needing)
        if gaps is None:
            continue
        error = float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
        reach = (
            float(stats.t.ppf(protocol.statistics.gate_level, len(gaps) - 1)) * error
        )
        if float(gaps.mean()) + reach >= protocol.closures.gain_lost * gain:
            kept.append(int(day))
    return longest_run(kept)


def longest_run(days: Sequence[int]) -> int:
    """Return the length of the longest run of consecutive days.

    >>> longest_run([1, 2, 3, 5, 6]), longest_run([])
    (3, 0)
    """
    best = run = 0
    for i, day in enumerate(days):
        run = run + 1 if i and day == days[i - 1] + 1 else 1
        best = max(best, run)
    return best


def _gaps(
    sides: tuple[Observables, Observables], day: int, needing: frozenset[str]
) -> Floats | None:
    """Return agent minus control by task on a day's checkpoint, None if not paired."""
    names, means = [], []
    for side in sides:
        rows = (side.phase == "checkpoint") & (side.day == day)
        rows &= np.isin(side.family, sorted(needing))
        pairs, code = np.unique(side.pair[rows], return_inverse=True)
        count = np.bincount(code, minlength=len(pairs))
        means.append(np.bincount(code, side.q[rows], minlength=len(pairs)) / count)
        names.append(pairs.tolist())
    if names[0] != names[1] or len(names[0]) < 2:
        return None
    gaps: Floats = means[0] - means[1]
    return gaps


def _words(test: Expansion) -> str:
    return (
        f"gain {test.gain:.3f} (lower bound {test.gain_low:.3f}) on "
        f"{test.tasks} tasks, "
        f"lower bound of what ablation removes beyond half {test.lost_low:.3f}; "
        f"ablated equals before within half the gain p = {test.equivalence_p:.3f}, "
        f"power {test.equivalence_power:.2f}"
    )
