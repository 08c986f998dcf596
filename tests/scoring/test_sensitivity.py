"""Sensitivity tables: other anchors, other prices."""

import numpy as np
import pytest

from owa_bench.discovery import find
from owa_bench.records.score import CellTable
from owa_bench.records.trace import Trace
from owa_bench.scoring.axis import Anchors
from owa_bench.scoring.sensitivity import moved_anchors
from tests.builders.episodes import episode
from tests.builders.verdicts import verdict

AXES = {f.plugin.symbol: f.plugin for f in find("axes").values()}


def table(traces: list[Trace], title: str) -> CellTable:
    return next(t for t in verdict(traces).tables if t.title == title)


def played() -> list[Trace]:
    return [
        episode(
            index=k,
            pair=f"p{k}",
            q_state=1.0 if k < 8 else 0.0,
            costs=(
                ("api_calls", 100_000.0, "agent"),
                ("supervisor_min", 5.0, "human"),
            ),
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
    row = next(r for r in anchors.rows if r[0] == "A")
    assert row[3] >= row[4]
    prices = table(played(), "Sensitivity of $ to prices")
    by_name = {r[0]: r for r in prices.rows}
    assert set(by_name) == {"api_calls", "supervisor_min"}
    assert by_name["api_calls"][2] > by_name["api_calls"][3]
    assert sum(r[1] for r in prices.rows) == pytest.approx(1.0)
