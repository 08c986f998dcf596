"""Sensitivity tables: other anchors, other prices."""

from types import SimpleNamespace

import numpy as np
import pytest

from owa_bench.discovery import find
from owa_bench.records.score import CellTable
from owa_bench.records.trace import Trace
from owa_bench.scoring.axis import Anchors
from owa_bench.scoring.estimate.statistic_key import StatisticKey, StatisticKind
from owa_bench.scoring.verdict.sensitivity import (
    _by_meter,
    anchor_table,
    moved_anchors,
    price_table,
)
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import verdict

AXES = {f.plugin.symbol: f.plugin for f in find("axes").values()}


def of_axis(symbol: str, *values: float) -> dict[StatisticKey, float]:
    """Return value, raw statistic, anchors and factor of an axis by key."""
    kinds: tuple[StatisticKind, ...] = ("value", "raw", "low", "high", "factor")
    return {StatisticKey(symbol, k): x for k, x in zip(kinds, values, strict=True)}


def table(traces: list[Trace], title: str) -> CellTable:
    return next(t for t in verdict(traces).tables if t.title == title)


def played() -> list[Trace]:
    return [
        episode(
            index=k,
            pair=f"p{k}",
            q_state=1.0 if k < 8 else 0.0,
            costs=(("api_calls", 100_000.0, "agent"), ("supervisor_min", 5.0, "human")),
        )
        for k in range(12)
    ]


def test_a_linear_axis_moves_as_its_map() -> None:
    ends = Anchors(np.zeros(1), np.ones(1))
    found = moved_anchors(AXES["A"], 0.5, ends, 0.1)
    assert found["hi +"] == pytest.approx(0.5 / 1.1)
    assert found["hi -"] == pytest.approx(0.5 / 0.9)
    assert found["lo +"] == pytest.approx(0.4 / 0.9)


def test_a_logarithmic_axis_moves_by_factors() -> None:
    ends = Anchors(np.array([1e-4]), np.array([10.0]))
    found = moved_anchors(AXES["$"], 1.0, ends, 0.1)
    assert found["hi +"] == pytest.approx(np.log(1e4) / np.log(1.1e5))


def test_the_tables_stand_in_the_verdict() -> None:
    anchors = table(played(), "Sensitivity to the anchors")
    assert "AAI is not computable" in anchors.note
    row = next(r for r in anchors.rows if r[0] == "P")
    assert row[3] >= row[4]
    prices = table(played(), "Sensitivity of $ to prices")
    by_name = {r[0]: r for r in prices.rows}
    assert set(by_name) == {"api_calls", "supervisor_min"}
    assert by_name["api_calls"][2] > by_name["api_calls"][3]
    assert sum(r[1] for r in prices.rows) == pytest.approx(1.0)


def test_each_anchor_moves_alone_both_ways() -> None:
    """Lo = .2, hi = .7, raw = .6, moved by .1 of their distance or of themselves."""
    ends = Anchors(np.array([0.2]), np.array([0.7]))
    linear = moved_anchors(AXES["A"], 0.6, ends, 0.1)
    assert linear == pytest.approx(
        {
            "lo -": (0.6 - 0.15) / (0.7 - 0.15),
            "lo +": (0.6 - 0.25) / (0.7 - 0.25),
            "hi -": (0.6 - 0.2) / (0.65 - 0.2),
            "hi +": (0.6 - 0.2) / (0.75 - 0.2),
        }
    )
    log = np.log
    by_factors = moved_anchors(AXES["$"], 0.6, ends, 0.1)
    assert by_factors == pytest.approx(
        {
            "lo -": log(0.6 / 0.18) / log(0.7 / 0.18),
            "lo +": log(0.6 / 0.22) / log(0.7 / 0.22),
            "hi -": log(0.6 / 0.2) / log(0.63 / 0.2),
            "hi +": log(0.6 / 0.2) / log(0.77 / 0.2),
        }
    )


def test_the_index_moves_by_its_weight_where_it_is_computable() -> None:
    """AAI is the weighted geometric mean: one axis moved changes its own factor."""
    sample = SimpleNamespace(protocol=PROTOCOL)
    used = {str(s): w for s, w in PROTOCOL.index.weights.items() if w > 0}
    point = {StatisticKey("AAI"): 0.5}
    for symbol in (*used, "E"):
        point |= of_axis(symbol, 0.5, 0.5, 0.0, 1.0, 1.0)
    axes = [AXES[symbol] for symbol in ("A", "E")]
    found = anchor_table(sample, axes, point)  # type: ignore[arg-type]
    change = PROTOCOL.index.anchor_change
    share = used["A"] / sum(used.values())
    rows = {row[0]: row[1:] for row in found.rows}
    moved = 0.5 / (1 + change)
    assert rows["A"][3] == pytest.approx(0.5 ** (1 - share) * moved**share, abs=1e-6)
    assert rows["E"][3] == pytest.approx(moved, abs=1e-6)
    assert found.note.startswith("AAI with one anchor moved by")
    alone = {k: v for k, v in point.items() if k.of != "AAI"} | {StatisticKey("E"): np.nan}
    found = anchor_table(sample, axes, alone)  # type: ignore[arg-type]
    assert [row[0] for row in found.rows] == ["A"]
    assert found.rows[0][4] == pytest.approx(moved, abs=1e-6)


def test_prices_move_the_cost_by_the_share_of_their_meter() -> None:
    """Twelve times 100,000 calls of .0001 USD and 5 minutes of 1 USD: 10 and 5 USD."""
    traces = played()
    found = verdict(traces)
    prices = next(t for t in found.tables if t.title == "Sensitivity of $ to prices")
    axis = next(a for a in found.axes if a.symbol == "$")
    change = PROTOCOL.index.anchor_change
    rows = {row[0]: row[1:] for row in prices.rows}
    assert rows["api_calls"][0] == pytest.approx(2 / 3, abs=1e-6)
    assert rows["supervisor_min"][0] == pytest.approx(1 / 3, abs=1e-6)

    def value(cost: float, expert: float = 1.0) -> float:
        low, high = axis.low_anchor / expert, axis.high_anchor / expert
        place = np.log(axis.raw / cost / low) / np.log(high / low)
        return float(np.clip(place, 0.0, 1.0))

    for meter, share, expert in (("api_calls", 2 / 3, 0), ("supervisor_min", 1 / 3, 1)):
        cheaper, dearer = 1 - change, 1 + change
        for place, factor in ((1, cheaper), (2, dearer)):
            expected = value(1 + (factor - 1) * share, factor if expert else 1.0)
            assert rows[meter][place] == pytest.approx(expected, abs=1e-4)


def test_evaluation_counts_at_checkpoints_alone() -> None:
    """A call of .0001 USD counts; five minutes of the evaluation stream do not."""
    costs = (("api_calls", 100_000.0, "agent"), ("supervisor_min", 5.0, "evaluation"))
    traces = [episode(index=k, pair=f"p{k}", q_state=float(k < 8), costs=costs) for k in range(12)]
    rows = {r[0]: r for r in table(traces, "Sensitivity of $ to prices").rows}
    assert rows["api_calls"][1] == 1.0
    assert rows["supervisor_min"][1] == 0.0


def test_money_by_meter_is_of_the_base_and_of_checkpoints_that_are_evaluated() -> None:
    spent_by = (("agent", "a"), ("human", "a"), ("evaluation", "a"), ("agent", "b"))
    table = SimpleNamespace(
        spent_by=(*spent_by, ("agent", "free"), ("agent", "none")),
        spent=np.array([[1.0, 2.0, 4.0, 8.0, 9.0, 0.0], [16.0] * 6, [32.0] * 5 + [0]]),
        phase=np.array(["holdout", "checkpoint", "checkpoint"]),
    )
    base = np.array([True, True, False])
    micro = {"a": 10**12, "b": 2 * 10**12, "none": 0, "supervisor_min": 10**12}
    sample = SimpleNamespace(table=table, base=base, prices=SimpleNamespace(price=micro.get))
    found = _by_meter(sample)
    assert found == {"a": 1 + 16 + 2 + 16 + 16.0, "b": 2 * (8 + 16.0)} | {"supervisor_min": 0.0}
    table.spent = table.spent / 100
    assert _by_meter(sample)["b"] == pytest.approx(0.48)
    del micro["supervisor_min"]
    assert set(_by_meter(sample)) == {"a", "b"}


def test_a_dearer_meter_costs_its_share() -> None:
    """9 USD of a and 1 of a supervisor, whose minute prices the expert too."""
    table = SimpleNamespace(
        spent_by=(("agent", "a"), ("human", "supervisor_min")),
        spent=np.array([[9.0, 1.0]]),
        phase=np.array(["holdout"]),
    )
    price = dict.fromkeys(("a", "supervisor_min"), 10**12)
    sample = SimpleNamespace(
        table=table,
        base=np.ones(1, bool),
        prices=SimpleNamespace(price=price.get),
        protocol=PROTOCOL,
    )
    assert PROTOCOL.index.anchor_change == 0.1
    point = of_axis("$", 0.4, 1.0, 0.1, 10.0, 0.8)
    found = price_table(sample, tuple(AXES.values()), point)
    assert found is not None

    def value(raw: float, expert: float = 1.0) -> float:
        return pytest.approx(0.8 * np.log10(raw * expert / 0.1) / 2)  # type: ignore[return-value]

    assert found.rows == (
        ("a", 0.9, value(1 / 0.91), value(1 / 1.09)),
        ("supervisor_min", 0.1, value(1 / 0.99, 0.9), value(1 / 1.01, 1.1)),
    )
    assert price_table(sample, (AXES["A"],), point) is None
    assert price_table(sample, (AXES["$"],), {StatisticKey("$"): np.nan}) is None
