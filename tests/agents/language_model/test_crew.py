"""The chat agent on the seats of a crew: a conversation a seat, none of another's."""

import json
import re

import httpx

from owa_bench.agents.language_model.agent import LanguageModelAgent
from owa_bench.agents.language_model.endpoint import ChatEndpoint
from owa_bench.agents.solvers.crew.player import CrewPlayer
from owa_bench.agents.solvers.crew.reading import TEAM
from owa_bench.interfaces import AgentConfig, Brief
from owa_bench.records.events import Message, Observation
from tests.builders import crew_episodes as episodes
from tests.builders.stub_server import completion

GOAL = re.compile(r"The same goal as JSON:\n(.*)")


class SeatModel:
    """A stand-in for a chat model: it knows the messages of its requests alone."""

    def __init__(self):
        self.requests = []
        self._player = None

    def __call__(self, request):
        messages = json.loads(request.content)["messages"]
        self.requests.append(messages)
        if self._player is None:
            goal = json.loads(GOAL.search(messages[1]["content"])[1])
            brief = Brief(text="", goal=goal, role=goal["seat"])
            self._player = CrewPlayer(brief, TEAM)
        call = self._player.advance(messages[-1]["content"])
        answer = completion((call.tool, dict(call.arguments)))
        return httpx.Response(200, json=answer)


class SeatAgent(LanguageModelAgent):
    """The chat agent; the builder of episodes wants actions as text."""

    def act(self, observation, info):
        return super().act(observation, info).action


def test_a_crew_of_chat_models_talks_and_each_has_a_conversation_of_its_own():
    models = {}

    def make(seat, shell):
        models[seat] = SeatModel()

        def connect(options, url, key):
            transport = httpx.MockTransport(models[seat])
            return ChatEndpoint(options, url, key, transport=transport)

        given = {"model": "m", "retries": "0"}
        variables = {"OPENAI_BASE_URL": "http://x/v1"}
        config = AgentConfig(options=given, environment=variables)
        return SeatAgent(config, connect)

    played = episodes.play(make, episodes.instance("contract", 2, 3))
    assert played.q_state > 0.5
    assert {m.sender for m in played.of(Message)} == set(models)
    shown = {seat: set() for seat in models}
    for event in played.of(Observation):
        shown[event.role].add(played.blobs[event.blob].decode())
    for seat, model in models.items():
        said = json.dumps(model.requests[-1])
        others = set().union(*(shown[other] for other in models if other != seat))
        private = {text for text in others - shown[seat] if "kept by" in text}
        assert private
        assert not [text for text in private if json.dumps(text)[1:-1] in said]
        assert f"You are {seat} of a crew" in model.requests[0][1]["content"]
