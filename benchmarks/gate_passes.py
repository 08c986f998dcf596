"""How often gates pass and say BELOW, by simulation: for nothing, and their power.

Printed by `python benchmarks/interval_coverage.py`. Every row takes the gate's own
decision on drawn data. A day shock moves all tasks of one lane on one day; its spread
is .06, and "lag" is the lag-1 correlation of neighbouring days.
"""

from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from scipy import special

from owa_bench.records import protocol
from owa_bench.records.observables import Floats
from owa_bench.records.score import GateStatus
from owa_bench.scoring.closures.expansion import Capabilities, expansion_test, holm, kept_gain
from owa_bench.scoring.closures.maintenance import kept_share
from owa_bench.scoring.gate import GateReading, gate_status
from owa_bench.scoring.gates.campaign import improving
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
                yield Rate("axis", f"axis >= .60, {tail}", rate, false=false)
    for days in (7, 30):
        for lag in (0.0, 0.6):
            tail = f"{days} days, {TASKS_A_DAY} tasks a day, day shocks, lag {lag:g}"
            for count in (1, 4, 8):
                what = f"kappa, {count} unchanged families, {tail}"
                yield Rate("kappa", what, improves(0.0, count, days, lag, rounds))
            what = f"kappa, 4 families that gain .30 in all, {tail}"
            rate = improves(0.3, 4, days, lag, rounds)
            yield Rate("kappa", what, rate, false=False)
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
    rng = stream(0, "coverage", "G2")
    p = slopes.bend(np.arange(28.0), daily(0.6, 28, 0.6, rounds, rng)).p_above()
    what = "c_g above 0, unchanged agent, 28 days, day shocks, lag 0.6"
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


def day_answers(values: Floats, required: float) -> list[GateStatus]:
    """Return what the gate of a share says over daily values (rounds, days), run by run."""
    law = day_law(values)
    bounds = [special.expit(end) for end in (law.lower(GATE_LEVEL), law.upper(BELOW_LEVEL))]
    readings = zip(values.mean(axis=1).tolist(), *(b.tolist() for b in bounds), strict=True)
    return [gate_status(GateReading(*read), required, RULES) for read in readings]


def passing(answers: list[GateStatus]) -> float:
    """Return the share of runs in which a gate passes."""
    return answers.count("PASS") / len(answers)


def day_law(values: Floats) -> slopes.LagMixture:
    """Return the law of a mean's logit over daily values (rounds, days).

    That of `scoring.jackknife`, for many runs at once.
    """
    count, point = values.shape[1], special.logit(values.mean(axis=1))
    left = (values.sum(axis=1, keepdims=True) - values) / (count - 1)
    pseudo = count * point[:, None] - (count - 1) * special.logit(left)
    around = pseudo - pseudo.mean(axis=1, keepdims=True)
    return slopes.mean_level(around + point[:, None])


def improves(gain: float, count: int, days: int, lag: float, rounds: int) -> float:
    """Return how often one family of `count` passes kappa, by Holm over all."""
    rng = stream(0, "coverage", "kappa", count, days, str(lag), str(gain))
    level = 0.5 + gain * np.linspace(-0.5, 0.5, days)
    values = daily(level, days, lag, rounds * count, rng)
    found = slopes.slope(np.arange(float(days)), values)
    steep, p = (a.reshape(rounds, count) for a in (found.value, found.p_above()))
    required = RULES.improvement.kappa_min
    rows = zip(steep.tolist(), p.tolist(), strict=True)
    return sum(any(improving(*row, required, RULES)) for row in rows) / rounds


def maintains(rounds: int) -> Iterator[Rate]:
    """Yield how often maintenance passes, for an unchanged agent and a worn one.

    Both lanes and the rows of the axes have shocks of their own. Of one that keeps just what is
    asked for: how often one of as many gates as a level has would say BELOW.
    """
    rho, level = RULES.closures.rho, RULES.statistics.gate_level
    for days in (30, 14, 7):
        for shock, lag in ((0.0, 0.0), (SHOCK, 0.0), (SHOCK, 0.6)):
            for kept in (1.0, rho):
                tail = f"{days} days x {LANE_TASKS} tasks, day shocks {shock:g}"
                what = f"maintenance, keeps {kept:g}, {tail}, lag {lag:g}"
                rng = stream(0, "coverage", what)
                drifted, clean, base = (
                    daily(LANE_LEVEL * k, days, lag, rounds, rng, LANE_TASKS, shock)
                    for k in (kept, 1.0, 1.0)
                )
                found = kept_share(drifted, clean, base.mean(axis=1), rho, level)
                rate = float(found.passes(rho).mean())
                yield Rate("maintenance", what, rate, kept < 1)
                if kept < 1:
                    upper = kept_share(drifted, clean, 0.0, rho, BELOW_LEVEL).upper
                    one = float((upper < np.log(rho)).mean())
                    rate = 1 - (1 - one) ** GATES
                    yield Rate("maintenance", f"{GATES} of: {what}", rate, answer="BELOW")


def sustains(rounds: int) -> Iterator[Rate]:
    """Yield how often a gain of .3 counts as sustained.

    It was measured once, between two sets that had shocks of their own.
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
        for lag in (0.0, 0.6):
            tail = f"{count} days x {KEPT_TASKS} tasks, day shocks, lag {lag:g}"
            what = f"sustained gain, {name}, {tail}"
            rng = stream(0, "coverage", what)
            after, ablated = (
                daily(0.3 + gain * part, count, lag, rounds, rng, KEPT_TASKS)
                for part in (share, np.zeros(count))
            )
            once, before = (
                daily(level, 1, 0.0, rounds, rng, KEPT_TASKS)[:, 0] for level in (0.3 + gain, 0.3)
            )
            error = np.sqrt((once * (1 - once) + before * (1 - before)) / (KEPT_TASKS - 1))
            found = kept_gain(after - ablated, days, once - before, error, RULES)
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
