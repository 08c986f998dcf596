"""Levers: where the next resource pays, how often an agent innovates, milestones."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from owa_bench.errors import ScoringError
from owa_bench.scoring.improvement.curvature import Curvature, window_tests


class Lever(NamedTuple):
    """What one axis adds: dAAI/da_i, and w_i e_i / a_i where e_i is measured."""

    symbol: str
    marginal: float
    lever: float | None


def levers(
    index: float,
    values: Mapping[str, float],
    weights: Mapping[str, float],
    response: Mapping[str, float] | None = None,
) -> tuple[Lever, ...]:
    """Return every axis in use by the return of its next improvement, best first.

    Formula:
        marginal return AAI w_i / a_i (weights sum 1); lever w_i e_i / a_i,
        e_i = da_i / dR_i
    Shapes: mappings by axis. Units: index per axis unit; index share per kappa unit.
    Missing: no lever for an axis whose response is not measured.
    Errors: ScoringError where an axis stands at 0: the index has no slope there.
    Source: [S] section 3.11 of the AAI paper.

    >>> [x.symbol for x in levers(0.5, {"A": 1.0, "P": 0.25}, {"A": 1, "P": 1})]
    ['P', 'A']
    """
    used = {symbol: w for symbol, w in weights.items() if w > 0}
    whole = sum(used.values())
    zero = [symbol for symbol in used if not values.get(symbol, 0.0) > 0]
    if zero or whole <= 0:
        raise ScoringError(
            f"Marginal returns need every axis above 0, got 0 on {', '.join(zero)}."
        )
    found = [
        Lever(
            symbol,
            index * weight / whole / values[symbol],
            None
            if response is None or symbol not in response
            else weight / whole * response[symbol] / values[symbol],
        )
        for symbol, weight in used.items()
    ]
    return tuple(sorted(found, key=lambda item: (-item.marginal, item.symbol)))


def innovation(
    tools: float, revisions: float, per_tool: float, per_rev: float
) -> float:
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
    """M1 to M3 on the way up; None: no evidence."""

    sustained: bool | None
    ready: bool | None
    trajectory: bool | None


def milestones(
    families: Sequence[Curvature],
    *,
    closures: bool | None,
    most: float,
    elasticity: float | None,
) -> Milestones:
    """Return which milestones a window meets.

    Formula:
        M1: kappa_g lower > 0 on 2 families, both closures
        M2: M1 on every family and c_g >= -c_max; M3: mean c_g > 0, elasticity > 0
    Shapes: one curvature a family. Units: none.
    Missing: None where an interval, a closure or the elasticity is unknown.
    Errors: none. Source: [R] section 3.11 of the AAI paper.
    """
    rising = [
        None if f.slope_interval.low is None else f.slope_interval.low > 0
        for f in families
    ]
    tests = [window_tests(f, most) for f in families]
    first = _both(_at_least(rising, 2), closures)
    every = _all([first, *rising, *(t.bounded for t in tests)])
    bends = [f.curvature for f in families if f.curvature is not None]
    last = None
    if bends and len(bends) == len(families) and elasticity is not None:
        last = sum(bends) / len(bends) > 0 and elasticity > 0
    return Milestones(first, every if families else None, last)


def _at_least(marks: Sequence[bool | None], count: int) -> bool | None:
    if sum(mark is True for mark in marks) >= count:
        return True
    return None if sum(mark is not False for mark in marks) >= count else False


def _both(one: bool | None, other: bool | None) -> bool | None:
    return _all([one, other])


def _all(marks: Sequence[bool | None]) -> bool | None:
    if any(mark is False for mark in marks):
        return False
    return None if any(mark is None for mark in marks) else True
