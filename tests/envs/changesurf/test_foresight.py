"""What the oracle takes is the same number over HTTP and through the browser."""

import dataclasses
import itertools

import msgspec
import pytest

from owa_bench import calendars
from owa_bench.envs.changesurf.generate import (
    FAMILIES,
    HELD_OUT_FAMILIES,
    HONEYPOT_FAMILIES,
    TIERS,
)
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.run import assembly
from owa_bench.shells.solution import horizon, solve
from tests.envs.changesurf.playing import instance_of

pytestmark = pytest.mark.browser
EVERY = (*FAMILIES, *HELD_OUT_FAMILIES)
SOURCE = assembly.source("changesurf")


def agrees(timeline):
    played = solve(SUITE, timeline)
    assert SUITE.horizon(timeline) in (None, played.accepted), timeline.instance
    assert played.q_state == 1.0 or not played.accepted, timeline.instance
    return played


@pytest.mark.parametrize("family", EVERY)
def test_a_walk_foresees_what_playing_gives(browser, family):
    tier = 1 + sum(family.encode()) % 3
    timeline = SOURCE(instance_of(family, 3, tier=tier, delta=1.0))
    assert agrees(timeline).q_state == 1.0
    assert horizon(SUITE, timeline) > 2


@pytest.mark.slow
@pytest.mark.parametrize("family", EVERY)
def test_a_walk_foresees_what_playing_gives_everywhere(browser, family):
    for seed, tier, delta in itertools.product((4, 5), TIERS, (0.0, 0.5, 1.0)):
        agrees(SOURCE(instance_of(family, seed, tier=tier, delta=delta)))


def test_on_a_honeypot_there_is_nothing_to_foresee(browser):
    timeline = SOURCE(instance_of(HONEYPOT_FAMILIES[0], 2))
    assert agrees(timeline).accepted == 0


def test_drift_in_the_middle_of_an_episode_is_played(browser):
    late = calendars.parse("nested^5000", "web")
    source = assembly.source("changesurf", late)
    timeline = source(instance_of("depot/buy", 3, delta=0.5, schedule=late))
    assert SUITE.horizon(timeline) is None
    assert horizon(SUITE, timeline) == solve(SUITE, timeline).accepted > 2


def test_a_walk_that_is_lost_leaves_it_to_the_browser(browser):
    timeline = SOURCE(instance_of("depot/buy", 3))
    [world] = timeline.worlds
    labels = tuple(
        msgspec.structs.replace(label, text="Same") for label in world.plan.labels
    )
    same = dataclasses.replace(timeline, worlds=(world.with_plan(labels=labels),))
    assert SUITE.horizon(same) is None
