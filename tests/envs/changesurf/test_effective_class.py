"""Effective classes against replays of a recorded procedure.

What worked before works after a change of class D0, and ends in other rows, without a
word, after one of class D3.
"""

import pytest

from owa_bench.discovery import find, get
from owa_bench.drift.timeline import source
from owa_bench.envs.changesurf.effective_class import effective_class, procedure_fails
from owa_bench.envs.changesurf.generate import FAMILIES, TIERS
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.records.events import Drift
from owa_bench.seeding import stream
from owa_bench.shells.episode_events import drift_events
from tests.builders import changesurf_worlds as worlds
from tests.builders.changesurf_episodes import instance_of

OPERATORS = sorted(name for name in find("operators") if name.startswith("web/"))


def struck(name, seed):
    """Yield instance, world before and world after at each target of an operator."""
    operator = get("operators", name)
    for i, family in enumerate(FAMILIES):
        of = worlds.instance(family, TIERS[i % 3], seed)
        before = worlds.world(family, of.tier, seed)
        for target in operator.targets(before)[-1:]:
            rng = stream(seed, name, target)
            yield of, before, operator.apply(before, target, 1.0, rng=rng)


def check(name, seed):
    classes = set()
    for of, before, after in struck(name, seed):
        found = effective_class(before, after, after)
        classes.add(found)
        fails = procedure_fails(of, before, after)
        assert not (found == "D0" and fails), of
        assert not (found == "D3" and not fails), of
    return classes


@pytest.mark.part(2)
@pytest.mark.parametrize("name", OPERATORS[::6])
def test_a_class_says_what_a_recorded_procedure_meets(name):
    assert check(name, 4)


@pytest.mark.part(5)
@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("seed", range(10, 14))
def test_a_class_says_what_a_recorded_procedure_meets_everywhere(name, seed):
    check(name, seed)


def test_silent_operators_are_silent_where_the_goal_reads_what_they_change():
    assert check("web/silent_units", 4) == {"D0", "D3"}
    assert check("web/silent_dates", 4) <= {"D0", "D1"}


def test_a_later_change_decides_what_the_page_says():
    units, silent = (get("operators", f"web/{n}") for n in ("units", "silent_units"))
    base = worlds.world("depot/quote", 1, 4)
    rng = stream(4, "x")
    told = units.apply(base, "products", 1.0, rng=rng)
    quiet = silent.apply(told, "products", 1.0, rng=rng)
    assert effective_class(base, told, told) == "D1"
    assert effective_class(base, told, quiet) == "D3"


def test_both_classes_stand_on_the_events_of_drift():
    timeline = source("changesurf")(instance_of("ledger/total", 3, tier=3, delta=1.0))
    found = [e for e in drift_events(timeline, 0) if isinstance(e, Drift)]
    assert found
    assert {e.announcement for e in found} == {"D0", "D1", "D2", "D3"}
    assert [e for e in found if e.effective != e.announcement]
    world = timeline.worlds[0]
    assert SUITE.effective_class(world, world, world) == "D0"
