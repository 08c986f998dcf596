"""Continuous score between levels, marginal returns, innovation and milestones.

Telemetry that changes no gate. Source: the AAI paper, sections 3.11 and 3.13.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.records.score import CellTable
from owa_bench.scoring.improvement.checkpoints import CampaignWindow, yes_or_no
from owa_bench.scoring.improvement.curvature import Curvature, on_link, window_tests
from owa_bench.scoring.improvement.theorem import normalised_rate
from owa_bench.scoring.statistics.bootstrap import figure


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
        raise ScoringError(f"Saturation must lie above the baseline, got {saturation} and {start}.")
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
    if math.isnan(slope):
        return slope
    return math.tanh(sharpness * max(0.0, slope) / reference)


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
    pos: float, gain: float, acc: float | None, weights: Sequence[float], *, shifted: bool = True
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
        raise ScoringError(f"Three weights >= 0 that sum to 1 are needed, got {tuple(weights)}.")
    place, speed, bend = weights
    if acc is None:
        if place + speed <= 0:
            raise ScoringError("Without acceleration a weight of position or rate must be above 0.")
        return (place * pos + speed * gain) / (place + speed)
    return place * pos + speed * gain + bend * ((1 + acc) / 2 if shifted else acc)


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
        raise ScoringError(f"Each of {len(levels)} exemplars needs a score, got {scores}.")
    reached = np.array(levels)
    return {n: float(scores[reached >= n].min()) for n in sorted(set(levels))}


def cut_point_table(exemplars: Sequence[tuple[float | None, int | None]]) -> CellTable | None:
    """Return the cut-points of a run's arms (score, level), None without an exemplar.

    An exemplar has a continuous score and a level of 1 or more.
    """
    known = [(score, level) for score, level in exemplars if score is not None and level]
    if not known:
        return None
    scores, levels = zip(*known, strict=True)
    points = cut_points(np.array(scores), levels)
    columns = ("reads", "from score", "exemplars")
    rows = tuple(
        (f"AAI-{n}", figure(score), sum(level >= n for level in levels))
        for n, score in points.items()
    )
    note = "the smallest score of this run's agents that pass the level; telemetry"
    return CellTable("Cut-points of the continuous score", columns, rows, note)


class MarginalReturn(NamedTuple):
    """Marginal return dAAI/da_i of an axis; w_i e_i / a_i where e_i is measured."""

    symbol: str
    marginal: float
    growth: float | None


def marginal_returns(
    index: float,
    values: Mapping[str, float],
    weights: Mapping[str, float],
    response: Mapping[str, float] | None = None,
) -> tuple[MarginalReturn, ...]:
    """Return every axis in use by the return of its next improvement, best first.

    Formula:
        marginal return AAI w_i / a_i (weights sum 1); growth w_i e_i / a_i,
        e_i = da_i / dR_i
    Shapes: mappings by axis. Units: index per axis unit; index share per kappa unit.
    Missing: no growth for an axis whose response is not measured.
    Errors: ScoringError where an axis is 0: the index has no slope there.
    Source: [S] section 3.11 of the AAI paper.

    >>> returns = marginal_returns(0.5, {"A": 1.0, "P": 0.25}, {"A": 1, "P": 1})
    >>> [one.symbol for one in returns]
    ['P', 'A']
    """
    used = {symbol: w for symbol, w in weights.items() if w > 0}
    total, responses = sum(used.values()), response or {}
    zero = [symbol for symbol in used if not values.get(symbol, 0.0) > 0]
    if zero or total <= 0:
        raise ScoringError(f"Marginal returns need every axis above 0, got 0 on {', '.join(zero)}.")
    returns = []
    for symbol, weight in used.items():
        value, growth = values[symbol], None
        if symbol in responses:
            growth = weight / total * responses[symbol] / value
        returns.append(MarginalReturn(symbol, index * weight / total / value, growth))
    return tuple(sorted(returns, key=lambda item: (-item.marginal, item.symbol)))


def innovation(tools: float, revisions: float, per_tool: float, per_rev: float) -> float:
    """Return the innovation index of monthly rates.

    Formula:
        I = (1 - e^(-tools per month / a) + 1 - e^(-useful revisions per month / b)) / 2
    Shapes: scalars. Units: validated new tool families and useful revisions a month.
    Missing: none; a rate of 0 earns 0. Errors: ScoringError for a negative rate or
        a constant not above 0.
    Source: [R] eq 22 of the AAI paper; a and b [D].

    >>> round(innovation(2.0, 0.0, 2.0, 4.0), 4)
    0.3161
    """
    if min(tools, revisions) < 0 or min(per_tool, per_rev) <= 0:
        raise ScoringError(
            "Rates must be >= 0 and constants > 0, got "
            f"{tools}, {revisions}, {per_tool}, {per_rev}."
        )
    return (2 - math.exp(-tools / per_tool) - math.exp(-revisions / per_rev)) / 2


class Milestones(NamedTuple):
    """Milestones M1 to M3 of the progression from AAI-3; None: no evidence."""

    sustained: bool | None
    ready: bool | None
    trajectory: bool | None


def milestones(
    families: Sequence[Curvature], *, closures: bool | None, most: float, elasticity: float | None
) -> Milestones:
    """Return which milestones a window meets.

    Formula:
        M1: kappa_g lower > 0 on 2 families, both closures
        M2: M1 on every family and c_g >= -c_max; M3: mean c_g > 0, elasticity > 0
    Shapes: one curvature a family. Units: none.
    Missing: None where an interval, a closure or the elasticity is unknown.
    Errors: none. Source: [R] section 3.11 of the AAI paper.
    """
    rising = [None if f.slope_interval.low is None else f.slope_interval.low > 0 for f in families]
    tests = [window_tests(f, most) for f in families]
    first = _all([at_least(rising, 2), closures])
    every = _all([first, *rising, *(t.bounded for t in tests)])
    bends = [f.curvature for f in families if f.curvature is not None]
    last = None
    if bends and len(bends) == len(families) and elasticity is not None:
        last = sum(bends) / len(bends) > 0 and elasticity > 0
    return Milestones(first, every if families else None, last)


def at_least(marks: Sequence[bool | None], count: int) -> bool | None:
    """Return whether enough marks hold, None while unknown ones could decide.

    Args:
        marks: each holds, does not, or is unknown (None).
        count: number that must hold.
    Returns: True, False or None.
    """
    if marks.count(True) >= count:
        return True
    return None if marks.count(True) + marks.count(None) >= count else False


def _all(marks: Sequence[bool | None]) -> bool | None:
    return False if False in marks else at_least(marks, len(marks))


class ScoreParts(NamedTuple):
    """Parts of the continuous score; None where not computable."""

    position: float | None = None
    rate: float | None = None
    acceleration: float | None = None
    k: float | None = None
    score: float | None = None
    shifted: float | None = None
    base: float | None = None


def score_parts(window: CampaignWindow, bend: Curvature) -> ScoreParts:
    """Return the parts of the continuous score on the protocol's link.

    `base` is the score of position and rate alone; acceleration enters `score` as it is, and
    `shifted` into [0, 1].

    Args:
        window: the arm's checkpoints.
        bend: the curvature of AAI_dyn on the link.
    """
    rules, link = window.protocol.telemetry, window.protocol.improvement
    g = on_link(window.daily.dynamic, link.link, link.link_clip)
    top = on_link(np.array([link.saturated]), link.link, link.link_clip)[0]
    place = None
    if not np.isnan(g).any() and top > g[0]:
        place = position(float(g[-1]), float(g[0]), float(top))
    if bend.slope is None or bend.curvature is None:
        return ScoreParts(position=place)
    speed = rate(bend.slope, rules.rate_reference, rules.rate_sharpness)
    gain = acceleration(bend.curvature, rules.bend_reference, rules.bend_sharpness)
    k = normalised_rate(bend.slope, rules.rate_normaliser)
    if place is None:
        return ScoreParts(None, speed, gain, k)
    plain = continuous(place, speed, gain, rules.weights, shifted=False)
    shifted = continuous(place, speed, gain, rules.weights)
    base = continuous(place, speed, None, rules.weights)
    return ScoreParts(place, speed, gain, k, plain, shifted, base)


def telemetry_table(
    found: ScoreParts, index: float | None, reached: Milestones, unit: float
) -> CellTable:
    """Return the continuous score and its parts; it changes no gate.

    Args:
        found: the parts.
        index: innovation index, None without evidence.
        reached: the milestones.
        unit: micro-USD of a kappa unit.
    Returns: A row a part.
    """
    rows: list[tuple[str, str | float | None]] = [
        ("position", figure(found.position)),
        ("rate", figure(found.rate)),
        ("acceleration", figure(found.acceleration)),
        ("k", figure(found.k)),
        ("base score, position and rate", figure(found.base)),
        ("continuous score", figure(found.score)),
        ("continuous score, shifted into [0, 1]", figure(found.shifted)),
        ("innovation index", figure(index)),
    ]
    rows += [(f"M{i}", yes_or_no(mark)) for i, mark in enumerate(reached, start=1)]
    rows += [("kappa unit, USD", figure(unit / 1e6))]
    columns = ("part", "value")
    note = "telemetry between levels: it changes no gate"
    return CellTable("Continuous score", columns, tuple(rows), note)
