"""The project report: figures of hand-made projects, and who gains nothing by them."""

import pytest

from owa_bench.records.events import ProjectDay
from tests.builders.episodes import episode
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


def test_the_gate_stands_with_the_projects_that_it_counts():
    many = [project(n, [1.0] * 30) for n in range(40)]
    figures, _, found = report(*many)
    assert figures["project gate, AAI-3"][0] == "PASS"
    [gate] = [g for g in found.gates if (g.gate, g.level) == ("project", 3)]
    assert gate.status == "PASS"
    figures, *_ = report(*(project(n, [0.0] * 30) for n in range(4)))
    assert figures["project gate, AAI-3"][0] == "FAIL"
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
