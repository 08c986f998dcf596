"""Probabilities from evidence: odds that each observation multiplies.

Only products and quotients are used, so equal evidence gives equal bytes everywhere.
"""

from collections.abc import Iterable

LOWEST = 0.02
HIGHEST = 0.98
DECIMALS = 2


def posterior(prior: float, ratios: Iterable[float] = ()) -> float:
    """Return the probability that `prior` becomes under likelihood `ratios`.

    A ratio above 1 speaks for the proposition, one below 1 against it. The result
    stays in [0.02, 0.98]: nothing seen on a wire is certain.

    Args:
        prior: Probability before the evidence, in (0, 1).
        ratios: Likelihood ratios.

    Returns:
        A probability with two decimals.

    >>> posterior(0.5, [3.0])
    0.75
    >>> posterior(0.9, [0.001])
    0.02
    """
    odds = prior / (1.0 - prior)
    for ratio in ratios:
        odds *= ratio
    return round(min(HIGHEST, max(LOWEST, odds / (1.0 + odds))), DECIMALS)
