"""Expansion closure: does the agent add a tool family that pays, by itself?"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.observables import CAPABILITIES, NO_DAY, Floats, Observables
from owa_bench.records.protocol import Closures
from owa_bench.records.score import ClosureResult, ClosureStatus
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
        raise ScoringError(
            f"Expansion needs five arrays of 2 tasks at least, got {sorted(shapes)}."
        )
    for part in found:
        if np.isnan(part).any() or ((part < 0) | (part > 1)).any():
            raise ScoringError("Capabilities must be numbers in [0, 1].")


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
    table, free = np.stack([gains, lost, left], axis=1), len(gains) - 1
    means, errors = table.mean(axis=0), _errors(table, resamples, root)
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
        tasks=len(gains),
    )


def _errors(table: Floats, resamples: int, root: str) -> Floats:
    """Return the paired bootstrap errors of the column means, above 0."""
    strata = np.zeros(len(table), dtype=np.int64)
    drawn = np.concatenate(
        [
            weights @ table / weights.sum(axis=1, keepdims=True)
            for weights in bootstrap_weights(strata, resamples, root, "expansion")
        ]
    )
    errors: Floats = np.maximum(drawn.std(axis=0), _SMALL)
    return errors


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


class Rules(NamedTuple):
    """The published numbers of the test, and what seeds its resamples."""

    closures: Closures
    level: float
    gate_level: float
    resamples: int
    root: str


class _Tried(NamedTuple):
    """One family that a revision installed, with what its test found (None: nothing).

    `day` is the day of its adoption, `needing` the task families it was tested on.
    """

    family: str
    evidence: tuple[str, ...]
    day: int
    needing: frozenset[str]
    found: Expansion | None


def expansion(
    table: Observables, whole: Observables, frozen: Observables | None, rules: Rules
) -> ClosureResult:
    """Return PASS if a family that a revision installed passes, else why not.

    `table` holds the agent's episodes, `whole` those of every arm, `frozen` the
    control's; without a control no day can be said to keep the gain.
    """
    tried = _tried(table, whole, rules)
    if not tried:
        why = "no tool family was installed and confirmed by ablation in this run"
        return _closure("NOT TESTED", why)
    tested = [(one, one.found) for one in tried if one.found is not None]
    if not tested:
        names = ", ".join(one.family for one in tried)
        why = f"the five conditions are not counted on the same instances for {names}"
        return _closure("NOT TESTED", why)
    marks = passes([found for _, found in tested], rules.level)
    words, held = [], [0]
    for (one, found), mark in zip(tested, marks, strict=True):
        verb = "expands" if mark else "does not"
        words.append(f"{one.family} {verb}: {_words(found)}")
        if mark:
            held.append(kept_days(table, frozen, one.day, one.needing, found, rules))
    evidence = tuple(text for one, _ in tested for text in one.evidence)
    status: ClosureStatus = "PASS" if any(marks) else "FAIL"
    return _closure(status, "; ".join(words), evidence, max(held))


def _tried(table: Observables, whole: Observables, rules: Rules) -> tuple[_Tried, ...]:
    """Return every adopted family once; the last event of a family counts."""
    events = table.revisions
    last: dict[str, _Tried] = {}
    for i in range(len(events.row)):
        family, evidence = str(events.family[i]), tuple(events.evidence[i])
        if events.decision[i] != "adopted" or not family:
            continue
        names = [text.partition("=")[2] for text in evidence]
        needing = frozenset(whole.family[np.isin(whole.attempt, names)].tolist())
        day = int(table.day[events.row[i]])
        last[family] = _Tried(
            family, evidence, day, needing, _tested(whole, evidence, rules)
        )
    return tuple(last.values())


def _tested(
    whole: Observables, evidence: Sequence[str], rules: Rules
) -> Expansion | None:
    """Return the test of a family, None where its conditions were not all counted."""
    held = gather(whole, evidence)
    if held is None or len(held.before) < 2:
        return None
    return expansion_test(
        held,
        level=rules.level,
        gate_level=rules.gate_level,
        gain_lost=rules.closures.gain_lost,
        resamples=rules.resamples,
        root=rules.root,
    )


def kept_days(
    table: Observables,
    frozen: Observables | None,
    adopted: int,
    needing: frozenset[str],
    found: Expansion,
    rules: Rules,
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
    Errors: none. Source: [S] AAI-4, closures sustained; the rule [R].
    """
    if frozen is None or adopted == NO_DAY:
        return 0
    marks = (table.phase == "checkpoint") & (table.day >= adopted)
    kept = []
    for day in sorted(set(table.day[marks].tolist())):
        gaps = _gaps((table, frozen), int(day), needing)
        if gaps is None:
            continue
        error = float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
        reach = float(stats.t.ppf(rules.gate_level, len(gaps) - 1)) * error
        if float(gaps.mean()) + reach >= rules.closures.gain_lost * found.gain:
            kept.append(int(day))
    return longest(kept)


def longest(days: Sequence[int]) -> int:
    """Return the length of the longest run of consecutive days.

    >>> longest([1, 2, 3, 5, 6]), longest([])
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


def _closure(
    status: ClosureStatus, reason: str, evidence: tuple[str, ...] = (), days: int = 0
) -> ClosureResult:
    return ClosureResult(
        name=NAME, status=status, reason=reason, evidence=evidence, days=days
    )
