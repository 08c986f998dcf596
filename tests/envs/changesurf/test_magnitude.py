"""Drift moves controls on the page, the more the more of it there is; ids do not."""

from itertools import pairwise

import pytest

from owa_bench.drift import calendar as calendars
from owa_bench.envs.changesurf.magnitude import Centre, displacement, mean_displacement
from owa_bench.envs.changesurf.suite import SUITE
from tests.builders import changesurf_worlds as worlds


def test_a_way_is_measured_in_diagonals_over_what_stayed():
    before = {"home": {"a": Centre(0, 0), "gone": Centre(9, 9)}, "left": {}}
    after = {"home": {"a": Centre(30, 40), "new": Centre(1, 1)}, "mail": {}}
    assert displacement(before, after, 100.0) == 0.5
    both = {"home": {**before["home"], "b": Centre(5, 5)}}
    stayed = {"home": {**after["home"], "b": Centre(5, 5)}}
    assert displacement(both, stayed, 100.0) == 0.25
    assert displacement(before, {"mail": after["mail"]}, 100.0) is None


@pytest.mark.slow
@pytest.mark.browser
def test_fresh_ids_move_nothing_and_the_whole_drift_does(browser):
    of = worlds.instance("depot/buy", 2, 9)
    churn = calendars.single("web", "web/id_churn")
    assert mean_displacement(SUITE, worlds.drifted(of, 1.0, churn)) == 0.0
    assert mean_displacement(SUITE, worlds.drifted(of, 1.0)) > 0.05


@pytest.mark.part(4)
@pytest.mark.browser
@pytest.mark.slow
def test_controls_move_the_more_the_greater_the_magnitude(browser):
    goals = ("stay/book", "ledger/transfer", "permit/apply", "depot/buy", "desk/file")
    means = [
        sum(mean_displacement(SUITE, worlds.drifted(worlds.instance(g, 2, 9), d)) for g in goals)
        / len(goals)
        for d in (0.0, 0.25, 1.0)
    ]
    assert means[0] == 0.0
    assert all(a < b for a, b in pairwise(means)), means
