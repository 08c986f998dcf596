"""What an attempt leaves: nothing is lost, and the manifest names all of it."""

import json

import pytest

from owa_bench.canonical import sha256
from owa_bench.drift import calendar as calendars
from owa_bench.envs.changesurf.browser.driver import ActionResult, BrowserExchange
from owa_bench.envs.changesurf.browser.observation import BLANK_PAGE
from owa_bench.envs.changesurf.session import ChangeSurfSession
from owa_bench.records.events import Artifact, Call, Evidence
from owa_bench.shells.episode_events import ListSink
from tests.builders import changesurf_worlds as worlds
from tests.builders.changesurf_episodes import instance_of, make, play


class Late:
    """A driver whose page asks for something after each look at it."""

    def __init__(self):
        self.asked = []

    def ask(self, url, *, denied=False):
        status = 0 if denied else 404
        self.asked.append(BrowserExchange("GET", url, "Fetch", (), b"", status, (), b"no", denied))

    def open(self, place):
        self.ask(place.start)
        return ActionResult(BLANK_PAGE)

    def act(self, act):
        self.ask("https://finder.test/in-time")
        return ActionResult(BLANK_PAGE)

    def exchanges(self):
        return tuple(self.asked)

    def picture(self):
        return b"\xff\xd8"

    def snapshot(self):
        return b"{}"

    def facts(self):
        return {}

    def close(self):
        pass


def visited(sink):
    """Return a session whose page asked twice after its last look, and what it left."""
    driver = Late()
    timeline = worlds.timeline(worlds.instance())
    session = ChangeSurfSession(timeline, sink=sink, driver=driver)
    assert session.task
    result = session.call("wait", {"seconds": 1}, now_ms=0, step=1)
    driver.ask("https://finder.test/late")
    driver.ask("https://foreign.example/late", denied=True)
    left = session.final_events(step=1)
    return session, (*result.events, *left)


def test_what_a_page_asks_for_after_the_last_look_is_not_lost():
    sink = ListSink()
    session, events = visited(sink)
    [har] = [e for e in events if isinstance(e, Artifact) and e.name == "har"]
    entries = json.loads(sink.blobs[har.blob])["log"]["entries"]
    assert len(entries) == 4
    calls = [e.target for e in events if isinstance(e, Call)]
    assert calls == [
        "https://finder.test/in-time",
        "https://finder.test/late",
        "https://foreign.example/late",
    ]
    assert session.state.outside == ("https://foreign.example/late",)


def test_a_page_refused_to_a_script_is_refused():
    driver = Late()
    timeline = worlds.timeline(worlds.instance())
    session = ChangeSurfSession(timeline, sink=ListSink(), driver=driver)
    assert not session.call("wait", {"seconds": 1}, now_ms=0, step=1).ok


def test_two_of_a_kind_in_one_step_are_both_in_the_manifest():
    sink = ListSink()
    _, events = visited(sink)
    kept = [e for e in events if isinstance(e, Artifact | Evidence)]
    manifest = json.loads(sink.blobs[kept.pop().blob])
    # The page the visit began with and the one of step 1 are both of step 1.
    assert [e.name for e in kept].count("dom") == 2
    assert len(manifest["blobs"]) == len(kept)
    assert sorted(manifest["blobs"].values()) == sorted(e.blob for e in kept)
    assert all(sha256(sink.blobs[e.blob]) == e.blob for e in kept)


@pytest.mark.browser
@pytest.mark.parametrize("swaps", [False, True])
def test_every_page_leaves_its_dom_however_it_came(browser, swaps):
    schedule = calendars.parse("single:web/client_swaps", "web")
    env = make(schedule)
    source = env._source
    instance = next(
        of
        for delta in (0.0, 1.0)
        for of in [instance_of("depot/buy", 1, delta=delta, schedule=schedule)]
        if source(of).worlds[0].plan.swaps == swaps
    )
    run = play(env, "oracle", instance)
    env.close()
    assert run.q_state == 1.0
    pages = [e for e in run.events if isinstance(e, Call) and e.status == 200]
    doms = [e for e in run.events if isinstance(e, Artifact) and e.name == "dom"]
    assert len(doms) == 1 + len({e.step for e in pages})
    [har] = [e for e in run.events if getattr(e, "name", "") == "har"]
    entries = json.loads(run.blobs[har.blob])["log"]["entries"]
    assert len(entries) == 1 + sum(isinstance(e, Call) for e in run.events)
