"""What every axis does in the same way: anchors, calibration, checks."""

from types import SimpleNamespace

import numpy as np
import pytest

from owa_bench.errors import ScoringError, UsageError
from owa_bench.scoring.axis import (
    Anchors,
    Axis,
    Coverage,
    calibrate,
    check_shapes,
    check_values,
    checked_axes,
    log_position,
    protocol_anchors,
)
from tests.builders.episodes import PROTOCOL

ONES = np.ones(2)


def identity(x: np.ndarray) -> np.ndarray:
    return x


def axis(**changes: object) -> Axis:
    fields = {"symbol": "Z", "name": "zest", "formula": identity, "columns": {"x": len}}
    return Axis(**(fields | changes))  # type: ignore[arg-type]


def test_calibration_is_the_clipped_place_between_the_anchors() -> None:
    anchors = Anchors(np.full(4, 0.2), np.full(4, 0.7))
    found = calibrate(np.array([0.1, 0.2, 0.3, 0.9]), anchors)
    assert found == pytest.approx([0.0, 0.0, 0.2, 1.0])
    with pytest.raises(ScoringError, match=r"got 0.5 and 0.5"):
        calibrate(ONES, Anchors(np.array([0.2, 0.5]), np.array([0.7, 0.5])))


def test_the_place_on_a_log_scale_knows_zero() -> None:
    anchors = Anchors(np.full(3, 0.1), np.full(3, 10.0))
    found = log_position(np.array([0.0, 0.1, 100.0**0.25]), anchors)
    assert found == pytest.approx([0.0, 0.0, 0.75])
    straight = axis().value(np.array([0.25]), Anchors(np.zeros(1), np.ones(1)))
    assert straight.tolist() == [0.25]
    log = axis(log_scale=True).value(np.ones(3), anchors)
    assert log.tolist() == [0.5] * 3


def test_an_axis_declares_columns_or_both_of_their_replacements() -> None:
    def collect(*_: object) -> Coverage:
        return Coverage(3, 4)

    for wrong in ({}, {"collect": collect}, {"raw": identity}):
        with pytest.raises(UsageError, match="must declare `columns`"):
            axis(columns={}, **wrong)
    own = axis(columns={}, collect=collect, raw=lambda totals, sample: totals)
    assert own.add_columns(None, None) == (3, 4, None)  # type: ignore[arg-type]
    assert own.raw_statistic("totals", None) == "totals"  # type: ignore[arg-type, comparison-overlap]


def test_without_evidence_the_reason_is_kept() -> None:
    sample = SimpleNamespace(base=np.array([True, True, False]))
    missing = axis(missing=lambda _: "nobody asked")
    assert missing.add_columns(sample, None) == (0, 2, "nobody asked")  # type: ignore[arg-type]
    nothing = SimpleNamespace(base=np.zeros(3, dtype=bool))
    why = "no counted episode without help"
    assert axis().add_columns(nothing, None) == (0, 0, why)  # type: ignore[arg-type]


def test_anchors_are_the_protocols_or_the_oracles() -> None:
    sample = SimpleNamespace(protocol=PROTOCOL)
    totals = SimpleNamespace(table=np.zeros((2, 1, 1)))
    unknown = axis(high=0.8).anchor_bounds(totals, sample)  # type: ignore[arg-type]
    assert unknown.low.tolist() == [0.0, 0.0]
    assert unknown.high.tolist() == [0.8, 0.8]
    oracle = axis(high=lambda _: np.array([0.3, 0.4])).anchor_bounds(totals, sample)  # type: ignore[arg-type]
    assert oracle.high.tolist() == [0.3, 0.4]
    given = axis(anchors=lambda *_: Anchors(ONES, 2 * ONES))
    assert given.anchor_bounds(totals, sample).high.tolist() == [2.0, 2.0]  # type: ignore[arg-type]
    for symbol, anchor in PROTOCOL.anchors.items():
        found = protocol_anchors(sample, str(symbol), 0.6 * ONES)  # type: ignore[arg-type]
        high = 0.6 if isinstance(anchor.high, str) else anchor.high
        assert found.low.tolist() == [anchor.low] * 2
        assert found.high.tolist() == [high] * 2


def test_symbols_are_taken_once_and_ours_are_our_own() -> None:
    ours, theirs = axis(symbol="A", name="autonomy"), axis()
    assert checked_axes([(ours, ""), (theirs, "pkg")]) == (ours, theirs)
    with pytest.raises(UsageError, match="taken by owa_bench"):
        checked_axes([(axis(symbol="A"), "pkg")])
    with pytest.raises(UsageError, match="taken by pkg"):
        checked_axes([(theirs, "pkg"), (axis(name="other"), "other")])
    with pytest.raises(UsageError, match="got a str from package pkg"):
        checked_axes([("no axis", "pkg")])


def test_arguments_of_a_formula_fit_and_are_numbers() -> None:
    check_values("f", ONES, np.array([True, False]))
    with pytest.raises(ScoringError, match=r"arrays of one shape, got \[\(2,\), \(3,\)\]"):
        check_shapes("f", ONES, np.ones(3))
    with pytest.raises(ScoringError, match="at least one value"):
        check_shapes("f", np.ones(0))
    with pytest.raises(ScoringError, match="cannot read NaN"):
        check_values("f", ONES, np.array([0.0, np.nan]))


def test_an_oracle_reads_1_and_positions_end_at_their_anchors() -> None:
    assert axis().high == 1.0
    anchors = Anchors(np.full(4, 0.1), np.full(4, 10.0))
    found = log_position(np.array([0.0, 0.01, 10.0, 100.0]), anchors)
    assert found.tolist() == [0.0, 0.0, 1.0, 1.0]
