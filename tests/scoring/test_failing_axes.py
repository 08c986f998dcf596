"""An axis that raises is missing by name; the report and the other axes stand."""

import re

import numpy as np
import pytest

from owa_bench.scoring import axis as axis_module
from owa_bench.scoring import pipeline
from owa_bench.scoring.axis import all_axes
from tests.builders.episodes import episode
from tests.scoring.test_pipeline import battery, only


def judged_with(plug_in, monkeypatch):
    """Return the verdict of a small battery with one axis of another package."""
    axes = (*all_axes(), plug_in)
    monkeypatch.setattr(pipeline, "all_axes", lambda: axes)
    return only(battery(tasks=3))


def axis_of(verdict, symbol):
    return next(axis for axis in verdict.axes if axis.symbol == symbol)


def test_anchors_that_coincide_cost_t_and_nothing_else():
    """All six magnitudes of one task whose tools nobody could use."""
    traces = [
        episode(index=i, pair="p", delta=delta, used=(), q_state=0.0, stated=0.0)
        for i, delta in enumerate((0.0, 0.1, 0.25, 0.5, 0.75, 1.0))
    ]
    verdict = only(traces)
    assert axis_of(verdict, "P").value is not None


@pytest.mark.parametrize(
    ("method", "step"),
    [
        ("columns", "collecting the episodes"),
        ("raw", "the raw statistic"),
        ("anchors", "the calibration"),
        ("secondary", "a secondary statistic"),
        ("diagnostics", "a diagnostic"),
    ],
)
def test_a_plug_in_that_raises_is_named_with_method_and_cause(monkeypatch, method, step):
    def broken(*_):
        raise AttributeError("no attribute 'hours'")

    def mean(sample):
        return np.ones(len(sample.table))

    plug_in = axis_module.Axis(
        symbol="Z",
        name="zeal",
        formula=lambda x: x,
        columns={"x": broken if method == "columns" else mean},
        **({} if method == "columns" else {method: broken}),
    )
    verdict = judged_with(plug_in, monkeypatch)
    failed = axis_of(verdict, "Z")
    assert failed.value is None
    assert f"{step} of axis `zeal` failed" in failed.reason
    assert "no attribute 'hours' (test_failing_axes.py:" in failed.reason
    monkeypatch.setattr(pipeline, "all_axes", all_axes)
    plain = only(battery(tasks=3))
    assert [axis for axis in verdict.axes if axis.symbol != "Z"] == list(plain.axes)


def ones(sample):
    return np.ones(len(sample.table))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"columns": {"x": lambda sample: np.ones(1)}},
            r"`Z:x` must have a value per episode, shape \(\d+,\), got shape \(1,\)",
        ),
        (
            {"formula": lambda x: 0.5},
            r"the raw statistic must be an array of shape .* got shape \(\)",
        ),
        (
            {"secondary": lambda totals, sample: {"hours": 1.0}},
            r"`hours` must be an array of shape",
        ),
        (
            {"secondary": lambda totals, sample: {"y": totals.overall_mean("Z:y")}},
            r"No column is called `Z:y#?`; near: Z:x, Z:x#",
        ),
        ({"gated": "hours"}, "`gated` must be one of x"),
        ({"diagnostics": lambda sample: {"all": ones(sample)}}, "make it a list"),
    ],
)
def test_a_plug_in_that_returns_nonsense_is_told_what_is_wrong(monkeypatch, changes, words):
    parts = {
        "formula": lambda x: x,
        "columns": {"x": ones},
        "secondary": lambda totals, sample: {"x": totals.overall_mean("Z:x")},
    }
    plug_in = axis_module.Axis("Z", "zeal", **parts | changes)
    failed = axis_of(judged_with(plug_in, monkeypatch), "Z")
    assert failed.value is None
    assert re.search(words, failed.reason), failed.reason
