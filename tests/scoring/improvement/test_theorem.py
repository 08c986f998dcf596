"""What answers to spending, and the rates at which theorem 3.1's lines hold."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.estimate.gate_statistics import FamilyQuality
from owa_bench.scoring.improvement.theorem import (
    Estimate,
    Response,
    escape,
    margins,
    normalised_rate,
    rate_constant,
    rate_escape,
    response,
    theorem,
    weakest,
)
from owa_bench.scoring.statistics import slopes

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
    return theorem((Estimate(),) * 2 + (weakest(found),) + (Estimate(),) * 3)[0][2].status


@pytest.mark.slow
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


@pytest.mark.slow
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
                    name: FamilyQuality(float(q.mean()), float(q.std(ddof=1) / math.sqrt(50)))
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
    assert rate_constant(spent[:2], k[:2], 0.5, 0.95).low is None
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


def test_a_target_is_reached_by_its_gap_over_the_least_slope() -> None:
    assert escape(1.2, 0.4) == (pytest.approx(3.0), None)
    assert escape(1.2, 0.4, 1.5) == (pytest.approx(3.0), pytest.approx(2.0))
    for wrong in ((1.0, -0.1), (1.0, 0.1, -1.0)):
        with pytest.raises(ScoringError, match="No bound follows"):
            escape(*wrong)
    assert escape(0.0, 0.1, 1.0) == (0.0, 0.0)


def test_a_normalised_rate_is_half_at_the_reference() -> None:
    assert normalised_rate(0.3, 0.1) == pytest.approx(0.75)
    assert normalised_rate(0.0, 0.1) == 0.0


def test_rate_escape_knows_both_ends() -> None:
    assert rate_escape(0.0, 0.5, 0.0) == pytest.approx(2.0)
    assert rate_escape(1.0, 0.5, 0.5) == 0.0
    assert rate_escape(0.36, 2.0, 0.5) == pytest.approx(0.8 / (2.0 * 0.5))
    for wrong in ((-0.1, 1.0, 0.5), (0.5, 0.0, 0.5), (0.5, 1.0, 1.0)):
        with pytest.raises(ScoringError, match="Rate escape needs"):
            rate_escape(*wrong)


def test_the_constant_has_an_interval_from_three_windows_on() -> None:
    spent = 2.0 * np.arange(6.0)
    k = 1 - np.exp(-0.3 * spent)
    # p = 0: y = k itself.
    found = rate_constant(spent, k, 0.0, 0.95)
    assert found.value == pytest.approx(float(slopes.slope(spent, k).value))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high
    two = rate_constant(spent[:2], k[:2], 0.0, 0.95)
    assert two.value == pytest.approx((k[1] - k[0]) / 2)
    assert (two.low, two.high) == (None, None)
    assert rate_constant(spent[:1], k[:1], 0.0, 0.95) == Estimate()
    one_unknown = np.where(spent == 4.0, np.nan, k)
    assert rate_constant(spent, one_unknown, 0.0, 0.95) == Estimate()
    idle = np.array([0.0, 2.0, 2.0, 4.0, 6.0, 8.0])
    assert rate_constant(idle, k, 0.0, 0.95) == Estimate()
    assert rate_constant(spent, np.linspace(0, 1, 6), 0.5, 0.95).value is not None
    for wrong in (k - 0.1, k + 0.5):
        with pytest.raises(ScoringError, match="Rate escape needs k"):
            rate_constant(spent, wrong, 0.5, 0.95)


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (Estimate(), "NO EVIDENCE"),
        (Estimate(math.nan, 0.1, 0.2), "NO EVIDENCE"),
        (Estimate(0.2, 0.1, 0.3), "HOLDS"),
        (Estimate(0.2, 0.1, None), "HOLDS"),
        (Estimate(0.2, 0.0, 0.3), "NO EVIDENCE"),
        (Estimate(0.2, None, 0.3), "NO EVIDENCE"),
        (Estimate(0.2, None, None), "NO EVIDENCE"),
        (Estimate(0.0, -0.1, 0.3), "FAILS"),
        (Estimate(0.2, -0.1, 0.0), "FAILS"),
    ],
)
def test_an_assumption_holds_by_its_lower_bound(found: Estimate, status: str) -> None:
    rows = theorem((found,) * 6).rows
    assert {row.status for row in rows} == {status}
    assert [row.name for row in rows] == ["(i)", "(ii)", "(iii)", "(iv)", "(v)", "(vi)"]
    assert theorem((found,) * 6).holds is (status == "HOLDS")


def test_no_bound_without_every_constant() -> None:
    held = Estimate(0.5, 0.25, 0.75)
    for part in ({"k": 0.5}, {"power": 0.5}, {}):
        assert theorem((held,) * 6, **part).resource is None
    whole = theorem((held,) * 6, k=0.5, power=0.5)
    assert whole.time == pytest.approx(whole.resource / 0.25)


def test_responses_need_the_least_number_of_checkpoints_after_spending() -> None:
    spent = np.array([0.0, 1.0, 1.0, 2.0, 3.0])
    values = np.array([0.1, 0.2, 0.9, 0.3, 0.4])
    options = {"level": 0.95, "least": 4}
    found = response("P", spent, values, 0.4, **options)
    assert found.reason is None
    assert (found.last, found.below) == (0.4, False)
    assert response("P", spent, values, 0.41, **options).below
    assert not response("P", spent, values, None, **options).below
    short = response("P", spent, values, 0.4, level=0.95, least=5)
    assert short.reason == "too few checkpoints with new spending: 4 of 5"
    assert short.last == 0.4
    unknown = response("P", np.where(spent == 3, np.nan, spent), values, 0.4, **options)
    assert unknown.reason == "not measured at each checkpoint"
    none = response("P", np.zeros(0), np.zeros(0), 0.4, **options)
    assert math.isnan(none.last)
    with pytest.raises(ScoringError, match="equal series"):
        response("P", spent[:, None], values[:, None], 0.4, **options)


def of(value: float | None, low: float | None, high: float | None, last: float = 0.5):
    return Response("P", last, 0.9, Estimate(value, low, high))


def test_the_weakest_takes_the_least_of_each_bound() -> None:
    found = weakest([of(0.3, 0.05, 0.5), of(0.2, 0.1, 0.6), of(0.1, 0.2, 0.1, 0.9)])
    assert found == (0.2, 0.05, 0.5)
    assert weakest([of(0.3, None, 0.5), of(0.2, 0.1, None)]).low == -math.inf
    assert weakest([of(0.2, 0.1, None)]).high == math.inf
    assert weakest([]) == Estimate()
    unknown = of(None, None, None)
    assert weakest([of(0.0, -0.1, 0.1), unknown]).value == 0.0
    assert weakest([of(0.1, 0.05, 0.2), unknown]) == Estimate()
    nothing_last = of(0.1, 0.05, 0.2, math.nan)
    assert weakest([nothing_last]).value == 0.1


def test_margins_are_standardised_by_both_errors() -> None:
    days = [{"f": FamilyQuality(0.7, 0.3)}, {}]
    found = margins(days, {"f": (0.2, 0.4)})["f"]
    assert found[0] == pytest.approx(0.5 / 0.5)
    assert math.isnan(found[1])


def test_the_time_is_by_the_least_rate_of_spending() -> None:
    c, pace = Estimate(0.5, 0.25, 0.75), Estimate(0.5, 0.125, 0.75)
    found = theorem((c, pace, *(Estimate(0.5, 0.4, 0.6),) * 4), k=0.75, power=0.5)
    assert found.resource == pytest.approx(rate_escape(0.75, 0.25, 0.5))
    assert found.time == pytest.approx(8 * found.resource)
    for missing in ({"k": None, "power": 0.5}, {"k": 0.75, "power": None}):
        short = theorem((c,) * 6, **missing)
        assert (short.holds, short.resource, short.time) == (True, None, None)
