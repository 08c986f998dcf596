"""`owa-bench measure cartpole3d`: AIQ over the novelty levels, from nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from owa_bench.cli import measuring_aiq, measuring_trials
from owa_bench.cli.console import ERR, OUT, progress, table
from owa_bench.cli.measuring import number, save
from owa_bench.cli.measuring_aiq import MeasuredSuite
from owa_bench.cli.options import option
from owa_bench.errors import FieldError, UsageError, extra, needs, one_of
from owa_bench.measures.aiq import complexity
from owa_bench.measures.aiq import measure as aiq
from owa_bench.records.csv_tables import write_csv
from owa_bench.records.observables import Floats
from owa_bench.scoring.novelty import trials as trial_metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from owa_bench.subjects.cartpole3d import MeasurementPlan

_COLUMNS = {
    "pool": ("domain", "repeat", "network", "size", "performance"),
    "mixtures": ("first", "second", "p", "performance"),
    "performances": ("agent", "domain", "performance"),
    "handicapped": ("domain", "repeat", "network", "size", "performance"),
    "force": ("domain", "size", "performance"),
    "gravity": ("domain", "size", "performance"),
    "entropy": ("check", "domain", "coordinate", "counts"),
    "gravities": ("first", "second", "p", "performance"),
}
_LABELS = {"force": "force (N)", "gravity": "gravity (m/s2)"}
_TIERS = {"easy": 1, "medium": 2, "hard": 3}

_Row = dict[str, Any]


def measure_cartpole3d(
    out: Path = option(..., "Folder of raw tables and figures."),
    spec: str = option("table1", "Variant: table1 or released."),
    difficulty: str = option("easy", "easy, medium or hard."),
    full: bool = option(False, "Mix all pairs of levels, not a few."),
    level: list[int] | None = option(None, "Only these levels are the suite; all if none."),
    pool: int = option(16, "Random networks a level.", min=2),
    updates: int = option(
        60,
        "Rounds of training on mixtures; the pool gets twice, the classic checks three "
        "times as many.",
        min=1,
    ),
    repeats: int = option(
        1, "How often pools are drawn and trained; 2 or more give intervals of complexity.", min=1
    ),
    agent: list[str] | None = option(
        None,
        "A registered agent, module:Name, FILE.py or sb3:FILE.zip, played in this "
        "process; again for more; all of the suite's own if none.",
    ),
    episodes: int = option(10, "Episodes of an agent a level.", min=1),
    classic: bool = option(
        True, "The checks on the classic cart and pole.", "--classic/--no-classic"
    ),
    trials: Path | None = option(
        None, "A run of trials (`run --trials`): AIQ over its levels is scaled by mean APTI too."
    ),
    baseline: str | None = option(None, "Arm of --trials that APTI compares with."),
    last: int = option(trial_metrics.LAST, "Episodes of a trial's asymptotic part (m).", min=1),
    workers: int = option(2, "Processes.", min=1),
    seed: int = option(0, "Seed of networks, trainings and episodes.", min=0),
) -> None:
    """AIQ over CartPole3D's levels: pool, mixtures, agents, tables, figures.

    Trains all networks of a level, and of all mixtures with a reference, as one population on the
    batched backend. What is done is kept in --out: the same command goes on where it was stopped.
    The tables can be read again with `measure aiq`.

      owa-bench measure cartpole3d --out runs/aiq --agent pd2.py
      --agent sb3:runs/dqn/model.zip --trials runs/apti --baseline dqn
    """
    plan = _plan(
        spec,
        difficulty,
        full=full,
        level=level,
        pool=pool,
        updates=updates,
        repeats=repeats,
        agent=agent,
        episodes=episodes,
        classic=classic,
        seed=seed,
    )
    apti = None
    if trials:  # read first: what is wrong with them is said before hours of training
        apti = measuring_trials.apti_by_level(
            trials, baseline, last, variant=plan.spec, tier=_TIERS[difficulty]
        )
        measuring_trials.refuse_unmeasured(apti, plan.levels)
    elif baseline is not None:
        raise FieldError("--baseline", baseline, "goes with --trials")
    rows = _run(plan, out, workers)
    tables = _write_tables(rows, out)
    suite = measuring_aiq.measured_suite(
        tables["pool"], mixtures=tables["mixtures"], performances=tables["performances"]
    )
    measuring_aiq.print_suite(suite)
    _print_agents(suite, rows)
    drawn = _figures(suite, rows, _handicapped(suite, rows))
    drawn |= _classic_figures(rows)
    if apti is not None:
        found = measuring_trials.scale_by_apti(apti, folder=out)
        measuring_trials.print_scaled(found)
        drawn["apti"] = measuring_trials.draw(found)
    for name, figure in drawn.items():
        save(figure, out / "figures" / f"{name}.svg")
    OUT.print(f"tables in {out}, figures in {out / 'figures'}")


def _plan(
    spec: str,
    difficulty: str,
    *,
    level: list[int] | None,
    agent: list[str] | None,
    classic: bool,
    **given: Any,
) -> "MeasurementPlan":
    """Return the plan that the options stand for.

    Raises:
        MissingPartError: torch is not installed.
        UsageError: an unknown level, or fewer than two.
    """
    with needs("torch", extra("rl")):
        from owa_bench.subjects import agent_play, cartpole3d
    from owa_bench.envs.cartpole3d import levels
    from owa_bench.envs.cartpole3d.world import SPECS

    if spec not in SPECS:
        raise FieldError("--spec", spec, one_of(spec, SPECS))
    found = tuple(dict.fromkeys(level or levels.LEVELS))
    unknown = [number for number in found if number not in levels.LEVELS]
    if unknown or len(found) < 2:
        raise UsageError(f"`--level` must name two levels of 0 to 16 or more, got {list(found)}.")
    given |= {} if classic else {"classic": 0}
    default = cartpole3d.MeasurementPlan()
    whole = set(found) >= {*default.references, *default.among}
    given |= {} if whole else {"references": found, "among": ()}
    names = agent or cartpole3d.AGENTS
    played = agent_play.measured_agents(names, taken=cartpole3d.CONTROL_NAMES)
    return cartpole3d.MeasurementPlan(
        spec=levels.parse_family(f"{spec}/0").spec,
        magnitude=levels.magnitude_of(difficulty),
        levels=found,
        agents=played,
        **given,
    )


def _run(plan: "MeasurementPlan", out: Path, workers: int) -> list[_Row]:
    """Do what is left, behind a progress bar."""
    from owa_bench.subjects.cartpole3d import run

    with progress() as bar:
        task = bar.add_task("units", total=None)

        def move(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        try:
            return run(plan, out, workers=workers, on_done=move)
        except KeyboardInterrupt:
            ERR.print(f"What is done is in {out}: the same command goes on from there.")
            raise


def _write_tables(rows: Sequence[_Row], out: Path) -> dict[str, Path]:
    """Write every table as CSV and return where."""
    paths = {}
    for name, columns in _COLUMNS.items():
        paths[name] = out / f"{name}.csv"
        chosen = [row for row in rows if row["table"] == name]
        chosen.sort(key=lambda row: row[columns[0]])
        cells = [[_cell(row[key]) for key in columns] for row in chosen]
        write_csv(paths[name], columns, cells)
    return paths


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return " ".join(str(part) for part in value)
    return f"{value:.6f}" if isinstance(value, float) else value


def _performances(
    rows: Sequence[_Row], kind: str, player: str, domains: Sequence[str]
) -> dict[str, Floats]:
    """Return the performances of each agent or network in the order of the domains.

    Those of repeats are averaged.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["table"] == kind:
            cells = found.setdefault(row[player], {})
            cells.setdefault(str(row["domain"]), []).append(row["performance"])
    return {
        name: np.array([np.mean(cells[domain]) for domain in domains])
        for name, cells in found.items()
    }


def _print_agents(suite: MeasuredSuite, rows: Sequence[_Row]) -> None:
    """Print performances, a row a level, and both ways of ranking agents."""
    good = _performances(rows, "performances", "agent", suite.domains)
    lines = [
        (level, *(f"{values[i]:.2f}" for values in good.values()))
        for i, level in enumerate(suite.domains)
    ]
    lines.append(("mean", *(f"{values.mean():.3f}" for values in good.values())))
    lines.append(("AIQ^(1/r)", *(number(suite.agents[name].length) for name in good)))
    table("performance by level", ("level", *good), lines)


def _handicapped(
    suite: MeasuredSuite, rows: Sequence[_Row]
) -> dict[str, tuple[list[str], Floats, Floats]]:
    """Rank handicapped networks by AIQ; return them by number of layers."""
    points = suite.points
    if points is None:
        return {}
    good = _performances(rows, "handicapped", "network", suite.domains)
    sizes = {r["network"]: r["size"] for r in rows if r["table"] == "handicapped"}
    names = list(good)
    means = np.array([values.mean() for values in good.values()])
    lengths = np.array([aiq.measure(points, one).length for one in good.values()])
    lines = [
        (name, sizes[name], f"{mean:.3f}", number(length))
        for name, mean, length in zip(names, means, lengths, strict=True)
    ]
    columns = ("network", "size", "mean performance", "AIQ^(1/r)")
    table("handicapped networks", columns, lines)
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


def _figures(
    suite: MeasuredSuite, rows: Sequence[_Row], lines: dict[str, tuple[list[str], Floats, Floats]]
) -> dict[str, "Figure"]:
    """Return the figures of the suite by name."""
    from owa_bench.measures import figures

    points, gaps = suite.points, suite.distances
    if points is None or gaps is None:
        raise UsageError("The tables hold no mixtures: there is no space to draw.")
    good = _performances(rows, "performances", "agent", suite.domains)
    heights = dict(zip(suite.domains, suite.complexities, strict=True))
    ranking = measuring_aiq.rank_agents(suite, good)
    extremes = {name: good[name] for name in (ranking[0][0], ranking[0][-1])}
    return {
        "complexity": figures.complexity_bars(heights),
        "dissimilarity": figures.dissimilarity_map(suite.domains, gaps),
        "dimensions": figures.dimension_bars(suite.domains, points),
        "space": figures.domain_points(suite.domains, points),
        "hulls": figures.agent_hulls(points, extremes),
        "agents": figures.mean_and_aiq({"agents": ranking}),
        "handicapped": figures.mean_and_aiq(lines),
    }


# --- checks on the classic cart and pole ---------------------------------------------


def _trend(
    check: str, rows: Sequence[_Row]
) -> tuple[Floats, list[complexity.Complexity], Floats] | None:
    """Return and print complexity and entropy by a parameter, None without rows."""
    by_value: dict[float, list[_Row]] = {}
    for row in rows:
        if row["table"] == check:
            by_value.setdefault(row["domain"], []).append(row)
    if not by_value:
        return None
    found, bits = [], []
    for value, own in sorted(by_value.items()):
        sizes, good = zip(*((r["size"], r["performance"]) for r in own), strict=True)
        found.append(complexity.complexity(sizes, good))
        place = ("entropy", check, value)
        counts = [
            row["counts"]
            for row in rows
            if (row["table"], row.get("check"), row.get("domain")) == place
        ]
        bits.append(complexity.histogram_entropy(counts))
    values, entropies = np.array(sorted(by_value)), np.array(bits)
    heights = np.array([one.value for one in found])
    OUT.print(
        f"classic CartPole, {_LABELS[check]} {values[0]:g} to {values[-1]:g}: "
        f"complexity {heights[0]:.1f} to {heights[-1]:.1f}, {_fit(values, heights)}; "
        f"entropy {bits[0]:.2f} to {bits[-1]:.2f} bits, {_fit(values, entropies)}"
    )
    return values, found, entropies


def _gravities(rows: Sequence[_Row]) -> tuple[tuple[str, ...], aiq.Dissimilarities] | None:
    """Return and print the dissimilarities of gravities, None if none was mixed."""
    cells: dict[tuple[float, float], dict[float, list[float]]] = {}
    for row in rows:
        if row["table"] == "gravities":
            pair = cells.setdefault((row["first"], row["second"]), {})
            pair.setdefault(row["p"], []).append(row["performance"])
    if not cells:
        return None
    gaps = {
        pair: aiq.dissimilarity([one[p] for p in sorted(one)], sorted(one))
        for pair, one in cells.items()
    }
    values = sorted({value for pair in gaps for value in pair})
    floor = aiq.noise_floor([gap for (a, b), gap in gaps.items() if a == b])
    others = {pair: gap for pair, gap in gaps.items() if pair[0] != pair[1]}
    matrix = measuring_aiq.gap_matrix(others, values)
    pairs = [(abs(a - b), gap) for (a, b), gap in others.items()]
    apart, far = (np.array(column) for column in zip(*pairs, strict=True))
    found = aiq.dissimilarity_matrix(matrix, floor=floor)
    above = int(np.triu(found.told).sum())
    OUT.print(
        f"classic CartPole, dissimilarity of gravities {values[0]:g} to "
        f"{values[-1]:g}: {far.min():.3f} to {far.max():.3f}, noise floor {floor:.3f} "
        f"({above} of {far.size} pairs above); with their difference {_fit(apart, far)}"
    )
    return tuple(f"{value:g}" for value in values), found


def _classic_figures(rows: Sequence[_Row]) -> dict[str, "Figure"]:
    """Print the checks and return their figures."""
    from owa_bench.measures import figures

    drawn = {}
    trends = {label: trend for check, label in _LABELS.items() if (trend := _trend(check, rows))}
    if trends:
        drawn["classic"] = figures.complexity_trends(trends)
    mixed = _gravities(rows)
    if mixed:
        drawn["gravities"] = figures.dissimilarity_map(*mixed, label="gravity (m/s2)")
    return drawn


def _fit(across: Floats, heights: Floats) -> str:
    if np.ptp(heights) == 0.0:
        return "constant"
    fit = stats.linregress(across, heights)
    return f"r = {fit.rvalue:.2f} (p {fit.pvalue:.3g})"
