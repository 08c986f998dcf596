"""Expansion closure: does the agent add a tool family that pays, by itself?"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.observables import CAPABILITIES, Floats, Observables
from owa_bench.records.protocol import Closures
from owa_bench.records.score import ClosureResult, ClosureStatus
from owa_bench.scoring.weights import resampled

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
    """What one family's test found; `p` one-sided, before Holm."""

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
        msg = f"Expansion needs five arrays of 2 tasks at least, got {sorted(shapes)}."
        raise ScoringError(msg)
    for part in found:
        if np.isnan(part).any() or ((part < 0) | (part > 1)).any():
            msg = "Capabilities must be numbers in [0, 1]."
            raise ScoringError(msg)


def expansion_test(
    found: Capabilities,
    *,
    level: float,
    gate_level: float,
    gain_lost: float,
    resamples: int,
    root: str,
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
    gains = (found.after - found.before) - (found.control_after - found.control_before)
    lost = (found.after - found.ablated) - gain_lost * (found.after - found.before)
    left = found.ablated - found.before
    table = np.stack([gains, lost, left], axis=1)
    size = len(gains)
    drawn = np.concatenate(
        [
            weights @ table / weights.sum(axis=1, keepdims=True)
            for weights in resampled(
                np.zeros(size, dtype=np.int64), resamples, root, "expansion"
            )
        ]
    )
    means, errors = table.mean(axis=0), np.maximum(drawn.std(axis=0), _SMALL)
    free = size - 1
    reach = float(stats.t.ppf((1 + level) / 2, free))
    once = float(stats.t.ppf(gate_level, free))
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
        tasks=size,
    )


def holm(values: Sequence[float], alpha: float) -> tuple[bool, ...]:
    """Return which hypotheses Holm's procedure rejects at family-wise level alpha.

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
    """Return which families expand: a significant gain that the ablation takes away."""
    significant = holm([test.p for test in tests], (1 - level) / 2)
    return tuple(
        real and test.lost_low > 0
        for real, test in zip(significant, tests, strict=True)
    )


def gather(whole: Observables, evidence: Sequence[str]) -> Capabilities | None:
    """Return the five conditions paired by instance, None where one is not there.

    `evidence` names attempts as "before=000012.0"; `whole` holds every arm.
    """
    place = {name: i for i, name in enumerate(whole.attempt.tolist())}
    held: dict[str, dict[tuple[str, int, str], float]] = {n: {} for n in CAPABILITIES}
    for text in evidence:
        condition, _, attempt = text.partition("=")
        row = place.get(attempt)
        if condition not in held or row is None:
            return None
        key = (
            str(whole.pair[row]),
            int(whole.repeat[row]),
            repr(float(whole.delta[row])),
        )
        held[condition][key] = float(whole.q[row])
    keys = set(held["before"])
    if not keys or any(set(part) != keys for part in held.values()):
        return None
    return Capabilities(**{n: _by_task(part) for n, part in held.items()})


def _by_task(part: Mapping[tuple[str, int, str], float]) -> Floats:
    """Return the mean of each pair, in order of their names."""
    pairs = sorted({key[0] for key in part})
    means = [
        float(np.mean([value for key, value in sorted(part.items()) if key[0] == pair]))
        for pair in pairs
    ]
    return np.array(means)


def expansion(
    table: Observables,
    whole: Observables,
    rules: Closures,
    *,
    level: float,
    gate_level: float,
    resamples: int,
    root: str,
) -> ClosureResult:
    """Return PASS if a family that a revision installed passes, else why not."""
    events = table.revisions
    wanted = [
        (str(events.family[i]), tuple(events.evidence[i]))
        for i in range(len(events.row))
        if events.decision[i] == "adopted" and events.family[i]
    ]
    if not wanted:
        return _closure(
            "NOT TESTED",
            "no tool family was installed and confirmed by ablation in this run",
        )
    tests: dict[str, Expansion] = {}
    short: list[str] = []
    for family, evidence in wanted:
        found = gather(whole, evidence)
        if found is None or len(found.before) < 2:
            short.append(family)
            continue
        tests[family] = expansion_test(
            found,
            level=level,
            gate_level=gate_level,
            gain_lost=rules.gain_lost,
            resamples=resamples,
            root=root,
        )
    if not tests:
        return _closure(
            "NOT TESTED",
            "the five conditions are not counted on the same instances for "
            + ", ".join(short),
        )
    marks = passes(list(tests.values()), level)
    words = "; ".join(
        f"{family} {'expands' if mark else 'does not'}: {_words(test)}"
        for (family, test), mark in zip(tests.items(), marks, strict=True)
    )
    names = tuple(text for family, held in wanted if family in tests for text in held)
    return _closure("PASS" if any(marks) else "FAIL", words, names)


def _words(test: Expansion) -> str:
    return (
        f"gain {test.gain:.3f} (lower bound {test.gain_low:.3f}) on "
        f"{test.tasks} tasks, "
        f"lower bound of what ablation removes beyond half {test.lost_low:.3f}; "
        f"ablated equals before within half the gain p = {test.equivalence_p:.3f}, "
        f"power {test.equivalence_power:.2f}"
    )


def _closure(
    status: ClosureStatus, reason: str, evidence: tuple[str, ...] = ()
) -> ClosureResult:
    return ClosureResult(name=NAME, status=status, reason=reason, evidence=evidence)
