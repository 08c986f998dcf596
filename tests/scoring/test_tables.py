"""Tables by hand."""

import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring import tables
from owa_bench.scoring.observables import observe
from tests.builders.episodes import PRICES, episode


def test_pass_power_is_unbiased() -> None:
    """Mean of C(c, 2) / C(3, 2) over all outcomes of three fair coins is 1/4."""
    outcomes = [0, 1, 1, 1, 2, 2, 2, 3]
    mean = sum(tables.pass_at_all(c, 3, 2) for c in outcomes) / 8
    assert mean == pytest.approx(0.25)


@pytest.mark.parametrize(("c", "n", "k"), [(1, 2, 3), (3, 2, 1), (-1, 2, 1), (1, 2, 0)])
def test_bad_counts_are_refused(c: int, n: int, k: int) -> None:
    with pytest.raises(ScoringError, match="pass\\^k"):
        tables.pass_at_all(c, n, k)


def test_pass_powers_group_an_instance_by_its_repeats() -> None:
    traces = [
        episode(index=i, pair="p", repeat=i, q_state=q, stated=None)
        for i, q in enumerate((1.0, 1.0, 0.0))
    ]
    rows = tables.pass_powers(observe(traces, PRICES)).rows
    assert rows[0] == (1, 1, pytest.approx(2 / 3))
    assert rows[1] == (2, 1, pytest.approx(1 / 3))
    assert rows[2] == (3, 1, 0.0)


def test_an_episode_stands_under_its_hardest_class() -> None:
    traces = [
        episode(index=0, pair="a"),
        episode(index=1, pair="b", classes=("D0", "D1"), delta=0.5),
        episode(index=2, pair="c", classes=("D3", "D1"), delta=1.0, q_state=0.0),
    ]
    rows = tables.by_class(observe(traces, PRICES)).rows
    assert [(row[0], row[1], row[4]) for row in rows] == [
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
    table = tables.calibration(observe(traces, PRICES))
    assert table.rows == (("0.8 to 1", 2, 0.95, 0.5, 0.45),)
    assert table.note.startswith("1 episodes stated no p")


def test_costs_by_stream() -> None:
    costs = (("api_calls", 10.0, "agent"), ("supervisor_min", 2.0, "human"))
    rows = tables.costs(observe([episode(costs=costs)], PRICES)).rows
    assert rows == (
        ("agent", 0.001, 0.001, 0),
        ("human", 2.0, 2.0, 0),
        ("evaluation", 0.0, 0.0, 0),
    )


def test_honeypots_are_counted_apart() -> None:
    traces = [
        episode(index=0, honeypot=True, q_state=0.0, outcome="infeasible"),
        episode(index=1, pair="b", honeypot=True, q_state=1.0),
    ]
    assert tables.honeypots(observe(traces, PRICES)).rows == ((2, 1, 1, 1),)


def test_tiers_and_magnitudes_and_budgets_have_their_rows() -> None:
    traces = [
        episode(index=0, pair="a", tier=1, delta=0.0),
        episode(index=1, pair="b", tier=2, delta=0.5, interventions=None),
        episode(index=2, pair="c", tier=2, delta=None, day=3),
    ]
    table = observe(traces, PRICES)
    assert [r[0] for r in tables.by_tier(table).rows] == [
        "toolquest T1",
        "toolquest T2",
    ]
    assert [r[0] for r in tables.by_magnitude(table).rows] == [0.0, 0.5, "by day"]
    assert [r[0] for r in tables.by_budget(table).rows] == ["no limit", 0]
