"""The delegability frontier by hand."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from owa_bench.errors import ScoringError
from owa_bench.records.score import FrontierScore
from owa_bench.records.trace import Trace
from owa_bench.scoring.estimate.composites import area, delegable, demand, falling_fit
from tests.builders.episodes import episode
from tests.builders.verdicts import verdict


def runs(qualities: dict[int | None, float], tasks: int = 12) -> list[Trace]:
    """Return the same tasks played under several budgets, horizon 8 (k_max 4)."""
    return [
        episode(
            index=i * tasks + k,
            pair=f"p{k}",
            interventions=budget,
            q_state=quality,
            stated=1.0 if quality >= 0.95 else 0.0,
        )
        for i, (budget, quality) in enumerate(qualities.items())
        for k in range(tasks)
    ]


def frontier(qualities: dict[int | None, float]) -> FrontierScore:
    return verdict(runs(qualities)).frontier


def test_worked_example() -> None:
    """Success 0 at a = 1 (q_state .5), 1 at a = .5 and a = 0; s = .80."""
    found = frontier({0: 0.5, 2: 1.0, None: 1.0})
    assert found.demand == (0.0, 0.5, 1.0)
    assert found.fitted == (1.0, 1.0, 0.0)
    assert found.quality == (1.0, 1.0, 0.5)
    assert found.auf == pytest.approx(0.5 + 0.5 * (1 + 0.5) / 2)
    assert found.auf_bounds == pytest.approx((0.5 + 0.25, 1.0))
    assert found.target == 0.80
    assert found.deleg == pytest.approx(0.5 + 0.5 * (1 - 0.80))
    assert found.deleg_bounds == (0.5, 1.0)


def test_a_no_op_has_no_area_and_nothing_to_delegate() -> None:
    found = frontier({0: 0.0, 2: 0.0, None: 0.0})
    assert (found.auf, found.deleg, found.deleg_cert) == (0.0, 0.0, 0.0)


def test_the_oracles_certified_share_is_one() -> None:
    found = verdict(runs({0: 1.0, 2: 1.0, None: 1.0}, tasks=20)).frontier
    assert (found.auf, found.deleg, found.deleg_cert) == (1.0, 1.0, 1.0)


def test_budgets_beyond_k_max_ask_for_nothing_more() -> None:
    asked = demand(np.array([0, 1, 4, 40, -1]), np.full(5, 8), 0.5)
    assert asked.tolist() == [1.0, 0.75, 0.0, 0.0, 0.0]


def test_an_odd_horizon_rounds_its_budget_up() -> None:
    assert demand(np.array([1]), np.array([5]), 0.5)[0] == pytest.approx(1 - 1 / 3)


def test_fit_agrees_with_scipy() -> None:
    rng = np.random.default_rng(5)
    rows = rng.random((50, 6))
    weights = rng.integers(1, 5, 6).astype(float)
    for row, fit in zip(rows, falling_fit(rows, weights), strict=True):
        peer = isotonic_regression(row, weights=weights, increasing=False).x
        np.testing.assert_allclose(fit, peer, atol=1e-12)


def test_a_frontier_that_would_rise_is_levelled() -> None:
    found = frontier({0: 1.0, None: 0.5})
    assert found.observed == (0.0, 1.0)
    assert found.fitted == (0.5, 0.5)
    assert found.quality == (0.75, 0.75)


@pytest.mark.parametrize(
    ("qualities", "why"),
    [
        ({0: 1.0}, "one intervention budget only"),
        ({1: 1.0, None: 1.0}, "without any intervention"),
        ({0: 0.5, 4: 1.0, None: 1.0}, "`4` and `no limit` make the same demand: draw"),
    ],
)
def test_what_cannot_be_drawn_says_why(qualities: dict[int | None, float], why: str) -> None:
    found = frontier(qualities)
    assert found.auf is None
    assert why in str(found.reason)


def test_the_certified_share_is_below_the_plain_one() -> None:
    mixed = runs({0: 1.0, None: 1.0})
    for k in range(3):  # three of twelve tasks fail unaided
        mixed[k] = episode(index=k, pair=f"p{k}", interventions=0, q_state=0.5, stated=0.0)
    found = verdict(mixed).frontier
    assert found.deleg_cert is not None
    assert found.deleg is not None
    assert found.deleg_cert < found.deleg
    assert all(low <= mid for low, mid in zip(found.low, found.fitted, strict=True))


def test_only_what_every_budget_met_is_compared() -> None:
    """Budget 0 meets a harder drift too; the frontier leaves those episodes out."""
    shared = runs({0: 1.0, None: 1.0})
    harder = [
        episode(index=100 + k, pair=f"p{k}", delta=1.0, interventions=0, q_state=0.0)
        for k in range(12)
    ]
    assert verdict([*shared, *harder]).frontier.observed == (1.0, 1.0)


def test_tasks_that_share_no_budget_give_no_frontier() -> None:
    apart = [
        episode(index=0, pair="a", interventions=0),
        episode(index=1, pair="b", interventions=None),
    ]
    assert "under every budget" in str(verdict(apart).frontier.reason)


def test_axes_rest_on_the_smallest_budget() -> None:
    score = verdict(runs({0: 0.5, None: 1.0})).axes[1]
    assert score.details["beside"]["quality of toolquest/reconcile"]["value"] == pytest.approx(0.55)


def test_planted_frontier_is_recovered() -> None:
    """Success falls linearly with demand: AUF is the mean of the line."""
    rng = np.random.default_rng(9)
    points = np.linspace(0.0, 1.0, 5)
    rows = (rng.random((400, 5)) < 1 - 0.6 * points).mean(axis=0)[None, :]
    fit = falling_fit(rows, np.ones(5))
    assert area(fit, points)[0] == pytest.approx(0.7, abs=0.03)
    assert delegable(fit, points, 0.7)[0] == pytest.approx(0.5, abs=0.1)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ScoringError):
        falling_fit(np.ones((1, 2)), np.array([1.0, 0.0]))
    with pytest.raises(ScoringError):
        demand(np.ones(2), np.ones(3), 0.5)
