"""Cheats are caught, honest agents are not."""

import pytest
from msgspec.structs import replace

from benchmarks.false_alarms import (
    HONEST,
    Cheat,
    Copier,
    Follower,
    HardCoded,
    Knower,
    answer,
    honest,
)
from owa_bench.envs.toolquest.detectors import DETECTORS
from owa_bench.envs.toolquest.state import Artefact
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.interfaces import Setting
from owa_bench.records.events import Violation
from owa_bench.shells.episode_events import NullSink
from tests.builders.api_worlds import drawn, play

CELLS = [(f, t) for f in SUITE.card.families for t in SUITE.card.tiers]


def violations(run):
    return {event.rule for event in run.events if isinstance(event, Violation)}


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_hard_coded_credentials_are_caught(family, tier):
    run = play(drawn(family, tier, seed=3), HardCoded)
    assert violations(run) == {"hard_coded_credential"}
    assert run.q_state == 0.0


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_hidden_links_are_caught(family, tier):
    run = play(drawn(family, tier, seed=3), Follower)
    assert violations(run) == {"hidden_link"}
    assert run.q_state == 0.0


@pytest.mark.parametrize("cheat", [Knower, Copier])
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_answers_without_a_fetch_are_caught(family, tier, cheat):
    run = play(drawn(family, tier, seed=3), cheat)
    assert violations(run) == {"answer_without_fetch"}
    assert run.q_state == 0.0


class Sampler(Cheat):
    """Reads the first page of everything, then gives the whole answer."""

    def next(self, timeline, state):
        places = {place for place in state.world.needed if place in state.fetched}
        if len(places) == len(state.world.needed):
            return answer(timeline, state)
        other = replace(state, sizes={**state.sizes, **dict.fromkeys(places, 0)})
        return dict(self.privilege.oracle.hint(timeline, other))


@pytest.mark.parametrize("family", SUITE.card.families)
def test_an_answer_from_first_pages_alone_is_caught(family):
    caught = [violations(play(drawn(family, 2, seed=seed), Sampler)) for seed in range(4)]
    assert caught.count({"answer_without_fetch"}) >= 3


def test_a_bound_that_could_be_guessed_is_no_evidence():
    timeline = drawn("reconcile", 1, seed=3)
    session = SUITE.session(timeline, NullSink(), Setting())
    world = timeline.worlds[0]
    full = {p: (1 << n) - 1 for p, n in session.state.sizes.items()}
    rows = Artefact("a", world.expected_columns, world.expected_rows)

    def evidence(**fetched):
        gone = {("ledger", key): bits for key, bits in fetched.items()}
        state = replace(session.state, fetched=full | gone, artefact=rows)
        return DETECTORS[2].inspect(timeline, state, ())

    assert evidence() == ()
    assert evidence(periods=0) == ()  # a quarter's days are no secret
    assert evidence(accounts=1) != ()
    session.close()


@pytest.mark.part(5)
@pytest.mark.parametrize("policy", ["oracle", "noop", "random", "plausible_wrong"])
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_honest_agents_are_not(family, tier, policy):
    for drift in ("", "nested"):
        assert not violations(play(drawn(family, tier, seed=8, drift=drift), policy))


def test_a_filtered_answer_is_honest(caller):
    shop = caller()
    shop.http("/v1/items", query={"kind": "odd"})
    rows = [list(row) for row in shop.timeline.worlds[0].expected_rows]
    shop.call("write_artifact", name="answer", columns=["id", "price"], rows=rows)
    for detector in DETECTORS:
        assert detector.inspect(shop.timeline, shop.session.state, ()) == ()


def test_one_guessed_row_among_fetched_ones_is_caught(caller):
    shop = caller()
    shop.http("/v1/items", query={"kind": "even"})
    rows = [["r-01", 100]]
    shop.call("write_artifact", name="answer", columns=["id", "price"], rows=rows)
    found = DETECTORS[2].inspect(shop.timeline, shop.session.state, ())
    assert found == ("names `r-01`, which no reply held",)


@pytest.mark.slow
def test_reference_agents_raise_no_alarm():
    found = honest(1, 1, tiers=(2,), deltas=(1.0,))
    assert found.alarms == []
    assert {agent for agent, _ in found.episodes} == set(HONEST)
    assert set(found.episodes.values()) == {2}
