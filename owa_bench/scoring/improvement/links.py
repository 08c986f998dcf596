"""Links: scales on which steps near the ceiling stay comparable, and steps on them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats


class Link(NamedTuple):
    """A monotone map g of [0, 1) to the line, and its inverse."""

    forward: Callable[[Floats], Floats]
    inverse: Callable[[Floats], Floats]


def _logit(x: Floats) -> Floats:
    return np.log(x) - np.log1p(-x)


def _odds_share(g: Floats) -> Floats:
    half: Floats = 0.5 * (1.0 + np.tanh(0.5 * g))
    return half


def _surprisal(x: Floats) -> Floats:
    return -np.log1p(-x)


def _shortfall_share(g: Floats) -> Floats:
    return -np.expm1(-g)


LINKS: Mapping[str, Link] = {
    "logit": Link(_logit, _odds_share),
    "surprisal": Link(_surprisal, _shortfall_share),
}


def named(link: str) -> Link:
    """Return a link by name; ScoringError names the links there are."""
    if link not in LINKS:
        raise ScoringError(f"A link must be one of {', '.join(LINKS)}, got {link!r}.")
    return LINKS[link]


def on_link(values: Floats, link: str, clip: float) -> Floats:
    """Return g(x), x clipped to 1 - clip from above.

    Formula:
        logit g(x) = ln(x / (1 - x)); surprisal g(x) = -ln(1 - x)
    Shapes: any array; result the same. Units: capability in [0, 1]; log units out.
    Missing: NaN where x is 0 or NaN: a zero is not computable, not minus infinity.
    Errors: ScoringError if a value lies outside [0, 1] or the link is unknown.
    Source: [S] eq 14 of the AAI paper; the clip [D] in the protocol.

    >>> on_link(np.array([0.5, 1.0]), "surprisal", 1e-3).round(4)
    array([0.6931, 6.9078])
    """
    known = values[~np.isnan(values)]
    if ((known < 0) | (known > 1)).any():
        raise ScoringError("A link reads capability in [0, 1].")
    kept = np.where(values > 0, np.minimum(values, 1.0 - clip), np.nan)
    return named(link).forward(kept)


def step(value: float, distance: float, link: str) -> float:
    """Return where a step of `distance` on the link leads.

    Formula:
        A' = g^-1(g(A) + D)
        logit: the odds are multiplied by e^D; surprisal: the shortfall by e^-D
    Shapes: scalars. Units: capability in [0, 1); log units.
    Missing: none. Errors: ScoringError unless 0 < A < 1 and D is finite.
    Source: [S] eqs 17-18 of the AAI paper.

    >>> first = step(0.40, np.log(2), "surprisal")
    >>> round(first, 4), round(step(first, np.log(2), "surprisal"), 4)
    (0.7, 0.85)
    """
    if not 0 < value < 1 or not np.isfinite(distance):
        raise ScoringError(
            f"A link step starts between 0 and 1, got {value} and {distance}."
        )
    g = named(link)
    return float(g.inverse(g.forward(np.array(value)) + distance))


def power_step(value: float, power: float) -> float:
    """Return the multiplicative step: the shortfall raised to a power.

    Formula:
        1 - A' = (1 - A)^gamma
    Shapes: scalars. Units: capability in [0, 1].
    Missing: none. Errors: ScoringError unless 0 <= A <= 1 and gamma > 0.
    Source: [S] section 3.8 of the AAI paper, multiplicative-on-link alternative.

    >>> round(power_step(0.40, 2), 4)
    0.64
    """
    if not 0 <= value <= 1 or not power > 0:
        raise ScoringError(
            f"A power step needs A in [0, 1], gamma > 0, got {value} and {power}."
        )
    return float(1.0 - (1.0 - value) ** power)


def steps_made(before: float, after: float, distance: float, link: str) -> int:
    """Return how many whole steps of `distance` lie between two capabilities.

    >>> steps_made(0.40, 0.86, float(np.log(2)), "surprisal")
    2
    """
    if not distance > 0:
        raise ScoringError(f"A link step must be above 0, got {distance}.")
    if not (0 < before < 1 and 0 < after < 1):
        raise ScoringError(
            f"Steps are counted between 0 and 1, got {before} and {after}."
        )
    g = named(link).forward
    gap = float(g(np.array(after)) - g(np.array(before)))
    return max(0, int(np.floor(gap / distance + 1e-9)))
