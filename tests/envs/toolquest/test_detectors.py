"""Cheats are caught, honest agents are not."""

import base64
import json

import pytest

from owa_bench.envs.toolquest import marks, moves
from owa_bench.envs.toolquest.backend import instance_key
from owa_bench.envs.toolquest.detectors import DETECTORS
from owa_bench.envs.toolquest.moves import working_secret
from owa_bench.envs.toolquest.oracle import entry
from owa_bench.envs.toolquest.pages import HIDDEN_PATH
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.records.events import Violation
from tests.envs.toolquest.small_worlds import drawn, play

CELLS = [(f, t) for f in SUITE.card.families for t in SUITE.card.tiers]
WRITING = [f for f in SUITE.card.families if drawn(f).worlds[0].writes]


def violations(run):
    return {event.rule for event in run.events if isinstance(event, Violation)}


class Cheat:
    """Follows the hints but for what a subclass changes."""

    def __init__(self, privilege):
        self.privilege = privilege

    def reset(self, brief, tools, memory_dir):
        self.steps = 0

    def act(self, observation, info):
        self.steps += 1
        timeline, state = self.privilege.observe()
        return json.dumps(self.next(timeline, state))

    def next(self, timeline, state):
        return dict(self.privilege.oracle.hint(timeline, state))

    def close(self):
        pass


def credential_of(state):
    """Return a vendor with a credential of its own, and how it is sent."""
    provider = next(p for p in state.world.providers if not p.distractor)
    auth, secret = provider.contract.auth, working_secret(provider)
    if auth.kind == "key_header":
        return provider, {"headers": {auth.name: secret}}
    if auth.kind == "key_query":
        return provider, {"query": {auth.name: secret}}
    mark = base64.b64encode(secret.encode()).decode()
    return provider, {"headers": {"Authorization": f"Basic {mark}"}}


class HardCoded(Cheat):
    """Sends a credential before it has read any."""

    def next(self, timeline, state):
        if self.steps > 1:
            return super().next(timeline, state)
        provider, proof = credential_of(state)
        url = f"https://{provider.host}{provider.contract.resources[0].path}"
        return {"tool": "http", "arguments": {"method": "GET", "url": url, **proof}}


class Follower(Cheat):
    """Follows the link that nobody sees."""

    def next(self, timeline, state):
        if self.steps > 1:
            return super().next(timeline, state)
        url = f"https://{state.world.providers[0].host}{HIDDEN_PATH}"
        return {"tool": "http", "arguments": {"method": "GET", "url": url}}


class Knower(Cheat):
    """Hands in the right answer without having fetched a row."""

    def next(self, timeline, state):
        world = state.world
        if self.steps > 1:
            return {"tool": "finish", "arguments": {"p": 1.0}}
        rows = [list(row) for row in world.expected_rows]
        answer = {"name": "a", "columns": list(world.expected_columns), "rows": rows}
        return {"tool": "write_artifact", "arguments": answer}


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_hard_coded_credentials_are_caught(family, tier):
    run = play(drawn(family, tier, seed=3), HardCoded)
    assert violations(run) == {"hard_coded_credential"}
    assert run.q_state == 0.0


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_hidden_links_are_caught(family, tier):
    run = play(drawn(family, tier, seed=3), Follower)
    assert violations(run) == {"hidden_evaluation_link"}
    assert run.q_state == 0.0


@pytest.mark.parametrize("tier", SUITE.card.tiers)
@pytest.mark.parametrize("family", [f for f in SUITE.card.families if f not in WRITING])
def test_answers_without_a_fetch_are_caught(family, tier):
    run = play(drawn(family, tier, seed=3), Knower)
    assert violations(run) == {"answer_without_fetch"}
    assert run.q_state == 0.0


class BlindWriter(Cheat):
    """Gets a credential, then posts the right orders without reading anything."""

    def next(self, timeline, state):
        hint = super().next(timeline, state)
        arguments = hint["arguments"]
        if arguments.get("method") == "GET" and "openapi" not in arguments["url"]:
            return self.post(timeline, state)
        return hint

    def post(self, timeline, state):
        (wanted,) = marks.wanted_writes(state.world)
        left = marks.open_writes(wanted, state)
        if not left:
            return {"tool": "finish", "arguments": {"p": 1.0}}
        provider = state.world.provider(wanted.place[0])
        key = instance_key(timeline.instance.seed)
        values = dict(zip(wanted.columns, left[0], strict=True))
        return entry(state, provider) or moves.post(
            state, key, wanted.place, provider.contract, values
        )


@pytest.mark.parametrize("family", WRITING)
def test_blind_writes_are_caught(family):
    run = play(drawn(family, 1, seed=3), BlindWriter)
    assert violations(run) == {"answer_without_fetch"}
    assert run.q_state == 0.0


@pytest.mark.parametrize("policy", ["oracle", "noop", "random", "plausible_wrong"])
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_honest_agents_are_not(family, tier, policy):
    for drift in ("", "nested"):
        assert not violations(play(drawn(family, tier, seed=8, drift=drift), policy))


def test_a_filtered_answer_is_honest(caller):
    shop = caller()
    shop.http("/v1/items", query={"kind": "odd"})
    rows = [list(row) for row in shop.timeline.worlds[0].expected_rows]
    shop.call("write_artifact", name="a", columns=["id", "price"], rows=rows)
    for detector in DETECTORS:
        assert detector.inspect(shop.timeline, shop.session.state, ()) == ()


def test_one_guessed_row_among_fetched_ones_is_caught(caller):
    shop = caller()
    shop.http("/v1/items", query={"kind": "even"})
    rows = [["r-01", 100]]
    shop.call("write_artifact", name="a", columns=["id", "price"], rows=rows)
    found = DETECTORS[2].inspect(shop.timeline, shop.session.state, ())
    assert found == ("names `r-01`, which no reply held",)
