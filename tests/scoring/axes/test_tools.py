"""T by hand."""

import math

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.tool_kinds import TOOL_KINDS
from owa_bench.records.trace import Trace
from owa_bench.scoring.axes.tools import tool_economy
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import axis

GRID = PROTOCOL.drift.magnitudes


def tasks(fails_from: float, used: tuple[str, ...] | None = None) -> list[Trace]:
    """Return two tasks at each magnitude, lost from a magnitude on."""
    return [
        episode(
            index=2 * i + k,
            pair=f"p{k}",
            delta=delta,
            q_state=0.0 if delta >= fails_from else 1.0,
            used=used,
        )
        for i, delta in enumerate(GRID)
        for k in range(2)
    ]


def test_worked_example() -> None:
    score = axis(tasks(0.75), "T")
    area = 0.5 + 0.25 / 2  # 1 up to .5, then down to 0 at .75
    breadth = math.log(4) / math.log(11)
    assert score.raw == pytest.approx(breadth * area, abs=1e-6)
    assert score.high_anchor == pytest.approx(breadth, abs=1e-6)
    assert score.value == pytest.approx(area, abs=1e-6)
    assert score.details["beside"]["success at 0.25"]["value"] == 1.0
    assert score.details["beside"]["success at 0.75"]["value"] == 0.0


def test_a_category_on_one_task_is_not_used() -> None:
    traces = [
        episode(
            index=2 * i + k,
            pair=f"p{k}",
            delta=delta,
            used=("browser", "files") if k else ("browser",),
        )
        for i, delta in enumerate(GRID)
        for k in range(2)
    ]
    assert axis(traces, "T").details["beside"]["categories used"]["value"] == 1.0


def test_use_without_drift_or_success_counts_nowhere() -> None:
    score = axis(tasks(0.1), "T")
    assert score.details["beside"]["categories used"]["value"] == 0.0
    assert score.raw == 0.0


def test_a_magnitude_not_played_makes_it_missing() -> None:
    score = axis([t for t in tasks(2.0) if t.start.delta != 0.5], "T")
    assert score.value is None
    assert score.reason == "drift magnitudes 0.5 not played"


def test_tasks_without_tools_are_left_out() -> None:
    extra = episode(index=99, pair="p9", q_state=0.0, needs_tools=False)
    score = axis([*tasks(2.0), extra], "T")
    assert (score.value, score.cells) == (1.0, 12)


@pytest.mark.parametrize("grid", [[0.0, 0.5], [0.0, 0.0, 1.0], [0.5, 1.0]])
def test_a_bad_grid_is_refused(grid: list[float]) -> None:
    with pytest.raises(ScoringError, match="rise from 0 to 1"):
        tool_economy(np.ones(1), np.ones((1, len(grid))), np.array(grid), 12)


def test_a_curve_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ScoringError, match="tool_economy needs"):
        tool_economy(np.ones(2), np.ones((1, 2)), np.array([0.0, 1.0]), 12)


def test_breadth_times_area_with_an_uneven_grid() -> None:
    grid = np.array([0.0, 0.2, 1.0])
    success = np.array([[1.0, 0.5, 0.0], [0.4, 0.4, 0.4]])
    found = tool_economy(np.array([3.0, 40.0]), success, grid, 12)
    area = 0.75 * 0.2 + 0.25 * 0.8
    assert found == pytest.approx([math.log(4) / math.log(13) * area, 0.4])


def test_a_category_must_be_offered_on_enough_tasks_to_raise_the_anchor() -> None:
    """Version control is needed in one drifted task, the browser in two."""
    traces = [
        episode(
            index=2 * i + k,
            pair=f"p{k}",
            delta=delta,
            categories=("browser", "version_control") if k else ("browser",),
            used=("browser",),
        )
        for i, delta in enumerate(GRID)
        for k in range(2)
    ]
    found = axis(traces, "T")
    assert PROTOCOL.tools.distinct_instances == 2
    assert found.high_anchor == pytest.approx(math.log(2) / math.log(11), abs=1e-6)
    assert found.value == 1.0
    assert found.details["categories"] == ["browser"]
    assert found.details["used"] == ["browser"]
    assert found.details["coverage, used"] == 1.0


def test_all_kinds_of_tool_are_the_whole_breadth() -> None:
    traces = [
        episode(
            index=2 * i + k, pair=f"p{k}", delta=delta, categories=tuple(TOOL_KINDS), verified=10
        )
        for i, delta in enumerate(GRID)
        for k in range(2)
    ]
    found = axis(traces, "T")
    assert PROTOCOL.tools.size_prior == len(TOOL_KINDS)
    assert (found.high_anchor, found.raw, found.value) == (1.0, 1.0, 1.0)


def test_traces_recorded_before_kinds_of_tool_have_no_t_and_say_why() -> None:
    """They name vendors and proofs; the other axes read them as before."""
    old = [
        episode(index=2 * i + k, pair=f"p{k}", delta=delta, categories=("retail:basic",))
        for i, delta in enumerate(GRID)
        for k in range(2)
    ]
    found = axis(old, "T")
    why = "recorded before calls had a kind of tool: retail:basic is none, play again"
    assert (found.value, found.reason, found.cells) == (None, why, 12)
    assert axis(old, "P").value is not None


def test_no_task_with_tools_is_no_evidence() -> None:
    found = axis([episode(needs_tools=False)], "T")
    assert (found.reason, found.cells) == ("no counted episode needs tools", 0)
