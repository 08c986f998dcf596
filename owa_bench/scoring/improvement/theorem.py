"""Responses to resources, and theorem 3.1: its assumptions under measured constants.

Source: the AAI paper, sections 3.11 to 3.13.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.estimate.gate_statistics import FamilyQuality, margin
from owa_bench.scoring.improvement.kappa import after_spending
from owa_bench.scoring.statistics import slopes

AssumptionStatus = Literal["HOLDS", "FAILS", "NO EVIDENCE"]


class EscapeBound(NamedTuple):
    """Most resource, and most time, that a target can need."""

    resource: float
    time: float | None


def escape(gap: float, velocity: float, rate_floor: float | None = None) -> EscapeBound:
    """Return bounds to a target from a floor on the link slope.

    Formula:
        dg/dR >= v gives R <= (g(A*) - g(A)) / v, time <= that / r_min
    Shapes: scalars. Units: log units; log units per kappa unit; kappa units a day.
    Missing: no time without a floor on the spend rate; 0 for a target behind.
    Errors: ScoringError unless v > 0 and r_min > 0: no bound follows from less.
    Source: [S] section 3.13 of the AAI paper, escape velocity.

    >>> escape(1.0, 0.1, 2.0)
    EscapeBound(resource=10.0, time=5.0)
    """
    if not velocity > 0 or (rate_floor is not None and not rate_floor > 0):
        raise ScoringError(
            f"No bound follows from v = {velocity}, r_min = {rate_floor}: both must be > 0."
        )
    resource = max(0.0, gap) / velocity
    return EscapeBound(resource, None if rate_floor is None else resource / rate_floor)


def normalised_rate(slope: float, reference: float) -> float:
    """Return k = l / (l + l_ref) of a link rate l = dg/dR, 0 for one below 0.

    Args:
        slope: the link rate, per kappa unit.
        reference: the published normaliser l_ref.
    Returns: A share in [0, 1).
    Raises: ScoringError: the reference is not above 0.
    Source: [R] section 3.12 of the AAI paper, published normaliser.

    >>> normalised_rate(0.1, 0.1), normalised_rate(-1.0, 0.1)
    (0.5, 0.0)
    """
    if not reference > 0:
        raise ScoringError(f"The reference rate must be above 0, got {reference}.")
    rate = max(0.0, slope)
    return rate / (rate + reference)


def rate_escape(start: float, constant: float, power: float) -> float:
    """Return the resource after which a normalised rate reaches its ceiling.

    Formula:
        dk/dR >= c (1 - k)^p, p < 1: R <= (1 - k0)^(1 - p) / (c (1 - p))
    Shapes: scalars. Units: kappa units.
    Missing: none; for p >= 1 the bound is infinite and refused.
    Errors: ScoringError unless 0 <= k0 <= 1, c > 0 and p < 1.
    Source: [S] eq 30 of the AAI paper.

    >>> rate_escape(0.75, 0.5, 0.5)
    2.0
    """
    if not 0 <= start <= 1 or not constant > 0 or not power < 1:
        raise ScoringError(
            f"Rate escape needs k0 in [0, 1], c > 0 and p < 1, got {start}, {constant}, {power}."
        )
    return float((1 - start) ** (1 - power) / (constant * (1 - power)))


class Assumption(NamedTuple):
    """One assumption of theorem 3.1 with its measured constant.

    The interval is (None, None) where there is none.
    """

    name: str
    statement: str
    measured: float | None
    low: float | None
    high: float | None
    status: AssumptionStatus


_STATEMENTS = (
    ("(i)", "rate escape: dk/dR >= c (1 - k)^p, p < 1"),
    ("(ii)", "resource-rate floor: dR/dt >= r_min > 0"),
    ("(iii)", "axis responsiveness: da_i/dR > 0 below each threshold"),
    ("(iv)", "closures persist"),
    ("(v)", "innovation throughput is positive"),
    ("(vi)", "superhuman margins grow below z"),
)


class Estimate(NamedTuple):
    """Point and interval of a constant or slope; None: unknown."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


def rate_constant(spent: Floats, rates: Floats, power: float, level: float) -> Estimate:
    """Return c of rate escape from the normalised rate of disjoint windows.

    Formula:
        dk/dR = c (1 - k)^p is a line in y = (1 - (1 - k)^(1 - p)) / (1 - p):
        c = slope of y on R
    Shapes: two arrays (windows,), R the middle of each. Units: per kappa unit.
    Missing: unknown below 2 windows or where a rate is; no interval below 3.
    Errors: ScoringError if shapes differ, k lies outside [0, 1] or p >= 1.
    Source: [S] eq 30 of the AAI paper; the estimator [R].

    >>> x = np.arange(6.0)
    >>> k = 1 - (1 - 0.05 * x) ** 2  # solves the law with c = .1, p = .5
    >>> round(rate_constant(x, k, 0.5, 0.95).value, 9)
    0.1
    """
    known = rates[~np.isnan(rates)]
    bad = bool(((known < 0) | (known > 1)).any()) or not power < 1
    if spent.shape != rates.shape or bad:
        raise ScoringError(f"Rate escape needs k in [0, 1], p < 1, got {rates} and {power}.")
    if len(rates) < 2 or len(known) < len(rates) or (np.diff(spent) <= 0).any():
        return Estimate()
    line = (1 - (1 - rates) ** (1 - power)) / (1 - power)
    if len(line) == 2:
        return Estimate(float(np.diff(line)[0] / np.diff(spent)[0]))
    return _slope(spent, line, np.arange(float(len(line))), level)


def _slope(spent: Floats, values: Floats, days: Floats, level: float) -> Estimate:
    """Return the slope on R with its interval, by the AR(1) mixture over days."""
    mixture = slopes.slope(spent, values, days)
    low, high = mixture.interval(level)
    return Estimate(float(mixture.value), float(low), float(high))


class Theorem(NamedTuple):
    """The six assumptions, and bounds only where every one of them holds."""

    rows: tuple[Assumption, ...]
    holds: bool
    resource: float | None
    time: float | None


def theorem(
    constants: tuple[Estimate, ...], *, k: float | None = None, power: float | None = None
) -> Theorem:
    """Return theorem 3.1 under measured constants (i) to (vi).

    Formula:
        HOLDS iff the constant's lower bound > 0, FAILS iff its upper bound <= 0 or
        the point <= 0, else NO EVIDENCE; bounds as `rate_escape` at the lower bound
        of c, time at the lower bound of r_min
    Shapes: six constants in the order of the paper. Units: as each.
    Missing: a constant without interval is NO EVIDENCE; no bound is then given.
    Errors: ScoringError unless there are six.
    Source: [S] theorem 3.1 of the AAI paper; the decision rule [R].
    """
    if len(constants) != len(_STATEMENTS):
        raise ScoringError(f"Theorem 3.1 has six assumptions, got {len(constants)}.")
    rows = tuple(
        Assumption(name, text, *constant, _status(constant))
        for (name, text), constant in zip(_STATEMENTS, constants, strict=True)
    )
    holds = all(row.status == "HOLDS" for row in rows)
    resource = time = None
    c, rate_floor = constants[0].low, constants[1].low
    if holds and None not in (k, power, c, rate_floor):
        resource = rate_escape(k, c, power)  # type: ignore[arg-type]
        time = resource / rate_floor  # type: ignore[operator]
    return Theorem(rows, holds, resource, time)


def _status(constant: Estimate) -> AssumptionStatus:
    if constant.value is None or math.isnan(constant.value):
        return "NO EVIDENCE"
    if constant.value <= 0 or (constant.high is not None and constant.high <= 0):
        return "FAILS"
    return "HOLDS" if constant.low is not None and constant.low > 0 else "NO EVIDENCE"


class Response(NamedTuple):
    """Slope of a series on resources; without a slope, the reason.

    `last` is its value at the last checkpoint, `target` the value that it must reach.
    """

    name: str
    last: float
    target: float | None
    slope: Estimate
    reason: str | None = None

    @property
    def below(self) -> bool:
        """Whether the last value is below the target."""
        return self.target is not None and self.last < self.target


def response(
    name: str, spent: Floats, values: Floats, target: float | None, *, least: int, level: float
) -> Response:
    """Return the slope of a checkpoint series on agent-initiated resources.

    Formula:
        e = d value / dR, `slopes.slope` over checkpoints that follow new spending
    Shapes: two arrays (checkpoints,). Units: as `values`, per kappa unit.
    Missing: no slope below `least` such checkpoints, nor where a value is unknown.
    Errors: ScoringError if the shapes differ.
    Source: [S] sections 3.11 and 3.12 (iii) of the AAI paper; the estimator [R].

    >>> growth = response("P", np.arange(7.0), 0.1 * np.arange(7.0), 0.9, least=7,
    ...     level=0.95)
    >>> round(growth.slope.value, 6), growth.below
    (0.1, True)
    """
    if spent.shape != values.shape or spent.ndim != 1:
        raise ScoringError(f"A response needs equal series, got {spent.shape} and {values.shape}.")
    last = float(values[-1]) if len(values) else math.nan
    if not np.isfinite(values).all() or not np.isfinite(spent).all():
        why = "not measured at each checkpoint"
        return Response(name, last, target, Estimate(), why)
    fresh = after_spending(spent)
    if int(fresh.sum()) < least:
        why = f"too few checkpoints with new spending: {int(fresh.sum())} of {least}"
        return Response(name, last, target, Estimate(), why)
    days = np.flatnonzero(fresh).astype(np.float64)
    slope = _slope(spent[fresh], values[fresh], days, level)
    return Response(name, last, target, slope)


def weakest(found: Sequence[Response]) -> Estimate:
    """Return the least response of those that still stand below their target.

    Formula:
        min over those below of the slope, with the least of the lower bounds and the
        least of the upper ones: above 0 only where every single one is
    Shapes: any number of responses. Units: per kappa unit.
    Missing: unknown where one below its target is not measured and no measured one
        fails, or where nothing stands below its target: nothing is assumed there.
    Errors: none. Source: [S] section 3.12 (iii) and (vi) of the AAI paper, rule [R].
    """
    below = [r.slope for r in found if r.below or math.isnan(r.last)]
    known = [slope for slope in below if slope.value is not None]
    value = min((slope.value for slope in known if slope.value is not None), default=0)
    if not known or (len(known) < len(below) and value > 0):
        return Estimate()
    low = min(-math.inf if slope.low is None else slope.low for slope in known)
    high = min(math.inf if slope.high is None else slope.high for slope in known)
    return Estimate(value, low, high)


def margins(
    days: Sequence[Mapping[str, FamilyQuality]], experts: Mapping[str, tuple[float, float]]
) -> dict[str, Floats]:
    """Return each expert family's standardised margin day by day.

    Args:
        days: for each checkpoint the quality of each family.
        experts: mean and standard error of expert quality by family.
    Returns: (checkpoints,) by family, NaN where it was not played.
    Raises: ScoringError: a family quality lies outside [0, 1].
    Source: [S] eq 19 of the AAI paper.

    >>> margins([{"f": FamilyQuality(0.9, 0.03)}], {"f": (0.8, 0.04), "g": (0.5, 0.1)})
    {'f': array([2.]), 'g': array([nan])}
    """
    return {
        name: np.array([margin(*day[name], *norm) if name in day else math.nan for day in days])
        for name, norm in experts.items()
    }
