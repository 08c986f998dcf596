"""Chat requests in three providers' forms, against servers that speak them."""

import json
from importlib.util import find_spec

import httpx
import pytest

from owa_bench.errors import FieldError, MissingPartError
from owa_bench.hosting.gateway import translation
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.hosting.gateway.server import ModelGateway
from owa_bench.hosting.gateway.translation import APIS, ModelProvider, translation_fault
from owa_bench.records.events import ModelCall, Resource
from owa_bench.runs.store import files
from tests.builders.provider_stubs import FORMS, TOKENS, provider

KEY = "sk-canary-5e1b04c9"
pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own
PARAMETERS = {"type": "object", "properties": {}}
FUNCTION = {"name": "finish", "description": "End.", "parameters": PARAMETERS}
BODY = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Call finish."},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "temperature": 0,
    "seed": 3,
}


@pytest.fixture
def library():
    if find_spec("litellm") is None:  # not imported here: the gateway says how
        pytest.skip("litellm is not installed")


@pytest.fixture
def asks(library):
    """Return a function that sends a chat request through a gateway to a provider."""

    def ask(api, url, body=BODY, path="/chat/completions", timeout_s=20.0):
        terms = ModelProvider(url=url, api=api, key=KEY, timeout_s=timeout_s)
        with ModelGateway(terms, frozenset()) as gateway:
            session = gateway.open()
            reply = httpx.post(
                f"http://127.0.0.1:{gateway.port}/v1{path}",
                json=body,
                headers={"authorization": f"Bearer {session.token}"},
                timeout=240,
            )
            (record,) = session.close()
        return reply, record

    return ask


@pytest.mark.providers
@pytest.mark.parametrize("api", FORMS)
def test_a_chat_request_reaches_each_provider_in_its_own_form(asks, api):
    with provider(api, KEY) as (url, asked):
        reply, record = asks(api, url)
    assert reply.status_code == 200, reply.text
    message = reply.json()["choices"][0]["message"]
    (call,) = message["tool_calls"]
    assert call["function"]["name"] == "finish"
    assert json.loads(call["function"]["arguments"]) == {"p": 0.5}
    assert record.usage == TOKENS
    assert (record.status, record.failure) == (200, "")
    (sent,) = asked
    assert KEY in sent.headers[FORMS[api][1]]
    assert "messages" not in sent.body or "input_schema" in sent.body["tools"][0]
    assert KEY.encode() not in record.reply + record.body


@pytest.mark.providers
@pytest.mark.parametrize("api", FORMS)
@pytest.mark.parametrize(("status", "cause"), [(400, "request"), (401, "key"), (503, "overload")])
def test_the_status_is_the_providers_whatever_its_words_say(asks, api, status, cause):
    """The library takes "overloaded" for an outage, whatever the status."""
    words = "overloaded_error RateLimitError APIConnectionError"
    with provider(api, KEY, status, words) as (url, asked):
        reply, record = asks(api, url)
    assert len(asked) == 1
    assert (reply.status_code, record.status) == (status, status)
    assert record.failure == f"HTTP {status} ({cause})"
    assert "overloaded_error" in reply.text
    assert KEY not in reply.text


@pytest.mark.providers
def test_a_provider_that_is_gone_gave_no_reply(asks):
    reply, record = asks("anthropic", "http://127.0.0.1:9")
    assert reply.status_code == 502
    assert record.failure == "no reply: nothing listens at 127.0.0.1:9 (ConnectError)"
    assert record.status == 0


@pytest.mark.providers
@pytest.mark.parametrize(
    "more",
    [
        {"api_base": "http://127.0.0.1:1"},
        {"mock_response": "all is well"},
        {"fallbacks": ["openai/gpt"]},
        {"extra_headers": {"x": "y"}},
        {"stream": True},
        {"model": ""},
        {"tools": [{"type": "web_search"}]},
        {"messages": "x"},
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "http://10.0.0.1/"}}],
                }
            ]
        },
    ],
)
def test_what_would_lead_the_library_elsewhere_is_refused(asks, more):
    with provider("anthropic", KEY) as (url, asked):
        reply, record = asks("anthropic", url, {**BODY, **more})
    assert (reply.status_code, record.status, record.failure) == (400, 400, "")
    assert asked == []


@pytest.mark.providers
def test_other_paths_and_tickets_lead_nowhere(asks):
    with provider("gemini", KEY) as (url, asked):
        reply, _ = asks("gemini", url, path="/embeddings")
        assert reply.status_code == 400
        terms = ModelProvider(url=url, api="gemini", key=KEY)
        with ModelGateway(terms, frozenset()) as gateway:
            guess = f"http://127.0.0.1:{gateway.port}/translated/guess/models/m"
            assert httpx.post(guess, json={}).status_code == 404
    assert asked == []


@pytest.mark.providers
@pytest.mark.slow
def test_a_run_is_played_priced_and_recorded(library, played, small, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with provider("anthropic", KEY) as (url, asked):
        reach = GatewayOptions(model_url=url, model_api="anthropic")
        request = small("language-model:model=m,retries=0", sandbox="none")
        layout = played(request, in_process=False, gateway=reach)
    (leaf,) = files.read_leaves(layout)
    trace = files.read_trace(layout, leaf)
    calls = list(trace.of(ModelCall))
    assert len(calls) == len(asked) > 0
    assert {(call.status, call.metered) for call in calls} == {(200, True)}
    read, written, cached = TOKENS
    expected = {"tokens_in": read - cached, "tokens_cached": cached, "tokens_out": written}
    for meter, amount in expected.items():
        used = [e.amount for e in trace.of(Resource) if e.meter == meter]
        assert used == [amount] * len(calls), meter


def test_plain_requests_have_no_fault():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    content = [{"type": "text", "text": "look"}, picture]
    assert translation_fault(BODY) == ""
    seen = {**BODY, "messages": [{"role": "user", "content": content}]}
    assert translation_fault(seen) == ""


def test_without_the_library_the_line_that_installs_it(monkeypatch):
    monkeypatch.setattr(translation.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingPartError, match=r"owa_bench\[providers\]"):
        GatewayOptions(model_api="anthropic").check()
    GatewayOptions().check()


def test_each_interface_has_its_own_key(monkeypatch):
    assert GatewayOptions(model_api="gemini").key_env == "GEMINI_API_KEY"
    named = GatewayOptions(model_api="gemini", model_key_env="MINE")
    assert named.key_env == "MINE"
    assert {api.url.split(":")[0] for api in APIS.values()} == {"https"}
    with pytest.raises(FieldError, match="did you mean `gemini`"):
        GatewayOptions(model_api="gemni").check()
