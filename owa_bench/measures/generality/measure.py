"""Generality: capability, spread and gamma of a response curve over difficulty.

Input is what an agent answers on items of known difficulty; no factor analysis and no population is
needed. Source: the Generality paper, equations 1-6 and properties 1-8.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats, Observables
from owa_bench.scoring.statistics import arrays

ALL_SUITES = "all suites"
_CANCELLATION = 1e-12  # squares this small beside q^2 are rounding


class ResponseCurve(NamedTuple):
    """An agent characteristic curve: `response[i]` at difficulty `difficulty[i]`.

    Linear between points; two points at one difficulty make a step. Difficulties never fall and
    begin at 0.
    """

    difficulty: Floats
    response: Floats


class GeneralityResult(NamedTuple):
    """Capability, spread and generality of one agent.

    capability: area under the curve (difficulty units). expected: mean difficulty
    under the curve. spread: the more general, the smaller. absolute: 1 / spread, inf at
    0. normalised: gamma in [-1, 1]; square: x before its root, of which the paper's
    other reading is -x. largest: q. used: items. reason: why a number is NaN.
    """

    capability: float
    expected: float
    spread: float
    absolute: float
    normalised: float
    square: float
    largest: float
    used: int
    reason: str | None = None


def characteristic_curve(
    responses: npt.ArrayLike, difficulties: npt.ArrayLike, *, largest: float = 0.0
) -> ResponseCurve:
    """Return the mean response per difficulty, flat to 0 and to `largest`.

    Formula: psi(h) = mean of the responses of items with difficulty h
    Shapes: both (items,); a curve of at most items + 2 points.
    Units: responses in [0, 1]; difficulty >= 0, in units of its own.
    Missing: NaN responses are left out; a difficulty without a response has no point.
    Errors: ScoringError for unequal lengths, values out of range, or no response left.
    Source: Generality paper, equation 1 [S]; flat ends [D].

    >>> characteristic_curve([1.0, 0.0, 0.0], [1.0, 2.0, 2.0])
    ResponseCurve(difficulty=array([0., 1., 2.]), response=array([1., 1., 0.]))
    """
    hardness = _difficulties(difficulties)
    answers = np.asarray(responses, dtype=np.float64)
    if answers.shape != hardness.shape:
        shapes = (answers.shape, hardness.shape)
        raise ScoringError(f"`responses` and `difficulties` must be of one length, got {shapes}.")
    arrays.check_range(answers, "responses", 0.0, 1.0)
    known = ~np.isnan(answers)
    if not known.any():
        raise ScoringError("`responses` holds no number: every item is missing.")
    points, place = np.unique(hardness[known], return_inverse=True)
    means = np.bincount(place, answers[known]) / np.bincount(place)
    return _extended(points, means, largest)


def analyse(curve: ResponseCurve, *, used: int = 0) -> GeneralityResult:
    """Return capability, spread and generality of a curve.

    Formula:
        Psi = integral of psi;  M = integral of h psi(h);  expected = M / Psi
        S = sqrt(2 M - Psi^2);  absolute = 1 / S
        x = (S^2 - Psi (q - Psi)) / (Psi (q - Psi)), q the largest difficulty
        gamma = -sign(x) sqrt(|x|)
    Shapes: a curve; scalars.
    Units: difficulty units; gamma without unit.
    Missing: Psi = 0 leaves expected NaN; Psi in {0, q} leaves gamma NaN, with a reason.
    Errors: ScoringError if difficulties fall, do not begin at 0 or never leave 0.
    Source: Generality paper, equations 1-6 [S]; integrals exact on each linear piece.

    >>> flat = ResponseCurve(np.array([0.0, 4.0]), np.array([0.5, 0.5]))
    >>> round(analyse(flat).spread, 6)
    2.0
    """
    h, p = curve
    _check_curve(h, p)
    width, h0, h1, p0, p1 = np.diff(h), h[:-1], h[1:], p[:-1], p[1:]
    capability = float(np.sum(width * (p0 + p1) / 2.0))
    pieces = width * (2 * h0 * p0 + 2 * h1 * p1 + h0 * p1 + h1 * p0) / 6.0
    moment = float(np.sum(pieces))
    largest = float(h[-1])
    squared = 2.0 * moment - capability**2
    spread = math.sqrt(squared) if squared > _CANCELLATION * largest**2 else 0.0
    x, reason = _normalised(spread, capability, largest)
    return GeneralityResult(
        capability,
        moment / capability if capability > 0 else math.nan,
        spread,
        1.0 / spread if spread > 0 else math.inf,
        float(np.clip(-np.sign(x) * np.sqrt(abs(x)), -1.0, 1.0)),
        x,
        largest,
        used,
        reason,
    )


def measure(
    responses: npt.ArrayLike, difficulties: npt.ArrayLike, *, largest: float | None = None
) -> tuple[GeneralityResult, ...]:
    """Return the analysis of each row of a response matrix.

    Formula: `analyse` of each row's `characteristic_curve`, one q for all
    Shapes: responses (agents, items), difficulties (items,); one result an agent.
    Units: as `analyse`; `largest` overrides q, the largest difficulty of the items.
    Missing: NaN responses are left out row by row; a row of NaN gives NaN and a reason.
    Errors: ScoringError for shapes that do not fit.
    Source: Generality paper, table 1, case GA [S].

    >>> one, two = measure([[1.0, 0.5], [1.0, 0.0]], [1.0, 2.0])
    >>> round(one.capability, 3), round(two.capability, 3)
    (1.75, 1.5)
    """
    answers = arrays.matrix(responses, "responses", axes="agents, items")
    hardness = _difficulties(difficulties)
    if answers.shape[1] != hardness.size:
        sizes = (answers.shape[1], hardness.size)
        raise ScoringError(
            f"`difficulties` needs one value an item, got (items, values) = {sizes}."
        )
    top = float(hardness.max()) if largest is None else float(largest)
    return tuple(_row(row, hardness, top) for row in answers)


def interval(
    responses: npt.ArrayLike,
    difficulties: npt.ArrayLike,
    *,
    resamples: int = 2000,
    level: float = 0.95,
    rng: np.random.Generator,
) -> tuple[arrays.IntervalEstimate, arrays.IntervalEstimate, arrays.IntervalEstimate]:
    """Return the intervals of capability, spread and gamma of one agent.

    Formula: percentiles over items drawn with replacement
    Shapes: (items,) each; three intervals.
    Units: as `analyse`; `level` is the share of resamples inside.
    Missing: resamples without a number are left out; NaN and a reason if half are, or
        if there are fewer than two items.
    Errors: ScoringError for lengths that differ.
    Source: `docs/companions.md#generality` [D: percentile bootstrap over items].

    >>> rng = np.random.default_rng(0)
    >>> spans = interval([1.0, 1.0, 0.0, 0.0], [1, 2, 3, 4], resamples=200, rng=rng)
    >>> bool(spans[0].low <= 2.5 <= spans[0].high)
    True
    """
    hardness = _difficulties(difficulties)
    curve = characteristic_curve(responses, hardness)  # checks the arrays
    answers = np.asarray(responses, dtype=np.float64)
    known = ~np.isnan(answers)
    answers, tops = answers[known], hardness[known]
    if answers.size < 2 or not curve.difficulty[-1] > 0.0:
        nothing = arrays.no_interval("fewer than two items answered")
        return nothing, nothing, nothing
    draws = np.full((resamples, 3), np.nan)
    for i in range(resamples):
        chosen = rng.integers(0, answers.size, answers.size)
        row = _row(answers[chosen], tops[chosen], float(hardness.max()))
        draws[i] = row.capability, row.spread, row.normalised
    low, middle, high = (arrays.percentile_interval(column, level=level) for column in draws.T)
    return low, middle, high


def _row(answers: Floats, hardness: Floats, top: float) -> GeneralityResult:
    """Return one agent's analysis, or NaN where it answered nothing."""
    used = int((~np.isnan(answers)).sum())
    if not used:
        nan = math.nan
        return GeneralityResult(nan, nan, nan, nan, nan, nan, top, 0, "no item answered")
    return analyse(characteristic_curve(answers, hardness, largest=top), used=used)


def _extended(points: Floats, means: Floats, largest: float) -> ResponseCurve:
    """Return the curve carried flat to difficulty 0 and to `largest`."""
    if points[0] > 0.0:
        points = np.concatenate(([0.0], points))
        means = np.concatenate((means[:1], means))
    if points[-1] < largest:
        points = np.append(points, largest)
        means = np.append(means, means[-1])
    return ResponseCurve(points, means)


def _normalised(spread: float, capability: float, largest: float) -> tuple[float, str | None]:
    """Return x of equation 6, or NaN and why capability leaves no room for it."""
    room = capability * (largest - capability)
    if room > _CANCELLATION * largest**2:
        return (spread**2 - room) / room, None
    end = "0: it solves nothing" if capability < largest / 2 else "q: it solves all"
    return math.nan, f"gamma is undefined at capability {end}"


def _difficulties(values: npt.ArrayLike) -> Floats:
    """Return difficulties as a checked vector."""
    hardness = arrays.vector(values, "difficulties")
    arrays.check_range(hardness, "difficulties", 0.0, math.inf)
    return hardness


def _check_curve(h: Floats, p: Floats) -> None:
    """ScoringError unless the points make a curve from 0 to a positive difficulty."""
    arrays.check_lengths(h, p, "`difficulty` and `response`")
    arrays.check_finite(p, "response")
    if h.size < 2 or h[0] != 0.0 or np.any(np.diff(h) < 0) or not h[-1] > 0.0:
        raise ScoringError(
            f"`difficulty` must begin at 0, never fall and end above 0, got {h.tolist()[:8]}."
        )


class Isometrics(NamedTuple):
    """Spread at equal gamma along capability: 1 (least), 0 (constant), -1 (most)."""

    capability: Floats
    general: Floats
    constant: Floats
    abstruse: Floats


class Slodr(NamedTuple):
    """Whether gamma falls as capability rises (Spearman's law of diminishing returns).

    correlation: of gamma and capability over `used` of `agents`; mean: mean gamma.
    """

    correlation: float
    mean: float
    span: arrays.IntervalEstimate
    used: int
    agents: int
    reason: str | None = None


def isometrics(largest: float, *, points: int = 201) -> Isometrics:
    """Return the three curves that bound and halve the plane.

    Formula: S = 0; S = sqrt(Psi (q - Psi)); S = sqrt(2 Psi (q - Psi))
    Shapes: a scalar q; four (points,).
    Units: difficulty units.
    Missing: nothing.
    Errors: ScoringError if q is not above 0.
    Source: Generality paper, figure 3 and properties 3-5 [S].

    >>> isometrics(2.0, points=3).abstruse.round(3).tolist()
    [0.0, 1.414, 0.0]
    """
    arrays.check_range(np.array([largest]), "largest", math.ulp(0.0), math.inf)
    capability = np.linspace(0.0, largest, points)
    room = capability * (largest - capability)
    flat = np.zeros_like(capability)
    return Isometrics(capability, flat, np.sqrt(room), np.sqrt(2.0 * room))


def slodr(
    agents: Sequence[GeneralityResult],
    *,
    resamples: int = 2000,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Slodr:
    """Return the correlation of gamma with capability, and the mean gamma.

    Formula: Pearson's r over agents with a gamma; percentile interval over agents
    Shapes: one analysis an agent; scalars.
    Units: none; `level` is the share of resamples inside the interval.
    Missing: agents without a gamma are left out; r is NaN with fewer than three agents
        or if all have one gamma or one capability.
    Errors: ScoringError if there is no agent.
    Source: Generality paper, table 2 [S]; interval [D].

    >>> rows = measure([[1, 0, 0], [1, 1, 0], [1, 0, 1]], [1, 2, 3])
    >>> slodr(rows, resamples=20, rng=np.random.default_rng(0)).used
    3
    """
    plane = np.array([(one.capability, one.normalised) for one in agents])
    arrays.matrix(plane, "agents", axes="agents, 2")
    known = plane[~np.isnan(plane).any(axis=1)]
    value, reason = _correlation(known)
    draws = np.full(resamples, np.nan)
    for i in range(resamples if reason is None else 0):
        draws[i] = _correlation(known[rng.integers(0, len(known), len(known))])[0]
    mean = float(known[:, 1].mean()) if len(known) else math.nan
    span = arrays.percentile_interval(draws, level=level)
    return Slodr(value, mean, span, len(known), len(plane), reason)


def _correlation(plane: npt.NDArray[np.float64]) -> tuple[float, str | None]:
    if len(plane) < 3:
        return math.nan, f"{len(plane)} agents have a gamma; three are needed"
    if np.ptp(plane[:, 0]) < 1e-12 or np.ptp(plane[:, 1]) < 1e-12:
        return math.nan, "all agents have one capability or one gamma"
    return float(np.atleast_2d(np.corrcoef(plane.T))[0, 1]), None


def from_episodes(table: Observables) -> dict[str, dict[str, GeneralityResult]]:
    """Return each arm's generality per suite and over all, tier being the difficulty.

    Formula: `measure` of q_state over the tier of every episode that is no honeypot
    Shapes: episodes; a result per suite (and "all suites") and arm.
    Units: tiers.
    Missing: an arm that played nothing of a suite has no result there.
    Errors: ScoringError if there is no such episode.
    Source: `docs/companions.md#generality` [R].

    >>> ALL_SUITES
    'all suites'
    """
    plain = table.take(~table.honeypot)
    if not len(plain):
        raise ScoringError("generality needs an episode that is no honeypot, got none.")
    largest = float(plain.tier.max())
    results: dict[str, dict[str, GeneralityResult]] = {}
    for suite in (*np.unique(plain.suite).tolist(), ALL_SUITES):
        part = plain if suite == ALL_SUITES else plain.take(plain.suite == suite)
        for arm in np.unique(part.arm).tolist():
            own = part.take(part.arm == arm)
            tiers = own.tier.astype(np.float64)
            (generality,) = measure(own.q_state[None, :], tiers, largest=largest)
            results.setdefault(suite, {})[arm] = generality
    return results
