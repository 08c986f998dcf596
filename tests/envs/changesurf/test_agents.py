"""Agents from outside the suite on its pages."""

import json

import httpx
import pytest

from owa_bench import discovery
from owa_bench.agents.language_model.agent import LanguageModelAgent
from owa_bench.agents.language_model.endpoint import ChatEndpoint
from owa_bench.agents.self_improving import revisions
from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.interfaces import AgentConfig
from owa_bench.runs.play import episode_setup
from owa_bench.shells.solution import solve
from tests.builders.changesurf_episodes import instance_of, make, play
from tests.builders.stub_server import completion

pytestmark = [pytest.mark.browser, pytest.mark.part(3)]
BUY = "depot/buy"


@pytest.fixture(scope="module")
def env(browser):
    env = make(interventions=0)  # nobody is helped
    yield env
    env.close()


def script(instance):
    return solve(SUITE, timelines.source("changesurf")(instance)).actions


def agent(name, instance):
    card = discovery.get("agents", name)
    return card.make(AgentConfig(script=script(instance)))


@pytest.mark.parametrize("name", ["fixed", "exact_label", "lexicon"])
def test_the_way_is_found_again_where_nothing_changed(env, name):
    instance = instance_of(BUY, 4)
    run = play(env, agent(name, instance), instance)
    assert run.q_state == 1.0
    assert not run.rules


def test_an_option_that_a_long_list_does_not_show_is_found_again(env):
    instance = instance_of("stay/book", 0)  # leaves on a day past the options shown
    run = play(env, agent("exact_label", instance), instance)
    assert run.q_state == 1.0


def test_words_that_changed_stop_the_exact_one_first(browser):
    from owa_bench.drift import calendar as calendars

    schedule = calendars.parse("single:web/label_synonym", "web")
    env = make(schedule)
    still = instance_of(BUY, 4)
    moved = instance_of(BUY, 4, delta=1.0, schedule=schedule)
    exact = play(env, agent("exact_label", still), moved)
    tolerant = play(env, agent("lexicon", still), moved)
    env.close()
    assert exact.q_state < 1.0
    assert tolerant.q_state >= exact.q_state


@pytest.mark.part(4)
@pytest.mark.parametrize("name", ["agentic", "orchestrator"])
@pytest.mark.parametrize("family", ["depot/buy", "stay/find"])
def test_the_archetypes_read_the_site_for_themselves(env, name, family):
    instance = instance_of(family, 1)
    run = play(env, agent(name, instance), instance)
    assert run.q_state == 1.0
    assert not run.rules


@pytest.mark.slow
@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("family", "tier", "seed", "delta"),
    [
        # `Money` with a note that asks for an amount
        ("ledger/transfer", 1, 2748630545959144484, 0.5),
        # a field that does not apply; a note that two fields could take
        ("permit/apply", 3, 5570791877602986288, 0.5),
        ("ledger/transfer", 3, 5570791877602986288, 0.5),
        # quoted words that are no row's name
        ("desk/lookup", 3, 2748630545959144484, 0.0),
    ],
)
def test_a_reader_heeds_what_a_page_says_of_itself(env, family, tier, seed, delta):
    instance = instance_of(family, seed, tier=tier, delta=delta)
    run = play(env, agent("agentic", instance), instance)
    assert run.q_state == 1.0
    assert not run.rules


def test_a_beginner_on_pages_knows_less_than_the_reader(env, tmp_path):
    instance = instance_of("depot/buy", 1, tier=2)
    learner = agent("self_improving", instance)
    run = play(env, learner, instance, memory=tmp_path)
    assert revisions.load_notebook(tmp_path).signs
    assert run.outcome == "finished"
    assert run.q_state < 1.0


def test_a_refusal_by_a_rule_of_the_site_is_evidence_of_no_way(env):
    instance = instance_of("depot/buy-honeypot", 1)
    run = play(env, agent("agentic", instance), instance)
    assert run.outcome == "infeasible"


@pytest.mark.parametrize("screenshots", ["false", "true"])
def test_a_language_model_surfs_with_the_same_tools(env, screenshots):
    instance = instance_of(BUY, 4)
    calls = [json.loads(action) for action in script(instance)]
    asked = []

    def reply(request):
        asked.append(json.loads(request.content))
        call = calls.pop(0)
        return httpx.Response(200, json=completion((call["tool"], call["arguments"])))

    def connect(options, url, key):
        return ChatEndpoint(options, url, key, transport=httpx.MockTransport(reply))

    given = AgentConfig(
        options={"model": "m", "retries": "0", "screenshots": screenshots},
        environment={"OPENAI_BASE_URL": "http://x/v1"},
    )
    run = play(env, Shown(LanguageModelAgent(given, connect), env), instance)
    assert run.q_state == 1.0
    names = {tool["function"]["name"] for tool in asked[0]["tools"]}
    assert {"click", "type", "select", "goto", "finish"} <= names
    assert "The browser shows:" in json.dumps(asked[0]["messages"])
    for body in asked:
        pictures = json.dumps(body).count("data:image/jpeg;base64,/9j/")
        assert pictures == (screenshots == "true")


class Shown:
    """An agent that is shown the window with every turn, as the loop does it."""

    def __init__(self, inner, env):
        self.inner, self.env = inner, env
        self.reset, self.close = inner.reset, inner.close

    def act(self, observation, info):
        return self.inner.act(observation, episode_setup.with_picture(self.env, info))
