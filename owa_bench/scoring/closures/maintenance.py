"""Maintenance closure: what is kept under drift, from one memory, day by day.

Every morning the harness plays a clean and a drifted lane of one list of tasks on copies of the
memory of that morning. Days play the same tasks, so the error over tasks enters beside that over
days. A drift-blind baseline plays the same lanes: where it keeps almost everything, drift did not
bite and nothing is shown.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import NO_DAY, Flags, Floats, Integers, Names, Observables
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import ClosureResult, ClosureStatus
from owa_bench.scoring.observe.attempt_sets import morning_digest
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.statistics.jackknife import standard_error
from owa_bench.scoring.statistics.slopes import mean_level

NAME = "maintenance"
CLEAN, DRIFTED = "clean", "drifted"


class KeptShare(NamedTuple):
    """The log ratio of drifted to best clean quality, its lower bound and its power.

    `power` is the chance to pass at a true ratio of 1 with this error.
    """

    theta: Floats
    lower: Floats
    power: Floats

    def passes(self, rho: float) -> Flags:
        """Return whether the bound reaches the log of the share `rho`."""
        return self.lower >= math.log(rho)

    @property
    def upper(self) -> Floats:
        """The upper bound at the level of the lower one; the law is even around theta."""
        bound: Floats = 2 * self.theta - self.lower
        return bound


def kept_share(
    drifted: Floats,
    clean: Floats,
    floor: float | Floats,
    rho: float,
    level: float,
    *,
    error: float | Floats = 0.0,
    freedom: int | None = None,
) -> KeptShare:
    """Return theta, the log of the share that is kept.

    Formula:
        B = max(mean_d K_d, floor); theta = ln(mean_d X_d) - ln B
        lower bound: `slopes.mean_level` of the delete-one-day jackknife's
        pseudo-values D theta - (D - 1) theta_(-d), B recomputed in each, with the
        error over tasks in it
        power = P(error <= -ln(rho) - (theta - lower bound)) by the same mixture
    Shapes: two arrays (.., days), X and K; `floor`, a scalar or (..), the best clean
        mean from elsewhere; `error`, a scalar or (..), that of theta over tasks, on
        `freedom` degrees of freedom; result (..).
    Units: mean q_state in; a log ratio out.
    Missing: no bound and no power where all that drift left stands on one day or task.
    Errors: ScoringError below 2 days, or where a mean is 0.
    Source: docs/scoring.md#closures.

    >>> one = kept_share(np.full(7, 0.4), np.full(7, 0.5), 0.0, 0.95, 0.95)
    >>> np.exp([one.theta, one.lower]).round(6)
    array([0.8, 0.8])
    """
    days = drifted.shape[-1]
    if days < 2 or clean.shape != drifted.shape:
        raise ScoringError(f"Both lanes need the same 2 days or more, got {days}.")
    if not (np.minimum(drifted.mean(-1), np.maximum(clean.mean(-1), floor)) > 0).all():
        raise ScoringError("A lane's mean must be above 0.")
    best = np.asarray(floor)[..., None]

    def log_ratio(x: Floats, k: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            ratio: Floats = np.log(x) - np.log(np.maximum(k, best))
        return ratio

    sums = [lane.sum(axis=-1, keepdims=True) for lane in (drifted, clean)]
    theta = log_ratio(sums[0] / days, sums[1] / days)[..., 0]
    rest = days - 1
    left = log_ratio((sums[0] - drifted) / rest, (sums[1] - clean) / rest)
    alone = ~np.isfinite(left).all(axis=-1) | ~np.isfinite(error)
    left, over_tasks = np.where(alone[..., None], 0.0, left), np.where(alone, 0.0, error)
    by_day = mean_level(rest * (left.mean(axis=-1, keepdims=True) - left))  # around 0
    law = by_day.with_error(over_tasks, freedom)
    reach = law.upper(level)
    power = np.where(alone, 0.0, law.p_above(-math.log(rho) - reach))
    return KeptShare(theta, np.where(alone, -np.inf, theta - reach), power)


class LaneTasks(NamedTuple):
    """The tasks of the lanes: names, sorted, and the family of each, as numbers."""

    names: Names
    family: Integers

    def without_each(self, table: Observables, rows: Flags, day: Integers) -> Floats:
        """Return the mean over days of the means of a day, without each task.

        Args:
            table: Episodes.
            rows: (episodes,) those that are read, all of these tasks.
            day: (episodes,) the day of each.
        Returns: (tasks,) mean q_state, 0 where nothing else was played.
        """
        days, place = np.unique(day[rows], return_inverse=True)
        if not len(days):
            return np.zeros(len(self.names))
        cell = place.reshape(-1), np.searchsorted(self.names, table.pair[rows])
        sums, counts = np.zeros((2, len(days), len(self.names)))
        np.add.at(sums, cell, table.q_state[rows])
        np.add.at(counts, cell, 1.0)
        rest = counts.sum(axis=1, keepdims=True) - counts
        left = sums.sum(axis=1, keepdims=True) - sums
        means = np.divide(left, rest, out=np.zeros_like(left), where=rest > 0)
        without: Floats = means.mean(axis=0)
        return without

    @property
    def freedom(self) -> int:
        """Degrees of freedom of an error over tasks within families."""
        return len(self.names) - len(np.unique(self.family))


def lane_tasks(table: Observables) -> LaneTasks:
    """Return the tasks of an arm's clean lanes.

    Args:
        table: One arm's episodes.
    """
    rows = table.condition == CLEAN
    names, first = np.unique(table.pair[rows], return_index=True)
    family = np.unique(table.family[rows][first], return_inverse=True)[1]
    return LaneTasks(names, family.reshape(-1))


def lane_means(table: Observables, condition: str) -> dict[int, float]:
    """Return the mean q_state of a lane on each day.

    Args:
        table: One arm's episodes.
        condition: `clean` or `drifted`.
    """
    rows = (table.condition == condition) & (table.day != NO_DAY)
    days = np.unique(table.day[rows]).tolist()
    return {int(d): float(table.q_state[rows & (table.day == d)].mean()) for d in days}


def maintenance(
    table: Observables,
    baseline: Observables | None,
    base: Observables,
    protocol: Protocol,
    beside: Mapping[str, Any],
) -> ClosureResult:
    """Return the closure; PASS iff theta - t.95 se >= ln rho.

    Formula: `below` iff the upper bound of ln mean X - ln mean K at `below_level` < ln rho; K alone
        is at most the best clean mean, so theta lies below too

    Args:
        table: Counted episodes of one agent.
        baseline: Those of the drift-blind baseline.
        base: The episodes that the agent's axes rest on.
        protocol: Published numbers.
        beside: Ratios that are printed beside.
    Returns: The record of the closure.
    """
    rules = protocol.closures
    days = _window(table)
    if len(days) < rules.days:
        why = f"{len(days)} consecutive days with a clean and a drifted lane"
        return _not_passed("NOT TESTED", f"{why} of {rules.days}")
    fault = _fault(table, baseline, days, rules.drift_bite)
    if fault:
        return _not_passed("NOT TESTED", fault)
    clean, drifted = lane_means(table, CLEAN), lane_means(table, DRIFTED)
    x, k = (np.array([lane[day] for day in days]) for lane in (drifted, clean))
    practice = (table.phase == "practice") & np.isin(table.day, days)
    if table.patched[practice].sum() or len(set(table.fingerprint.tolist())) > 1:
        return _not_passed("FAIL", "a human patch in the window")
    if not (x.mean() > 0 and k.mean() > 0):
        return _not_passed("FAIL", "a lane's mean quality is 0")
    before = [d for d in range(days[0] - rules.days, days[0]) if d in clean]
    tasks = lane_tasks(table)
    own = np.isin(base.pair, tasks.names)
    earlier = np.mean([clean[d] for d in before]) if before else 0.0
    floor = max(float(earlier), float(base.q_state[own].mean()) if own.any() else 0.0)
    parts = [
        tasks.without_each(table, (table.condition == lane) & np.isin(table.day, when), table.day)
        for lane, when in ((DRIFTED, days), (CLEAN, days), (CLEAN, before))
    ]
    parts.append(tasks.without_each(base, own, np.zeros_like(base.day)))
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.log(parts[0]) - np.log(np.maximum.reduce(parts[1:]))
        error = standard_error(left, tasks.family)
        own_error = standard_error(np.log(parts[0]) - np.log(parts[1]), tasks.family)
    statistics = protocol.statistics
    share = kept_share(
        x, k, floor, rules.rho, statistics.gate_level, error=error, freedom=tasks.freedom
    )
    # The greatest of several means lies above the truth, which would say BELOW too often.
    own_lane = kept_share(
        x, k, 0.0, rules.rho, statistics.below_level, error=own_error, freedom=tasks.freedom
    )
    upper = float(own_lane.upper)
    status: ClosureStatus = "PASS" if share.passes(rules.rho) else "FAIL"
    words = (
        f"kept {np.exp(share.theta):.3f}, lower bound {np.exp(share.lower):.3f}, "
        f"upper bound {np.exp(upper):.3f} of the window's own clean lane, "
        f"against {rules.rho:g} on {len(days)} days x {len(tasks.names)} tasks; "
        f"power at ratio 1: {share.power:.2f}"
    )
    if status == "FAIL" and share.power < rules.power_min:
        status, words = "NO EVIDENCE", f"underpowered: {words}"
    rows = np.isin(table.condition, (CLEAN, DRIFTED)) & np.isin(table.day, days)
    names = table.attempt[rows].tolist()
    return ClosureResult(
        name=NAME,
        status=status,
        reason=words,
        evidence=(f"{names[0]} to {names[-1]}",),
        days=len(days),
        below=upper < math.log(rules.rho),
        details={
            "days": [days[0], days[-1]],
            "drifted": [figure(v) for v in x.tolist()],
            "clean": [figure(v) for v in k.tolist()],
            "best clean mean from elsewhere": figure(floor),
            "theta": figure(float(share.theta)),
            "error over tasks": figure(error),
            "lower bound": figure(float(share.lower)),
            "power at ratio 1": figure(float(share.power)),
            "upper bound": figure(upper),
            "drifted over clean": dict(beside),
        },
    )


def _window(table: Observables) -> tuple[int, ...]:
    """Return the longest run of consecutive days with both lanes, the last of equals.

    A day's drifted lane must have been played under drift.
    """
    lanes = [
        set(table.day[(table.condition == name) & struck].tolist())
        for name, struck in ((CLEAN, True), (DRIFTED, table.realised > 0))
    ]
    return longest_run(sorted(lanes[0] & lanes[1]))


def longest_run(days: list[int]) -> tuple[int, ...]:
    """Return the longest run of consecutive days, the last of equal ones.

    >>> longest_run([1, 2, 4, 5])
    (4, 5)
    """
    best: list[int] = []
    run: list[int] = []
    for day in days:
        run = [*run, day] if run and day == run[-1] + 1 else [day]
        best = run if len(run) >= len(best) else best
    return tuple(best)


def _fault(
    table: Observables, baseline: Observables | None, days: tuple[int, ...], most: float
) -> str:
    """Return why the lanes are no test, "" if they are one."""
    practice = table.take(table.phase == "practice")
    for day in days:
        digest, today = morning_digest(practice, day), table.day == day
        lanes = [today & (table.condition == name) for name in (CLEAN, DRIFTED)]
        if any((table.memory[lane] != digest).any() for lane in lanes):
            return f"a lane of day {day} did not begin with that morning's memory"
        tasks = [sorted(table.pair[lane].tolist()) for lane in lanes]
        if tasks[0] != tasks[1]:
            return f"the lanes of day {day} are not of one list of tasks"
    if baseline is None:
        return "no drift-blind baseline was played"
    means = [lane_means(baseline, name) for name in (CLEAN, DRIFTED)]
    if not all(day in mean for day in days for mean in means):
        return "the drift-blind baseline was not played on every day"
    clean, drifted = (np.mean([mean[day] for day in days]) for mean in means)
    if not clean > 0:
        return "the drift-blind baseline solves nothing without drift"
    kept = float(drifted / clean)
    if kept > most:
        return f"drift did not bite: the drift-blind baseline keeps {kept:.3f}"
    if np.bincount(lane_tasks(table).family).min() < 2:
        return "a family of the lanes holds one task, which has no error over tasks"
    return ""


def _not_passed(status: ClosureStatus, reason: str) -> ClosureResult:
    return ClosureResult(name=NAME, status=status, reason=reason)
