"""What answers to spending, and the rates at which theorem 3.1's lines hold."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.gate_statistics import FamilyQuality
from owa_bench.scoring.improvement.theorem import (
    Estimate,
    margins,
    rate_constant,
    rate_escape,
    response,
    theorem,
    weakest,
)

X = np.arange(14.0)
OPTIONS = {"least": 7, "level": 0.95}


def planted(slope: float, last: float = 0.5, noise: float = 0.0, seed: int = 0):
    """Return the response of a series that ends at `last` below a target of .9."""
    rng = np.random.default_rng(seed)
    values = last + slope * (X - X[-1]) + noise * rng.standard_normal(14)
    return response("P", X, values, 0.9, **OPTIONS)


def test_a_planted_response_is_found_and_bounded() -> None:
    found = planted(0.02, noise=0.01)
    assert found.slope.value == pytest.approx(0.02, abs=0.003)
    assert found.slope.low > 0
    assert found.below


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.where(X == 3, np.nan, 0.5), "not measured"),
        (np.full(14, 0.5), "too few checkpoints with new spending: 1 of 7"),
    ],
)
def test_what_has_no_slope_says_why(values: np.ndarray, words: str) -> None:
    spent = X if "not measured" in words else np.zeros(14)
    found = response("P", spent, values, 0.9, **OPTIONS)
    assert found.slope == Estimate()
    assert words in str(found.reason)


def test_the_weakest_response_decides_and_axes_above_do_not_count() -> None:
    steep, flat, above = planted(0.02), planted(0.001), planted(-0.1, last=0.95)
    assert weakest([steep, flat, above]).value == pytest.approx(0.001)
    assert weakest([above]) == Estimate()
    unknown = response("M", X, np.full(14, np.nan), 0.9, **OPTIONS)
    assert weakest([steep, unknown]) == Estimate()
    assert weakest([planted(-0.02), unknown]).value == pytest.approx(-0.02)


def standing(slopes: list[float], seed: int) -> str:
    """Return how assumption (iii) stands for axes of planted responses."""
    found = [planted(s, noise=0.02, seed=100 * seed + i) for i, s in enumerate(slopes)]
    return theorem((Estimate(),) * 2 + (weakest(found),) + (Estimate(),) * 3)[0][
        2
    ].status


def test_axis_responsiveness_holds_at_its_rate(
    record_property: Callable[[str, object], None],
) -> None:
    """(iii) HOLDS falsely at most at the two-sided level where one axis is flat."""
    rounds = range(200)
    flat = [standing([0.02, 0.02, 0.0], k) for k in rounds].count("HOLDS") / 200
    real = [standing([0.02, 0.02, 0.02], k) for k in rounds].count("HOLDS") / 200
    record_property("(iii) HOLDS: one axis flat, all rise", (flat, real))
    assert flat <= 0.05
    assert real >= 0.9


def test_margins_grow_with_the_agent_and_are_missing_where_not_played() -> None:
    days = [{"f": FamilyQuality(0.5 + 0.02 * i, 0.03)} for i in range(14)]
    found = margins(days, {"f": (0.8, 0.04), "g": (0.8, 0.04)})
    assert found["f"][-1] == pytest.approx((0.76 - 0.8) / 0.05)
    answer = response("f", X, found["f"], 1.96, **OPTIONS)
    assert answer.below
    assert answer.slope.value == pytest.approx(0.4)
    assert np.isnan(found["g"]).all()


def test_superhuman_margins_hold_at_their_rate(
    record_property: Callable[[str, object], None],
) -> None:
    """(vi): families of 50 tasks whose quality rises, or does not, towards experts."""

    def holds(gain: float, seed: int) -> bool:
        rng = np.random.default_rng(seed)
        days = []
        for i in range(14):
            each = rng.random((2, 50)) < 0.4 + gain * i
            days.append(
                {
                    name: FamilyQuality(
                        float(q.mean()), float(q.std(ddof=1) / math.sqrt(50))
                    )
                    for name, q in zip("fg", each, strict=True)
                }
            )
        found = margins(days, {"f": (0.9, 0.02), "g": (0.9, 0.02)})
        answers = [response(n, X, v, 1.96, **OPTIONS) for n, v in found.items()]
        low = weakest(answers).low
        return low is not None and low > 0

    still = sum(holds(0.0, seed) for seed in range(200)) / 200
    rising = sum(holds(0.03, seed) for seed in range(200)) / 200
    record_property("(vi) HOLDS: no growth, growth", (still, rising))
    assert still <= 0.03
    assert rising >= 0.9


def test_the_constant_of_rate_escape_is_recovered() -> None:
    spent = np.arange(8.0)
    k = 1 - (1 - 0.05 * spent) ** 2
    found = rate_constant(spent, k, 0.5, 0.95)
    assert found.value == pytest.approx(0.1)
    assert rate_escape(float(k[0]), found.value, 0.5) == pytest.approx(20.0)
    assert rate_constant(spent[:3], k[:3], 0.5, 0.95).low is None
    assert rate_constant(spent, np.full(8, np.nan), 0.5, 0.95) == Estimate()


def test_bad_input_is_refused() -> None:
    for call in (
        lambda: response("P", X, X[:-1], 0.9, **OPTIONS),
        lambda: rate_constant(X, X, 0.5, 0.95),
        lambda: rate_constant(X, np.zeros(14), 1.0, 0.95),
        lambda: margins([{"f": FamilyQuality(1.2, 0.1)}], {"f": (0.5, 0.1)}),
    ):
        with pytest.raises(ScoringError):
            call()
