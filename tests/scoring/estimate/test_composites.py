"""The index, its jaggedness and its core, by hand."""

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.observables import UNLIMITED
from owa_bench.scoring.estimate.composites import (
    FrontierGrid,
    add_frontier,
    area,
    area_bounds,
    composite,
    delegable,
    delegable_bounds,
    delta_method,
    demand,
    embodied_index,
    evenness,
    falling_fit,
    frontier_statistics,
    index_statistics,
    made_of,
    needed,
)
from owa_bench.scoring.estimate.statistic_key import StatisticKey, StatisticKind
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


def test_the_delta_method_by_hand() -> None:
    """Of .25 and 1 the index is .5; slopes .5 / .25 and .5 / 1, variances .01, .04."""
    spread = np.diag([0.01, 0.04])
    error = delta_method(spread, [1, 1], [0.25, 1.0])
    assert error == pytest.approx(0.5 * np.sqrt(4 * 0.01 + 0.25 * 0.04))
    unread = delta_method(np.diag([0.01, 0.04]), [1, 0], [0.25, 0.0])
    assert unread == pytest.approx(0.25 * 4 * 0.1)  # no weight: at 0 it may be


def test_composites_of_what_has_evidence() -> None:
    used = tuple(s for s, weight in RULES.weights.items() if weight > 0)
    assert needed(RULES)["AAI"] == used
    assert "E" not in used
    assert needed(RULES)["AAI_dyn"] == tuple(s for s in used if s != "R")
    found = made_of(used, PROTOCOL)
    assert set(found) == {"AAI", "AAI_dyn", "jaggedness", "AAI_J", "core"}
    assert made_of("GPMW", PROTOCOL) == {"core": tuple(RULES.core)}
    weights = dict.fromkeys(PROTOCOL.robotics.weights, 1.0) | {"A": 0.0}
    annex = msgspec.structs.replace(PROTOCOL.robotics, weights=weights)
    protocol = msgspec.structs.replace(PROTOCOL, robotics=annex)
    embodied = made_of((*used, "E"), protocol)["AAI with E"]
    assert embodied == tuple(s for s in weights if s != "A")
    values = {s: np.array([0.5]) for s in weights if s != "A"}
    assert embodied_index(values, annex)["AAI with E"] == pytest.approx([0.5])
    assert embodied_index({s: v for s, v in values.items() if s != "G"}, annex) == {}
    assert embodied_index({s: v for s, v in values.items() if s != "E"}, annex) == {}


def test_weights_and_values_of_an_index() -> None:
    """Axes at .25 and 1 with weights 1 and 3: .25^(1/4), over (.25 + 3) / 4."""
    low, high = np.array([0.25, 1.0]), np.array([1.0, 1.0])
    assert composite([low, high], [1, 3]) == pytest.approx([0.25**0.25, 1.0])
    even = evenness([low, high], [1, 3])
    assert even == pytest.approx([0.25**0.25 / 0.8125, 1.0])
    small = composite([np.array([0.25, 1.0]), high], [0.1, 0.3])
    assert small == pytest.approx([0.25**0.25, 1.0])
    for bad in (np.array([0.5, 1.5]), np.array([-0.1, 0.5])):
        with pytest.raises(ScoringError, match="must lie in"):
            composite([bad, high], [1, 1])


def test_demand_of_no_horizon_and_of_half_a_budget() -> None:
    found = demand(np.array([0, 1, 2, -1]), np.array([0, 0, 6, 0]), 0.5)
    assert found == pytest.approx([1.0, 0.0, 1 / 3, 0.0])
    assert demand(np.array([1]), np.array([3]), 1.0) == pytest.approx([2 / 3])


def test_a_falling_fit_is_the_least_squares_fit_by_hand() -> None:
    """Weights 1, 3: .2 then .6 are levelled at .5; what falls stays."""
    quality = np.array([[0.2, 0.6, 0.1], [0.9, 0.6, 0.1]])
    found = falling_fit(quality, np.array([1.0, 3.0, 2.0]))
    assert found == pytest.approx(np.array([[0.5, 0.5, 0.1], [0.9, 0.6, 0.1]]))
    for shape, weights in (((3,), 3), ((1, 3), 2)):
        with pytest.raises(ScoringError, match="a weight above 0 per point"):
            falling_fit(np.ones(shape), np.ones(weights))


def test_areas_and_bounds_of_an_uneven_frontier() -> None:
    fit, demands = np.array([0.8, 0.4, 0.2]), np.array([0.2, 0.6, 1.0])
    inner = 0.6 * 0.4 + 0.3 * 0.4
    assert area(fit[None], demands) == pytest.approx([0.8 * 0.2 + inner])
    low, high = 0.8 * 0.2 + (0.4 + 0.2) * 0.4, 0.2 + (0.8 + 0.4) * 0.4
    assert area_bounds(fit, demands) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("target", "length", "bounds"),
    [
        (0.9, 0.0, (0.0, 0.2)),  # nowhere
        (0.8, 0.2, (0.2, 0.6)),  # at the first point, which a step follows
        (0.5, 0.2 + 0.4 * 0.3 / 0.4, (0.2, 0.6)),
        (0.4, 0.9, (0.9, 1.0)),  # the last two are level
        (0.3, 0.9 + 0.1 * 0.1 / 0.4, (0.9, 1.0)),
        (0.0, 1.0, (1.0, 1.0)),
    ],
)
def test_what_can_be_delegated_by_hand(
    target: float, length: float, bounds: tuple[float, float]
) -> None:
    fit, demands = np.array([0.8, 0.4, 0.4, 0.0]), np.array([0.2, 0.6, 0.9, 1.0])
    assert delegable(fit[None], demands, target) == pytest.approx([length])
    assert delegable_bounds(fit, demands, target) == bounds


def frontier_rows(**columns: list[Any]) -> SimpleNamespace:
    """Return two tasks under budgets 0, 2 and no limit, the control of one beside."""
    fields: dict[str, list[Any]] = {
        "pair": ["a", "b"] * 3 + ["a"],
        "interventions": [0, 0, 2, 2, UNLIMITED, UNLIMITED, 0],
        "repeat": [0] * 7,
        "delta": [0.0] * 7,
        "day": [0] * 7,
        "horizon": [8, 4] * 3 + [8],
        "q_state": [0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 0.0],
        "u": [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0],
    }
    table = SimpleNamespace(
        **{name: np.array(values) for name, values in (fields | columns).items()}
    )
    table.crew = SimpleNamespace(control=np.arange(len(table.pair)) == 6)
    return SimpleNamespace(table=table, protocol=PROTOCOL)


class Means(dict[str, list[float]]):
    """What is added to a table of statistics, by name."""

    def add_mean(self, name: str, values: np.ndarray, rows: np.ndarray) -> None:
        self[name] = values[rows].tolist()


def test_a_frontier_is_read_over_tasks_under_every_budget() -> None:
    means = Means()
    grid = add_frontier(frontier_rows(), means)
    assert grid.budgets == (UNLIMITED, 2, 0)
    # 2 of ceil(.5 x 8) and of ceil(.5 x 4)
    assert grid.demand == pytest.approx([0.0, (0.5 + 0.0) / 2, 1.0])
    assert (grid.target, grid.reason) == (PROTOCOL.frontier.success_share, None)
    assert means == {
        f"F:{UNLIMITED}": [0.9, 1.0],
        f"F_u:{UNLIMITED}": [1.0, 1.0],
        "F:2": [0.5, 0.7],
        "F_u:2": [0.0, 1.0],
        "F:0": [0.1, 0.3],
        "F_u:0": [0.0, 0.0],
    }


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"interventions": [0] * 7}, "one intervention budget only"),
        (
            {"interventions": [1, 1, 2, 2, UNLIMITED, UNLIMITED, 1]},
            "no run without any intervention",
        ),
        ({"pair": list("abcdefg")}, "no task was played under every budget"),
        (
            {"interventions": [0, 0, 4, 4, UNLIMITED, UNLIMITED, 0]},
            "the budgets `4` and `no limit` make the same demand: draw one of them",
        ),
    ],
)
def test_what_is_no_frontier_has_no_budgets(columns: dict[str, list[Any]], why: str) -> None:
    means = Means()
    grid = add_frontier(frontier_rows(**columns), means)
    assert (grid.budgets, grid.demand.tolist(), grid.reason) == ((), [], why)
    assert grid.target == PROTOCOL.frontier.success_share
    assert means == {}
    assert frontier_statistics(SimpleNamespace(), grid) == {}


def points(name: str, kind: StatisticKind, *values: float) -> dict[StatisticKey, float]:
    return {StatisticKey(name, kind, place=i): x for i, x in enumerate(values)}


def test_both_frontiers_are_fitted_and_summed() -> None:
    grid = FrontierGrid((9, 2, 0), np.array([0.0, 0.5, 1.0]), 0.6)
    seen = {"F:9": 0.4, "F:2": 0.6, "F:0": 0.2, "F_u:9": 0.9, "F_u:2": 0.7, "F_u:0": 0.5}
    totals = SimpleNamespace(overall_mean=lambda name: np.array([seen[name]]))
    found = {k: float(v[0]) for k, v in frontier_statistics(totals, grid).items()}
    assert found == pytest.approx(
        {
            **points("F", "seen", 0.4, 0.6, 0.2),
            **points("F", "fit", 0.5, 0.5, 0.2),
            **points("F_u", "seen", 0.9, 0.7, 0.5),
            **points("F_u", "fit", 0.9, 0.7, 0.5),
            StatisticKey("AUF"): 0.5 * 0.5 + 0.35 * 0.5,
            StatisticKey("deleg"): 0.75,
        }
    )


def test_the_index_is_shown_with_embodiment_where_there_is_any() -> None:
    values = {s: np.array([0.25]) for s in PROTOCOL.robotics.weights}
    found = embodied_index(values | {"E": np.array([0.81])}, PROTOCOL.robotics)
    weights = PROTOCOL.robotics.weights
    share = weights["E"] / sum(weights.values())
    assert found["AAI with E"][0] == pytest.approx(0.25 * (0.81 / 0.25) ** share)
    assert embodied_index({"A": np.ones(1)}, PROTOCOL.robotics) == {}
