"""Lines by hand: where points lie, whom they count."""

import pytest
from scipy.stats import binomtest

from owa_bench.scoring import drawn
from owa_bench.scoring.observables import observe
from tests.builders.episodes import PRICES, episode


@pytest.mark.parametrize(("won", "of"), [(0, 7), (3, 9), (20, 20)])
def test_wilson_is_the_interval_of_the_textbooks(won: int, of: int) -> None:
    known = binomtest(won, of).proportion_ci(method="wilson")
    assert drawn.wilson(won, of) == pytest.approx((known.low, known.high), abs=1e-6)


def test_nothing_tried_nothing_known() -> None:
    assert drawn.wilson(0, 0) == (0.0, 1.0)


def test_calibration_has_a_point_per_tenth_of_stated_p() -> None:
    stated = (0.91, 0.99, 0.2, None)
    traces = [
        episode(index=i, pair=str(i), stated=p, q_state=float(i == 0))
        for i, p in enumerate(stated)
    ]
    (line,) = drawn.calibration(observe(traces, PRICES))
    assert line.x == (0.2, 0.95)
    assert line.y == (0.0, 0.5)
    assert line.used == (1, 2)
    assert line.diagonal
    assert all(
        low <= y <= high
        for low, y, high in zip(line.low, line.y, line.high, strict=True)
    )


def test_who_states_nothing_has_no_calibration() -> None:
    traces = [episode(index=0, pair="a", stated=None)]
    assert drawn.calibration(observe(traces, PRICES)) == ()


def test_an_episode_counts_under_its_hardest_class_alone() -> None:
    traces = [
        episode(index=0, pair="a"),
        episode(index=1, pair="b", classes=("D1",), delta=0.5),
        episode(index=2, pair="c", classes=("D1", "D3"), delta=0.5, q_state=0.0),
    ]
    first, second = drawn.by_class(observe(traces, PRICES))
    assert first.name == "success where D1 is the hardest drift"
    assert second.name == "success where D3 is the hardest drift"
    assert first.x == second.x == (0.0, 0.5)
    assert first.y == (1.0, 1.0)
    assert second.y == (1.0, 0.0)


def test_checkpoints_have_a_row_per_day_and_practice_none() -> None:
    traces = [
        episode(index=i, pair=str(i), day=day, phase=phase, q_state=q, delta=0.0)
        for i, (day, phase, q) in enumerate(
            [
                (0, "practice", 1.0),
                (0, "checkpoint", 0.0),
                (1, "checkpoint", 1.0),
                (1, "checkpoint", 0.5),
            ]
        )
    ]
    table = drawn.by_day(observe(traces, PRICES))
    assert [(row[0], row[1], row[3], row[4]) for row in table.rows] == [
        (0, 1, 0.0, 0.0),
        (1, 2, 0.75, 0.5),
    ]


def test_a_run_without_days_has_no_checkpoints() -> None:
    assert drawn.by_day(observe([episode()], PRICES)) is None
