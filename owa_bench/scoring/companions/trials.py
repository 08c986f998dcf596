"""From the traces of SAIL-ON trials to the novelty metrics, arm by arm.

A trial is a lane: plain episodes, then novel ones. Performance is an episode's q_state.
What the agent said stands in its Belief events: the last `novelty` of an episode and
the last `novelty_threshold`; an arm that never said anything is never a detection.
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
from owa_bench.scoring.bootstrap import figure
from owa_bench.scoring.companions.aiq.novelty import Novelty, Trial, novelty

PREFIX = "trial/"
NOVELTY, THRESHOLD = "novelty", "novelty_threshold"
DEFAULT_THRESHOLD = 0.5  # of an agent that states a probability and no threshold
LAST = 5  # m of APTI and of the reaction metrics, unless said otherwise [D]


class Played(NamedTuple):
    """One episode of a trial: what it scored, what was said, whether it was novel."""

    place: int
    quality: float
    novelty: float
    threshold: float
    novel: bool
    said: bool


class Lane(NamedTuple):
    """One arm's trial, whole: its name, its group (family and tier), its episodes."""

    arm: str
    trial: str
    group: str
    episodes: tuple[Played, ...]


class Note(NamedTuple):
    """What a trace of a trial says: arm, trial, group, and the episode."""

    arm: str
    trial: str
    group: str
    played: Played


class ArmNovelty(NamedTuple):
    """An arm's metrics over its trials; `silent`: it never stated a probability."""

    arm: str
    found: Novelty
    silent: bool


class Curves(NamedTuple):
    """Mean quality by episode, counted from the first novel one (at 0)."""

    arm: str
    offsets: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def note(trace: Trace) -> Note | None:
    """Return what a trace says of its trial, None if it belongs to none.

    Formula: none. Shapes: a trace; a note. Units: quality in [0, 1].
    Missing: None outside trials. Errors: none. Source: `cartpole3d.md` section 5.

    >>> from owa_bench.scoring.companions import trials
    >>> trials.PREFIX
    'trial/'
    """
    start = trace.start
    if not start.pair.startswith(PREFIX):
        return None
    group = f"{start.instance.family} T{start.instance.tier}"
    return Note(start.arm, _trial_of(start.pair), group, _played(trace))


def lanes(plan: Plan, notes: Iterable[Note | None]) -> tuple[Lane, ...]:
    """Return every whole trial; one that lacks an episode is left out.

    Formula: none. Shapes: a note per counted attempt; a lane per arm and trial.
    Units: quality in [0, 1]. Missing: trials with an episode missing, or with nothing
        novel in them, are no lanes.
    Errors: none.
    Source: `cartpole3d.md` section 5.

    >>> from owa_bench.scoring.companions import trials
    >>> trials.NOVELTY, trials.THRESHOLD
    ('novelty', 'novelty_threshold')
    """
    planned = Counter(
        (entry.arm, _trial_of(entry.pair))
        for entry in plan.entries
        if entry.pair.startswith(PREFIX)
    )
    found: dict[tuple[str, str], list[Note]] = {}
    for said in notes:
        if said is not None:
            found.setdefault((said.arm, said.trial), []).append(said)
    made = []
    for (arm, trial), own in found.items():
        played = sorted(said.played for said in own)
        if len(played) == planned[arm, trial] and _is_trial(played):
            made.append(Lane(arm, trial, own[0].group, tuple(played)))
    return tuple(made)


def metrics(
    found: Sequence[Lane], baseline: str, *, last: int = LAST
) -> tuple[ArmNovelty, ...]:
    """Return each arm's metrics against the baseline arm on the same trials.

    Formula: `novelty` over the trials that both arms played
    Shapes: lanes; a result per arm. Units: as in `novelty`.
    Missing: a trial that the baseline lacks is left out.
    Errors: ScoringError if there is no trial, or the baseline played none.
    Source: `cartpole3d.md` section 5 [R].

    >>> from owa_bench.scoring.companions import trials
    >>> trials.metrics((), "pd")
    Traceback (most recent call last):
    owa_bench.errors.ScoringError: The run holds no whole trial: play one with --trials.
    """
    if not found:
        raise ScoringError("The run holds no whole trial: play one with --trials.")
    beside = {lane.trial: lane for lane in found if lane.arm == baseline}
    if not beside:
        arms = ", ".join(dict.fromkeys(lane.arm for lane in found))
        raise ScoringError(
            f"The baseline must be an arm that played trials ({arms}), got {baseline}."
        )
    made = []
    for arm in dict.fromkeys(lane.arm for lane in found):
        own = [lane for lane in found if lane.arm == arm and lane.trial in beside]
        if own:
            pairs = [as_trial(lane, beside[lane.trial]) for lane in own]
            silent = not any(e.said for lane in own for e in lane.episodes)
            made.append(ArmNovelty(arm, novelty(pairs, last=last), silent))
    return tuple(made)


def improvements(
    found: Sequence[Lane], baseline: str, *, last: int = LAST
) -> dict[str, dict[str, float]]:
    """Return each arm's mean APTI by group: it scales AIQ in the seed's figure 29.

    Formula: M6 of `novelty` over the trials of one group (family and tier)
    Shapes: lanes; a number per arm and group. Units: APTI in [0, 1], 0.5 = parity.
    Missing: an arm without a trial of a group has no number there.
    Errors: ScoringError as `metrics`.
    Source: AIQ seed, sections 3.4.2 and 3.4.4 [S].

    >>> from owa_bench.scoring.companions.trials import Lane, Played, improvements
    >>> said = [Played(i, 0.5, 0.9, 0.5, i > 0, True) for i in range(2)]
    >>> improvements([Lane("a", "t", "table1/14 T1", tuple(said))], "a", last=1)
    {'a': {'table1/14 T1': 0.5}}
    """
    made: dict[str, dict[str, float]] = {}
    for group in dict.fromkeys(lane.group for lane in found):
        own = [lane for lane in found if lane.group == group]
        for one in metrics(own, baseline, last=last):
            made.setdefault(one.arm, {})[group] = one.found.m6
    return made


def as_trial(lane: Lane, baseline: Lane) -> Trial:
    """Return a lane beside the baseline's as the arrays that `novelty` reads.

    Formula: none. Shapes: two lanes of one trial; arrays (episodes,).
    Units: quality, probability. Missing: nothing may be missing.
    Errors: none. Source: `cartpole3d.md` section 5.

    >>> from owa_bench.scoring.companions.trials import Lane, Played, as_trial
    >>> said = [Played(i, 0.5, 0.9, 0.5, i > 0, True) for i in range(2)]
    >>> lane = Lane("a", "t", "g", tuple(said))
    >>> as_trial(lane, lane).introduced
    1
    """
    return Trial(
        _column(lane, "quality"),
        _column(baseline, "quality"),
        _column(lane, "novelty"),
        _column(lane, "threshold"),
        introduced(lane),
    )


def introduced(lane: Lane) -> int:
    """Return the index of a lane's first novel episode.

    Formula: first i with a Drift event. Shapes: a lane; an index. Units: episodes.
    Missing: a lane always has one. Errors: none. Source: `cartpole3d.md` section 5.

    >>> from owa_bench.scoring.companions.trials import Lane, Played, introduced
    >>> said = [Played(i, 0.5, 0.9, 0.5, i > 1, True) for i in range(4)]
    >>> introduced(Lane("a", "t", "g", tuple(said)))
    2
    """
    return next(i for i, played in enumerate(lane.episodes) if played.novel)


def curves(found: Sequence[Lane]) -> tuple[Curves, ...]:
    """Return each arm's mean quality around the introduction, over its trials.

    Formula: mean over trials at each episode - introduction, with +- 1.96 standard
        errors within [0, 1] (0 where one trial reaches)
    Shapes: lanes; a curve per arm. Units: quality in [0, 1], episodes.
    Missing: an offset is averaged over the trials that reach it.
    Errors: none. Source: AIQ seed, section 3.4.1, curves before and after novelty.

    >>> from owa_bench.scoring.companions.trials import Lane, Played, curves
    >>> said = [Played(i, 0.5, 0.9, 0.5, i > 1, True) for i in range(3)]
    >>> curves([Lane("a", "t", "g", tuple(said))])[0].offsets
    (-2, -1, 0)
    """
    made = []
    for arm in dict.fromkeys(lane.arm for lane in found):
        values: dict[int, list[float]] = {}
        for lane in found:
            if lane.arm == arm:
                first = introduced(lane)
                for i, played in enumerate(lane.episodes):
                    values.setdefault(i - first, []).append(played.quality)
        offsets = sorted(values)
        means = [float(np.mean(values[i])) for i in offsets]
        wide = [_half_width(values[i]) for i in offsets]
        made.append(
            Curves(
                arm,
                tuple(offsets),
                tuple(means),
                tuple(max(m - w, 0.0) for m, w in zip(means, wide, strict=True)),
                tuple(min(m + w, 1.0) for m, w in zip(means, wide, strict=True)),
            )
        )
    return tuple(made)


def table(found: Sequence[Lane], baseline: str, *, last: int = LAST) -> CellTable:
    """Return the metrics as a table: all trials first, then each level and tier.

    Formula: as `metrics`. Shapes: lanes; a row per arm and group. Units: as there.
    Missing: blank cells. Errors: ScoringError as `metrics`.
    Source: `cartpole3d.md` section 5 [R].

    >>> from owa_bench.scoring.companions import trials
    >>> trials.table((), "pd")
    Traceback (most recent call last):
    owa_bench.errors.ScoringError: The run holds no whole trial: play one with --trials.
    """
    groups = list(dict.fromkeys(lane.group for lane in found))
    rows = list(_rows("all", metrics(found, baseline, last=last)))
    if len(groups) > 1:
        for group in groups:
            own = [lane for lane in found if lane.group == group]
            rows += _rows(group, metrics(own, baseline, last=last))
    return CellTable(
        title="novelty (SAIL-ON)",
        columns=COLUMNS,
        rows=tuple(rows),
        note=f"baseline {baseline}; the last {last} episodes of a trial are its "
        "asymptotic part; detected: stated probability >= stated threshold; silent: "
        "stated none",
    )


COLUMNS = (
    "trials",
    "agent",
    "count",
    "CDT",
    "FN_CDT",
    "FP",
    "NRP",
    "NRP given CDT",
    "OPTI",
    "APTI",
    "note",
)


def _rows(
    group: str, found: Sequence[ArmNovelty]
) -> list[tuple[str | float | int | None, ...]]:
    return [
        (
            group,
            one.arm,
            one.found.trials,
            figure(one.found.m2),
            figure(one.found.m1),
            figure(one.found.m2_1),
            figure(one.found.m3),
            figure(one.found.m4),
            figure(one.found.m5),
            figure(one.found.m6),
            "silent" if one.silent else "",
        )
        for one in found
    ]


def _trial_of(pair: str) -> str:
    return pair.rpartition("/")[0]


def _is_trial(played: Sequence[Played]) -> bool:
    return played[-1].novel and not played[0].novel


def _played(trace: Trace) -> Played:
    """Return one episode; the last statement before its end counts."""
    said = {e.proposition: e.p for e in trace.of(Belief)}
    novel = any(True for _ in trace.of(Drift))
    return Played(
        int(trace.start.pair.rpartition("/")[2]),
        trace.end.q_state,
        said.get(NOVELTY, 0.0),
        said.get(THRESHOLD, DEFAULT_THRESHOLD),
        novel,
        NOVELTY in said,
    )


def _column(lane: Lane, name: str) -> Floats:
    return np.array([getattr(played, name) for played in lane.episodes], dtype=float)


def _half_width(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    return 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
