"""How often gates pass and say BELOW, by simulation: for nothing, and their power.

Printed by `python benchmarks/interval_coverage.py`. Every row takes the gate's own
decision on drawn data. A day shock moves all tasks of one lane on one day; its spread
is .06, and "lag" is the lag-1 correlation of neighbouring days. Where all days play the
same tasks, a task has a quantile of its own, and a share of its cells ("alike") takes
it in place of a fresh draw.
"""

from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from scipy import special

from owa_bench.records import protocol
from owa_bench.records.observables import Flags, Floats
from owa_bench.records.score import GateStatus
from owa_bench.scoring.closures.expansion import Capabilities, expansion_test, holm, kept_gain
from owa_bench.scoring.closures.maintenance import kept_share
from owa_bench.scoring.gate import GateReading, gate_status
from owa_bench.scoring.gates.campaign import improving
from owa_bench.scoring.improvement.gain import paired_gain
from owa_bench.scoring.statistics import slopes
from owa_bench.scoring.statistics.jackknife import Clusters, jackknife_estimate
from owa_bench.seeding import stream

RULES = protocol.load((files("owa_bench.protocols") / "default.toml").read_bytes())
LEVEL, GATE_LEVEL = RULES.statistics.level, RULES.statistics.gate_level
BELOW_LEVEL = RULES.statistics.below_level
GATES = max(Counter(rule.level for rule in RULES.gates).values())  # of the fullest level
ALPHA = (1 - LEVEL) / 2
ONE_SIDED = 0.06
SHOCK, TASKS_A_DAY = 0.06, 126
LANE_TASKS, LANE_LEVEL = 168, 0.82  # of a maintenance lane
KEPT_TASKS = 110  # of a set that shows whether a gain lasts


# Cells alike from day to day: most agents, `self_improving`, the frozen control of a program.
ALIKE = (0.8, 0.91, 1.0)


class Rate(NamedTuple):
    """How often a gate gave an answer; `false` where it ought not to."""

    gate: str
    what: str
    rate: float
    false: bool = True
    answer: str = "pass"

    @property
    def below(self) -> bool:
        """Whether it gives its answer too often for nothing."""
        return self.false and self.rate > ONE_SIDED

    @property
    def words(self) -> str:
        """What the rate is: of a false answer, or power."""
        if not self.false:
            return "power"
        return "TOO OFTEN" if self.below else f"false {self.answer}"


def errors(shape: tuple[int, int], lag: float, rng: np.random.Generator) -> Floats:
    """Return stationary errors (rounds, days) of spread 1 with a lag-1 correlation."""
    fresh = rng.standard_normal(shape)
    fresh[:, 1:] *= np.sqrt(1 - lag**2)
    for day in range(1, shape[1]):
        fresh[:, day] += lag * fresh[:, day - 1]
    return fresh


def daily(
    level: float | Floats,
    days: int,
    lag: float,
    rounds: int,
    rng: np.random.Generator,
    tasks: int = TASKS_A_DAY,
    shock: float = SHOCK,
) -> Floats:
    """Return daily means (rounds, days) over tasks, moved by a shock of the day."""
    moved = np.clip(level + shock * errors((rounds, days), lag, rng), 0.0, 1.0)
    drawn: Floats = rng.binomial(tasks, moved) / tasks
    return drawn


class Played(NamedTuple):
    """Means by day (rounds, days) and by task (rounds, tasks) of the same tasks every day."""

    by_day: Floats
    by_task: Floats


def same_tasks(
    level: float | Floats,
    days: int,
    lag: float,
    rounds: int,
    rng: np.random.Generator,
    alike: float,
    tasks: int = TASKS_A_DAY,
    shock: float = SHOCK,
    own: Floats | None = None,
) -> Played:
    """Return what an agent earns on one list of tasks, played every day.

    Args:
        level: Its mean quality, a scalar or (days,).
        days: Days.
        lag: Lag-1 correlation of the day shocks.
        rounds: Simulated runs.
        rng: Stream of the draws.
        alike: Share of cells that take their task's own quantile.
        tasks: Tasks.
        shock: Spread of the day shocks.
        own: (rounds, 1, tasks) the tasks' own quantiles; None: drawn.
    """
    moved = np.clip(level + shock * errors((rounds, days), lag, rng), 0.0, 1.0)[:, :, None]
    drawn = rng.random((rounds, days, tasks), dtype=np.float32)
    fixed = own_quantiles(rounds, tasks, rng) if own is None else own
    copied = rng.random(drawn.shape, dtype=np.float32) < alike
    right = np.where(copied, fixed, drawn) < moved
    return Played(right.mean(axis=2), right.mean(axis=1))


def own_quantiles(rounds: int, tasks: int, rng: np.random.Generator) -> Floats:
    """Return a quantile of each task, (rounds, 1, tasks)."""
    return rng.random((rounds, 1, tasks), dtype=np.float32)


def without_each(by_task: Floats) -> Floats:
    """Return means without each task, from means by task, both (rounds, tasks)."""
    return (by_task.sum(axis=1, keepdims=True) - by_task) / (by_task.shape[1] - 1)


def task_error(left: Floats) -> Floats:
    """Return the jackknife error over tasks of statistics without each (rounds, tasks)."""
    share = (left.shape[1] - 1) / left.shape[1]
    gaps: Floats = left - left.mean(axis=1, keepdims=True)
    return np.sqrt(share * (gaps**2).sum(axis=1))


def gate_rates(rounds: int) -> Iterator[Rate]:
    """Yield how often gates pass, for agents that ought not to and for those who do."""
    slack = RULES.statistics.gate_slack
    for true, false in ((0.6 - slack, True), (0.65, False)):
        what = f"axis >= .60, true value {true:.2f}, 4 x 20 tasks"
        yield Rate("axis", what, passing(share_answers(true, 0.6, rounds)), false=false)
        for days in (7, 14, 30):
            for lag in (0.0, 0.6):
                tail = f"true value {true:.2f}, {days} days, day shocks, lag {lag:g}"
                values = daily(true, days, lag, rounds, stream(0, "coverage", tail))
                rate = passing(day_answers(values, 0.6))
                yield Rate("axis", f"axis >= .60, fresh tasks, {tail}", rate, false=false)
            for alike, lag in ((0.8, 0.0), (0.8, 0.6), (0.91, 0.0), (0.91, 0.6), (1.0, None)):
                tail = same_words(days, alike, lag)
                what = f"axis >= .60, true value {true:.2f}, {tail}"
                rng = stream(0, "coverage", what)
                shock = 0.0 if lag is None else SHOCK
                found = same_tasks(true, days, lag or 0.0, rounds, rng, alike, shock=shock)
                rate = passing(day_answers(found.by_day, 0.6, found.by_task))
                yield Rate("axis", what, rate, false=false)
    yield from gains(rounds)
    for what, gain, kept, shipped, false in (
        ("no gain", 0.0, 0.0, 0.0, True),
        ("gain .3 that the ablation keeps", 0.3, 1.0, 0.0, True),
        ("gain .3 of which the ablation keeps half", 0.3, 0.5, 0.0, True),
        ("gain .3 that the placebo lane has too", 0.3, 0.0, 1.0, True),
        ("gain .3 gone with the ablation", 0.3, 0.0, 0.0, False),
    ):
        rate = sum(expands(gain, kept, shipped, k) for k in range(rounds)) / rounds
        what = f"expansion, 40 tasks x 4 repeats, {what}"
        yield Rate("expansion", what, rate, false=false)
    yield from says_below(rounds)
    yield from maintains(rounds)
    yield from sustains(rounds)
    for alike in (0.0, 0.91):
        what = f"c_g above 0, unchanged agent, {same_words(28, alike, 0.6)}"
        values = same_tasks(0.6, 28, 0.6, rounds, stream(0, "coverage", what), alike)
        p = slopes.bend(np.arange(28.0), values.by_day).p_above()
        yield Rate("G2 acceleration", what, float((p < ALPHA).mean()))


def says_below(rounds: int) -> Iterator[Rate]:
    """Yield how often a level says BELOW whose gates all stand at their requirement.

    As many gates as the fullest level has, each on data of its own, in a fourth of the rounds; and
    how often one gate says it of an agent that is worse.
    """
    levels = rounds // 4

    def any_gate(answers: list[GateStatus]) -> float:
        table = np.array(answers).reshape(levels, GATES) == "BELOW"
        return float(table.any(axis=1).mean())

    def one_gate(answers: list[GateStatus]) -> float:
        return answers.count("BELOW") / len(answers)

    level, axis = f"a level of {GATES} gates at their requirement", "axis"
    for required in (0.2, 0.6, 0.9):
        answers = share_answers(required, required, levels * GATES)
        what = f"{level}, shares of {required:g}, 4 x 20 tasks each"
        yield Rate(axis, what, any_gate(answers), answer="BELOW")
    for worse in (0.5, 0.4, 0.25):
        rate = one_gate(share_answers(worse, 0.6, rounds))
        what = f"axis >= .60 says BELOW, true value {worse:.2f}, 4 x 20 tasks"
        yield Rate(axis, what, rate, false=False)
    for days in (7, 14, 30):
        tail = f"{days} days, day shocks, lag 0.6"
        rng = stream(0, "coverage", "below", tail)
        answers = day_answers(daily(0.6, days, 0.6, levels * GATES, rng), 0.6)
        yield Rate(axis, f"{level}, shares of 0.6, {tail}", any_gate(answers), answer="BELOW")


def share_answers(true: float, required: float, rounds: int) -> list[GateStatus]:
    """Return what the gate of a share says at a true value, run by run."""
    rng = stream(0, "coverage", "axis gate", str(true))
    quality = rng.binomial(4, rng.beta(4 * true, 4 * (1 - true), (rounds, 4, 20))) / 4
    left = quality.mean(axis=(1, 2))[:, None, None]
    left = left + (quality.mean(axis=2, keepdims=True) - quality) / 19 / 4
    strata = np.repeat(np.arange(4), 20)
    how = Clusters("", "tasks", np.arange(80), strata, "")
    answers = []
    for k in range(rounds):
        point = float(quality[k].mean())
        found = jackknife_estimate(point, left[k].ravel(), how)
        read = GateReading(point, found.lower(GATE_LEVEL), found.upper(BELOW_LEVEL))
        answers.append(gate_status(read, required, RULES))
    return answers


def same_words(days: int, alike: float, lag: float | None, tasks: int = TASKS_A_DAY) -> str:
    """Return words for days that play the same tasks; without a lag, without shocks."""
    shocks = "no day shocks" if lag is None else f"day shocks, lag {lag:g}"
    return f"{days} days, same {tasks} tasks, alike {alike:g}, {shocks}"


def day_answers(values: Floats, required: float, by_task: Floats | None = None) -> list[GateStatus]:
    """Return what the gate of a share says, run by run.

    Args:
        values: (rounds, days) daily means.
        required: Its threshold.
        by_task: (rounds, tasks) means of the same tasks; None: fresh tasks every day.
    """
    law = day_law(values, by_task)
    bounds = [special.expit(end) for end in (law.lower(GATE_LEVEL), law.upper(BELOW_LEVEL))]
    readings = zip(values.mean(axis=1).tolist(), *(b.tolist() for b in bounds), strict=True)
    return [gate_status(GateReading(*read), required, RULES) for read in readings]


def passing(answers: list[GateStatus]) -> float:
    """Return the share of runs in which a gate passes."""
    return answers.count("PASS") / len(answers)


def day_law(values: Floats, by_task: Floats | None = None) -> slopes.LagMixture:
    """Return the law of a mean's logit over daily values (rounds, days).

    That of `scoring.statistics.jackknife`, for many runs at once.

    Args:
        values: Daily means.
        by_task: (rounds, tasks) means of the same tasks; None: fresh tasks every day.
    """
    count, point = values.shape[1], special.logit(values.mean(axis=1))
    left = (values.sum(axis=1, keepdims=True) - values) / (count - 1)
    pseudo = count * point[:, None] - (count - 1) * special.logit(left)
    around = pseudo - pseudo.mean(axis=1, keepdims=True)
    law = slopes.mean_level(around + point[:, None])
    if by_task is None:
        return law
    error = task_error(special.logit(without_each(by_task)))
    return law.with_error(error, by_task.shape[1] - 1)


def gains(rounds: int) -> Iterator[Rate]:
    """Yield how often the gate of kappa passes over seven days, a kappa unit each.

    "Redrawn": the lane's memory changed once, so that its tasks come out otherwise than the
    control's, on average no better.
    """
    for alike, redrawn in ((0.8, False), (0.91, False), (0.8, True), (1.0, True)):
        for lag in (0.0, 0.6) if alike < 1 else (None,):
            tail = same_words(7, alike, lag)
            for count in (1, 4, 8) if lag is not None else (1,):
                kind = "redrawn" if redrawn else "unchanged"
                what = f"kappa, {count} {kind} families, {tail}"
                rate = improves(np.zeros(7), count, alike, lag, rounds, what, redrawn=redrawn)
                yield Rate("kappa", what, rate)
    days = np.arange(7.0)
    for name, shape in (
        ("evenly", days / 6),
        ("in one step on day 2", 1.0 * (days >= 2)),
        ("at first and then less", (1 - np.exp(-days / 1.2)) / (1 - np.exp(-5.0))),
    ):
        for total, false in ((0.3, False), (0.15, False)):
            for lag in (0.0, 0.6):
                tail = same_words(7, 0.8, lag)
                what = f"kappa, a family that gains {total:g} in all {name}, {tail}"
                rate = improves(total * shape, 1, 0.8, lag, rounds, what)
                yield Rate("kappa", what, rate, false=false)
    what = f"kappa, a family that gains .0007 in all, {same_words(7, 1.0, None)}"
    yield Rate("kappa", what, improves(0.0007 * days / 6, 1, 1.0, None, rounds, what))


def improves(
    gained: Floats,
    count: int,
    alike: float,
    lag: float | None,
    rounds: int,
    what: str,
    *,
    redrawn: bool = False,
) -> float:
    """Return how often one family of `count` passes kappa, by Holm over all.

    Args:
        gained: (days,) what the lane has gained by each day.
        count: Families.
        alike: Share of cells that take their task's own quantile.
        lag: Lag-1 correlation of the day shocks; None: no shocks.
        rounds: Simulated runs.
        what: Name of the draws.
        redrawn: Whether lane and control have quantiles of their own.
    """
    rng, rules = stream(0, "coverage", what), RULES.improvement
    passed, units = 0, float(np.arange(1, len(gained) + 1)[-rules.gain_days :].mean())
    for _ in range(rounds):
        own = own_quantiles(count, TASKS_A_DAY, rng)
        other = own_quantiles(count, TASKS_A_DAY, rng) if redrawn else own
        lane, still = (
            _cells(0.5 + level, lag, rng, alike, fixed)[:, -rules.gain_days :]
            for level, fixed in ((gained, own), (np.zeros_like(gained), other))
        )
        found = [paired_gain(x.T, y.T) for x, y in zip(lane, still, strict=True)]
        values = [one.value for one in found]
        rates, p = [value / units for value in values], [one.p for one in found]
        passed += any(improving(rates, values, p, rules.kappa_min, RULES))
    return passed / rounds


def _cells(
    level: Floats, lag: float | None, rng: np.random.Generator, alike: float, own: Floats
) -> Floats:
    """Return the cells of one run (families, days, tasks)."""
    count, days, tasks = len(own), len(level), own.shape[2]
    shock = 0.0 if lag is None else SHOCK
    moved = np.clip(level + shock * errors((count, days), lag or 0.0, rng), 0.0, 1.0)
    copied = rng.random((count, days, tasks), dtype=np.float32) < alike
    drawn = rng.random((count, days, tasks), dtype=np.float32)
    return (np.where(copied, own, drawn) < moved[:, :, None]) * 1.0


def maintains(rounds: int) -> Iterator[Rate]:
    """Yield how often maintenance passes, for an unchanged agent and a worn one.

    Both lanes and the rows of the axes have shocks of their own, and draw apart: what a task is
    worth in one says nothing about the others. Of one that keeps just what is asked for: how often
    one of as many gates as a level has would say BELOW.
    """
    rho, level = RULES.closures.rho, RULES.statistics.gate_level
    cases = [(0.0, shock, lag) for shock, lag in ((0.0, 0.0), (SHOCK, 0.0), (SHOCK, 0.6))]
    cases += [(alike, shock, lag) for alike in (0.8, 0.91) for shock, lag in ((0, 0), (SHOCK, 0.6))]
    for days in (30, 14, 7):
        for alike, shock, lag in (*cases, (1.0, 0.0, 0.0)):
            for kept in (1.0, rho):
                tail = f"{days} days, same {LANE_TASKS} tasks, alike {alike:g}"
                what = f"maintenance, keeps {kept:g}, {tail}, day shocks {shock:g}, lag {lag:g}"
                rng = stream(0, "coverage", what)
                drifted, clean, base = (
                    same_tasks(LANE_LEVEL * k, days, lag, rounds, rng, alike, LANE_TASKS, shock)
                    for k in (kept, 1.0, 1.0)
                )
                rate = float(maintained(drifted, clean, base, rho, level).mean())
                yield Rate("maintenance", what, rate, kept < 1)
                if kept < 1:
                    one = float(says_worn(drifted, clean, rho).mean())
                    rate = 1 - (1 - one) ** GATES
                    yield Rate("maintenance", f"{GATES} of: {what}", rate, answer="BELOW")


def maintained(drifted: Played, clean: Played, base: Played, rho: float, level: float) -> Flags:
    """Return in which runs maintenance passes (rounds,)."""
    left = [without_each(one.by_task) for one in (drifted, clean, base)]
    error = task_error(np.log(left[0]) - np.log(np.maximum(left[1], left[2])))
    floor, freedom = base.by_day.mean(axis=1), left[0].shape[1] - 1
    found = kept_share(
        drifted.by_day, clean.by_day, floor, rho, level, error=error, freedom=freedom
    )
    return found.passes(rho)


def says_worn(drifted: Played, clean: Played, rho: float) -> Flags:
    """Return in which runs maintenance is BELOW by its own clean lane (rounds,)."""
    left = [without_each(one.by_task) for one in (drifted, clean)]
    error = task_error(np.log(left[0]) - np.log(left[1]))
    freedom = left[0].shape[1] - 1
    law = kept_share(
        drifted.by_day, clean.by_day, 0.0, rho, BELOW_LEVEL, error=error, freedom=freedom
    )
    worn: Flags = law.upper < np.log(rho)
    return worn


def sustains(rounds: int) -> Iterator[Rate]:
    """Yield how often a gain of .3 counts as sustained.

    It was measured once, on the same tasks, between two sets that had shocks of their own.
    """
    gain, half = 0.3, RULES.closures.gain_lost
    count = RULES.closures.sustained_days
    days = np.arange(float(count))
    for name, share, false in (
        ("lost at once", np.zeros(count), True),
        ("half kept", np.full(count, half), True),
        ("lost evenly over the days", 1 - days / days[-1], True),
        ("whole", np.ones(count), False),
    ):
        for alike, lag in ((0.0, 0.0), (0.0, 0.6), (0.8, 0.6), (0.91, 0.6)):
            tail = (
                f"{count} days, same {KEPT_TASKS} tasks, alike {alike:g}, day shocks, lag {lag:g}"
            )
            what = f"sustained gain, {name}, {tail}"
            rng = stream(0, "coverage", what)
            own = [own_quantiles(rounds, KEPT_TASKS, rng) for _ in range(2)]
            terms = {"alike": alike, "tasks": KEPT_TASKS}
            after, ablated = (
                same_tasks(0.3 + gain * part, count, lag, rounds, rng, own=mine, **terms)
                for part, mine in zip((share, np.zeros(count)), own, strict=True)
            )
            once, before = (
                same_tasks(level, 1, 0.0, rounds, rng, own=mine, **terms).by_task
                for level, mine in zip((0.3 + gain, 0.3), own, strict=True)
            )
            found = kept_gain(
                after.by_day - ablated.by_day,
                days,
                (once - before).mean(axis=1),
                (once - before).std(axis=1, ddof=1) / np.sqrt(KEPT_TASKS),
                RULES,
                task_error=task_error(without_each(after.by_task - ablated.by_task)),
            )
            yield Rate("expansion", what, float(found.lasts.mean()), false)


def expands(gain: float, kept: float, shipped: float, k: int) -> bool:
    """Return whether one simulated revision passes expansion."""
    rng = stream(k, "coverage", "expansion")
    skill = rng.uniform(0.1, 0.6, 40)

    def played(more: float) -> Floats:
        return (rng.random((4, 40)) < skill + more).mean(axis=0)

    parts = Capabilities(
        before=played(0.0),
        after=played(gain),
        control_before=played(0.0),
        control_after=played(0.0),
        ablated=played(gain * kept),
        placebo=played(gain * shipped),
    )
    test = expansion_test(parts, RULES)
    return holm([test.p], ALPHA)[0] and test.ablated
