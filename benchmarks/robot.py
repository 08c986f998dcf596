"""Scripted policies of the arm in simulation and on the surrogate device, cell by cell.

    python benchmarks/robot.py [--units 12] [--each 2] [--trained FOLDER] [--taught FOLDER]

Each policy plays every family and tier: in simulation at the drawing's numbers, on the device on
`--units` units of a fleet, `--each` instances a unit, the adaptive one with a memory for each unit.
A row's gain is that of the adaptive policy over the slow one on the same instances and units; its
interval is of Student's t over units, for episodes of one unit are alike. `--trained` is what
examples/train_an_arm.py wrote, `--taught` what examples/teach_an_arm.py did. Writes
docs/tables/robot.md.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from scipy.stats import t as student

from owa_bench.agents.solvers.arm import policies
from owa_bench.envs.robosim2real import tasks, units
from owa_bench.envs.robosim2real.engine import Cell, load_engine
from owa_bench.envs.robosim2real.episode import BodySide, RobotEpisode
from owa_bench.envs.robosim2real.oracle import LAYOUT, oracle
from owa_bench.envs.robosim2real.world import Body
from owa_bench.seeding import stream

TABLE = Path(__file__).resolve().parents[1] / "docs" / "tables" / "robot.md"
FLEET = 41  # no test draws from it
Maker = Callable[[RobotEpisode, dict[str, float]], Any]
MAKERS: dict[str, Maker] = {
    "oracle": lambda episode, _: oracle(episode),
    "adaptive": lambda episode, memory: policies.Adaptive(LAYOUT, episode.world.family, memory),
    "reckless": lambda episode, memory: policies.Adaptive(
        LAYOUT, episode.world.family, memory, cares=False
    ),
    "slow": lambda episode, _: policies.Scripted(LAYOUT, episode.world.family, policies.SLOW),
    "blind": lambda episode, _: policies.Scripted(LAYOUT, episode.world.family),
    "random": lambda episode, _: _random(episode),
    "no-op": lambda *_: lambda _: np.zeros(6),
}


def _random(episode: RobotEpisode) -> Callable[[Any], Any]:
    rng = stream(0, "random", episode.world.digest())
    return lambda _: 2.0 * rng.random(6) - 1.0


def play(
    world: Any, body: Body, seed: int, make: Maker, memory: dict[str, float], side: BodySide
) -> RobotEpisode:
    """Return an episode that a policy played."""
    episode = RobotEpisode(world, body, seed, side=side)
    policy = make(episode, memory)
    while not episode.over:
        episode.tick(policy(episode.observation()))
    return episode


def cell(
    family: str, tier: int, name: str, units_played: int, each: int, memories: Any
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """Return success in simulation, on the device (units, each), its hours and its incidents."""
    simulated, device = np.zeros((2, units_played, each))
    seconds, incidents = 0.0, 0
    for unit in range(units_played):
        for number in range(each):
            seed = 1_000_000 + 1000 * unit + number
            world = tasks.draw(family, tier, stream(seed, "base"))
            one = play(world, Body(), seed, MAKERS[name], {}, "sim")
            simulated[unit, number] = one.success
            body = units.unit(FLEET, unit)
            memory = memories.setdefault((name, unit), {})
            other = play(world, body, seed, MAKERS[name], memory, "surrogate")
            device[unit, number] = other.success
            seconds += min(other.guard.moved_s, other.most_s)
            incidents += len(other.guard.incidents)
    return simulated, device, seconds / 3600.0, incidents


def interval(gaps: np.ndarray) -> str:
    """Return a mean over units with 95 percent by Student's t."""
    half = student.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / len(gaps) ** 0.5
    return f"{gaps.mean():+.2f} [{gaps.mean() - half:+.2f}, {gaps.mean() + half:+.2f}]"


def lines(units_played: int, each: int, trained: Path | None, taught: Path | None) -> Iterator[str]:
    """Yield the page."""
    yield "# The arm's scripted policies"
    yield ""
    yield (
        "Made by `python benchmarks/robot.py`. **Surrogate device, not hardware**: a guarded "
        "MuJoCo process with hidden units stood in for a robot. "
        f"{units_played} units, {each} instances a "
        "unit and cell; `a / b`: share of success in simulation and on the device. The gain is the "
        "adaptive policy's over the slow one's on the device, 95 percent by Student's t over units."
    )
    yield ""
    yield f"| family | tier | {' | '.join(MAKERS)} | adaptive over slow |"
    yield "|---" * (len(MAKERS) + 3) + "|"
    memories: dict[Any, dict[str, float]] = {}
    totals = {name: [0.0, 0.0, 0.0, 0.0] for name in MAKERS}
    by_family: dict[str, list[np.ndarray]] = {}
    for family in tasks.FAMILIES:
        for tier in tasks.TIERS:
            shown, device = [], {}
            for name in MAKERS:
                played = cell(family, tier, name, units_played, each, memories)
                simulated, device[name], hours, incidents = played
                shown.append(f"{simulated.mean():.2f} / {device[name].mean():.2f}")
                parts = (simulated.mean(), device[name].mean(), hours, incidents)
                totals[name] = [a + b for a, b in zip(totals[name], parts, strict=True)]
            gaps = (device["adaptive"] - device["slow"]).mean(axis=1)
            by_family.setdefault(family, []).append(gaps)
            row = f"| {family} | {tier} | {' | '.join(shown)} | {interval(gaps)} |"
            print(row, flush=True)
            yield row
    cells = len(tasks.FAMILIES) * len(tasks.TIERS)
    yield ""
    gains = (f"`{name}` {interval(np.mean(gaps, axis=0))}" for name, gaps in by_family.items())
    yield f"Adaptive over slow by family, all tiers: {', '.join(gains)}."
    yield ""
    yield "| policy | simulation | device | hours in motion that count | incidents |"
    yield "|---|---|---|---|---|"
    for name, (simulated, device_, hours, incidents) in totals.items():
        means = f"{simulated / cells:.2f} | {device_ / cells:.2f}"
        yield f"| {name} | {means} | {hours:.2f} | {incidents:.0f} |"
    yield ""
    yield from speeds()
    yield ""
    yield from agreement()
    if trained is not None:
        yield ""
        yield from trained_rows(trained)
    if taught is not None:
        yield ""
        yield from taught_rows(taught)


def trained_rows(folder: Path) -> Iterator[str]:
    """Yield what policies reach that examples/train_an_arm.py trained."""
    yield (
        "`reach`, tiers 1 and 2, by policies that `examples/train_an_arm.py` trained on the "
        "compiled simulator; success on held-out tasks, in brackets 95 percent by Student's t over "
        "units:"
    )
    yield ""
    yield "| trained on | lane steps | simulation | device |"
    yield "|---|---|---|---|"
    for row in json.loads((folder / "results.json").read_text()):
        shares = [
            "{:.2f} [{:.2f}, {:.2f}]".format(*np.clip(row[side], 0.0, 1.0))
            for side in ("sim", "surrogate")
        ]
        yield f"| {row['trained on']} | {row['steps']:,} | {' | '.join(shares)} |"


def taught_rows(folder: Path) -> Iterator[str]:
    """Yield what networks reach that examples/teach_an_arm.py taught contact."""
    yield (
        "Contact, tier 1, by networks that `examples/teach_an_arm.py` taught in MuJoCo simulation "
        "under the law (DAgger from a teacher that is told the body's numbers); success on "
        "held-out tasks, in brackets 95 percent by Student's t over units:"
    )
    yield ""
    yield "| family | minutes | simulation | device | incidents on the device |"
    yield "|---|---|---|---|---|"
    for path in sorted(folder.glob("*.json")):
        row = json.loads(path.read_text())
        shares = [share_words(np.array(row[side])) for side in ("simulation", "device")]
        yield f"| {path.stem} | {row['minutes']:g} | {' | '.join(shares)} | {row['incidents']} |"


def share_words(shares: np.ndarray) -> str:
    """Return a mean over units with 95 percent by Student's t."""
    half = student.ppf(0.975, len(shares) - 1) * shares.std(ddof=1) / len(shares) ** 0.5
    low, high = np.clip((shares.mean() - half, shares.mean() + half), 0.0, 1.0)
    return f"{shares.mean():.2f} [{low:.2f}, {high:.2f}]"


GAINS = (0.1, 0.15, 0.2, 0.3, 0.4)  # of more policies, for the agreement of the two surrogates


def agreement(units_played: int = 6) -> Iterator[str]:
    """Yield how policies rank on the surrogate and on the second one, in another engine."""
    ranked: dict[str, Maker] = dict(MAKERS) | {
        f"gain {gain:g}": lambda episode, _, gain=gain: policies.Scripted(
            LAYOUT, episode.world.family, gain
        )
        for gain in GAINS
    }
    sides: tuple[BodySide, ...] = ("surrogate", "second")
    rates = {side: np.zeros((len(ranked), len(tasks.FAMILIES))) for side in sides}
    for row, (name, make) in enumerate(ranked.items()):
        for column, family in enumerate(tasks.FAMILIES):
            for side in sides:
                won = []
                for unit in range(units_played):
                    memory: dict[str, float] = {}
                    for tier in tasks.TIERS:
                        seed = 2_000_000 + 1000 * unit + tier
                        world = tasks.draw(family, tier, stream(seed, "base"))
                        body = units.unit(FLEET, unit)
                        won.append(play(world, body, seed, make, memory, side).success)
                rates[side][row, column] = np.mean(won)
        print(name, *(rates[side][row].round(2).tolist() for side in sides), flush=True)
    yield (
        "Does the surrogate rank policies as the second one does, the same tasks and units in "
        f"PyBullet? {len(ranked)} policies (those above, and one of each gain "
        f"{', '.join(map(str, GAINS))}), {units_played} units, each tier once a unit; "
        "in brackets 95 percent by resampling policies:"
    )
    yield ""
    yield "| family | rank correlation | surrogate, mean | second, mean |"
    yield "|---|---|---|---|"
    rng = stream(0, "agreement")
    first, second = (rates[side] for side in sides)
    for column, family in enumerate((*tasks.FAMILIES, "all")):
        a, b = (
            both.mean(axis=1) if family == "all" else both[:, column] for both in (first, second)
        )
        drawn = []
        for _ in range(2000):
            chosen = rng.integers(len(a), size=len(a))
            if len({*a[chosen]}) > 1 and len({*b[chosen]}) > 1:
                drawn.append(spearmanr(a[chosen], b[chosen]).statistic)
        low, high = np.quantile(drawn, [0.025, 0.975])
        found = f"{spearmanr(a, b).statistic:.2f} [{low:.2f}, {high:.2f}]"
        yield f"| {family} | {found} | {a.mean():.2f} | {b.mean():.2f} |"


def speeds(ticks: int = 1500) -> Iterator[str]:
    """Yield ticks a second of process time, beside the bare engine."""
    mj = load_engine()
    yield (
        "Ticks (20 Hz) a second of process time, in one run, with a cube on the table; an episode "
        "has controller, guard, judge and what is shown:"
    )
    yield ""
    yield "| side | bare engine | episode | ratio |"
    yield "|---|---|---|---|"
    for side, device in (("simulation", False), ("device", True)):
        world = tasks.draw("push", 1, stream(1, "base"))
        body = units.unit(FLEET, 0) if device else Body()
        raw = Cell(world, body, coarse=device)
        began = time.process_time()
        for _ in range(ticks):
            mj.mj_step(raw.model, raw.data, nstep=raw.steps)
        bare = ticks / (time.process_time() - began)
        episode, began = (
            RobotEpisode(world, body, 1, side="surrogate" if device else "sim"),
            time.process_time(),
        )
        for made in range(ticks):  # to and fro above the table, where the bare engine rests too
            turn = 1.0 if made // 10 % 2 else -1.0
            episode.tick(np.array([0.2 * turn, 0.0, 0.2 * turn, 0.0, 1.0, 0.0]))
            episode.observation()
        ours = ticks / (time.process_time() - began)
        yield f"| {side} | {bare:,.0f} | {ours:,.0f} | {ours / bare:.2f} |"


def main() -> None:
    """Play, print, write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--units", type=int, default=12)
    parser.add_argument("--each", type=int, default=2)
    parser.add_argument("--trained", type=Path, help="folder of examples/train_an_arm.py")
    parser.add_argument("--taught", type=Path, help="folder of examples/teach_an_arm.py")
    parser.add_argument("--print-only", action="store_true")
    given = parser.parse_args()
    text = "\n".join(lines(given.units, given.each, given.trained, given.taught)) + "\n"
    if given.print_only:
        print(text)
    else:
        TABLE.write_text(text)


if __name__ == "__main__":
    main()
