"""Attempt sets of revisions: what the harness played of each, checked and read.

The plan names the sets before episode 0. Here every set is read from the attempts and checked: arm,
phase, tasks, budget, order in time, and that each began with the memory that it is said to begin
with. Of what an agent declared only counts in which episodes it proposed and adopted something.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from owa_bench.canonical import sha256
from owa_bench.records.observables import Flags, Floats, Integers, Observables
from owa_bench.records.plan import Arm, Plan, PlanEntry
from owa_bench.scoring.statistics.distributions import t_quantile

REVISION = ("before", "after", "control_before", "control_after", "ablated")
PLACEBO = "placebo"
EMPTY_FOLDER = sha256(b"")  # digest of an empty folder


class RevisionStages(NamedTuple):
    """Which stages of a revision the agent did itself, as the harness saw them.

    Over several campaigns each is the share of those in which it did.
    """

    proposed: float
    implemented: float
    validated: float


class RevisionSets(NamedTuple):
    """The attempt sets of one revision, task by task.

    Attributes:
        window: Its two mornings.
        family: (tasks,) family of each task, an index into the plan's.
        q: (tasks,) quality of each task, by condition; `placebo` only where played.
        one_law: Whether the worlds of both mornings are drawn by one law.
        earlier: Capability of the checkpoints before the window, by family; NaN
            without.
        stages: What the agent did itself.
        human: Why a human had a part, "" if none had.
        lines: Lines that changed in the memory folder.
        installed: Tool families that the change installed.
        attempts: Attempts of each set.
        fault: Why the sets are no evidence, "" if they are.
        size: Attempts of the smallest set; 0: one a task.
        tests: What registered tests say of it, in words, "" where there are none.
        own_subject: Whether the agent brought what is revised, so that it may have
            shipped a handicap; what a suite brought needs no placebo.
        cluster: (tasks,) the cluster of each task, from 0; None: each is its own.
    """

    window: tuple[int, int]
    family: Integers
    q: Mapping[str, Floats]
    one_law: bool
    earlier: Floats
    stages: RevisionStages
    human: str
    lines: int
    installed: tuple[str, ...]
    attempts: Mapping[str, tuple[str, ...]]
    fault: str = ""
    size: int = 0
    tests: str = ""
    own_subject: bool = True
    cluster: Integers | None = None

    @property
    def tasks(self) -> int:
        """The number of tasks that every set holds."""
        return len(self.family)

    @property
    def clusters(self) -> Integers:
        """The cluster of each task (tasks,), from 0."""
        return np.arange(self.tasks) if self.cluster is None else self.cluster


class RevisionGain(NamedTuple):
    """The gain of one revision: capabilities by condition, Delta, alpha, filters.

    `gated` is Delta, at most the gain over the placebo; NaN without a placebo lane. `counted` is
    whether it passes the filters; a harmful one needs none.
    """

    capability: Mapping[str, float]
    gain: float
    gated: float
    autonomy: float
    counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionEvidence:
    """What axis R and its gate rest on: sums of gains before the division by R0.

    `error` and `gated_error` are jackknife errors over clusters inside families, NaN where a family
    has one; `freedom` their degrees of freedom, `clusters` the fewest of a set.
    """

    sets: tuple[RevisionSets, ...]
    gains: tuple[RevisionGain, ...] = ()
    raw: float = math.nan
    gated: float = math.nan
    error: float = math.nan
    gated_error: float = math.nan
    freedom: int = 0
    clusters: int = 0
    reason: str | None = None

    @property
    def own_subject(self) -> bool:
        """Whether the agent brought what one of the sets revises."""
        return any(one.own_subject for one in self.sets)

    @property
    def source(self) -> str:
        """What was revised, in words."""
        return "R of practice" if self.own_subject else "R of a given subject (SelfRev)"

    def reach(self, error: float, level: float) -> float:
        """Return how far a one-sided bound lies from the estimate.

        Args:
            error: Standard error of the estimate.
            level: Level of the bound.
        """
        return t_quantile(level, max(self.freedom, 1)) * error


def own_controls(plan: Plan, arm: Arm) -> tuple[Arm, ...]:
    """Return the arms that the same agent plays as a control.

    Args:
        plan: The run's plan.
        arm: The arm that is judged.
    Returns: Frozen and placebo arms.
    """
    same = (arm.agent, arm.fingerprint)
    return tuple(
        other
        for other in plan.arms
        if (other.agent, other.fingerprint) == same and (other.frozen or other.placebo)
    )


def read_sets(
    plan: Plan, arm: Arm, every_arm: Observables, families: tuple[str, ...]
) -> tuple[RevisionSets, ...]:
    """Return the attempt sets of every revision that the plan tests of an arm.

    Args:
        plan: The run's plan.
        arm: The arm.
        every_arm: Counted episodes of every arm.
        families: "suite/family" names of the plan, sorted.
    Returns: A record a window, in order; nothing where none was planned.
    """
    windows = {
        entry.window
        for entry in plan.entries
        if entry.arm == arm.name and entry.condition == "after" and entry.window
    }
    return tuple(_read_window(plan, arm, every_arm, families, window) for window in sorted(windows))


def set_rows(table: Observables, condition: str, window: tuple[int, int]) -> Flags:
    """Return the rows of a set played on the morning that ends a revision's window.

    Args:
        table: Episodes.
        condition: The set.
        window: The mornings of the revision.
    Returns: (episodes,).
    """
    rows: Flags = (table.condition == condition) & (table.since == window[0])
    played: Flags = rows & (table.day == window[1])
    return played


def _read_window(
    plan: Plan, arm: Arm, every_arm: Observables, families: tuple[str, ...], window: tuple[int, int]
) -> RevisionSets:
    own = every_arm.take(every_arm.arm == arm.name)
    players = {"": own}
    for control in own_controls(plan, arm):
        rows = every_arm.arm == control.name
        players["frozen" if control.frozen else PLACEBO] = every_arm.take(rows)
    parts: dict[str, Observables] = {}
    for condition in (*REVISION, PLACEBO):
        player = "frozen" if condition.startswith("control") else ""
        table = players.get(PLACEBO if condition == PLACEBO else player)
        if table is not None and (played := set_rows(table, condition, window)).any():
            parts[condition] = table.take(played)
    pairs = _common_pairs(parts)
    shown = parts.get("after", own)
    place = {str(p): str(f) for p, f in zip(shown.pair, shown.family, strict=True)}
    practice = own.take(own.phase == "practice")
    faults = tuple(_faults(plan, parts, practice, window))
    changes = parts["ablated"].changes if "ablated" in parts else own.changes
    return RevisionSets(
        window=window,
        family=np.array([families.index(place[pair]) for pair in pairs], dtype=int),
        q={name: _by_pair(part, pairs) for name, part in parts.items()},
        one_law=_one_law(plan, parts),
        earlier=_earlier(own, families, window[0]),
        stages=_stages(practice, window, changes.lines),
        human=human_part(practice.take(practice.day < window[1])),
        lines=int(changes.lines.max(initial=0)),
        installed=changes.families[0] if len(changes.families) else (),
        attempts={name: tuple(p.attempt.tolist()) for name, p in parts.items()},
        fault="; ".join(faults),
    )


def _common_pairs(parts: Mapping[str, Observables]) -> tuple[str, ...]:
    """Return the pairs that every set holds equally often."""
    counts = []
    for part in parts.values():
        names, number = np.unique(part.pair, return_counts=True)
        counts.append(set(zip(names.tolist(), number.tolist(), strict=True)))
    return tuple(sorted(pair for pair, _ in set.intersection(*counts))) if counts else ()


def _by_pair(part: Observables, pairs: tuple[str, ...]) -> Floats:
    """Return the mean quality of each pair."""
    rows = [part.pair == pair for pair in pairs]
    return np.array([part.q[row].mean() for row in rows], dtype=np.float64)


def _entry(plan: Plan, part: Observables) -> Iterator[PlanEntry]:
    indices = set(part.index.tolist())
    return (entry for entry in plan.entries if entry.index in indices)


def _one_law(plan: Plan, parts: Mapping[str, Observables]) -> bool:
    """Return whether no world of the sets drifts by the day it stands for."""
    days = {e.world_day for part in parts.values() for e in _entry(plan, part)}
    return len(days) <= 1


def _faults(
    plan: Plan, parts: Mapping[str, Observables], practice: Observables, window: tuple[int, int]
) -> Iterator[str]:
    """Yield why the sets of a window are no evidence."""
    lacking = [name for name in REVISION if name not in parts]
    if lacking:
        yield f"no attempts of the sets {', '.join(lacking)}"
        return
    if any((part.phase != "holdout").any() for part in parts.values()):
        yield "a set was not played in the holdout phase"
    terms = {
        name: {(e.interventions, e.role_cap, e.muted, e.tools_off) for e in entries}
        for name, entries in ((name, _entry(plan, part)) for name, part in parts.items())
    }
    if len(set(map(frozenset, terms.values()))) > 1:
        yield "the sets were not played on equal budgets"
    elsewhere = {e.pair for e in plan.entries if not e.condition}
    if any(elsewhere.intersection(part.pair.tolist()) for part in parts.values()):
        yield "a pair of the holdout was played elsewhere"
    earlier = practice.index[practice.day < window[1]]
    first = min(int(part.index.min()) for part in parts.values())
    if len(earlier) and int(earlier.max()) > first:
        yield "a set was played before the practice of its window was over"
    yield from _memory_faults(parts, practice, window)


def _memory_faults(
    parts: Mapping[str, Observables], practice: Observables, window: tuple[int, int]
) -> Iterator[str]:
    """Yield which sets did not begin with the memory that they stand for."""
    since, until = (morning_digest(practice, day) for day in window)
    for name, digest in (("before", since), ("after", until)):
        if (parts[name].memory != digest).any():
            yield f"the set {name} did not begin with the memory of its morning"
    ablated, changes = parts["ablated"], parts["ablated"].changes
    known = len(changes.row) == len(ablated)
    if not known or (changes.before != since).any() or (changes.after != until).any():
        yield "the set ablated does not say what was reverted"
    elif (changes.played != ablated.memory[changes.row]).any():
        yield "the set ablated did not begin with the reverted memory"


def morning_digest(practice: Observables, day: int) -> str:
    """Return the digest of a lane's folder on the morning of a day.

    Args:
        practice: The lane's practice, in order.
        day: The day.
    Returns: The digest after the last practice before that day.
    """
    before = practice.memory[practice.day < day]
    return str(before[-1]) if len(before) else EMPTY_FOLDER


def _earlier(own: Observables, families: tuple[str, ...], since: int) -> Floats:
    """Return the mean quality by family of unaided checkpoints before a window."""
    rows = (own.phase == "checkpoint") & (own.day < since) & (own.interventions == 0)
    parts = [own.q[rows & (own.family == family)] for family in families]
    return np.array([part.mean() if len(part) else np.nan for part in parts])


def _stages(practice: Observables, window: tuple[int, int], lines: Integers) -> RevisionStages:
    """Return which stages the agent did; a check is a practice episode in between."""
    events = practice.revisions
    inside = (practice.day >= window[0]) & (practice.day < window[1])
    said = np.sort(practice.index[events.row[inside[events.row]]])
    adopted = inside[events.row] & (events.decision == "adopted")
    last = practice.index[events.row[adopted]].max(initial=-1)
    checks = practice.index[inside]
    between = len(said) > 0 and ((checks > said[0]) & (checks <= last)).any()
    return RevisionStages(
        proposed=len(said) > 0, implemented=bool(lines.max(initial=0) > 0), validated=bool(between)
    )


def human_part(practice: Observables) -> str:
    """Return which part humans had in episodes of practice, "" if they had none."""
    helped = (practice.helped > 0) | (practice.cost_human != 0)
    if helped.any():
        return f"help in {int(helped.sum())} practice episodes"
    if (practice.patched > 0).any():
        return "a human patch"
    if len(set(practice.fingerprint.tolist())) > 1:
        return "the agent's files changed between days"
    return ""
