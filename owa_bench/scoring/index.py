"""The index: weighted geometric mean of the axes, its jaggedness and its core."""

from collections.abc import Mapping, Sequence

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.records.protocol import Index, Robotics

EMBODIED, EMBODIED_AXIS = "AAI with E", "E"


def composite(values: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Return the weighted geometric mean of axes; a zero on any gives 0.

    Formula:
        AAI = prod_i a_i^(w_i), weights normalised to sum 1
    Shapes: a list of arrays (resamples,), one weight each; result (resamples,).
    Units: axis values in [0, 1]; result in [0, 1].
    Missing: an axis with weight 0 is not read; NaN in gives NaN out.
    Errors: ScoringError unless there is a weight above 0 and values lie in [0, 1].
    Source: [S] eq 12 of the AAI paper.

    >>> composite([np.array([0.25]), np.array([1.0])], [1, 1])
    array([0.5])
    """
    shares = _shares(values, weights)
    logs = np.zeros_like(values[0])
    with np.errstate(divide="ignore"):
        for value, share in zip(values, shares, strict=True):
            if share > 0:
                logs = logs + share * np.log(value)
    return np.exp(logs)


def evenness(values: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Return U = AAI / (weighted arithmetic mean): 1 for a flat profile.

    Formula:
        U = AAI / sum_i w_i a_i
    Shapes: as `composite`. Units: a share in (0, 1].
    Missing: NaN where every axis is 0.
    Errors: as `composite`.
    Source: [R] eq 34 of the AAI paper.

    >>> evenness([np.array([0.25]), np.array([1.0])], [1, 1])
    array([0.8])
    """
    shares = _shares(values, weights)
    mean = np.sum([w * a for w, a in zip(shares, values, strict=True)], axis=0)
    whole = composite(values, weights)
    result: Floats = np.divide(
        whole, mean, out=np.full_like(mean, np.nan), where=mean > 0
    )
    return result


def _shares(values: Sequence[Floats], weights: Sequence[float]) -> list[float]:
    whole = float(sum(weights))
    if len(values) != len(weights) or not len(values) or whole <= 0 or min(weights) < 0:
        raise ScoringError(
            f"{len(values)} axes need as many weights, some above 0, got {weights}."
        )
    for value in values:
        if ((value < 0) | (value > 1)).any():
            raise ScoringError(
                "Axis values must lie in [0, 1]; leave a missing axis out by name."
            )
    return [weight / whole for weight in weights]


def needed(rules: Index) -> Mapping[str, tuple[str, ...]]:
    """Return the axes that each composite needs."""
    used = tuple(symbol for symbol, weight in rules.weights.items() if weight > 0)
    dynamic = tuple(symbol for symbol in used if symbol not in rules.dynamic_without)
    return {
        "AAI": used,
        "AAI_dyn": dynamic,
        "jaggedness": used,
        "AAI_J": used,
        "core": tuple(rules.core),
    }


def index_statistics(values: Mapping[str, Floats], rules: Index) -> dict[str, Floats]:
    """Return every composite whose axes all have evidence, by name."""
    found: dict[str, Floats] = {}
    for name, symbols in needed(rules).items():
        if any(symbol not in values for symbol in symbols):
            continue
        axes = [values[symbol] for symbol in symbols]
        weights = [rules.weights.get(symbol, 0.0) for symbol in symbols]  # type: ignore[call-overload]
        if name == "core":
            found[name] = composite(axes, [1.0] * len(axes))
        elif name == "jaggedness":
            found[name] = evenness(axes, weights)
        elif name == "AAI_J":
            even = np.nan_to_num(evenness(axes, weights))
            found[name] = composite(axes, weights) * even**rules.gamma
        else:
            found[name] = composite(axes, weights)
    return found


def embodied_index(values: Mapping[str, Floats], rules: Robotics) -> dict[str, Floats]:
    """Return the index with E under the robotics weights, where E has evidence."""
    used = [str(symbol) for symbol, weight in rules.weights.items() if weight > 0]
    if EMBODIED_AXIS not in values or any(s not in values for s in used):
        return {}
    weights = [rules.weights[s] for s in used]  # type: ignore[index]
    return {EMBODIED: composite([values[s] for s in used], weights)}


def delta_method(
    values: Sequence[Floats], weights: Sequence[float], point: Sequence[float]
) -> float | None:
    """Return the standard error of the index by the delta method on eq 12.

    Formula:
        se = AAI sqrt(g' S g), g_i = w_i / a_i, S the covariance of the resamples
    Shapes: a list of arrays (resamples,), weights and points alike; a scalar.
    Units: as the index.
    Missing: None where an axis with weight stands at 0: the method does not hold there.
    Errors: as `composite`.
    Source: [S] section 3.2 of the AAI paper, uncertainty (a).

    >>> spread = np.array([0.4, 0.5, 0.6])
    >>> round(delta_method([spread], [1.0], [0.5]), 6)
    0.1
    """
    shares = np.array(_shares(values, weights))
    at = np.array(point, dtype=np.float64)
    kept = shares > 0
    if (at[kept] <= 0).any():
        return None
    slopes = shares[kept] / at[kept]
    table = np.stack([v for v, k in zip(values, kept, strict=True) if k])
    spread = np.atleast_2d(np.cov(table))
    whole = float(np.exp((shares[kept] * np.log(at[kept])).sum()))
    return whole * float(np.sqrt(slopes @ spread @ slopes))
