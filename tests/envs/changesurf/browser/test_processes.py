"""Every site looks the same to the byte in every browser process."""

import multiprocessing

import pytest

from owa_bench.canonical import sha256
from owa_bench.envs.changesurf.browser.driver import _common_headers
from owa_bench.envs.changesurf.browser.host import Lease
from owa_bench.envs.changesurf.generate import FAMILIES, HELD_OUT_FAMILIES
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import NullSink
from tests.builders import changesurf_worlds as worlds
from tests.builders.slices import by_commit

pytestmark = pytest.mark.browser

EVERY = (*FAMILIES, *HELD_OUT_FAMILIES)
PROCESSES = 3


def looks(families):
    """Return what the oracle's way hashes to: observations, AX trees and DOMs."""
    lease = Lease()
    found = {}
    for family in families:
        for delta in (0.0, 1.0):
            timeline = worlds.drifted(worlds.instance(family, 2, 6), delta)
            found[family, delta] = list(_way(timeline))
    lease.give_back()
    return lease.host.pid, found


def _way(timeline):
    """Yield the three hashes of each page on the oracle's way."""
    terms = EpisodeTerms(step_limit=SUITE.card.step_limit)
    episode = Episode(SUITE, timeline, sink=NullSink(), terms=terms)
    driver = episode.session._driver
    while episode.ending is None:
        look = episode.session.state.page.digest()
        yield look, sha256(driver.tree()), sha256(driver.snapshot())
        hint = SUITE.oracle.hint(timeline, episode.session.state)
        episode.step(worlds.said(hint))
    episode.close()


@pytest.mark.part(4)
@pytest.mark.slow
def test_every_page_of_every_goal_hashes_equal_in_three_browsers(browser):
    families = by_commit(EVERY, 3)
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as pool:
        others = pool.map(looks, [families] * (PROCESSES - 1), chunksize=1)
    pids, found = zip(looks(families), *others, strict=True)
    assert len(set(pids)) == PROCESSES
    assert found[1:] == found[:1] * (PROCESSES - 1)
    for family in families:
        clean, drifted = found[0][family, 0.0], found[0][family, 1.0]
        assert len(clean) > 2
        assert not {look for look, _, _ in clean} & {look for look, _, _ in drifted}


def test_what_tells_browsers_apart_is_in_no_record_of_a_request():
    sent = {"Accept": "image/jxl,*/*", "User-Agent": "some/1", "Referer": "https://a/"}
    assert _common_headers(sent) == (("referer", "https://a/"),)
