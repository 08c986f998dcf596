"""A chat model proposes, a scripted rule adopts: on one campaign, without a server."""

import json

import httpx
import pytest

from owa_bench.agents.language_model.endpoint import ChatEndpoint
from owa_bench.agents.language_model.proposer import PROPOSER, ModelProposer
from owa_bench.agents.solvers.revision.acceptors import ACCEPTORS, RevisionAgent
from owa_bench.errors import AgentRaised, FieldError
from owa_bench.interfaces import AgentConfig
from owa_bench.records.events import Action
from tests.builders import revision_campaigns as campaigns
from tests.builders.stub_server import completion

ENVIRONMENT = {"OPENAI_BASE_URL": "http://x/v1"}


class Told:
    """A model that always calls the tool with these arguments; keeps its requests."""

    def __init__(self, **arguments):
        self.answer = completion(("test_components", arguments))
        self.requests = []

    def __call__(self, request):
        self.requests.append(json.loads(request.content))
        return httpx.Response(200, json=self.answer)

    def proposer(self, **options):
        config = AgentConfig(options={"model": "m", **options}, environment=ENVIRONMENT)
        return ModelProposer(
            config,
            lambda given, url, key: ChatEndpoint(
                given, url, key, transport=httpx.MockTransport(self)
            ),
        )


def calls(campaign, tool):
    """Return the arguments of every call of a tool."""
    actions = [json.loads(e.action) for e in campaign.events if isinstance(e, Action)]
    return [action["arguments"] for action in actions if action["tool"] == tool]


def played(model, acceptor):
    """Return the campaign that an acceptor makes of a model's proposals."""
    agent = RevisionAgent(ACCEPTORS[acceptor], model.proposer())
    return campaigns.play(agent)


@pytest.mark.part(2)
@pytest.mark.parametrize("acceptor", list(ACCEPTORS))
def test_only_what_the_model_names_is_proposed(acceptor):
    world = campaigns.play(RevisionAgent(ACCEPTORS["greedy"])).world
    [helpful, *_] = campaigns.named(world, "helpful")
    model = Told(components=[helpful, "no such component", helpful])
    campaign = played(model, acceptor)
    assert [c["diff"] for c in calls(campaign, "propose")] in ([[helpful]], [])
    adopted = [c["version"] for c in calls(campaign, "adopt")]
    assert len(adopted) <= 1
    asked = model.requests[0]
    assert len(model.requests) == 1
    assert helpful in asked["messages"][1]["content"]


def test_a_model_that_names_nothing_adopts_nothing():
    campaign = played(Told(components=[]), "bonferroni")
    assert not calls(campaign, "propose")
    assert not calls(campaign, "adopt")


def test_a_reply_without_the_list_is_named():
    with pytest.raises(AgentRaised, match="must name a list of `components`"):
        played(Told(names="all"), "greedy")


def test_an_acceptor_that_does_not_exist_is_named():
    config = AgentConfig(options={"model": "m", "acceptor": "gready"})
    with pytest.raises(FieldError, match="greedy"):
        PROPOSER.make(config)
