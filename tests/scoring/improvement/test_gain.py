"""Total gain of a campaign over its frozen control, worked out in plain Python."""

import math

import numpy as np
import pytest
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.scoring.improvement.checkpoints import CheckpointSeries, FamilyCells
from owa_bench.scoring.improvement.gain import paired_gain, total_gain
from tests.builders.episodes import PROTOCOL

RULES = PROTOCOL.improvement
TASKS = np.array(["p", "q", "r"])


def test_both_errors_enter_a_gain_by_hand() -> None:
    own = np.array([[0.5, 0.7], [0.9, 0.8], [0.4, 0.6]])
    frozen = np.array([[0.3, 0.4], [0.8, 0.8], [0.3, 0.2]])
    found = paired_gain(own, frozen)
    by_day, by_task = [0.4 / 3, 0.7 / 3], [0.25, 0.05, 0.25]
    error = math.sqrt(np.var(by_day, ddof=1) / 2 + np.var(by_task, ddof=1) / 3)
    assert found.value == pytest.approx(1.1 / 6)
    assert (found.error, found.freedom) == (pytest.approx(error), 1)
    assert found.p == pytest.approx(max(stats.t.sf(found.value / error, 1), 0.125))
    assert found.lower(0.975) == pytest.approx(found.value - stats.t.ppf(0.975, 1) * error)


def test_a_memory_redrawn_by_luck_is_no_gain() -> None:
    """The fault: days that are all alike show no error, whatever the tasks do."""
    rng = np.random.default_rng(0)
    passed, by_days = 0, 0
    for _ in range(400):
        own, frozen = (np.repeat(rng.random((60, 1)) < 0.5, 4, axis=1) * 1.0 for _ in range(2))
        found = paired_gain(own, frozen)
        passed += found.p < 0.025 and found.value >= 0.02
        by_days += (own - frozen).mean() >= 0.02  # without any error of the days p is 0
    assert by_days > 100
    assert passed <= 10


def test_an_error_of_0_is_no_certainty() -> None:
    alike = np.full((4, 3), 0.5)
    assert paired_gain(alike, alike - 0.1).p == 2.0**-4
    assert paired_gain(alike, alike).p == 0.5
    assert paired_gain(alike, alike + 0.1).p == 1.0


def test_what_is_no_pair_is_refused() -> None:
    one = np.ones((3, 4))
    for own, frozen in ((one, one[1:]), (one[:1], one[:1]), (one[:, :1], one[:, :1])):
        with pytest.raises(ScoringError, match="two tasks and days"):
            paired_gain(own, frozen)
    with pytest.raises(ScoringError, match="NaN"):
        paired_gain(one, np.where(np.eye(3, 4) > 0, np.nan, one))


def series(means: np.ndarray, tasks: np.ndarray = TASKS, first: int = 3) -> CheckpointSeries:
    """Return days of two kappa units each, a unit of 4 USD; the first day is played alone."""
    count = means.shape[1]
    return CheckpointSeries(
        days=tuple(range(first, first + count)),
        spent=2.0 * np.arange(1, count + 1),
        unit=4e6,
        quality={"f": means.mean(axis=0)},
        counted=tuple(range(1, count)),
        cells={"f": FamilyCells(tasks, means)},
    )


def test_the_last_mornings_are_held_against_the_control() -> None:
    rng = np.random.default_rng(1)
    own, frozen = rng.uniform(0.5, 0.9, (3, 9)), rng.uniform(0.2, 0.5, (3, 9))
    found = total_gain("f", series(own), series(frozen), RULES)
    by_hand = paired_gain(own[:, -4:], frozen[:, -4:])
    units = (12 + 14 + 16 + 18) / 4
    assert (found.days, found.tasks, found.reason) == (4, 3, None)
    assert found.value == pytest.approx(by_hand.value, abs=1e-6)
    assert found.low == pytest.approx(by_hand.lower(0.975), abs=1e-6)
    assert found.p == pytest.approx(by_hand.p, abs=1e-6)
    assert (found.units, found.usd, found.unit_usd) == (units, 4 * units, 4.0)
    assert found.per_unit == pytest.approx(by_hand.value / units, abs=1e-6)
    means = [part[:, -4:].mean() for part in (own, frozen)]
    gap = math.log(means[0] / (1 - means[0])) - math.log(means[1] / (1 - means[1]))
    assert found.logit_per_unit == pytest.approx(gap / units, abs=1e-6)
    assert found.words.startswith(f"gained {found.value:.4f} (at least {found.low:.4f}) over")
    assert found.words.endswith("having spent 60 USD, 15 units of 4 USD")


def test_tasks_are_paired_by_name_and_days_by_date() -> None:
    own = np.array([[0.5], [0.7], [0.9]]) + np.zeros((3, 9))
    frozen = series((own[::-1] - 0.1)[:, :6], TASKS[::-1], first=6)
    found = total_gain("f", series(own), frozen, RULES)
    assert found.value == pytest.approx(0.1)
    other = series(own - 0.1, np.array(["p", "q", "z"]))
    assert total_gain("f", series(own), other, RULES).tasks == 2
    holed = own.copy()
    holed[0, -1] = np.nan
    assert total_gain("f", series(holed), series(own), RULES).tasks == 2


def test_why_there_is_no_gain() -> None:
    own = np.full((3, 9), 0.5)
    words = "no frozen control was played on the last mornings"
    for frozen in (None, series(own, first=2), series(own[:, :8])):
        found = total_gain("f", series(own), frozen, RULES)
        assert (found.value, found.p, found.reason, found.words) == (None, None, words, words)
    other = series(own, np.array(["p", "y", "z"]))
    assert "fewer than two tasks" in str(total_gain("f", series(own), other, RULES).reason)
    still = total_gain("f", series(own), series(np.zeros((3, 9))), RULES)
    assert (still.value, still.logit_per_unit) == (0.5, None)
