"""The checks on the classic cart and pole: complexity, entropy, dissimilarity."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from owa_bench import seeding
from owa_bench.cli.console import OUT
from owa_bench.records.observables import Floats
from owa_bench.scoring.companions.aiq import complexity
from owa_bench.scoring.companions.aiq import measure as aiq

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {"force": "force (N)", "gravity": "gravity (m/s2)"}

Row = dict[str, Any]


class Trend(NamedTuple):
    """What a parameter of the classic task does to complexity and entropy."""

    label: str
    values: Floats
    found: tuple[complexity.Complexity, ...]
    entropies: Floats


def trends(rows: Sequence[Row], resamples: int, seed: int) -> list[Trend]:
    """Return and print how complexity goes with force and gravity."""
    made = []
    for check, label in LABELS.items():
        own = [row for row in rows if row["table"] == check]
        if not own:
            continue
        one = _trend(check, label, rows, own, resamples, seed)
        heights = [each.value for each in one.found]
        OUT.print(
            f"classic CartPole, {label} {one.values[0]:g} to {one.values[-1]:g}: "
            f"complexity {heights[0]:.1f} to {heights[-1]:.1f}, "
            f"{_fit(one.values, np.array(heights))}; entropy {one.entropies[0]:.2f} to "
            f"{one.entropies[-1]:.2f} bits, {_fit(one.values, one.entropies)}"
        )
        made.append(one)
    return made


def gravities(
    rows: Sequence[Row],
) -> tuple[tuple[str, ...], aiq.Dissimilarities] | None:
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
    matrix = np.full((len(values), len(values)), np.nan)
    np.fill_diagonal(matrix, 0.0)
    for (one, other), gap in gaps.items():
        if one != other:
            matrix[values.index(one), values.index(other)] = gap
    pairs = [(abs(a - b), gap) for (a, b), gap in gaps.items() if a != b]
    apart, far = (np.array(column) for column in zip(*pairs, strict=True))
    found = aiq.dissimilarity_matrix(matrix, floor=floor)
    above = int(np.triu(found.told).sum())
    OUT.print(
        f"classic CartPole, dissimilarity of gravities {values[0]:g} to "
        f"{values[-1]:g}: {far.min():.3f} to {far.max():.3f}, noise floor {floor:.3f} "
        f"({above} of {far.size} pairs above); with their difference {_fit(apart, far)}"
    )
    return tuple(f"{value:g}" for value in values), found


def draw(rows: Sequence[Row], resamples: int, seed: int) -> dict[str, "Figure"]:
    """Print the checks and return their figures."""
    from owa_bench.scoring.companions import figures

    drawn = {}
    found = trends(rows, resamples, seed)
    if found:
        drawn["classic"] = figures.complexity_trends(
            {one.label: (one.values, one.found, one.entropies) for one in found}
        )
    mixed = gravities(rows)
    if mixed:
        drawn["gravities"] = figures.dissimilarity_map(*mixed, label="gravity (m/s2)")
    return drawn


def _fit(across: Floats, heights: Floats) -> str:
    if np.ptp(heights) == 0.0:
        return "constant"
    fit = stats.linregress(across, heights)
    return f"r = {fit.rvalue:.2f} (p {fit.pvalue:.3g})"


def _trend(
    check: str,
    label: str,
    rows: Sequence[Row],
    own: Sequence[Row],
    resamples: int,
    seed: int,
) -> Trend:
    """Return complexity and entropy at each value of a parameter."""
    stream = seeding.stream(seed, "measure", "classic")
    values = sorted({row["domain"] for row in own})
    found, bits = [], []
    for value in values:
        chosen = [row for row in own if row["domain"] == value]
        sizes = [row["size"] for row in chosen]
        good = [row["performance"] for row in chosen]
        found.append(
            complexity.complexity(sizes, good, resamples=resamples, rng=stream)
        )
        counts = [
            row["counts"]
            for row in rows
            if row["table"] == "entropy"
            and (row["check"], row["domain"]) == (check, value)
        ]
        bits.append(complexity.histogram_entropy(counts))
    return Trend(label, np.array(values), tuple(found), np.array(bits))
