"""Odds multiply and stay away from certainty."""

import pytest

from owa_bench.agents.solvers import planning


@pytest.mark.parametrize(
    ("prior", "ratios", "p"),
    [(0.5, [], 0.5), (0.5, [3.0], 0.75), (0.9, [0.01], 0.08), (0.9, [1e9], 0.98)],
)
def test_stated(prior: float, ratios: list[float], p: float) -> None:
    assert planning.posterior(prior, ratios) == p


def test_no_prior_is_the_lowest() -> None:
    assert planning.posterior(0.0, [5.0]) == planning.LOWEST
