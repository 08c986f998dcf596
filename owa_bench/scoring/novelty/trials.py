"""Novelty metrics of SAIL-ON trials, arm by arm, from the traces of a run.

A trial is a lane of plain episodes, then novel ones; in one of Given Detection the agent is told
which they are, and M4 alone reads it. Performance is an episode's q_state. The agent states novelty
in Belief events: the last `novelty` of an episode and the last `novelty_threshold` count; an arm
that states nothing has no detection. What the novelty is it states as probabilities of `level/N`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.events import Belief, Drift
from owa_bench.records.observables import Floats
from owa_bench.records.plan import Plan
from owa_bench.records.score import CellTable
from owa_bench.records.trace import Trace
from owa_bench.scoring.novelty.measure import NoveltyResult, NoveltyTrial, measure
from owa_bench.scoring.statistics.bootstrap import figure

PREFIX = "trial/"
NOVELTY, THRESHOLD, LEVEL = "novelty", "novelty_threshold", "level/"
DEFAULT_THRESHOLD = 0.5  # of an agent that states a probability and no threshold
LAST = 5  # m of APTI and of the reaction metrics, unless stated otherwise [D]
_METRICS = {  # column of the table by field of the result
    "m2": "CDT",
    "m1": "FN_CDT",
    "m2_1": "FP",
    "m3": "NRP",
    "m4": "NRP told",
    "m5": "OPTI",
    "m6": "APTI",
}


class TrialEpisode(NamedTuple):
    """One episode of a trial: quality, stated novelty, and whether it was novel."""

    place: int
    quality: float
    novelty: float
    threshold: float
    novel: bool
    stated: bool
    named: str = ""  # the level that was stated most probable, "" if none was


class ArmTrial(NamedTuple):
    """One arm's complete trial: its name, its group (family and tier), its episodes.

    `given`: it is one of Given Detection.
    """

    arm: str
    trial: str
    group: str
    episodes: tuple[TrialEpisode, ...]
    given: bool = False


class TrialTrace(NamedTuple):
    """The part of a trace that novelty reads: arm, trial, group, and the episode."""

    arm: str
    trial: str
    group: str
    episode: TrialEpisode


class ArmNovelty(NamedTuple):
    """An arm's metrics over its trials.

    `silent`: it never stated a probability. `named`: share of trials at whose end the level stated
    most probable is the true one, NaN if it stated none.
    """

    arm: str
    result: NoveltyResult
    silent: bool
    named: float


class QualityCurve(NamedTuple):
    """Mean quality by episode, counted from the first novel one (at 0)."""

    arm: str
    offsets: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def read_trial(trace: Trace) -> TrialTrace | None:
    """Return the episode of a trial that a trace holds, None if it belongs to none.

    Formula: none. Shapes: a trace; an episode. Units: quality in [0, 1].
    Missing: None outside trials. Errors: none. Source: `docs/companions.md#novelty`.

    >>> PREFIX
    'trial/'
    """
    start = trace.start
    if not start.pair.startswith(PREFIX):
        return None
    group = f"{start.instance.family} T{start.instance.tier}"
    return TrialTrace(start.arm, _trial_of(start.pair), group, _episode(trace))


def complete_trials(plan: Plan, traces: Iterable[TrialTrace | None]) -> tuple[ArmTrial, ...]:
    """Return every complete trial.

    Formula: none. Shapes: an entry per counted attempt; a trial per arm and lane.
    Units: quality in [0, 1]. Missing: trials with an episode missing, or with no novel
        episode, are left out.
    Errors: none.
    Source: `docs/companions.md#novelty`.

    >>> NOVELTY, THRESHOLD
    ('novelty', 'novelty_threshold')
    """
    planned = Counter(
        (entry.arm, _trial_of(entry.pair))
        for entry in plan.entries
        if entry.pair.startswith(PREFIX)
    )
    told = {_trial_of(entry.pair) for entry in plan.entries if isinstance(entry.told, int)}
    by_trial: dict[tuple[str, str, str], list[TrialEpisode]] = {}
    for one in traces:
        if one is not None:
            by_trial.setdefault((one.arm, one.trial, one.group), []).append(one.episode)
    trials = []
    for (arm, trial, group), unordered in by_trial.items():
        episodes = sorted(unordered)
        changes = episodes[-1].novel and not episodes[0].novel
        if len(episodes) == planned[arm, trial] and changes:
            trials.append(ArmTrial(arm, trial, group, tuple(episodes), trial in told))
    return tuple(trials)


def measure_arms(
    trials: Sequence[ArmTrial], baseline: str, *, last: int = LAST
) -> tuple[ArmNovelty, ...]:
    """Return each arm's metrics against the baseline arm on the same trials.

    Formula: `measure` over the trials that both arms played
    Shapes: trials; a result per arm. Units: as in `measure`.
    Missing: a trial that the baseline lacks is left out.
    Errors: ScoringError if there is no trial, or the baseline played none.
    Source: `docs/companions.md#novelty` [R].

    >>> measure_arms((), "pd")
    Traceback (most recent call last):
    owa_bench.errors.ScoringError: The run holds no whole trial: play one with --trials.
    """
    if not trials:
        raise ScoringError("The run holds no whole trial: play one with --trials.")
    reference = {trial.trial: trial for trial in trials if trial.arm == baseline}
    arms = list(dict.fromkeys(trial.arm for trial in trials))
    if not reference:
        raise ScoringError(
            f"The baseline must be an arm that played trials ({', '.join(arms)}), got {baseline}."
        )
    results = []
    for arm in arms:
        both = [one for one in trials if one.arm == arm and one.trial in reference]
        own = [one for one in both if not one.given]
        if own:
            pairs, given = (
                [paired_arrays(one, reference[one.trial]) for one in part]
                for part in (own, [one for one in both if one.given])
            )
            silent = not any(e.stated for one in own for e in one.episodes)
            metrics = measure(pairs, given, last=last)
            results.append(ArmNovelty(arm, metrics, silent, _share_named(own)))
    return tuple(results)


def apti_by_group(
    trials: Sequence[ArmTrial], baseline: str, *, last: int = LAST
) -> dict[str, dict[str, float]]:
    """Return each arm's mean APTI by group: it scales AIQ in the AIQ paper's figure 29.

    Formula: M6 of `measure` over the trials of one group (family and tier)
    Shapes: lanes; a number per arm and group. Units: APTI in [0, 1], 0.5 = parity.
    Missing: an arm without a trial of a group has no number there.
    Errors: ScoringError as `measure_arms`.
    Source: AIQ paper, sections 3.4.2 and 3.4.4 [S].

    >>> played = [TrialEpisode(i, 0.5, 0.9, 0.5, i > 0, True) for i in range(2)]
    >>> trial = ArmTrial("a", "t", "table1/14 T1", tuple(played))
    >>> apti_by_group([trial], "a", last=1)
    {'a': {'table1/14 T1': 0.5}}
    """
    apti: dict[str, dict[str, float]] = {}
    for group, own in _by_group(trials).items():
        for one in measure_arms(own, baseline, last=last):
            apti.setdefault(one.arm, {})[group] = one.result.m6
    return apti


def _by_group(trials: Sequence[ArmTrial]) -> dict[str, list[ArmTrial]]:
    groups: dict[str, list[ArmTrial]] = {}
    for trial in trials:
        groups.setdefault(trial.group, []).append(trial)
    return groups


def paired_arrays(trial: ArmTrial, baseline: ArmTrial) -> NoveltyTrial:
    """Return a trial and the baseline's as the arrays that `measure` reads.

    Formula: none. Shapes: two arms' records of one trial; arrays (episodes,).
    Units: quality, probability. Missing: nothing may be missing.
    Errors: none. Source: `docs/companions.md#novelty`.

    >>> played = [TrialEpisode(i, 0.5, 0.9, 0.5, i > 0, True) for i in range(2)]
    >>> trial = ArmTrial("a", "t", "g", tuple(played))
    >>> paired_arrays(trial, trial).introduced
    1
    """
    return NoveltyTrial(
        _column(trial, "quality"),
        _column(baseline, "quality"),
        _column(trial, "novelty"),
        _column(trial, "threshold"),
        introduction(trial),
    )


def introduction(trial: ArmTrial) -> int:
    """Return the index of a trial's first novel episode.

    Formula: first i with a Drift event. Shapes: a trial; an index. Units: episodes.
    Missing: a trial always has one. Errors: none. Source: `docs/companions.md#novelty`.

    >>> played = [TrialEpisode(i, 0.5, 0.9, 0.5, i > 1, True) for i in range(4)]
    >>> introduction(ArmTrial("a", "t", "g", tuple(played)))
    2
    """
    return next(i for i, episode in enumerate(trial.episodes) if episode.novel)


def _share_named(trials: Sequence[ArmTrial]) -> float:
    """Return the share of trials whose level is named at their end, NaN if none is."""
    ends = [(one.episodes[-1].named, one.group) for one in trials]
    if not any(named for named, _ in ends):
        return math.nan
    right = [group.split(" ")[0].endswith(f"/{named}") for named, group in ends if named]
    return sum(right) / len(ends)


def quality_curves(trials: Sequence[ArmTrial]) -> tuple[QualityCurve, ...]:
    """Return each arm's mean quality around the introduction, over its trials.

    Formula: mean over trials of System Detection at each episode - introduction, with
        +- 1.96 standard errors within [0, 1] (0 where one trial reaches)
    Shapes: trials; a curve per arm. Units: quality in [0, 1], episodes.
    Missing: an offset is averaged over the trials that reach it.
    Errors: none. Source: AIQ paper, section 3.4.1, curves before and after novelty.

    >>> played = [TrialEpisode(i, 0.5, 0.9, 0.5, i > 1, True) for i in range(3)]
    >>> quality_curves([ArmTrial("a", "t", "g", tuple(played))])[0].offsets
    (-2, -1, 0)
    """
    by_arm: dict[str, dict[int, list[float]]] = {}
    for trial in trials:
        if trial.given:
            continue
        values, first = by_arm.setdefault(trial.arm, {}), introduction(trial)
        for i, episode in enumerate(trial.episodes):
            values.setdefault(i - first, []).append(episode.quality)
    curves = []
    for arm, values in by_arm.items():
        offsets = sorted(values)
        means = [float(np.mean(values[i])) for i in offsets]
        bands = list(zip(means, (_half_width(values[i]) for i in offsets), strict=True))
        low = tuple(max(mean - half, 0.0) for mean, half in bands)
        high = tuple(min(mean + half, 1.0) for mean, half in bands)
        curves.append(QualityCurve(arm, tuple(offsets), tuple(means), low, high))
    return tuple(curves)


def novelty_table(trials: Sequence[ArmTrial], baseline: str, *, last: int = LAST) -> CellTable:
    """Return the metrics as a table: all trials first, then each level and tier.

    Formula: as `measure_arms`. Shapes: trials; a row per arm and group.
    Units: as there. Missing: blank cells. Errors: ScoringError as `measure_arms`.
    Source: `docs/companions.md#novelty` [R].

    >>> novelty_table((), "pd")
    Traceback (most recent call last):
    owa_bench.errors.ScoringError: The run holds no whole trial: play one with --trials.
    """
    groups = _by_group(trials)
    parts = {"all": trials, **(groups if len(groups) > 1 else {})}
    rows = tuple(
        (
            *(group, one.arm, one.result.trials),
            *(figure(getattr(one.result, metric)) for metric in _METRICS),
            figure(one.named),
            "silent" if one.silent else "",
        )
        for group, own in parts.items()
        for one in measure_arms(own, baseline, last=last)
    )
    columns = ("trials", "agent", "count", *_METRICS.values(), "named", "note")
    note = (
        f"baseline {baseline}; the last {last} episodes of a trial are its "
        "asymptotic part; detected: stated probability >= stated threshold; silent: "
        "stated none; NRP told: of trials whose agent is told; named: share of trials "
        "whose level is stated most probable at the end"
    )
    return CellTable("novelty (SAIL-ON)", columns, rows, note)


def _trial_of(pair: str) -> str:
    return pair.rpartition("/")[0]


def _episode(trace: Trace) -> TrialEpisode:
    """Return one episode; the last statement before its end counts."""
    beliefs = {event.proposition: event.p for event in trace.of(Belief)}
    levels = {name.removeprefix(LEVEL): p for name, p in beliefs.items() if name.startswith(LEVEL)}
    return TrialEpisode(
        int(trace.start.pair.rpartition("/")[2]),
        trace.end.q_state,
        beliefs.get(NOVELTY, 0.0),
        beliefs.get(THRESHOLD, DEFAULT_THRESHOLD),
        any(True for _ in trace.of(Drift)),
        NOVELTY in beliefs,
        max(levels, key=lambda name: levels[name], default=""),
    )


def _column(trial: ArmTrial, name: str) -> Floats:
    return np.array([getattr(episode, name) for episode in trial.episodes], dtype=float)


def _half_width(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    return 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
