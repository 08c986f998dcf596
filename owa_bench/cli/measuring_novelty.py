"""`owa-bench measure novelty`."""

from pathlib import Path
from typing import Annotated

import typer

from owa_bench.cli import measured
from owa_bench.cli.console import as_json, table
from owa_bench.cli.evidence import RunDir
from owa_bench.errors import ScoringError, UsageError
from owa_bench.records.score import CellTable
from owa_bench.report import bundle
from owa_bench.scoring.companions.novelty import trials


def measure_novelty(
    run_dir: RunDir,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", help="The arm that others are measured against: the first."
        ),
    ] = None,
    last: Annotated[
        int,
        typer.Option(
            "--last", min=1, help="Episodes of a trial's asymptotic part (m)."
        ),
    ] = trials.LAST,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            callback=measured.drawable,
            help="Curves before and after novelty: .svg, .png or .pdf.",
        ),
    ] = None,
    json: measured.AsJson = False,
) -> None:
    """How agents detect novelty and take it: the SAIL-ON metrics of a run of trials.

    CDT: share of trials whose first detection comes with or after the novelty; FN_CDT:
    novel episodes that those still call plain; FP: share of trials with a false alarm;
    NRP: asymptotic performance over the baseline's before the novelty; OPTI and APTI:
    P / (P + P of the baseline) over all novel and over the last --last episodes.

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
        from owa_bench.scoring.companions.figures import novelty_figure

        measured.save(novelty_figure(drawn), figure)
    if json:
        as_json({"table": measured.plain(_data(made)), "curves": measured.plain(drawn)})
        return
    table(made.title, made.columns, [_shown(row) for row in made.rows])
    table(
        "mean quality around the introduction",
        ("agent", "plain", "novel, first 3", f"novel, last {last}"),
        [_summary(lanes, arm, last) for arm in dict.fromkeys(x.arm for x in lanes)],
    )


def read_lanes(
    run_dir: Path, baseline: str | None
) -> tuple[tuple[trials.ArmTrial, ...], str]:
    """Return a run's trials and the baseline's name: the first arm if none is given."""
    found = bundle.read(run_dir)
    lanes = trials.complete_trials(found.plan, map(trials.read_trial, found.traces()))
    return lanes, baseline or found.plan.arms[0].name


def _data(made: CellTable) -> list[dict[str, object]]:
    return [dict(zip(made.columns, row, strict=True)) for row in made.rows]


def _shown(row: tuple[str | float | int | None, ...]) -> tuple[str, ...]:
    return tuple(
        "" if cell is None else f"{cell:.3f}" if isinstance(cell, float) else str(cell)
        for cell in row
    )


def _summary(
    lanes: tuple[trials.ArmTrial, ...], arm: str, last: int
) -> tuple[str, ...]:
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
