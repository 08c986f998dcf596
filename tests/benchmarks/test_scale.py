"""What ten million episodes cost, from a run of a hundred thousand."""

import pytest
import scale


def test_ten_million_episodes_are_a_hundred_runs():
    figures = dict.fromkeys(scale.COLUMNS, 0.0)
    figures |= {"plan s": 10.0, "play s": 3_600.0, "report s": 26.0, "shards MB": 400.0}
    table = scale.paper(tuple(figures.values()), workers=2)
    row = table.rows[0].figures
    assert table.title.startswith("10,000,000 episodes as 100 runs")
    assert row["worker hours"] == pytest.approx(200.0)
    assert row["hours of play"] == pytest.approx(200.0 / 64)
    assert row["hours of the rest, one process"] == pytest.approx(1.0)
    assert row["GB"] == pytest.approx(40.0)
    assert row["MB/s while played"] == pytest.approx(40e3 / (200 * 3600 / 64))


def test_a_size_that_was_played_is_no_extrapolation():
    assert scale.extrapolated([100, 1_000], [(1.0,), (10.0,)], 1_000) == (10.0,)
    assert scale.extrapolated([100, 1_000], [(1.0,), (10.0,)], 1_900) == (19.0,)
