"""`owa-bench measure novelty`, and AIQ scaled by APTI: measures of a run of trials."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from owa_bench.cli.console import as_json, table
from owa_bench.cli.measuring import figure_path, number, save
from owa_bench.cli.measuring_aiq import MeasuredSuite, measured_suite, rank_agents
from owa_bench.cli.options import AsJson, RunDir, option
from owa_bench.errors import ScoringError, UsageError
from owa_bench.records.csv_tables import write_csv
from owa_bench.records.observables import Floats
from owa_bench.reports.read import bundle
from owa_bench.scoring.novelty import trials

if TYPE_CHECKING:
    from matplotlib.figure import Figure

APTI_FILE = "apti.csv"


def measure_novelty(
    run_dir: Path = RunDir,
    baseline: str | None = option(None, "The arm that others are measured against: the first."),
    last: int = option(trials.LAST, "Episodes of a trial's asymptotic part (m).", min=1),
    figure: Path | None = option(
        None, "Curves before and after novelty: .svg, .png or .pdf.", callback=figure_path
    ),
    json: bool = AsJson,
) -> None:
    """How agents detect novelty and take it: the SAIL-ON metrics of a run of trials.

    CDT: share of trials whose first detection comes with or after the novelty; FN_CDT: novel
    episodes that those still call plain; FP: share of trials with a false alarm; NRP: asymptotic
    performance over the baseline's before the novelty; OPTI and APTI: P / (P + P of the baseline)
    over all novel and over the last --last episodes.

      owa-bench run --suite cartpole3d --family table1/9 --tier 3 --trials 3
      --episodes 20 --agent pd --agent model_repair --out runs/trials

      owa-bench measure novelty runs/trials --figure novelty.svg
    """
    lanes, chosen = read_lanes(run_dir, baseline)
    try:
        made = trials.novelty_table(lanes, chosen, last=last)
    except ScoringError as error:
        raise UsageError(f"{run_dir}: {error}") from error
    drawn = trials.quality_curves(lanes)
    if figure:
        from owa_bench.measures.figures import novelty_figure

        save(novelty_figure(drawn), figure)
    if json:
        rows = [dict(zip(made.columns, row, strict=True)) for row in made.rows]
        as_json({"table": rows, "curves": drawn})
        return
    table(made.title, made.columns, [_cell_texts(row) for row in made.rows])
    table(
        "mean quality around the introduction",
        ("agent", "plain", "novel, first 3", f"novel, last {last}"),
        [_summary(lanes, arm, last) for arm in dict.fromkeys(x.arm for x in lanes)],
    )


def read_lanes(run_dir: Path, baseline: str | None) -> tuple[tuple[trials.ArmTrial, ...], str]:
    """Return the complete trials of a run.

    Args:
        run_dir: the run.
        baseline: an arm's name; None: the first.
    Returns: The trials and the baseline's name.
    """
    found = bundle.read(run_dir)
    lanes = trials.complete_trials(found.plan, map(trials.read_trial, found.traces()))
    return lanes, baseline or found.plan.arms[0].name


def _cell_texts(row: tuple[str | float | int | None, ...]) -> tuple[str, ...]:
    return tuple(
        "" if cell is None else f"{cell:.3f}" if isinstance(cell, float) else str(cell)
        for cell in row
    )


def _summary(lanes: tuple[trials.ArmTrial, ...], arm: str, last: int) -> tuple[str, ...]:
    """Return an arm's mean quality before, right after and late after novelty."""
    plain: list[float] = []
    early: list[float] = []
    late: list[float] = []
    for lane in lanes:
        if lane.arm != arm:
            continue
        first = trials.introduction(lane)
        values = [episode.quality for episode in lane.episodes]
        plain += values[:first]
        early += values[first : first + 3]
        late += values[-last:]
    return (arm, *(f"{sum(part) / len(part):.3f}" for part in (plain, early, late)))


# --- AIQ scaled by APTI ---------------------------------------------------------------


class ScaledSuite(NamedTuple):
    """A suite of the levels that were tried, and each agent's APTI on them."""

    suite: MeasuredSuite
    good: dict[str, Floats]


class AptiByLevel(NamedTuple):
    """The levels of a run of trials, and each arm's APTI on them."""

    levels: tuple[str, ...]
    values: dict[str, dict[str, float]]


def apti_by_level(
    run_dir: Path, baseline: str | None, last: int, *, variant: str, tier: int
) -> AptiByLevel:
    """Return APTI on the levels of a run of trials.

    Args:
        run_dir: the run.
        baseline: the arm to compare with; None: the first.
        last: episodes of a trial's asymptotic part.
        variant: "table1" or "released".
        tier: 1 to 3.
    Returns: The levels of this variant and tier, ascending, with each arm's APTI.
    Raises: UsageError: the run has no such trials, or on fewer than two levels.
    """
    lanes, chosen = read_lanes(run_dir, baseline)
    ours = {f"{lane.group}": lane for lane in lanes if _is_ours(lane, variant, tier)}
    levels = sorted(ours, key=lambda group: int(_level(group)))
    if len(levels) < 2:
        raise UsageError(
            f"{run_dir}: AIQ of trials needs two levels of {variant} at tier {tier}, "
            f"got {', '.join(levels) or 'none'}; `run --trials` plays them."
        )
    try:
        found = trials.apti_by_group(
            [lane for lane in lanes if lane.group in ours], chosen, last=last
        )
    except ScoringError as error:
        raise UsageError(f"{run_dir}: {error}") from error
    return AptiByLevel(tuple(levels), found)


def refuse_unmeasured(run: AptiByLevel, levels: Collection[int]) -> None:
    """Refuse trials on a level that is none of those measured.

    Args:
        run: the levels of the trials.
        levels: the levels that are measured.
    Raises: UsageError: a trial is on another level.
    """
    names = map(_level, run.levels)
    other = [name for name in names if int(name) not in levels]
    if other:
        raise UsageError(
            f"The trials are on levels {', '.join(other)} too: measure these "
            "as well (--level), or play trials on the others alone."
        )


def scale_by_apti(run: AptiByLevel, *, folder: Path) -> ScaledSuite:
    """Return AIQ with mean APTI as the scaling value.

    Args:
        run: APTI of each arm on each level.
        folder: holds the tables of `measure cartpole3d`; gets `apti.csv`.
    Returns: The suite of the run's levels with its agents.
    Source: AIQ paper, figure 29.
    """
    levels, found = run
    path = folder / APTI_FILE
    rows = [
        (arm, _level(group), f"{value:.6f}")
        for arm, cells in found.items()
        for group, value in cells.items()
    ]
    write_csv(path, ("agent", "domain", "performance"), rows)
    suite = measured_suite(
        folder / "pool.csv",
        mixtures=folder / "mixtures.csv",
        performances=path,
        only=tuple(map(_level, levels)),
    )
    good = {arm: np.array([cells[group] for group in levels]) for arm, cells in found.items()}
    return ScaledSuite(suite, good)


def print_scaled(found: ScaledSuite) -> None:
    """Print each agent's mean APTI beside its AIQ."""
    names = found.suite.domains
    table(
        "AIQ scaled by APTI",
        ("agent", *(f"level {name}" for name in names), "mean APTI", "AIQ^(1/r)"),
        [
            (
                arm,
                *(f"{value:.3f}" for value in values),
                f"{values.mean():.3f}",
                number(found.suite.agents[arm].length),
            )
            for arm, values in found.good.items()
        ],
    )


def draw(found: ScaledSuite) -> "Figure":
    """Return mean APTI beside AIQ, agent by agent."""
    from owa_bench.measures.figures import mean_and_aiq

    ranking = rank_agents(found.suite, found.good)
    return mean_and_aiq({"agents": ranking}, mean="mean APTI")


def _is_ours(lane: trials.ArmTrial, variant: str, tier: int) -> bool:
    family, _, group = lane.group.partition(" T")
    return family.startswith(f"{variant}/") and group == str(tier)


def _level(group: str) -> str:
    return group.partition(" ")[0].rpartition("/")[2]
