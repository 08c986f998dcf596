"""The index, its jaggedness and its core, by hand."""

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.composites import (
    composite,
    delta_method,
    embodied_index,
    evenness,
    index_statistics,
    needed,
)
from tests.builders.episodes import PROTOCOL

RULES = PROTOCOL.index


def one(*values: float) -> list[np.ndarray]:
    return [np.array([value]) for value in values]


def test_weighted_geometric_mean() -> None:
    assert composite(one(0.5, 1.0), [3, 1])[0] == pytest.approx(0.5**0.75)


def test_a_zero_gives_zero_and_an_unweighted_axis_is_not_read() -> None:
    assert composite(one(0.0, 1.0), [1, 1])[0] == 0.0
    assert composite(one(0.0, 0.7), [0, 1])[0] == pytest.approx(0.7)


def test_a_flat_profile_is_even() -> None:
    assert evenness(one(0.3, 0.3, 0.3), [1, 2, 1])[0] == pytest.approx(1.0)
    assert np.isnan(evenness(one(0.0, 0.0), [1, 1])[0])


@pytest.mark.parametrize(
    ("values", "weights"),
    [
        (one(0.5), [1, 1]),
        (one(1.5), [1]),
        (one(-0.1), [1]),
        (one(0.5), [0]),
        (one(0.5, 0.5), [2, -1]),
        ([], []),
    ],
)
def test_bad_input_is_refused(values: list[np.ndarray], weights: list[float]) -> None:
    with pytest.raises(ScoringError):
        composite(values, weights)


def test_an_index_with_a_missing_axis_is_not_there() -> None:
    values = {symbol: np.array([0.5]) for symbol in "GPMW"}
    assert set(index_statistics(values, RULES)) == {"core"}


def test_every_composite_of_a_full_row() -> None:
    values = {symbol: np.array([0.64]) for symbol in needed(RULES)["AAI"]}
    found = index_statistics(values, RULES)
    assert set(found) == {"AAI", "AAI_dyn", "jaggedness", "AAI_J", "core"}
    for name, value in found.items():
        expected = 1.0 if name == "jaggedness" else 0.64
        assert value[0] == pytest.approx(expected)


def test_dynamics_leave_revision_out() -> None:
    values = {symbol: np.array([0.5]) for symbol in needed(RULES)["AAI"]}
    values["R"] = np.array([0.0])
    found = index_statistics(values, RULES)
    assert found["AAI"][0] == 0.0
    assert found["AAI_dyn"][0] == pytest.approx(0.5)


def test_jagged_index_by_hand() -> None:
    """AAI_J = AAI * U^gamma with gamma = 1/2."""
    values = {symbol: np.array([1.0]) for symbol in needed(RULES)["AAI"]}
    values["A"] = np.array([0.1])
    found = index_statistics(values, RULES)
    whole = 0.1 ** (1 / 10)
    even = whole / ((9 + 0.1) / 10)
    assert found["AAI_J"][0] == pytest.approx(whole * even**0.5)


def test_delta_method_agrees_with_draws() -> None:
    rng = np.random.default_rng(3)
    axes = [0.6 + 0.01 * rng.standard_normal(20_000) for _ in range(3)]
    error = delta_method(np.cov(axes), [1, 1, 2], [0.6, 0.6, 0.6])
    assert error == pytest.approx(composite(axes, [1, 1, 2]).std(), rel=0.02)


def test_delta_method_does_not_hold_at_zero() -> None:
    assert delta_method(np.eye(2), [1, 1], [0.0, 0.5]) is None


def test_the_index_is_shown_with_embodiment_where_there_is_any() -> None:
    values = {s: np.array([0.25]) for s in PROTOCOL.robotics.weights}
    found = embodied_index(values | {"E": np.array([0.81])}, PROTOCOL.robotics)
    weights = PROTOCOL.robotics.weights
    share = weights["E"] / sum(weights.values())
    assert found["AAI with E"][0] == pytest.approx(0.25 * (0.81 / 0.25) ** share)
    assert embodied_index({"A": np.ones(1)}, PROTOCOL.robotics) == {}
