"""Options, the key beside them, and one request over a mock transport."""

import json

import httpx
import pytest

from owa_bench.agents.language_model.endpoint import (
    KNOWN,
    ChatEndpoint,
    ContextOverflow,
    ModelOptions,
    parse_options,
    server_of,
)
from owa_bench.errors import AgentRaised
from tests.builders.stub_server import completion

KEY = "sk-canary-5f1e9c77"
BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
GOOD = completion(("finish", {}))


class Wire:
    """Answers in order, and keeps requests and pauses; its clock runs by pauses."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def chat(self, key=KEY, **changes):
        return ChatEndpoint(
            parse_options({"model": "m", **changes}),
            "http://x/v1",
            key,
            transport=httpx.MockTransport(self),
            sleep=self.pauses.append,
            clock=lambda: sum(self.pauses),
        )


def good(**more):
    return httpx.Response(200, json={**GOOD, **more})


def bad(status, message="no", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json={"error": {"message": message}}, headers=named)


def test_one_request():
    wire = Wire(good())
    reply = wire.chat().ask(BODY, 10)
    assert reply.tokens_in == 700
    assert reply.calls[0].name == "finish"
    request = wire.requests[0]
    assert str(request.url) == "http://x/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(request.content) == BODY


def test_no_key_no_header():
    wire = Wire(good())
    wire.chat(key="").ask(BODY, 10)
    assert "authorization" not in wire.requests[0].headers


def test_pauses_double_and_retry_after_is_honoured():
    wire = Wire(httpx.ConnectError("refused"), bad(429, retry_after="3"), bad(503), good())
    assert wire.chat().ask(BODY, 60).tokens_in == 700
    assert wire.pauses == [0.5, 3.0, 2.0]


def test_retry_after_as_a_date_of_the_past_asks_for_nothing():
    wire = Wire(bad(429, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), good())
    wire.chat().ask(BODY, 60)
    assert wire.pauses == [0.5]


def test_a_wait_beyond_the_deadline_fails_at_once():
    wire = Wire(bad(429, retry_after="120"))
    with pytest.raises(AgentRaised, match=r"asks to wait 120 s.*--act-seconds"):
        wire.chat().ask(BODY, 50)
    assert wire.pauses == []


def test_retries_are_bounded():
    wire = Wire(*[bad(500)] * 3)
    with pytest.raises(AgentRaised, match="HTTP 500"):
        wire.chat(retries="2").ask(BODY, 50)
    assert len(wire.requests) == 3


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (httpx.ConnectError("refused"), "Is it running, is --model-url right"),
        (bad(401, "wrong"), r"wrong; check the key: --model-key-env"),
        (bad(404, "no model"), r"check model= \(m\)"),
        (bad(429, "insufficient_quota"), "quota is used up"),
        (bad(400, "temperature unsupported"), "temperature=none"),
        (httpx.Response(200, text="<html>hello"), "often ending in /v1"),
        (httpx.Response(200, json={"choices": []}), "no completion: no choice"),
        (httpx.Response(200, json=[]), "no completion"),
    ],
)
def test_a_failure_names_cause_and_fix(answer, says):
    with pytest.raises(AgentRaised, match=says):
        Wire(answer).chat(retries="0").ask(BODY, 10)


@pytest.mark.parametrize(
    "answer",
    [
        bad(400, "This model's maximum context length is 8192 tokens"),
        bad(400, "the request exceeds the available context size"),
        bad(413),
    ],
)
def test_overflow_is_told_apart(answer):
    with pytest.raises(ContextOverflow):
        Wire(answer).chat().ask(BODY, 10)


# --- options

PLAIN = {"model": "m"}


def test_defaults_and_none():
    given = parse_options(PLAIN)
    assert (given.temperature, given.seed, given.context) == (0.0, -1, 32_768)
    bare = parse_options({**PLAIN, "temperature": "none", "seed": "none"})
    assert (bare.temperature, bare.seed) == (None, None)
    assert parse_options({**PLAIN, "seed": "7", "screenshots": "true"}).seed == 7


@pytest.mark.parametrize(
    ("name", "value"), [("temperature", "hot"), ("context", "12"), ("retries", "-1")]
)
def test_a_bad_value_names_its_option(name, value):
    with pytest.raises(AgentRaised, match=rf"\$\.{name}"):
        parse_options({**PLAIN, name: value})


def test_every_option_is_listed():
    assert set(KNOWN) == set(ModelOptions.__struct_fields__)


def test_address_and_key_come_from_the_environment():
    given = {"OPENAI_BASE_URL": "http://x/v1", "OPENAI_API_KEY": "abc"}
    assert server_of(given) == ("http://x/v1", "abc")
    assert server_of({"OPENAI_BASE_URL": "http://x/v1"}) == ("http://x/v1", "")
    with pytest.raises(AgentRaised, match=r"OPENAI_BASE_URL is not set.*--model-url"):
        server_of({})
