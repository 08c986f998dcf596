"""The table of coverage takes the interval that reports take, for many runs at once."""

import numpy as np
import pytest
from scipy import special

from benchmarks import gate_passes
from owa_bench.records.observables import NO_DAY
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


def test_days_with_the_same_tasks_are_judged_as_a_report_judges_them():
    found = gate_passes.same_tasks(0.6, 5, 0.3, 3, np.random.default_rng(0), 0.8, 12)
    days = np.array([0, 1, 2, 3, 4, *[NO_DAY] * 12])
    how = Clusters("", "tasks", np.arange(17), (days < 0).astype(int), "", days)
    law = gate_passes.day_law(found.by_day, found.by_task)
    rows = zip(found.by_day, found.by_task, *law.interval(0.95), strict=True)
    for by_day, by_task, low, high in rows:
        left = [(x.sum() - x) / (len(x) - 1) for x in (by_day, by_task)]
        one = jackknife_estimate(float(by_day.mean()), np.concatenate(left), how)
        assert special.logit(one.quantile(0.025)) == pytest.approx(low)
        assert special.logit(one.quantile(0.975)) == pytest.approx(high)


def test_the_same_tasks_every_day_miss_where_the_error_over_tasks_is_left_out():
    """The fault that was: days alike are taken for many tasks."""
    found = gate_passes.same_tasks(0.6, 7, 0.0, 1000, np.random.default_rng(2), 0.9, shock=0.0)
    truth, level = special.logit(0.6), 0.95
    by_days = gate_passes.day_law(found.by_day).lower(level) > truth
    assert by_days.mean() > 0.2
    by_both = gate_passes.day_law(found.by_day, found.by_task).lower(level) > truth
    assert by_both.mean() <= gate_passes.ONE_SIDED


def test_what_days_share_is_a_task_and_not_a_day():
    whole = gate_passes.same_tasks(0.5, 4, 0.0, 2, np.random.default_rng(3), 1.0, 30, 0.0)
    assert (whole.by_day == whole.by_day[:, :1]).all()
    assert set(whole.by_task.ravel()) == {0.0, 1.0}
    fresh = gate_passes.same_tasks(0.5, 4, 0.0, 2, np.random.default_rng(3), 0.0, 30, 0.0)
    assert len(set(fresh.by_day.ravel())) > 2
