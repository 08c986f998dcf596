"""The project report: figures of hand-made projects, and who gains nothing by them."""

from types import SimpleNamespace

import numpy as np
import pytest

from owa_bench.records.events import ProjectDay
from owa_bench.scoring.verdict import project_report
from tests.builders.columns import Columns
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import verdict


def project(index, shares, *, regressed=(), violations=(), suite="projforge"):
    """Return a project whose days have these acceptances; one is due from day 1 on."""
    days = tuple(
        ProjectDay(
            step=day + 1,
            day=day,
            acceptance=share if day else None,
            service=share / 2 if day else None,
            held=int(day > 0 and shares[day - 1] > 0),
            regressed=int(day in regressed),
            minutes=day,
            green=share == 1.0,
            release=share if (day + 1) % 7 == 0 else None,
        )
        for day, share in enumerate(shares)
    )
    return episode(
        index=index,
        pair=f"p{index}",
        suite=suite,
        family="billing",
        q_state=sum(shares) / len(shares),
        violations=violations,
        needs_tools=False,
        days=len(shares),
        extra=days,
    )


def report(*projects, suite="projforge"):
    found = verdict(list(projects))
    [figures] = [t for t in found.tables if t.title == f"projects of {suite}"]
    [by_day] = [t for t in found.tables if t.title == f"{suite} by day"]
    return {row[0]: row[1:] for row in figures.rows}, by_day, found


def test_figures_are_means_over_projects_of_means_over_days():
    good = project(0, [1.0] * 30)
    late = project(1, [0.0] * 20 + [1.0] * 10, regressed=(25, 26))
    figures, by_day, found = report(good, late)
    assert figures["projects"][3] == "30 to 30 days"
    assert figures["acceptance"][0] == pytest.approx((1 + 10 / 29) / 2)
    assert figures["acceptance, last 10 days"][0] == 1.0
    assert figures["service"][0] == pytest.approx(figures["acceptance"][0] / 2)
    assert figures["zero-regression rate"][0] == pytest.approx((1 + 7 / 9) / 2)
    assert figures["projects without a regression"][0] == 0.5
    assert figures["regressions"][0] == 1.0
    assert figures["minutes of integration"][0] == 14.5
    assert figures["release notes"][0] == pytest.approx((1 + 2 / 4) / 2)
    first, last = by_day.rows[0], by_day.rows[-1]
    assert first[:3] == (0, 2, None)
    assert (last[0], last[2]) == (29, 1.0)
    [curve] = [c for c in found.curves if c.name == "acceptance of projforge by day"]
    assert len(curve.x) == 29


def test_intervals_of_shares_end_at_1_and_those_of_numbers_do_not():
    """Two projects that differ: the t interval of 1 degree of freedom is wide."""
    good = project(0, [1.0] * 30)
    late = project(1, [0.0] * 20 + [1.0] * 10, regressed=(25, 26))
    figures, _, _ = report(good, late)
    ends = {name: row[1:3] for name, row in figures.items() if row[1] is not None}
    for name in ("acceptance", "release notes", "service", "days that end green"):
        low, high = ends[name]
        assert 0.0 <= low < high <= 1.0, name
    low, high = ends["regressions"]
    assert low < 0.0
    assert high > 1.0


def test_the_gate_stands_with_the_projects_that_it_counts():
    many = [project(n, [1.0] * 30) for n in range(40)]
    figures, _, found = report(*many)
    assert figures["project gate, AAI-3"][0] == "PASS"
    [gate] = [g for g in found.gates if (g.gate, g.level) == ("project", 3)]
    assert gate.status == "PASS"
    for number, answer in ((4, "UNDECIDED"), (40, "BELOW")):
        figures, *_ = report(*(project(n, [0.0] * 30) for n in range(number)))
        assert figures["project gate, AAI-3"][0] == answer
    fast = [project(n, [1.0] * 30, suite="projforge_fast") for n in range(4)]
    figures, *_ = report(*fast, suite="projforge_fast")
    assert not [name for name in figures if name.startswith("project gate")]


def test_who_has_nothing_that_works_has_no_zero_regression_rate():
    figures, *_ = report(project(0, [0.0] * 30))
    assert figures["zero-regression rate"][0] is None
    assert figures["projects without a regression"][0] is None


def test_a_disqualified_project_earned_nothing_on_any_day():
    fraud = (("static_mock", "disqualify"),)
    figures, *_ = report(project(0, [1.0] * 30, violations=fraud))
    for name in ("acceptance", "service", "release notes", "days that end green"):
        assert figures[name][0] == 0.0


def test_other_suites_have_no_such_table():
    found = verdict([episode()])
    assert not [t for t in found.tables if t.title.startswith("projects of")]


def project_days(**changes):
    """Return two projects: the first of twelve days, the second of two."""
    count = 14
    fields = {
        "row": np.array([0] * 12 + [1] * 2),
        "day": np.array([*range(12), 0, 1]),
        "acceptance": np.full(count, 0.5),
        "service": np.full(count, np.nan),
        "held": np.ones(count, int),
        "regressed": np.zeros(count, int),
        "minutes": np.arange(count),
        "green": np.ones(count, bool),
        "release": np.full(count, np.nan),
        "stopped": np.zeros(count, bool),
        "postmortem": np.full(count, np.nan),
    }
    table = Columns(u=np.array([1.0, 0.0]), pair=np.array(["p", "q"]))
    table.project_days = Columns(**(fields | changes))
    return table


def figures_of(**changes):
    found = project_report.project_figures(project_days(**changes))
    return {one.name: one.values.tolist() for one in found}


def test_the_last_ten_days_are_those_of_each_projects_own_length():
    acceptance = np.array([1.0, 1.0] + [0.0] * 10 + [1.0, 0.5])
    found = figures_of(acceptance=acceptance)
    assert found["acceptance, last 10 days"] == [0.0, 0.75]
    assert found["acceptance"] == [pytest.approx(1 / 6), 0.75]
    third = np.array([0.0, 0.0, 1.0] + [0.0] * 9 + [1.0, 1.0])
    assert figures_of(acceptance=third)["acceptance, last 10 days"][0] == 0.1


def test_a_regression_needs_something_that_worked():
    held = np.array([0, 1, 1] + [0] * 9 + [0, 0])
    regressed = np.array([3, 2, 0] + [0] * 9 + [1, 0])
    found = figures_of(held=held, regressed=regressed)
    assert found["zero-regression rate"][0] == 0.5
    assert np.isnan(found["zero-regression rate"][1])
    assert found["projects without a regression"][0] == 0.0
    assert np.isnan(found["projects without a regression"][1])
    assert found["regressions"] == [5.0, 1.0]
    assert figures_of()["projects without a regression"] == [1.0, 1.0]


def test_service_after_an_incident_is_that_of_the_days_it_stopped():
    stopped = np.array([False, True] + [False] * 12)
    service = np.array([0.25, 0.75] + [0.5] * 12)
    found = figures_of(stopped=stopped, service=service)
    assert found["service after an incident"][0] == 0.75
    assert np.isnan(found["service after an incident"][1])
    assert found["service"][1] == 0.5
    assert found["delivered"] == [1.0, 0.0]
    assert found["minutes of integration"] == [5.5, 12.5]
    assert np.isnan(found["postmortems"]).all()
    assert found["days that end green"] == [1.0, 1.0]


def test_days_are_means_over_the_projects_that_played_them():
    acceptance = np.array([0.25, np.nan] + [0.5] * 10 + [0.75, np.nan])
    first, second, third, *_ = project_report._day_means(
        project_days(acceptance=acceptance, regressed=np.array([1] + [0] * 12 + [3]))
    )
    assert (first.day, first.projects, first.acceptance[0]) == (0, 2, 0.5)
    assert first.acceptance[1] < 0.5 < first.acceptance[2]
    assert first.service == (None, None, None)
    assert (first.regressions, first.minutes) == (0.5, 6.0)
    assert second.acceptance == (None, None, None)
    assert (second.regressions, second.minutes) == (1.5, 7.0)
    assert (third.projects, third.acceptance) == (1, (0.5, None, None))


def test_tables_and_curves_are_of_each_suite_with_the_gate_of_one():
    table = project_days(acceptance=np.array([np.nan] + [0.5] * 13))
    table.suite = np.array([PROTOCOL.projects.suite] * 2)
    days = table.project_days
    table.take = lambda mask: table
    sample = SimpleNamespace(table=table, base=np.ones(2, bool))
    gates = [
        SimpleNamespace(gate=g, level=3, status="PASS", required="r", measured="m")
        for g in ("project", "kappa")
    ]
    found, by_day = project_report.project_tables(sample, gates, PROTOCOL)
    assert found.rows[0] == ("projects", 2, None, None, "2 to 12 days")
    assert found.rows[-1] == ("project gate, AAI-3", "PASS", None, None, "r; m")
    assert len(found.rows) == 14
    assert len(by_day.rows) == 12
    assert by_day.rows[0][:3] == (0, 2, 0.5)
    (curve,) = project_report.project_curves(sample)
    assert (curve.x[0], curve.y[0], curve.used[:3]) == (0, 0.5, (2, 2, 1))
    days.acceptance = np.where(days.day == 0, np.nan, 0.5)
    (curve,) = project_report.project_curves(sample)
    assert curve.x[0] == 1
    other = np.array(["another suite"] * 2)
    table.suite = other
    found, _ = project_report.project_tables(sample, gates, PROTOCOL)
    assert len(found.rows) == 13
