"""Power of the maintenance closure by days, spread of day shocks and pairing of lanes.

    python benchmarks/maintenance_power.py [--rounds 2000] [--run RUN ..] [--write]

`--write` writes docs/tables/maintenance_power.md; `--run` adds what the lanes of
recorded campaigns show of `alike`, and with `--only-runs` nothing is drawn. Both lanes
hold the same tasks, every day; a share of them comes out alike in both (the agent does
the same where drift changes nothing), the rest are drawn apart. In either lane .8 of a
task's days come out alike. A day shock moves all tasks of one lane on one day.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from gate_passes import ALIKE, LANE_LEVEL, LANE_TASKS, RULES, Played, maintained, own_quantiles

from owa_bench.records.observables import Floats
from owa_bench.reports.read.bundle import read
from owa_bench.scoring.closures.maintenance import CLEAN, DRIFTED
from owa_bench.scoring.observe.observables import observe
from owa_bench.seeding import stream

TABLE = Path(__file__).parents[1] / "docs/tables/maintenance_power.md"
SHOCKS = (0.0, 0.03, 0.06)
DAYS = (7, 14, 30)
SHARES = (0.0, 0.5, 0.9)  # share of tasks that come out alike in both lanes


def lanes(
    kept: float, days: int, shock: float, alike: float, rng: np.random.Generator, n: int
) -> tuple[Played, Played, Played]:
    """Return what the drifted lane, the clean one and the rows of the axes hold."""
    shape = (n, days, LANE_TASKS)
    own, others = (own_quantiles(n, LANE_TASKS, rng) for _ in range(2))

    def drawn(fixed: Floats) -> Floats:
        copied = rng.random(shape, dtype=np.float32) < ALIKE[0]
        return np.where(copied, fixed, rng.random(shape, dtype=np.float32))

    def played(tasks: Floats, level: float) -> Played:
        moved = level + shock * rng.standard_normal((n, days, 1))
        right = tasks < np.clip(moved, 0, 1)
        return Played(right.mean(axis=2), right.mean(axis=1))

    clean, apart, base = drawn(own), drawn(others), drawn(own)
    drifted = np.where(rng.random(shape, dtype=np.float32) < alike, clean, apart)
    return (played(drifted, LANE_LEVEL * kept), played(clean, LANE_LEVEL), played(base, LANE_LEVEL))


def rows(rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each number of days and share of equal tasks."""
    rho, level = RULES.closures.rho, RULES.statistics.gate_level
    for days in DAYS:
        for alike in SHARES:
            cells = []
            for shock in SHOCKS:
                for kept in (1.0, rho):
                    name = f"{days} {alike} {shock} {kept}"
                    rng = stream(0, "maintenance power", name)
                    played = lanes(kept, days, shock, alike, rng, rounds)
                    cells.append(f"{maintained(*played, rho, level).mean():.3f}")
            yield str(days), f"{alike:g}", *cells


def measured(run: Path) -> Iterator[tuple[str, ...]]:
    """Yield a row for each agent of a campaign with lanes of maintenance.

    `alike` is the covariance of a task's two qualities over the greatest that the
    qualities of both lanes allow: 1 where every task comes out alike, 0 drawn apart.
    """
    bundle = read(run)
    table = observe(bundle.traces(), bundle.prices)
    for arm in sorted(set(table.arm.tolist())):
        lanes = []
        for condition in (CLEAN, DRIFTED):
            rows = table.take((table.arm == arm) & (table.condition == condition))
            keys = zip(rows.day, rows.pair, rows.repeat, strict=True)
            lanes.append(dict(zip(keys, rows.q_state.tolist(), strict=True)))
        shared = sorted(lanes[0].keys() & lanes[1].keys())
        if not shared:
            continue
        clean, drifted = (np.array([lane[key] for key in shared]) for lane in lanes)
        most = covariance(np.sort(clean), np.sort(drifted))
        alike = f"{covariance(clean, drifted) / most:.2f}" if most > 0 else "-"
        means = (f"{lane.mean():.3f}" for lane in (clean, drifted))
        days = len({day for day, *_ in shared})
        equal = f"{(clean == drifted).mean():.3f}"
        yield arm, str(days), f"{len(shared) / days:g}", *means, equal, alike


def covariance(one: Floats, other: Floats) -> float:
    """Return the mean product of deviations."""
    return float(((one - one.mean()) * (other - other.mean())).mean())


MEASURED = """\
## What campaigns show

Lanes play the same tasks, each morning, from the same memory. `alike`, measured: the
covariance of a task's quality in the two lanes, over the greatest that the qualities of
the two lanes allow (1: every task alike, 0: drawn apart; -: a lane without spread).
Made by `python benchmarks/maintenance_power.py --only-runs --write --run RUN ..` of

    owa-bench run --suite toolquest --family reconcile,restock,sla_report,deduplicate \\
        --tier TIERS --delta 0 --episodes 3 --interventions 0 --days 8 --practice 1 \\
        --maintenance 3 --agent agentic [--agent self_improving] --in-process --out RUN

with tiers 2,3 for `agentic` alone, then 3,4 for both. The rows of .9 come
nearest to what was seen, on agents that lose something under drift; the nearer the
clean lane is to 1, the less there is to be drawn apart at all.

| agent | days | tasks a day | clean | drifted | equal | alike |
|---|---|---|---|---|---|---|
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    parser.add_argument("--run", type=Path, action="append", default=[])
    parser.add_argument("--only-runs", action="store_true", help="keep what was drawn")
    chosen = parser.parse_args()
    found = [f"| {' | '.join(row)} |" for run in chosen.run for row in measured(run)]
    if chosen.only_runs:
        kept = TABLE.read_text(encoding="utf-8").partition("\n## ")[0].splitlines()
        write(kept, found, chosen.write)
        return
    rho = RULES.closures.rho
    head = [f"{kept:g}, sd {shock:g}" for shock in SHOCKS for kept in (1.0, rho)]
    lines = [
        "# Power of the maintenance closure",
        "",
        "Made by `python benchmarks/maintenance_power.py --write`.",
        "",
        f"How often the closure passes in {chosen.rounds} drawn runs of {LANE_TASKS} "
        f"tasks a lane and day, clean quality {LANE_LEVEL:g}, for an agent that keeps "
        f"all (1) or just the share required ({rho:g}), by the spread of a lane's day "
        "shocks (sd). `alike`: share of tasks that come out alike in both lanes; in either "
        f"lane {ALIKE[0]:g} of a task's days do.",
        "",
        f"| days | alike | {' | '.join(head)} |",
        "|---" * (2 + len(head)) + "|",
        *(f"| {' | '.join(row)} |" for row in rows(chosen.rounds)),
    ]
    write(lines, found, chosen.write)


def write(drawn: list[str], found: list[str], kept: bool) -> None:
    """Print the tables, and keep them."""
    lines = [*drawn, "", *MEASURED.splitlines(), *found] if found else drawn
    print("\n".join(lines))
    if kept:
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
