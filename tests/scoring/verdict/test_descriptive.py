"""Descriptive tables and curves by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.statistics.task_means import mean_over_tasks
from owa_bench.scoring.verdict import descriptive
from tests.builders.episodes import PRICES, episode


def test_pass_power_is_unbiased() -> None:
    """Mean of C(c, 2) / C(3, 2) over all outcomes of three fair coins is 1/4."""
    outcomes = [0, 1, 1, 1, 2, 2, 2, 3]
    mean = sum(descriptive.pass_at_all(c, 3, 2) for c in outcomes) / 8
    assert mean == pytest.approx(0.25)


@pytest.mark.parametrize(("c", "n", "k"), [(1, 2, 3), (3, 2, 1), (-1, 2, 1), (1, 2, 0)])
def test_bad_counts_are_refused(c: int, n: int, k: int) -> None:
    with pytest.raises(ScoringError, match="pass\\^k"):
        descriptive.pass_at_all(c, n, k)


def test_pass_powers_group_an_instance_by_its_repeats() -> None:
    traces = [
        episode(index=i, pair="p", repeat=i, q_state=q, stated=None)
        for i, q in enumerate((1.0, 1.0, 0.0))
    ]
    rows = descriptive.pass_powers(observe(traces, PRICES)).rows
    assert rows[0] == (1, 1, pytest.approx(2 / 3), None, None)
    assert rows[1] == (2, 1, pytest.approx(1 / 3), None, None)
    assert rows[2] == (3, 1, 0.0, None, None)


def test_an_episode_stands_under_its_hardest_class() -> None:
    traces = [
        episode(index=0, pair="a"),
        episode(index=1, pair="b", classes=("D0", "D1"), delta=0.5),
        episode(index=2, pair="c", classes=("D3", "D1"), delta=1.0, q_state=0.0),
    ]
    rows = descriptive.by_class(observe(traces, PRICES)).rows
    assert [(row[0], row[1], row[5]) for row in rows] == [
        ("no drift", 1, 1.0),
        ("D1", 1, 1.0),
        ("D3", 1, 0.0),
    ]


def test_calibration_counts_what_was_stated() -> None:
    traces = [
        episode(index=0, pair="a", stated=0.9),
        episode(index=1, pair="b", stated=1.0, q_state=0.0),
        episode(index=2, pair="c", stated=None),
    ]
    table = descriptive.calibration(observe(traces, PRICES))
    ((stated, episodes, p, won, low, high, gap, *ends),) = table.rows
    assert (stated, episodes, p, won, gap) == ("0.8 to 1", 2, 0.95, 0.5, 0.45)
    assert low < 1e-6 < 1 - 1e-6 < high  # two tasks, one won: nothing is known
    assert ends[0] < gap < ends[1]
    assert table.note.startswith("1 episodes stated no p")


def test_costs_by_stream() -> None:
    costs = (("api_calls", 10.0, "agent"), ("supervisor_min", 2.0, "human"))
    rows = descriptive.costs(observe([episode(costs=costs)], PRICES)).rows
    assert rows == (
        ("agent", 0.001, 0.001, None, None, 0),
        ("human", 2.0, 2.0, None, None, 0),
        ("evaluation", 0.0, 0.0, None, None, 0),
    )


def test_every_mean_of_a_breakdown_has_its_interval_over_tasks() -> None:
    """Of three won of four tasks, two repeats each: the usual error on the logits."""
    traces = [
        episode(index=i, pair=f"p{i // 2}", repeat=i % 2, q_state=float(i >= 2)) for i in range(8)
    ]
    table = descriptive.by_tier(observe(traces, PRICES))
    assert "jackknife over tasks" in table.note
    (row,) = table.rows
    cells = dict(zip(table.columns, row, strict=True))
    assert cells["success"] == 0.75
    assert 0 < cells["success low"] < 0.75 < cells["success high"] < 1
    assert {f"{c} low" for c in ("Q", "q_state", "helped", "solved depth")} <= set(cells)


def test_honeypots_are_counted_apart() -> None:
    traces = [
        episode(index=0, honeypot=True, q_state=0.0, outcome="infeasible"),
        episode(index=1, pair="b", honeypot=True, q_state=1.0),
    ]
    traces += [
        episode(index=2, pair="c", q_state=0.0, outcome="infeasible"),
        *(episode(index=i, pair=str(i)) for i in range(3, 6)),
    ]
    table = observe(traces, PRICES)
    assert [row[:6] for row in descriptive.infeasible(table).rows] == [
        ("feasible", 4, 1, 3, 3, 0.25),
        ("infeasible", 2, 1, 1, 1, 0.5),
    ]
    assert all(row[6] < row[5] < row[7] for row in descriptive.infeasible(table).rows)


def test_tiers_and_magnitudes_and_budgets_have_their_rows() -> None:
    traces = [
        episode(index=0, pair="a", tier=1, delta=0.0),
        episode(index=1, pair="b", tier=2, delta=0.5, interventions=None),
        episode(index=2, pair="c", tier=2, delta=None, day=3),
    ]
    table = observe(traces, PRICES)
    assert [r[0] for r in descriptive.by_tier(table).rows] == ["toolquest T1", "toolquest T2"]
    assert [r[0] for r in descriptive.by_magnitude(table).rows] == [0.0, 0.5, "by day"]
    assert [r[0] for r in descriptive.by_budget(table).rows] == ["no limit", 0]


@pytest.mark.parametrize(("won", "of"), [(0, 7), (3, 9), (20, 20)])
def test_bands_of_curves_are_over_tasks(won: int, of: int) -> None:
    """Two episodes a task, one outcome a task: as many tasks as without the second."""
    traces = [
        episode(index=i, pair=str(i // 2), stated=0.5, q_state=float(i // 2 < won))
        for i in range(2 * of)
    ]
    (curve,) = descriptive.calibration_curve(observe(traces, PRICES))
    expected = mean_over_tasks(np.arange(of) < won, np.arange(of))
    assert (curve.y[0], curve.low[0], curve.high[0]) == expected


def test_powers_over_magnitudes_of_one_task_have_no_interval() -> None:
    """Three magnitudes of one world were three instances before."""
    traces = [
        episode(index=i, pair="a", delta=delta, q_state=float(i % 2))
        for i, delta in enumerate((0.0, 0.5, 1.0))
    ]
    [row] = descriptive.pass_powers(observe(traces, PRICES)).rows
    assert row[:3] == (1, 3, pytest.approx(1 / 3, abs=1e-6))
    assert row[3:] == (None, None)


def test_calibration_has_a_point_per_tenth_of_stated_p() -> None:
    stated = (0.91, 0.99, 0.2, None)
    traces = [
        episode(index=i, pair=str(i), stated=p, q_state=float(i == 0)) for i, p in enumerate(stated)
    ]
    (line,) = descriptive.calibration_curve(observe(traces, PRICES))
    assert line.x == (0.2, 0.95)
    assert line.y == (0.0, 0.5)
    assert line.used == (1, 2)
    assert line.diagonal
    assert (line.low[0], line.high[0]) == (None, None)  # one task
    assert line.low[1] == pytest.approx(0.0, abs=1e-6)  # one of two tasks succeeds
    assert line.high[1] == pytest.approx(1.0, abs=1e-6)


def test_who_states_nothing_has_no_calibration() -> None:
    traces = [episode(index=0, pair="a", stated=None)]
    assert descriptive.calibration_curve(observe(traces, PRICES)) == ()


def test_an_episode_counts_under_its_hardest_class_alone() -> None:
    traces = [
        episode(index=0, pair="a"),
        episode(index=1, pair="b", classes=("D1",), delta=0.5),
        episode(index=2, pair="c", classes=("D1", "D3"), delta=0.5, q_state=0.0),
    ]
    first, second = descriptive.class_curves(observe(traces, PRICES))
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
    table = descriptive.by_day(observe(traces, PRICES))
    assert [(row[0], row[1], row[5], row[8]) for row in table.rows] == [
        (0, 1, 0.0, 0.0),
        (1, 2, 0.75, 0.5),
    ]


def test_a_run_without_days_has_no_checkpoints() -> None:
    assert descriptive.by_day(observe([episode()], PRICES)) is None


def test_amounts_and_costs_are_per_episode_and_unknown_prices_are_counted() -> None:
    traces = [
        episode(index=0, pair="a", costs=(("api_calls", 30.0, "agent"),)),
        episode(index=1, pair="b", costs=(("api_calls", 10.0, "agent"),)),
        episode(index=2, pair="c", costs=(("no such meter", 4.0, "human"),)),
        episode(index=3, pair="d", costs=()),
    ]
    table = observe(traces, PRICES)
    amounts = {row[:2]: row[2:4] for row in descriptive.resources(table).rows}
    assert amounts == {("agent", "api_calls"): (40.0, 10.0), ("human", "no such meter"): (4.0, 1.0)}
    columns = descriptive.costs(table).columns
    assert columns[2:5] == ("USD an episode", "USD an episode low", columns[4])
    rows = {row[0]: row[1:] for row in descriptive.costs(table).rows}
    whole, each, low, high, unknown = rows["agent"]
    assert (whole, each, unknown) == (0.004, 0.001, 0)
    assert 0 < low < each < high
    assert rows["human"] == (None, None, None, None, 1)
    assert descriptive.money_totals(table) == {"agent": 4000, "human": None, "evaluation": 0}


def test_means_of_a_group_are_over_its_episodes() -> None:
    traces = [
        episode(index=0, pair="a", tier=1, q_state=0.5, stated=None, solved=2),
        episode(index=1, pair="b", tier=1, q_state=1.0, stated=1.0, hints_after=(3,)),
        episode(index=2, pair="c", tier=2, q_state=0.25, stated=None),
    ]
    table = observe(traces, PRICES)
    first, second = descriptive.by_tier(table).rows
    q = table.q.tolist()
    assert first[:2] == ("toolquest T1", 2)
    assert first[2::3] == ((q[0] + q[1]) / 2, 0.75, 0.5, 0.5, 3.5)
    assert second[:3] == ("toolquest T2", 1, q[2])
    assert second[5::3][:2] == (0.25, 0.0)
    assert descriptive.by_family(table).rows[0][:2] == ("toolquest/reconcile", 3)


def test_magnitudes_say_how_much_was_realised() -> None:
    traces = [
        episode(index=i, pair=str(i), delta=0.5, realised=r) for i, r in enumerate((0.3, 0.6))
    ]
    note = descriptive.by_magnitude(observe(traces, PRICES)).note
    assert note.startswith("0.5 realised 0.450; ")


def test_stated_p_on_an_edge_is_in_the_upper_fifth() -> None:
    stated = (0.2, 0.39, 0.4, 0.0)
    traces = [
        episode(index=i, pair=str(i), stated=p, q_state=float(i < 1)) for i, p in enumerate(stated)
    ]
    table = descriptive.calibration(observe(traces, PRICES))
    assert [(*row[:4], row[6]) for row in table.rows] == [
        ("0 to 0.2", 1, 0.0, 0.0, 0.0),
        ("0.2 to 0.4", 2, 0.295, 0.5, -0.205),
        ("0.4 to 0.6", 1, 0.4, 0.0, 0.4),
    ]


def test_powers_of_instances_with_fewer_repeats_stop_there() -> None:
    traces = [
        episode(index=0, pair="p", repeat=0),
        episode(index=1, pair="p", repeat=1, q_state=0.0),
        episode(index=2, pair="r", repeat=0),
        episode(index=3, pair="p", repeat=0, delta=0.5),
    ]
    rows = descriptive.pass_powers(observe(traces, PRICES)).rows
    assert [row[:3] for row in rows] == [(1, 3, pytest.approx(2.5 / 3, abs=1e-6)), (2, 1, 0.0)]
    none = descriptive.pass_powers(observe([], PRICES))
    assert (none.rows, none.note) == ((), "no episode")


def test_episodes_without_drift_are_in_every_class_curve() -> None:
    traces = [
        episode(index=0, pair="a", q_state=0.0),
        episode(index=1, pair="b"),
        episode(index=2, pair="c", classes=("D1",), delta=0.5),
        episode(index=3, pair="d", classes=("D1",), delta=0.5, q_state=0.0),
        episode(index=4, pair="e", classes=("D1",), delta=1.0),
        episode(index=5, pair="f", classes=("D1",), delta=None, day=1),
    ]
    (curve,) = descriptive.class_curves(observe(traces, PRICES))
    assert curve.x == (0.0, 0.5, 1.0)
    assert curve.y == (0.5, 0.5, 1.0)
    assert curve.used == (2, 2, 1)


def test_violations_stand_with_their_attempt() -> None:
    traces = [
        episode(index=0, pair="a"),
        episode(index=1, pair="b", violations=(("no-mail", "warn"),)),
    ]
    (text,) = descriptive.violations(observe(traces, PRICES))
    assert text.startswith(traces[1].leaf.attempt_id)
    assert "no-mail (warn): seen" in text


def test_waits_are_counted_by_action_and_by_episode() -> None:
    table = SimpleNamespace(steps=np.array([8, 3, 5]), waits=np.array([0, 1, 4]))
    table = _Rows(**vars(table))
    (row,) = descriptive.waits(table).rows
    assert row == (16, 5, pytest.approx(5 / 3, abs=1e-6), 2)
    none = _Rows(steps=np.zeros(0, int), waits=np.zeros(0, int))
    assert descriptive.waits(none).rows == ((0, 0, 0.0, 0),)


class _Rows(SimpleNamespace):
    """Columns of episodes."""

    def __len__(self) -> int:
        return len(self.steps)


def test_an_amount_that_is_unknown_or_of_nothing_is_blank() -> None:
    blank = (None, None, None)
    for column in (np.zeros(0), np.array([1.0, np.nan])):
        table = SimpleNamespace(pair=np.array(["p", "q"])[: len(column)])
        assert descriptive._each(column, table) == blank  # type: ignore[arg-type]
