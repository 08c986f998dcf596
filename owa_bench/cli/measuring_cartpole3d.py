"""`owa-bench measure cartpole3d`: AIQ over the novelty levels, from nothing."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from scipy import stats

from owa_bench import seeding
from owa_bench.cli import measured
from owa_bench.cli.console import OUT, progress, table
from owa_bench.cli.measuring_aiq import Suite, measured_suite, print_suite
from owa_bench.errors import MissingPartError, UsageError
from owa_bench.records.observables import Floats
from owa_bench.scoring.companions.aiq import complexity, space

if TYPE_CHECKING:
    from owa_bench.subjects.cartpole3d import Plan

_COLUMNS = {
    "pool": ("domain", "network", "size", "performance"),
    "mixtures": ("first", "second", "p", "performance"),
    "performances": ("agent", "domain", "performance"),
    "handicapped": ("domain", "network", "size", "performance"),
    "force": ("domain", "size", "performance"),
    "gravity": ("domain", "size", "performance"),
}
_CLASSIC = {"force": "force (N)", "gravity": "gravity (m/s2)"}

Row = dict[str, Any]


def measure_cartpole3d(
    out: Annotated[
        Path, typer.Option("--out", help="Folder of raw tables and figures.")
    ],
    spec: Annotated[
        str, typer.Option("--spec", help="Variant: table1 or released.")
    ] = "table1",
    difficulty: Annotated[
        str, typer.Option("--difficulty", help="easy, medium or hard.")
    ] = "easy",
    full: Annotated[
        bool, typer.Option("--full", help="Mix all pairs of levels, not a few.")
    ] = False,
    pool: Annotated[
        int, typer.Option("--pool", min=2, help="Random networks a level.")
    ] = 16,
    updates: Annotated[
        int, typer.Option("--updates", min=1, help="Rounds of training a network.")
    ] = 60,
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", help="Registered agents; all of the suite if none."),
    ] = None,
    episodes: Annotated[
        int, typer.Option("--episodes", min=1, help="Episodes of an agent a level.")
    ] = 10,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes.")] = 2,
    resamples: measured.Resamples = 200,
    seed: measured.Seed = 0,
) -> None:
    """AIQ over CartPole3D's levels: pool, mixtures, agents, tables, figures.

    Trains all networks of a level, and of all mixtures with a reference, as one
    population on the batched backend. What is done is kept in --out: the same command
    goes on where it was stopped. The tables can be read again with `measure aiq`.
    """
    plan = _plan(spec, difficulty, full, pool, updates, agent, episodes, seed)
    rows = _run(plan, out, workers)
    tables = _written(rows, out)
    suite = measured_suite(
        tables["pool"],
        tables["mixtures"],
        None,
        tables["performances"],
        resamples,
        seed,
    )
    print_suite(suite)
    _print_agents(suite, rows)
    lines = _handicapped(suite, rows)
    found = _classic(rows, resamples, seed)
    _draw(suite, rows, lines, found, out / "figures")
    OUT.print(f"tables in {out}, figures in {out / 'figures'}")


def _plan(
    spec: str,
    difficulty: str,
    full: bool,
    pool: int,
    updates: int,
    agents: list[str] | None,
    episodes: int,
    seed: int,
) -> "Plan":
    """Return what is to be done. Errors: MissingPartError without torch."""
    try:
        from owa_bench.subjects.cartpole3d import AGENTS, Plan
    except ImportError as error:
        raise MissingPartError("torch", "pip install 'owa_bench[rl]'") from error
    from owa_bench.envs.cartpole3d import levels

    return Plan(
        spec=levels.family(f"{spec}/0").spec,
        magnitude=levels.magnitude_of(difficulty),
        full=full,
        pool=pool,
        updates=updates,
        agents=tuple(agents) if agents else AGENTS,
        episodes=episodes,
        seed=seed,
    )


def _run(plan: "Plan", out: Path, workers: int) -> list[Row]:
    """Do what is left, behind a progress bar."""
    from owa_bench.subjects.unit_runs import run

    with progress() as bar:
        task = bar.add_task("units", total=None)
        return run(
            plan,
            out,
            workers=workers,
            told=lambda done, whole: bar.update(task, completed=done, total=whole),
        )


def _written(rows: Sequence[Row], out: Path) -> dict[str, Path]:
    """Write every table as CSV and return where."""
    paths = {}
    for name, columns in _COLUMNS.items():
        paths[name] = out / f"{name}.csv"
        with paths[name].open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            chosen = [row for row in rows if row["table"] == name]
            chosen.sort(key=lambda row: row[columns[0]])
            writer.writerows(
                [_cell(row[column]) for column in columns] for row in chosen
            )
    return paths


def _cell(value: Any) -> Any:
    return f"{value:.6f}" if isinstance(value, float) else value


def _performances(rows: Sequence[Row], domains: Sequence[str]) -> dict[str, Floats]:
    """Return each agent's performances in the order of the domains."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["table"] == "performances":
            cells = found.setdefault(row["agent"], {})
            cells[str(row["domain"])] = row["performance"]
    return {
        name: np.array([cells[domain] for domain in domains])
        for name, cells in found.items()
    }


def _print_agents(suite: Suite, rows: Sequence[Row]) -> None:
    """Print performances, a row a level, and both ways of ranking agents."""
    good = _performances(rows, suite.domains)
    lengths = (measured.number(suite.agents[name].length) for name in good)
    table(
        "performance by level",
        ("level", *good),
        [
            *(
                (level, *(f"{values[i]:.2f}" for values in good.values()))
                for i, level in enumerate(suite.domains)
            ),
            ("mean", *(f"{values.mean():.3f}" for values in good.values())),
            ("AIQ^(1/r)", *lengths),
        ],
    )


def _handicapped(
    suite: Suite, rows: Sequence[Row]
) -> dict[str, tuple[list[str], Floats, Floats]]:
    """Rank handicapped networks by AIQ; return them by number of layers."""
    points = suite.points
    if points is None:
        return {}
    cells: dict[str, dict[str, float]] = {}
    sizes: dict[str, int] = {}
    for row in rows:
        if row["table"] == "handicapped":
            found = cells.setdefault(row["network"], {})
            found[str(row["domain"])] = row["performance"]
            sizes[row["network"]] = row["size"]
    names = list(cells)
    good = [np.array([cells[name][d] for d in suite.domains]) for name in names]
    means = np.array([values.mean() for values in good])
    lengths = np.array([space.quotient(points, values).length for values in good])
    table(
        "handicapped networks",
        ("network", "size", "mean performance", "AIQ^(1/r)"),
        [
            (name, sizes[name], f"{mean:.3f}", measured.number(length))
            for name, mean, length in zip(names, means, lengths, strict=True)
        ],
    )
    groups = {}
    for layers in sorted({name.count("x") + 1 for name in names}):
        at = [i for i, name in enumerate(names) if name.count("x") + 1 == layers]
        widths = [names[i].split("x")[0] for i in at]
        ranks = stats.spearmanr([int(width) for width in widths], lengths[at])
        OUT.print(
            f"{layers} layers: rank correlation of nodes and AIQ "
            f"{ranks.statistic:.2f} (p {ranks.pvalue:.3f})"
        )
        groups[f"{layers} layers"] = (widths, means[at], lengths[at])
    return groups


def _classic(
    rows: Sequence[Row], resamples: int, seed: int
) -> dict[str, tuple[Floats, list[complexity.Complexity]]]:
    """Print how complexity goes with force and gravity of the classic task."""
    checks = {}
    for name, label in _CLASSIC.items():
        values, found = _trend([r for r in rows if r["table"] == name], resamples, seed)
        if not found:
            continue
        heights = [one.value for one in found]
        fit = stats.linregress(values, heights)
        OUT.print(
            f"classic CartPole, {label} {values[0]:g} to {values[-1]:g}: complexity "
            f"{heights[0]:.1f} to {heights[-1]:.1f}, r = {fit.rvalue:.2f} "
            f"(p {fit.pvalue:.3g})"
        )
        checks[label] = (values, found)
    return checks


def _trend(
    rows: Sequence[Row], resamples: int, seed: int
) -> tuple[Floats, list[complexity.Complexity]]:
    """Return the values of a parameter and the complexity at each."""
    stream = seeding.stream(seed, "measure", "classic")
    values = sorted({row["domain"] for row in rows})
    found = []
    for value in values:
        chosen = [row for row in rows if row["domain"] == value]
        sizes = [row["size"] for row in chosen]
        good = [row["performance"] for row in chosen]
        one = complexity.complexity(sizes, good, resamples=resamples, rng=stream)
        found.append(one)
    return np.array(values, dtype=np.float64), found


def _draw(
    suite: Suite,
    rows: Sequence[Row],
    lines: dict[str, tuple[list[str], Floats, Floats]],
    checks: dict[str, tuple[Floats, list[complexity.Complexity]]],
    folder: Path,
) -> None:
    """Write the figures as SVG."""
    from owa_bench.scoring.companions import aiq_figures as figures

    points, gaps = suite.points, suite.distances
    if points is None or gaps is None:
        msg = "The tables hold no mixtures: there is no space to draw."
        raise UsageError(msg)
    good = _performances(rows, suite.domains)
    ranked = sorted(good, key=lambda name: suite.agents[name].length)
    means = np.array([good[name].mean() for name in ranked])
    lengths = np.array([suite.agents[name].length for name in ranked])
    shown = {name: good[name] for name in (ranked[0], ranked[-1])}
    drawn = {
        "complexity": figures.complexity_bars(suite.domains, suite.complexities),
        "dissimilarity": figures.dissimilarity_map(suite.domains, gaps),
        "dimensions": figures.dimension_bars(suite.domains, points),
        "space": figures.located(suite.domains, points),
        "hulls": figures.hulls(points, shown),
        "agents": figures.mean_and_quotient({"agents": (ranked, means, lengths)}),
        "handicapped": figures.mean_and_quotient(lines),
    }
    if checks:
        drawn["classic"] = figures.trends(checks)
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn.items():
        measured.save(figure, folder / f"{name}.svg")
