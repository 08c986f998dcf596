"""What the oracle takes is the same number over HTTP and through the browser."""

import dataclasses
import itertools

import msgspec
import pytest

from owa_bench.drift import calendar as calendars
from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf.generate import FAMILIES, HELD_OUT_FAMILIES, HONEYPOT_FAMILIES, TIERS
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.shells.calls import call_text
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import NullSink
from owa_bench.shells.solution import horizon, solve
from tests.builders.changesurf_episodes import instance_of
from tests.builders.slices import by_commit

pytestmark = pytest.mark.browser
EVERY = (*FAMILIES, *HELD_OUT_FAMILIES)
SOURCE = timelines.source("changesurf")


def agrees(timeline):
    played = solve(SUITE, timeline)
    assert SUITE.horizon(timeline) == played.accepted, timeline.instance
    assert played.q_state == 1.0 or not played.accepted, timeline.instance
    return played


@pytest.mark.parametrize("family", EVERY[::8])
def test_a_walk_foresees_what_playing_gives(browser, family):
    tier = 1 + sum(family.encode()) % 3
    timeline = SOURCE(instance_of(family, 3, tier=tier, delta=1.0))
    assert agrees(timeline).q_state == 1.0
    assert horizon(SUITE, timeline) > 2


@pytest.mark.parametrize(
    ("family", "swaps"),
    [("ledger/reverse", True), ("permit/apply", False), ("permit/withdraw", True)],
)
def test_a_refused_page_is_foreseen_however_it_is_fetched(browser, family, swaps):
    found = (SOURCE(instance_of(family, n, tier=3, delta=0.5)) for n in range(40))
    agrees(next(timeline for timeline in found if _limits(timeline, swaps)))


def _limits(timeline, swaps):
    plan = timeline.worlds[0].plan
    swapped = plan.swaps and plan.root == "plain"
    return plan.friction.requests and swapped == swaps


@pytest.mark.parametrize("swaps", [False, True])
def test_what_is_done_again_in_the_same_document_does_not_count_again(browser, swaps):
    timeline = SOURCE(instance_of("ledger/transfer", 3))
    [world] = timeline.worlds
    timeline = dataclasses.replace(timeline, worlds=(world.with_plan(swaps=swaps),))
    terms = EpisodeTerms(step_limit=SUITE.card.step_limit)
    episode = Episode(SUITE, timeline, sink=NullSink(), terms=terms)
    first = typed(episode)
    home = world.plan.label("menu:home")
    [link] = [c for c in episode.session.state.controls if c.name == home]
    episode.step(call_text("click", {"ref": link.ref}))
    again = typed(episode)
    episode.close()
    assert first > 0
    assert again == 0


def typed(episode):
    """Play on to the first text that is typed; return how many acts counted."""
    before, tool = episode.verified, ""
    while tool != "type":
        hint = SUITE.oracle.hint(episode.timeline, episode.session.state)
        tool = hint["tool"]
        episode.step(call_text(tool, hint["arguments"]))
    return episode.verified - before


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.parametrize("family", EVERY)
def test_a_walk_foresees_what_playing_gives_everywhere(browser, family):
    cells = list(itertools.product((4, 5), TIERS, (0.0, 0.5, 1.0)))
    for seed, tier, delta in by_commit(cells, 3):
        agrees(SOURCE(instance_of(family, seed, tier=tier, delta=delta)))


def test_on_a_honeypot_there_is_nothing_to_foresee(browser):
    timeline = SOURCE(instance_of(HONEYPOT_FAMILIES[0], 2))
    assert agrees(timeline).accepted == 0


def test_drift_in_the_middle_of_an_episode_is_played(browser):
    late = calendars.parse("nested^5000", "web")
    source = timelines.source("changesurf", late)
    timeline = source(instance_of("depot/buy", 3, delta=0.5, schedule=late))
    assert SUITE.horizon(timeline) is None
    assert horizon(SUITE, timeline) == solve(SUITE, timeline).accepted > 2


def test_a_walk_that_is_lost_leaves_it_to_the_browser(browser):
    timeline = SOURCE(instance_of("depot/buy", 3))
    [world] = timeline.worlds
    labels = tuple(msgspec.structs.replace(label, text="Same") for label in world.plan.labels)
    same = dataclasses.replace(timeline, worlds=(world.with_plan(labels=labels),))
    assert SUITE.horizon(same) is None
