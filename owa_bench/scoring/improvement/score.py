"""The continuous score between two levels: telemetry that changes no gate."""

import math
from collections.abc import Sequence

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.records.score import CellTable
from owa_bench.scoring.bootstrap import figure


def position(value: float, start: float, saturation: float) -> float:
    """Return where a system stands between baseline and near-saturation.

    Formula:
        pos = clip((g(A) - g(A0)) / (g(Asat) - g(A0)), 0, 1), arguments on the link
    Shapes: scalars. Units: log units in; a share out. Missing: NaN gives NaN.
    Errors: ScoringError unless g(Asat) > g(A0).
    Source: [R] section 3.13 of the AAI paper.

    >>> position(1.0, 0.0, 4.0)
    0.25
    """
    if not saturation > start:
        raise ScoringError(
            f"Saturation must lie above the baseline, got {saturation} and {start}."
        )
    share = (value - start) / (saturation - start)
    return share if math.isnan(share) else min(max(share, 0.0), 1.0)


def rate(slope: float, reference: float, sharpness: float) -> float:
    """Return the reward of a sustained positive link slope.

    Formula:
        rate = tanh(beta max(0, dg/dR) / v_ref)
    Shapes: scalars. Units: a share in [0, 1). Missing: NaN gives NaN.
    Errors: ScoringError unless v_ref > 0 and beta > 0.
    Source: [R] section 3.13 of the AAI paper.

    >>> rate(-1.0, 0.1, 1.0)
    0.0
    """
    _positive(reference, sharpness)
    return (
        slope
        if math.isnan(slope)
        else math.tanh(sharpness * max(0.0, slope) / reference)
    )


def acceleration(bend: float, reference: float, sharpness: float) -> float:
    """Return credit for acceleration, negative under diminishing returns.

    Formula:
        acc = tanh(beta_c d2g/dR2 / c_ref), in (-1, 1); (1 + acc) / 2 lies in [0, 1]
    Shapes: scalars. Units: none. Missing: NaN gives NaN.
    Errors: ScoringError unless c_ref > 0 and beta_c > 0.
    Source: [R] eq 31 of the AAI paper.

    >>> acceleration(0.0, 0.01, 1.0)
    0.0
    """
    _positive(reference, sharpness)
    return math.tanh(sharpness * bend / reference)


def _positive(*numbers: float) -> None:
    if min(numbers) <= 0:
        raise ScoringError(f"References and sharpness must be above 0, got {numbers}.")


def continuous(
    pos: float,
    pace: float,
    acc: float | None,
    weights: Sequence[float],
    *,
    shifted: bool = True,
) -> float:
    """Return the continuous score.

    Formula:
        score = w0 pos + w1 rate + w2 (1 + acc) / 2, w >= 0, sum 1
        not `shifted`: acc itself in place of (1 + acc) / 2
        without acceleration: w0 pos + w1 rate, weights renormalised
    Shapes: scalars. Units: a share in [0, 1]; down to -w2 if not `shifted`.
    Missing: NaN gives NaN.
    Errors: ScoringError unless the three weights are >= 0 and sum to 1.
    Source: [R] eq 31 of the AAI paper.

    >>> continuous(0.5, 1.0, 0.0, (0.5, 0.25, 0.25))
    0.625
    >>> continuous(0.5, 1.0, None, (0.5, 0.5, 0.0))
    0.75
    """
    if len(weights) != 3 or min(weights) < 0 or abs(sum(weights) - 1) > 1e-9:
        raise ScoringError(
            f"Three weights >= 0 that sum to 1 are needed, got {tuple(weights)}."
        )
    place, speed, bend = weights
    if acc is None:
        if place + speed <= 0:
            raise ScoringError(
                "Without acceleration a weight of position or rate must be above 0."
            )
        return (place * pos + speed * pace) / (place + speed)
    return place * pos + speed * pace + bend * ((1 + acc) / 2 if shifted else acc)


def cut_points(scores: Floats, levels: Sequence[int]) -> dict[int, float]:
    """Return the smallest score at which a level reads, from exemplars that pass it.

    Formula:
        c_n = smallest score among exemplars that pass level n; who passes n + 1 passes
        n, so that c_n never falls in n (it is its own isotonic fit)
    Shapes: two sequences (exemplars,). Units: as the score.
    Missing: a level without an exemplar has no cut-point.
    Errors: ScoringError if lengths differ or a score is NaN.
    Source: [S] section 3.13 of the AAI paper; telemetry only.

    >>> cut_points(np.array([0.2, 0.5, 0.4]), [1, 2, 2])
    {1: 0.2, 2: 0.4}
    """
    if len(scores) != len(levels) or np.isnan(scores).any():
        raise ScoringError(
            f"Each of {len(levels)} exemplars needs a score, got {scores}."
        )
    reached = np.array(levels)
    return {n: float(scores[reached >= n].min()) for n in sorted(set(levels))}


def cut_point_table(
    exemplars: Sequence[tuple[float | None, int | None]],
) -> CellTable | None:
    """Return the cut-points of a run's arms (score, level), None without an exemplar.

    An exemplar has a continuous score and a level of 1 or more.
    """
    held = [(s, n) for s, n in exemplars if s is not None and n]
    if not held:
        return None
    found = cut_points(np.array([s for s, _ in held]), [n for _, n in held])
    return CellTable(
        title="Cut-points of the continuous score",
        columns=("reads", "from score", "exemplars"),
        rows=tuple(
            (f"AAI-{n}", figure(c), sum(level >= n for _, level in held))
            for n, c in found.items()
        ),
        note="the smallest score of this run's agents that pass the level; telemetry",
    )
