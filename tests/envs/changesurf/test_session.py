"""Drift that strikes in the middle of a visit: the goal stays within reach."""

import pytest

from owa_bench.drift import calendar as calendars
from owa_bench.envs.changesurf.browser.driver import ActionResult
from owa_bench.envs.changesurf.browser.observation import BLANK_PAGE
from owa_bench.envs.changesurf.generate import FAMILIES, HELD_OUT_FAMILIES
from owa_bench.envs.changesurf.oracle.hints import next_step
from owa_bench.envs.changesurf.server.sign_in import credentials
from owa_bench.envs.changesurf.session import ChangeSurfSession
from owa_bench.records.events import Drift
from owa_bench.shells.episode_events import ListSink
from tests.builders.changesurf_episodes import SUITE, instance_of, make, play
from tests.builders.slices import by_commit

EVERY = (*FAMILIES, *HELD_OUT_FAMILIES)
LATE = calendars.parse("nested^4000", "web")


@pytest.fixture(scope="module")
def env(browser):
    env = make(LATE)
    yield env
    env.close()


def reached(env, family, tier):
    instance = instance_of(family, 20 + tier, tier=tier, delta=1.0, schedule=LATE)
    run = play(env, "oracle", instance)
    assert (run.q_state, run.rules) == (1.0, set()), family
    struck = [e for e in run.events if isinstance(e, Drift)]
    assert all(event.at_ms == LATE.onset_ms for event in struck)
    return bool(struck)


@pytest.mark.browser
@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("family", "tier"),
    # The second had no such page of its form any more when drift struck.
    [("depot/buy", 2), ("ledger/transfer", 3)],
)
def test_the_oracle_goes_on_from_a_page_of_before(env, family, tier):
    assert reached(env, family, tier)


@pytest.mark.part(4)
@pytest.mark.browser
@pytest.mark.slow
def test_the_oracle_goes_on_from_a_page_of_before_everywhere(env):
    cells = by_commit([(f, tier) for f in EVERY for tier in (1, 2, 3)], 4)
    struck = [reached(env, family, tier) for family, tier in cells]
    assert sum(struck) >= len(cells) // 3


def test_what_signs_in_later_is_told_at_once_and_kept_out_of_records():
    """Nothing says a new password on the site: without it the goal is out of reach."""
    schedule = calendars.parse("single:web/credential_rotation^4000", "web")
    source = make(schedule)._source
    instance = instance_of("depot/buy", 3, tier=2, delta=1.0, schedule=schedule)
    timeline = source(instance)
    sink = ListSink()
    learnt = {}
    sink.secret = learnt.__setitem__
    session = ChangeSurfSession(timeline, sink=sink, driver=_Blank())
    first, later = (world.plan.auth for world in timeline.worlds)
    assert first.password != later.password
    for label, value in credentials(later):
        assert f"{label}: {value}" in session.task.text
    told = session.task.goal["credentials"]
    assert list(told.values()).count(later.password) == 1
    assert set(learnt.values()) >= {first.password, later.password}
    assert len(learnt) == len(set(learnt.values()))


class _Blank:
    """A driver whose page shows nothing."""

    def open(self, place):
        return ActionResult(BLANK_PAGE)

    def exchanges(self):
        return ()

    def snapshot(self):
        return b"{}"


def test_a_page_of_before_is_left_and_then_forgotten():
    schedule = calendars.parse("nested^4000", "web")
    instance = instance_of("depot/buy", 22, tier=2, delta=1.0, schedule=schedule)
    timeline = make(schedule)._source(instance)
    session = ChangeSurfSession(timeline, sink=ListSink(), driver=_Blank())
    assert next_step(timeline, session.state.site).op != "goto"
    session._driver.serve = lambda app: None
    session.enter(timeline.worlds[1], now_ms=4000)
    home = f"https://{timeline.worlds[1].plan.host}/"
    assert next_step(timeline, session.state.site)[:1] == ("goto",)
    assert SUITE.oracle.hint(timeline, session.state)["arguments"] == {"address": home}
