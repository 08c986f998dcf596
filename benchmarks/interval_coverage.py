"""What the intervals cover, and how often closures pass: a table by simulation.

    python benchmarks/interval_coverage.py                writes its page in docs/tables
    python benchmarks/interval_coverage.py --rounds 200   a quick look, printed only

Each row plants a known truth, draws runs from it, and counts the 95 percent intervals
that hold it. Tasks have a skill of their own, four repeats each; days have errors with
the named lag-1 correlation.
"""

import argparse
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from owa_bench.canonical import sha256
from owa_bench.records import protocol
from owa_bench.records.observables import Floats
from owa_bench.records.score import Interval
from owa_bench.scoring.bootstrap import BootstrapEstimate, bootstrap_weights, sampling
from owa_bench.scoring.expansion import Capabilities, expansion_test, passes
from owa_bench.scoring.gate_statistics import FamilyQuality
from owa_bench.scoring.improvement.curvature import curvature
from owa_bench.scoring.improvement.kappa import theil_sen
from owa_bench.scoring.improvement.theorem import Response, margins, response, weakest
from owa_bench.scoring.maintenance import decide, ratios
from owa_bench.seeding import stream

PAGES = Path(__file__).resolve().parent.parent / "docs" / "tables"
RULES = protocol.load((files("owa_bench.protocols") / "default.toml").read_bytes())
LEVEL = RULES.statistics.level
ROOT = sha256(b"coverage")
RESAMPLES = 1500
SLOPE, BEND = 0.01, 0.002


class Row(NamedTuple):
    """One planted truth: how often its interval held it, and how wide it was."""

    what: str
    covered: float
    width: float


def main() -> None:
    """Simulate, print, and write the table when it is the full one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="simulated runs a row")
    given = parser.parse_args()
    rounds = given.rounds or 2000
    fewer = max(rounds // 4, 1)
    rates = [*closures(fewer), *theorems(fewer)]
    text = page(list(rows(rounds)), rates, rounds)
    print(text)
    if given.rounds is None:
        (PAGES / "interval_coverage.md").write_text(text)


def rows(rounds: int) -> Iterator[Row]:
    """Yield coverage of means over tasks, then of slopes and bends over days."""
    for families, tasks in ((1, 10), (1, 20), (1, 40), (4, 8), (4, 20), (4, 40)):
        for name, a, b in (("mean .6", 3.0, 2.0), ("mean .9", 4.5, 0.5)):
            draw = clusters(families, tasks, a, b)
            what = f"{families} x {tasks} tasks, {name}"
            yield covered(what, a / (a + b), draw, rounds)
    for days in (7, 10, 14, 30):
        for lag in (0.0, 0.2, 0.4, 0.6):
            what = f"Sen's slope, {days} days, lag-1 {lag:g}"
            yield covered(what, SLOPE, slopes(days, lag), rounds)
    for days in (14, 28, 56):
        what = f"c_g, {days} days, independent"
        yield covered(what, BEND, bends(days), rounds // 4)


def covered(
    what: str, truth: float, draw: Callable[[int], Interval], rounds: int
) -> Row:
    """Return how often the interval of a simulated run holds the truth."""
    bands = [draw(k) for k in range(rounds)]
    held = [(b.low, b.high) for b in bands if b.low is not None and b.high is not None]
    hits = sum(low <= truth <= high for low, high in held)
    return Row(what, hits / rounds, float(np.mean([high - low for low, high in held])))


def clusters(
    families: int, tasks: int, a: float, b: float
) -> Callable[[int], Interval]:
    """Return a run's interval of the mean over families whose tasks' skill is Beta."""
    strata = np.repeat(np.arange(families), tasks)
    share = np.full(families, 1 / families)
    small = RULES.statistics.small_family
    how = sampling("tasks", strata, share, small=small, single="one task")
    drawn = bootstrap_weights(strata, RESAMPLES, ROOT, "coverage", families, tasks)
    weights = np.concatenate(list(drawn)) / (tasks - 1) / families

    def run(k: int) -> Interval:
        rng = stream(k, "coverage", "tasks")
        skill = rng.beta(a, b, len(strata))
        quality = (rng.random((4, len(strata))) < skill).mean(axis=0)
        return BootstrapEstimate(
            float(quality.mean()), weights @ quality, how
        ).interval(LEVEL)

    return run


def errors(days: int, lag: float, k: int) -> Floats:
    """Return stationary errors of spread .01 whose neighbours correlate by `lag`."""
    rng = stream(k, "coverage", "days")
    fresh = rng.standard_normal(days)
    held = [fresh[0] / np.sqrt(1 - lag**2)]
    for shock in fresh[1:]:
        held.append(lag * held[-1] + shock)
    return 0.01 * np.array(held)


def slopes(days: int, lag: float) -> Callable[[int], Interval]:
    """Return a run's interval of kappa over days of equal spending."""
    spent = np.arange(float(days))

    def run(k: int) -> Interval:
        found = theil_sen(spent, 0.3 + SLOPE * spent + errors(days, lag, k), LEVEL)
        return Interval(low=found.low, high=found.high, method="Sen")

    return run


def bends(days: int) -> Callable[[int], Interval]:
    """Return a run's interval of c_g on the logit link."""
    spent = np.arange(float(days)) - (days - 1) / 2

    def run(k: int) -> Interval:
        g = 0.05 * spent + BEND / 2 * spent**2 + 5 * errors(days, 0.0, k)
        values = 1 / (1 + np.exp(-g))
        return curvature(
            spent,
            values,
            "logit",
            RULES.improvement,
            level=LEVEL,
            resamples=RESAMPLES,
            root=f"{ROOT}{k}",
        ).interval

    return run


def closures(rounds: int) -> Iterator[tuple[str, float]]:
    """Yield how often both closures pass, by what was planted."""
    for kept in (1.0, 0.98, 0.95, 0.90):
        what = f"maintenance, 60 tasks x 10 repeats, {kept:.0%} of the skill kept"
        yield what, sum(maintains(kept, k) for k in range(rounds)) / rounds
    for what, gain, kept in (
        ("no gain (type I error)", 0.0, 0.0),
        ("gain .3 that the ablation keeps (type I error)", 0.3, 1.0),
        ("gain .3 of which the ablation keeps half (type I error)", 0.3, 0.5),
        ("gain .1 gone with the ablation (power)", 0.1, 0.0),
        ("gain .3 gone with the ablation (power)", 0.3, 0.0),
    ):
        rate = sum(expands(gain, kept, k) for k in range(rounds)) / rounds
        yield f"expansion, 40 tasks x 4 repeats, {what}", rate


def theorems(rounds: int) -> Iterator[tuple[str, float]]:
    """Yield how often lines (iii) and (vi) of theorem 3.1 read HOLDS over 14 days."""
    for what, slopes_of in (
        ("(iii), three axes rise", (0.02, 0.02, 0.02)),
        ("(iii), one of three is flat (type I error)", (0.02, 0.02, 0.0)),
    ):
        yield what, sum(responsive(slopes_of, k) for k in range(rounds)) / rounds
    for what, gain in (
        ("(vi), two families gain .03 a day on experts", 0.03),
        ("(vi), two families of unchanged quality (type I error)", 0.0),
    ):
        yield what, sum(growing(gain, k) for k in range(rounds)) / rounds


def answers(name: str, values: Floats, target: float) -> Response:
    """Return how a series of 14 daily values answers to one kappa unit a day."""
    least = RULES.improvement.checkpoints_min
    spent = np.arange(14.0)
    return response(name, spent, values, target, least=least, level=LEVEL)


def holds(found: list[Response]) -> bool:
    """Return whether the weakest response lies above 0 for certain."""
    low = weakest(found).low
    return low is not None and low > 0


def responsive(slopes_of: tuple[float, ...], k: int) -> bool:
    """Return whether (iii) holds for axes of planted responses and noise .02."""
    rng, spent = stream(k, "coverage", "responses"), np.arange(14.0)
    noise = 0.02 * rng.standard_normal((len(slopes_of), 14))
    pairs = zip(slopes_of, noise, strict=True)
    return holds([answers("axis", 0.3 + s * spent + e, 0.9) for s, e in pairs])


def growing(gain: float, k: int) -> bool:
    """Return whether (vi) holds for two families of 50 tasks beside experts at .9."""
    rng, days = stream(k, "coverage", "margins"), []
    for day in range(14):
        won = rng.random((2, 50)) < 0.4 + gain * day
        errors_of = won.std(axis=1, ddof=1) / np.sqrt(50)
        pairs = zip("fg", won.mean(axis=1), errors_of, strict=True)
        days.append({name: FamilyQuality(float(q), float(e)) for name, q, e in pairs})
    found = margins(days, {"f": (0.9, 0.02), "g": (0.9, 0.02)})
    return holds([answers(n, v, RULES.superhuman.z) for n, v in found.items()])


def maintains(kept: float, k: int) -> bool:
    """Return whether 7 days under drift pass beside 7 drift-free ones."""
    rng = stream(k, "coverage", "maintenance")
    days, strata = RULES.closures.days, np.zeros(60, dtype=np.int64)
    skill = rng.uniform(0.3, 0.9, 60)
    drawn = list(bootstrap_weights(strata, 400, f"{ROOT}{k}", "maintenance"))
    weights = np.concatenate([np.ones((1, 60)), *drawn])
    weights /= weights.sum(axis=1, keepdims=True)
    share = np.repeat([1.0, kept], days)
    won = (rng.random((10, 2 * days, 60)) < share[:, None] * skill).mean(axis=0)
    index = weights @ won.T
    found = ratios(index[:, days:], index[:, :days])
    how = sampling("tasks", strata, np.ones(1), small=10, single="one task")
    level = RULES.statistics.gate_level
    mean = BootstrapEstimate(found.mean[0], found.mean[1:], how, bounded=False)
    uppers = [
        BootstrapEstimate(day[0], day[1:], how, bounded=False).upper(level)
        for day in found.days.T
    ]
    return decide(mean.lower(level), uppers, RULES.closures.rho)


def expands(gain: float, kept: float, k: int) -> bool:
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
    )
    test = expansion_test(parts, RULES, resamples=500, root=f"{ROOT}{k}")
    return passes([test], LEVEL)[0]


def page(found: list[Row], rates: list[tuple[str, float]], rounds: int) -> str:
    """Return the tables as Markdown."""
    inside = sum(0.93 <= row.covered <= 0.97 for row in found)
    return "\n".join(
        (
            "# What the intervals cover",
            "",
            f"Made by `python benchmarks/interval_coverage.py`: {rounds} simulated "
            "runs a row, a quarter for c_g, closures, theorem. 95 percent intervals.",
            "",
            "| planted | covered | mean width |",
            "|---|---|---|",
            *(f"| {r.what} | {r.covered:.3f} | {r.width:.4f} |" for r in found),
            "",
            "| closure passes, assumption of theorem 3.1 HOLDS | rate |",
            "|---|---|",
            *(f"| {what} | {rate:.3f} |" for what, rate in rates),
            "",
            f"{inside} of {len(found)} rows lie within .93 and .97.",
            "",
        )
    )


if __name__ == "__main__":
    main()
