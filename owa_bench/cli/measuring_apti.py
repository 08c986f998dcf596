"""AIQ scaled by APTI: trials of a run in the place of performances on levels."""

import csv
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from owa_bench.cli import measured
from owa_bench.cli.console import table
from owa_bench.cli.measuring_aiq import Suite, measured_suite
from owa_bench.cli.measuring_novelty import read_lanes
from owa_bench.errors import ScoringError, UsageError
from owa_bench.records.observables import Floats
from owa_bench.scoring.companions.novelty import trials

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILE = "apti.csv"


class Scaled(NamedTuple):
    """A suite of the levels that were tried, and each agent's APTI on them."""

    suite: Suite
    good: dict[str, Floats]


class Tried(NamedTuple):
    """The levels that a run tried, and each arm's APTI on them."""

    levels: tuple[str, ...]
    found: dict[str, dict[str, float]]


def tried(
    run_dir: Path, baseline: str | None, last: int, *, variant: str, tier: int
) -> Tried:
    """Return what a run of trials says of the levels of `variant` at `tier`.

    Errors: UsageError for a run without such trials, or fewer than two levels.
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
    return Tried(tuple(levels), found)


def refuse_unmeasured(run: Tried, levels: Collection[int]) -> None:
    """Refuse trials on a level that is none of those measured. UsageError."""
    names = map(_level, run.levels)
    other = [name for name in names if int(name) not in levels]
    if other:
        raise UsageError(
            f"The trials are on levels {', '.join(other)} too: measure these "
            "as well (--level), or play trials on the others alone."
        )


def scaled(run: Tried, *, folder: Path, resamples: int, seed: int) -> Scaled:
    """Return AIQ with mean APTI as the scaling value.

    `folder` holds the tables of `measure cartpole3d` and gets `apti.csv`. Source: AIQ
    paper, figure 29.
    """
    levels, found = run
    path = folder / FILE
    _write(path, found)
    names = tuple(_level(group) for group in levels)
    suite = measured_suite(
        folder / "pool.csv", folder / "mixtures.csv", None, path, resamples, seed, names
    )
    good = {
        arm: np.array([cells[group] for group in levels])
        for arm, cells in found.items()
    }
    return Scaled(suite, good)


def print_scaled(found: Scaled) -> None:
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
                measured.number(found.suite.agents[arm].length),
            )
            for arm, values in found.good.items()
        ],
    )


def draw(found: Scaled) -> "Figure":
    """Return mean APTI beside AIQ, agent by agent."""
    from owa_bench.scoring.companions.figures import mean_and_aiq

    agents = found.suite.agents
    ranked = sorted(found.good, key=lambda name: agents[name].length)
    means = np.array([found.good[name].mean() for name in ranked])
    lengths = np.array([agents[name].length for name in ranked])
    return mean_and_aiq({"agents": (ranked, means, lengths)}, mean="mean APTI")


def _is_ours(lane: trials.ArmTrial, variant: str, tier: int) -> bool:
    family, _, group = lane.group.partition(" T")
    return family.startswith(f"{variant}/") and group == str(tier)


def _level(group: str) -> str:
    return group.partition(" ")[0].rpartition("/")[2]


def _write(path: Path, found: dict[str, dict[str, float]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("agent", "domain", "performance"))
        for arm, cells in found.items():
            for group, value in cells.items():
                writer.writerow((arm, _level(group), f"{value:.6f}"))
