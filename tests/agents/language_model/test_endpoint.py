"""Options, the key beside them, and one request over a mock transport."""

import json

import httpx
import pytest

from owa_bench.agents.language_model.endpoint import (
    KNOWN,
    ChatEndpoint,
    ContextOverflow,
    ModelOptions,
    api_key,
    parse_options,
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
        given = {"model": "m", "base_url": "http://x/v1", "key_env": "K", **changes}
        return ChatEndpoint(
            parse_options(given),
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
    assert (reply.tokens_in, reply.tokens_out, reply.metered) == (700, 30, True)
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
    wire = Wire(
        httpx.ConnectError("refused"),
        bad(429, retry_after="3"),
        bad(503),
        good(),
    )
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
        (httpx.ConnectError("refused"), "Is it running, is base_url right"),
        (bad(401, "wrong"), r"wrong; check the key in .*\(K\)"),
        (bad(404, "no model"), r"check model= \(m\)"),
        (bad(429, "insufficient_quota"), "quota is used up"),
        (bad(400, "temperature unsupported"), "temperature=none"),
        (httpx.Response(200, text="<html>hello"), "often ending in /v1"),
        (httpx.Response(200, json={"choices": []}), "no chat completion"),
        (httpx.Response(200, json=[]), "no chat completion"),
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


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_a_key_that_comes_back_is_scrubbed(status):
    body = completion(("note", {"text": KEY}), content=f"your key is {KEY}")
    answer = httpx.Response(status, json={**body, "error": {"message": KEY}})
    chat = Wire(answer).chat(retries="0")
    try:
        said = repr(chat.ask(BODY, 10))
    except AgentRaised as failure:
        said = str(failure)
    assert KEY not in said
    assert "{secret:api_key}" in said


def test_the_cache_answers_offline_and_says_so(tmp_path):
    place = str(tmp_path / "cache")
    first = Wire(good()).chat(cache=place).ask(BODY, 10)
    wire = Wire()
    offline = wire.chat(cache=place, offline="true")
    assert offline.ask(BODY, 10) == first._replace(cached=True)
    with pytest.raises(AgentRaised, match=r"offline, and the cache .* holds no reply"):
        offline.ask({**BODY, "seed": 1}, 10)
    assert wire.requests == []


def test_offline_without_a_cache():
    with pytest.raises(AgentRaised, match="cache=FOLDER"):
        Wire().chat(offline="true").ask(BODY, 10)


# --- options

PLAIN = {"model": "m", "base_url": "http://x/v1"}


def test_defaults_and_none():
    given = parse_options(PLAIN)
    assert (given.temperature, given.seed, given.context) == (0.0, -1, 32_768)
    bare = parse_options({**PLAIN, "temperature": "none", "seed": "none"})
    assert (bare.temperature, bare.seed) == (None, None)
    assert parse_options({**PLAIN, "seed": "7", "offline": "true"}).seed == 7


@pytest.mark.parametrize(
    ("name", "value"), [("temperature", "hot"), ("context", "12"), ("retries", "-1")]
)
def test_a_bad_value_names_its_option(name, value):
    with pytest.raises(AgentRaised, match=rf"\$\.{name}"):
        parse_options({**PLAIN, name: value})


def test_every_option_is_listed():
    assert set(KNOWN) == set(ModelOptions.__struct_fields__)


def test_the_key_comes_from_the_named_variable(monkeypatch):
    given = parse_options({**PLAIN, "key_env": "OWA_TEST_KEY"})
    monkeypatch.setenv("OWA_TEST_KEY", "abc")
    assert api_key(given) == "abc"
    monkeypatch.delenv("OWA_TEST_KEY")
    with pytest.raises(AgentRaised, match=r"OWA_TEST_KEY.*is not set; export it"):
        api_key(given)
    assert api_key(parse_options(PLAIN)) == ""
