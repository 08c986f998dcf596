"""`owa-bench measure cartpole3d`: AIQ over the novelty levels, from nothing."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from scipy import stats

from owa_bench.cli import measured, measuring_apti, measuring_classic
from owa_bench.cli.console import ERR, OUT, progress, table
from owa_bench.cli.measuring_aiq import Suite, measured_suite, print_suite
from owa_bench.errors import FieldError, MissingPartError, UsageError, one_of
from owa_bench.records.observables import Floats
from owa_bench.scoring.companions.aiq import measure as aiq
from owa_bench.scoring.companions.novelty import trials as trial_metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from owa_bench.subjects.cartpole3d import MeasurementPlan

_COLUMNS = {
    "pool": ("domain", "network", "size", "performance"),
    "mixtures": ("first", "second", "p", "performance"),
    "performances": ("agent", "domain", "performance"),
    "handicapped": ("domain", "network", "size", "performance"),
    "force": ("domain", "size", "performance"),
    "gravity": ("domain", "size", "performance"),
    "entropy": ("check", "domain", "coordinate", "counts"),
    "gravities": ("first", "second", "p", "performance"),
}
_TIERS = {"easy": 1, "medium": 2, "hard": 3}

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
    level: Annotated[
        list[int] | None,
        typer.Option("--level", help="Only these levels are the suite; all if none."),
    ] = None,
    pool: Annotated[
        int, typer.Option("--pool", min=2, help="Random networks a level.")
    ] = 16,
    updates: Annotated[
        int,
        typer.Option(
            "--updates",
            min=1,
            help="Rounds of training on mixtures; the pool gets twice, the classic "
            "checks three times as many.",
        ),
    ] = 60,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            help="A registered agent, module:Name, FILE.py or sb3:FILE.zip, played in "
            "this process; again for more; all of the suite's own if none.",
        ),
    ] = None,
    episodes: Annotated[
        int, typer.Option("--episodes", min=1, help="Episodes of an agent a level.")
    ] = 10,
    classic: Annotated[
        bool,
        typer.Option(
            "--classic/--no-classic", help="The checks on the classic cart and pole."
        ),
    ] = True,
    trials: Annotated[
        Path | None,
        typer.Option(
            "--trials",
            help="A run of trials (`run --trials`): AIQ over its levels is scaled by "
            "mean APTI too.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", help="Arm of --trials that APTI compares with."),
    ] = None,
    last: Annotated[
        int,
        typer.Option(
            "--last", min=1, help="Episodes of a trial's asymptotic part (m)."
        ),
    ] = trial_metrics.LAST,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes.")] = 2,
    resamples: measured.Resamples = 200,
    seed: measured.Seed = 0,
) -> None:
    """AIQ over CartPole3D's levels: pool, mixtures, agents, tables, figures.

    Trains all networks of a level, and of all mixtures with a reference, as one
    population on the batched backend. What is done is kept in --out: the same command
    goes on where it was stopped. The tables can be read again with `measure aiq`.

      owa-bench measure cartpole3d --out runs/aiq --agent pd2.py
      --agent sb3:runs/dqn/model.zip --trials runs/apti --baseline dqn
    """
    plan = _plan(
        spec=spec,
        difficulty=difficulty,
        full=full,
        level=level,
        pool=pool,
        updates=updates,
        agent=agent,
        episodes=episodes,
        classic=classic,
        seed=seed,
    )
    tried = None
    if trials:  # read first: what is wrong with them is said before hours of training
        tried = measuring_apti.tried(
            trials, baseline, last, variant=plan.spec, tier=_TIERS[difficulty]
        )
        measuring_apti.refuse_unmeasured(tried, plan.levels)
    elif baseline is not None:
        raise FieldError("--baseline", baseline, "goes with --trials")
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
    drawn = _drawn(suite, rows, _handicapped(suite, rows))
    drawn |= measuring_classic.draw(rows, resamples, seed)
    if tried is not None:
        found = measuring_apti.scaled(tried, folder=out, resamples=resamples, seed=seed)
        measuring_apti.print_scaled(found)
        drawn["apti"] = measuring_apti.draw(found)
    _save(drawn, out / "figures")
    OUT.print(f"tables in {out}, figures in {out / 'figures'}")


def _plan(
    *,
    spec: str,
    difficulty: str,
    level: list[int] | None,
    agent: list[str] | None,
    classic: bool,
    **given: Any,
) -> "MeasurementPlan":
    """Return what is to be done.

    Errors: MissingPartError without torch; UsageError for an unknown level; those of
    `played.contenders`.
    """
    try:
        from owa_bench.subjects import agent_play, cartpole3d
    except ImportError as error:
        raise MissingPartError("torch", "pip install 'owa_bench[rl]'") from error
    from owa_bench.envs.cartpole3d import levels
    from owa_bench.worlds.physics import SPECS

    if spec not in SPECS:
        raise FieldError("--spec", spec, one_of(spec, SPECS))
    found = tuple(dict.fromkeys(level or levels.LEVELS))
    unknown = [number for number in found if number not in levels.LEVELS]
    if unknown or len(found) < 2:
        raise UsageError(
            f"`--level` must name two levels of 0 to 16 or more, got {list(found)}."
        )
    given |= {} if classic else {"classic": 0}
    whole = set(found) >= {
        *cartpole3d.MeasurementPlan().references,
        *cartpole3d.MeasurementPlan().among,
    }
    given |= {} if whole else {"references": found, "among": ()}
    return cartpole3d.MeasurementPlan(
        spec=levels.parse_family(f"{spec}/0").spec,
        magnitude=levels.magnitude_of(difficulty),
        levels=found,
        agents=agent_play.measured_agents(
            agent or cartpole3d.AGENTS, taken=cartpole3d.CONTROL_NAMES
        ),
        **given,
    )


def _run(plan: "MeasurementPlan", out: Path, workers: int) -> list[Row]:
    """Do what is left, behind a progress bar."""
    from owa_bench.subjects.cartpole3d import run

    with progress() as bar:
        task = bar.add_task("units", total=None)
        try:
            return run(
                plan,
                out,
                workers=workers,
                on_done=lambda done, whole: bar.update(
                    task, completed=done, total=whole
                ),
            )
        except KeyboardInterrupt:
            ERR.print(f"What is done is in {out}: the same command goes on from there.")
            raise


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
    if isinstance(value, list):
        return " ".join(str(part) for part in value)
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
    lengths = np.array([aiq.measure(points, values).length for values in good])
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
        order = stats.spearmanr(means[at], lengths[at])
        OUT.print(
            f"{layers} layers: rank correlation of nodes and AIQ "
            f"{ranks.statistic:.2f} (p {ranks.pvalue:.3f}), of mean performance and "
            f"AIQ {order.statistic:.2f}"
        )
        groups[f"{layers} layers"] = (widths, means[at], lengths[at])
    return groups


def _drawn(
    suite: Suite,
    rows: Sequence[Row],
    lines: dict[str, tuple[list[str], Floats, Floats]],
) -> dict[str, "Figure"]:
    """Return the figures of the suite by name."""
    from owa_bench.scoring.companions import figures

    points, gaps = suite.points, suite.distances
    if points is None or gaps is None:
        raise UsageError("The tables hold no mixtures: there is no space to draw.")
    good = _performances(rows, suite.domains)
    ranked = sorted(good, key=lambda name: suite.agents[name].length)
    means = np.array([good[name].mean() for name in ranked])
    lengths = np.array([suite.agents[name].length for name in ranked])
    shown = {name: good[name] for name in (ranked[0], ranked[-1])}
    return {
        "complexity": figures.complexity_bars(
            dict(zip(suite.domains, suite.complexities, strict=True))
        ),
        "dissimilarity": figures.dissimilarity_map(suite.domains, gaps),
        "dimensions": figures.dimension_bars(suite.domains, points),
        "space": figures.domain_points(suite.domains, points),
        "hulls": figures.agent_hulls(points, shown),
        "agents": figures.mean_and_aiq({"agents": (ranked, means, lengths)}),
        "handicapped": figures.mean_and_aiq(lines),
    }


def _save(drawn: dict[str, "Figure"], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn.items():
        measured.save(figure, folder / f"{name}.svg")
