"""Jackknife intervals beside small cases worked out in plain Python."""

import math

import numpy as np
import pytest
from scipy import special, stats

from owa_bench.records.observables import NO_DAY
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.statistics.jackknife import (
    Clusters,
    covariance,
    jackknife_estimate,
    repeat_clusters,
    standard_error,
    task_clusters,
    without_each,
)
from owa_bench.scoring.statistics.slopes import MEAN_METHOD, mean_level
from owa_bench.scoring.statistics.statistics_table import (
    StatisticsTable,
    resampling_units,
    weighted_totals,
)
from tests.builders.episodes import PRICES, episode

FAMILIES = ("toolquest/a", "toolquest/b")
SHARE = np.array([0.25, 0.75])


def clusters(*stratum: int) -> Clusters:
    """Return one unit a cluster."""
    found = np.array(stratum)
    return Clusters("here", "tasks", np.arange(len(found)), found, "one alone")


def means(values: list[list[float]]) -> tuple[float, np.ndarray, Clusters]:
    """Return the mean of family means, without each task too, and the clusters."""
    point = sum(sum(x) / len(x) for x in values) / len(values)
    left_out = []
    for k, family in enumerate(values):
        for j in range(len(family)):
            rest = family[:j] + family[j + 1 :]
            parts = [sum(x) / len(x) for x in values]
            parts[k] = sum(rest) / len(rest)
            left_out.append(sum(parts) / len(parts))
    strata = [k for k, family in enumerate(values) for _ in family]
    return point, np.array(left_out), clusters(*strata)


def test_the_bounds_of_two_families_by_hand() -> None:
    values = [[0.2, 0.9, 0.7], [0.4, 0.1]]
    point, left_out, how = means(values)
    logits = [math.log(x / (1 - x)) for x in left_out.tolist()]
    first, second = logits[:3], logits[3:]
    square = sum(
        (len(part) - 1) / len(part) * sum((x - sum(part) / len(part)) ** 2 for x in part)
        for part in (first, second)
    )
    centre, reach = math.log(point / (1 - point)), stats.t.ppf(0.975, 3)
    ends = [centre - reach * math.sqrt(square), centre + reach * math.sqrt(square)]
    low, high = (1 / (1 + math.exp(-x)) for x in ends)
    found = jackknife_estimate(point, left_out, how)
    assert found.interval(0.95).low == pytest.approx(low, abs=1e-6)
    assert found.interval(0.95).high == pytest.approx(high, abs=1e-6)
    assert found.method == "here: jackknife over 5 tasks, 3 degrees of freedom"


def test_the_error_of_a_mean_is_its_usual_one() -> None:
    values = np.array([0.1, 0.5, 0.9, 0.4])
    left_out = (values.sum() - values) / 3
    expected = values.std(ddof=1) / 2
    assert standard_error(left_out, np.zeros(4, dtype=int)) == pytest.approx(expected)
    both = covariance(np.stack((left_out, -2 * left_out), axis=1), np.zeros(4, int))
    assert both[0, 1] == pytest.approx(-2 * expected**2)


@pytest.mark.parametrize(("tasks", "level"), [(20, 0.95), (59, 0.95)])
def test_all_clusters_at_one_give_the_exact_bound(tasks: int, level: float) -> None:
    how = clusters(*[0] * tasks)
    ones = jackknife_estimate(1.0, np.ones(tasks), how)
    assert ones.lower(level) == pytest.approx(0.05 ** (1 / tasks), abs=1e-6)
    assert ones.interval(level).low == pytest.approx(0.025 ** (1 / tasks), abs=1e-6)
    assert ones.interval(level).high == 1.0
    none = jackknife_estimate(0.0, np.zeros(tasks), how)
    assert none.upper(level) == pytest.approx(1 - 0.05 ** (1 / tasks), abs=1e-6)
    assert none.lower(level) == 0.0


def test_equal_clusters_below_one_are_no_certainty() -> None:
    found = jackknife_estimate(0.5, np.full(20, 0.5), clusters(*[0] * 20))
    assert found.lower(0.95) == pytest.approx(0.5 * 0.05 ** (1 / 20), abs=1e-6)


def test_one_failing_task_has_an_interval_although_the_rest_is_at_one() -> None:
    values = np.array([1.0] * 19 + [0.0])
    left_out = (values.sum() - values) / 19
    assert left_out.max() == 1.0
    error = values.std(ddof=1) / math.sqrt(20) / (0.95 * 0.05)
    low = 1 / (1 + math.exp(-(math.log(19) - stats.t.ppf(0.95, 19) * error)))
    found = jackknife_estimate(0.95, left_out, clusters(*[0] * 20))
    assert found.lower(0.95) == pytest.approx(low, abs=1e-6)


def test_clusters_that_a_statistic_does_not_read_say_nothing_about_it() -> None:
    """Five probes answered among 200 tasks are five clusters, not 200."""
    read = np.arange(200) < 5
    found = jackknife_estimate(1.0, np.ones(200), clusters(*[0] * 200), read)
    assert found.lower(0.95) == pytest.approx(0.05 ** (1 / 5), abs=1e-6)
    assert "over 5 tasks, 4 degrees" in found.method


def test_a_cut_statistic_is_no_better_than_its_own_scale() -> None:
    left_out = np.array([1.0, 1.0, 1.0, 0.4])
    error = standard_error(left_out, np.zeros(4, dtype=int))
    found = jackknife_estimate(1.0, left_out, clusters(0, 0, 0, 0))
    low = min(0.05 ** (1 / 4), max(1 - stats.t.ppf(0.95, 3) * error, 0.0))
    assert found.lower(0.95) == pytest.approx(low, abs=1e-6)


def test_positive_amounts_have_log_intervals_and_others_their_own_scale() -> None:
    values = np.array([1.0, 2.0, 6.0, 3.0])
    left_out, zero = (12 - values) / 3, np.zeros(4, dtype=int)
    reach = stats.t.ppf(0.95, 3)
    amount = jackknife_estimate(3.0, left_out, clusters(0, 0, 0, 0), share=False)
    logs = standard_error(np.log(left_out), zero)
    assert amount.lower(0.95) == pytest.approx(3 * math.exp(-reach * logs), rel=1e-6)
    shifted = jackknife_estimate(-1.0, left_out - 4, clusters(0, 0, 0, 0), share=False)
    plain = -1 - reach * standard_error(left_out, zero)
    assert shifted.lower(0.95) == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize(
    ("point", "left_out", "stratum", "words"),
    [
        (math.nan, [0.5, 0.5], [0, 0], "not computable"),
        (0.5, [0.5, math.nan], [0, 0], "without one of its clusters"),
        (0.5, [0.4, 0.6, 0.5], [0, 0, 1], "one alone"),
    ],
)
def test_a_missing_interval_says_why(point, left_out, stratum, words) -> None:
    found = jackknife_estimate(point, np.array(left_out), clusters(*stratum))
    assert words in str(found.interval(0.95).reason)
    assert found.interval(0.95).low is None
    assert found.lower(0.95) is None


def test_quartiles_lie_around_the_value() -> None:
    point, left_out, how = means([[0.2, 0.9, 0.7], [0.4, 0.1]])
    low, high = jackknife_estimate(point, left_out, how).quartiles() or (0, 0)
    assert low < point < high


def table_of(*rows: tuple[str, str, int, int]):
    """Return units and columns of episodes of (family, pair, repeat, day)."""
    table = observe(
        [
            episode(index=i, family=f, pair=p, repeat=r, day=d)
            for i, (f, p, r, d) in enumerate(rows)
        ],
        PRICES,
    )
    units = resampling_units(table, FAMILIES)
    statistics = StatisticsTable(units)
    statistics.add_sum("x", np.arange(len(rows)), 2.0 ** np.arange(len(rows)))
    return units, statistics.columns()


@pytest.mark.parametrize("chunk", [1, 10**6])
def test_sums_without_each_cluster_are_those_of_the_other_units(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("owa_bench.scoring.statistics.jackknife._CELLS_AT_ONCE", chunk)
    rows = [("a", "p", 0, 3), ("a", "p", 1, 4), ("a", "q", 0, 3), ("b", "r", 0, 4)]
    units, columns = table_of(*rows)
    for how in (task_clusters(units), clusters(0, 0, 0, 0)):
        found = [totals.table for totals in without_each(columns, how, units.unit_family, SHARE)]
        weights = np.ones((len(how.stratum), len(units.task)))
        weights[how.of, how.members] = 0.0
        expected = weighted_totals(weights, columns, units.unit_family, SHARE).table
        assert (np.concatenate(found) == expected).all()


def test_days_that_play_the_same_tasks_have_clusters_of_both() -> None:
    rows = (("a", "p", 0, 3), ("a", "q", 0, 3), ("a", "p", 0, 4), ("a", "q", 0, 4))
    units, _ = table_of(*rows)
    found = task_clusters(units)
    assert found.days is not None
    assert found.days.tolist() == [3, 4, -1, -1]
    assert found.stratum.tolist() == [0, 0, 1, 1]
    # p on 3, p on 4, q on 3, q on 4: each in its day, and each in its task
    assert found.members.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert found.of.tolist() == [0, 1, 0, 1, 2, 2, 3, 3]


def test_fresh_tasks_are_in_the_clusters_of_their_days() -> None:
    units, _ = table_of(("a", "p", 0, 3), ("b", "r", 0, 3), ("a", "q", 0, 4))
    found = task_clusters(units)
    assert found.of.tolist() == [0, 1, 0]
    assert found.stratum.tolist() == [0, 0]
    units, _ = table_of(("a", "p", 0, 3), ("b", "r", 0, 3), ("a", "q", 0, 3))
    found = task_clusters(units)
    assert (found.days, found.stratum.tolist()) == (None, [0, 0, 1])


def test_episodes_outside_the_days_are_clusters_of_their_tasks() -> None:
    """In a campaign with suites that are played once."""
    rows = (("a", "p", 0, 3), ("a", "q", 0, 4), ("b", "r", 0, -1), ("b", "s", 0, -1))
    units, _ = table_of(*rows)
    found = task_clusters(units)
    assert found.noun == "tasks"
    assert found.of.tolist() == [0, 1, 2, 3]
    assert found.stratum.tolist() == [0, 0, 2, 2]
    assert found.days is not None
    assert found.days.tolist() == [3, 4, -1, -1]


def test_days_alike_do_not_make_few_tasks_many() -> None:
    """Four tasks that come out the same on seven days: the error is theirs alone."""
    values = np.array([0.9, 0.2, 0.6, 0.5])
    rows = [("a", f"p{t}", 0, d) for t in range(4) for d in range(7)]
    units, _ = table_of(*rows)
    statistics = StatisticsTable(units)
    every = np.ones(28, dtype=bool)
    statistics.add_mean("q", np.repeat(values, 7), every)
    how, columns = task_clusters(units), statistics.columns()
    parts = without_each(columns, how, units.unit_family, SHARE)
    left_out = np.concatenate([totals.overall_mean("q") for totals in parts])
    found = jackknife_estimate(0.55, left_out, how)
    assert left_out[:7] == pytest.approx(0.55)
    assert found.method.startswith("tasks like these: jackknife over 7 days and 4 tasks, AR(1)")
    rest = special.logit((values.sum() - values) / 3)
    reach = stats.t.ppf(0.95, 3) * standard_error(rest, np.zeros(4, dtype=int))
    assert found.lower(0.95) == pytest.approx(special.expit(special.logit(0.55) - reach), abs=1e-6)


def test_the_exact_bound_counts_the_fewer_of_days_and_tasks() -> None:
    when = np.array([0, 1, 2, NO_DAY, NO_DAY, NO_DAY, NO_DAY])
    how = Clusters("here", "tasks", np.arange(7), np.array([0, 0, 0, 1, 1, 1, 1]), "x", when)
    ones = jackknife_estimate(1.0, np.ones(7), how)
    assert ones.lower(0.95) == pytest.approx(0.05 ** (1 / 3), abs=1e-6)
    assert how.count(when == NO_DAY) == 4
    assert how.count(np.zeros(7, dtype=bool)) == 0


def test_errors_over_days_and_over_tasks_add_up() -> None:
    """One that reads tasks alone has the interval of tasks; both: both errors."""
    days, tasks = [0.52, 0.47, 0.5, 0.55, 0.46], [0.4, 0.6, 0.55, 0.45]
    left_out = np.array(days + tasks)
    when = np.array([0, 1, 2, 3, 4, -1, -1, -1, -1])
    strata = np.array([0] * 5 + [1] * 4)
    how = Clusters("here", "mixed", np.arange(9), strata, "one alone", when)

    def lower(read: list[bool]) -> float:
        found = jackknife_estimate(0.5, left_out, how, np.array(read)).lower(0.95)
        assert found is not None
        return found

    by_day, by_task = [True] * 5 + [False] * 4, [False] * 5 + [True] * 4
    plain = jackknife_estimate(0.5, np.array(tasks), clusters(0, 0, 0, 0)).lower(0.95)
    assert lower(by_task) == plain
    assert lower([True] * 9) < min(lower(by_day), lower(by_task))


def test_a_statistic_that_reads_no_task_has_a_reason_in_place_of_an_interval():
    """R of campaigns inside episodes is one; `report` divided by its 0 tasks."""
    clusters = Clusters("", "tasks", np.arange(4), np.zeros(4, dtype=int), "")
    found = jackknife_estimate(0.5, np.full(4, 0.5), clusters, units=0)
    assert found.interval(0.95).reason == "it reads none of the tasks"
    assert found.lower(0.95) is None


def test_a_statistic_cut_at_0_is_no_better_than_its_own_scale() -> None:
    left_out = np.array([0.0, 0.0, 0.0, 0.6])
    error = standard_error(left_out, np.zeros(4, dtype=int))
    found = jackknife_estimate(0.0, left_out, clusters(0, 0, 0, 0))
    high = max(1 - 0.05 ** (1 / 4), min(stats.t.ppf(0.95, 3) * error, 1.0))
    assert found.upper(0.95) == pytest.approx(high, abs=1e-6)
    assert found.lower(0.95) == 0.0
    little = np.array([0.0, 0.0, 0.0, 0.01])
    exact = jackknife_estimate(0.0, little, clusters(0, 0, 0, 0)).upper(0.95)
    assert exact == pytest.approx(1 - 0.05 ** (1 / 4), abs=1e-6)


def test_an_amount_that_reaches_0_is_on_its_own_scale() -> None:
    zero, reach = np.zeros(4, dtype=int), stats.t.ppf(0.95, 3)
    for point, left_out in ((1.0, [0.0, 1.0, 2.0, 1.0]), (0.0, [0.1, 0.2, 0.1, 0.3])):
        values = np.array(left_out)
        found = jackknife_estimate(point, values, clusters(0, 0, 0, 0), share=False)
        plain = point + reach * standard_error(values, zero)
        assert found.upper(0.95) == pytest.approx(plain, rel=1e-6)


def test_what_differs_by_less_than_a_billionth_is_one_value() -> None:
    """Relative to the statistic, or to 1 where it is smaller."""
    for point, gap, flat in ((0.5, 0.9e-9, True), (0.5, 2e-9, False)):
        left_out = np.array([point, point + gap, point, point])
        found = jackknife_estimate(point, left_out, clusters(0, 0, 0, 0))
        assert (found.interval(0.95).reason is not None) == flat
    for gap, flat in ((0.9e-5, True), (2e-5, False)):
        left_out = np.array([1e4, 1e4 + gap, 1e4, 1e4])
        found = jackknife_estimate(1e4, left_out, clusters(0, 0, 0, 0), share=False)
        assert (found.interval(0.95).reason is not None) == flat


def test_quartiles_are_the_quarters_of_the_law() -> None:
    left_out = np.array([0.4, 0.6, 0.45, 0.55])
    found = jackknife_estimate(0.5, left_out, clusters(0, 0, 0, 0))
    logits = np.log(left_out / (1 - left_out))
    reach = stats.t.ppf(0.75, 3) * standard_error(logits, np.zeros(4, dtype=int))
    ends = (1 / (1 + math.exp(reach)), 1 / (1 + math.exp(-reach)))
    assert found.quartiles() == pytest.approx(ends, abs=1e-6)
    assert jackknife_estimate(math.nan, left_out, clusters(0, 0, 0, 0)).quartiles() is (None)


def test_units_of_the_exact_bound_may_be_fewer_than_the_clusters() -> None:
    found = jackknife_estimate(1.0, np.ones(9), clusters(*[0] * 9), units=3)
    assert found.lower(0.95) == pytest.approx(0.05 ** (1 / 3), abs=1e-6)
    assert found.upper(0.95) == 1.0
    two = jackknife_estimate(1.0, np.ones(2), clusters(0, 0))
    assert two.lower(0.95) == pytest.approx(0.05**0.5, abs=1e-6)
    none = jackknife_estimate(1.0, np.ones(2), clusters(0, 0), np.zeros(2, bool))
    assert none.interval(0.95).reason == "one alone"


def test_repeats_are_clusters_within_their_tasks() -> None:
    units, _ = table_of(("a", "p", 0, 3), ("a", "p", 1, 3), ("a", "q", 0, 3))
    found = repeat_clusters(units)
    assert (found.of.tolist(), found.stratum.tolist()) == ([0, 1, 2], [0, 0, 1])
    assert (found.noun, found.days) == ("repeats", None)
    again, _ = table_of(("a", "p", 0, 3), ("a", "p", 0, 4), ("b", "q", 1, 3))
    assert repeat_clusters(again).of.tolist() == [0, 0, 1]


def test_days_that_a_statistic_does_not_read_leave_tasks_alone() -> None:
    when = np.array([0, 1, NO_DAY, NO_DAY, NO_DAY])
    how = Clusters("here", "mixed", np.arange(5), np.array([0, 0, 1, 1, 1]), "x", when)
    left_out = np.array([0.5, 0.5, 0.4, 0.6, 0.5])
    tasks = jackknife_estimate(0.5, left_out, how, when == NO_DAY)
    assert tasks.days is None
    assert tasks.method == "here: jackknife over 3 mixed, 2 degrees of freedom"
    both = jackknife_estimate(0.5, left_out, how)
    assert both.days is not None
    assert both.days.tolist() == when.tolist()
    assert both.method == f"here: jackknife over 2 days and 3 mixed, {MEAN_METHOD}"


def test_below_the_middle_a_flat_statistic_is_cut_towards_0() -> None:
    found = jackknife_estimate(0.5, np.full(4, 0.5), clusters(0, 0, 0, 0))
    assert found.quantile(0.4) == pytest.approx(0.5 * 0.4**0.25)
    assert found.quantile(0.6) == pytest.approx(1 - 0.5 * 0.4**0.25)
    assert found.quantile(0.5) > 0.5


def test_days_have_the_interval_of_their_pseudo_values() -> None:
    """J x - (J - 1) x_j, about x, on the logit scale."""
    left_out = np.array([0.52, 0.47, 0.5, 0.55, 0.46])
    when = np.arange(5)
    how = Clusters("here", "days", when, np.zeros(5, int), "one alone", when)
    logits = np.log(left_out / (1 - left_out))
    level = mean_level(4 * (logits.mean() - logits), when.astype(float))
    for share in (0.05, 0.95):
        expected = 1 / (1 + math.exp(-level.upper(share)))
        found = jackknife_estimate(0.5, left_out, how).quantile(share)
        assert found == pytest.approx(expected)


def test_a_stratum_of_one_cluster_adds_no_error() -> None:
    found = covariance(np.array([[1.0], [3.0], [9.0]]), np.array([0, 0, 1]))
    assert found.tolist() == [[1.0]]
