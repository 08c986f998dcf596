"""The table of coverage takes the interval that reports take, for many runs at once."""

import numpy as np
import pytest
from scipy import special

from benchmarks import gate_passes
from owa_bench.scoring.statistics.jackknife import Clusters, jackknife_estimate


def test_days_are_judged_as_a_report_judges_them():
    values = gate_passes.daily(0.6, 9, 0.3, 3, np.random.default_rng(0))
    days = np.arange(9)
    how = Clusters("", "days", days, np.zeros_like(days), "", days)
    law = gate_passes.day_law(values)
    for row, low, high in zip(values, *law.interval(0.95), strict=True):
        found = jackknife_estimate(float(row.mean()), (row.sum() - row) / 8, how)
        assert special.logit(found.quantile(0.025)) == pytest.approx(low)
        assert special.logit(found.quantile(0.975)) == pytest.approx(high)


def test_either_end_of_a_law_is_where_its_p_value_says():
    law = gate_passes.day_law(np.array([[0.5] * 3 + [0.99] * 5]))
    for level in (0.025, 0.5, 0.975):
        assert law.p_above(law.lower(level)) == pytest.approx(1 - level)
        assert law.p_above(law.upper(level)) == pytest.approx(level)


def test_a_shock_of_neighbouring_days_passes_no_gate_for_nothing():
    rng = np.random.default_rng(1)
    for level in (0.55, 0.45):
        values = gate_passes.daily(level, 14, 0.6, 300, rng)
        answers = gate_passes.day_answers(values, level + 0.05)
        assert gate_passes.passing(answers) <= gate_passes.ONE_SIDED


def test_a_level_at_its_requirements_says_below_in_few_runs():
    """The control stands in tests/scoring/test_levels.py: one bound for each gate alone."""
    found = list(gate_passes.says_below(32))
    assert [rate.answer for rate in found] == ["BELOW"] * 3 + ["pass"] * 3 + ["BELOW"] * 3
    for rate in found:
        assert rate.rate <= 0.25 if rate.false else rate.rate > 0
    assert found[0]._replace(rate=0.061).words == "TOO OFTEN"
    assert found[0]._replace(rate=0.06).words == "false BELOW"
