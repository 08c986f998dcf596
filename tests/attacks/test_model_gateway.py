"""The model gateway as a memory, a channel and a door: each way, and its control.

The control of each test is the old rule, by monkeypatch: then the attack works.
"""

import json
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.responses import JSONResponse

from owa_bench.hosting.gateway import request_check, server
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.hosting.gateway.server import ModelGateway
from owa_bench.hosting.gateway.session import GatewaySession
from owa_bench.hosting.gateway.translation import ModelProvider
from owa_bench.records import plan as plans
from owa_bench.records.events import ModelCall
from owa_bench.records.layout import RunLayout
from owa_bench.records.price_card import unknown_usage, unwatched_channel
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files
from tests.builders.sandboxes import needs_sandbox
from tests.field.server import serving, usual

pytestmark = pytest.mark.part(3)

BUILDERS = Path(__file__).parents[1] / "builders"
CHAT, RESPONSES, MESSAGES = "/chat/completions", "/responses", "/messages"
SECRET = "the lists of the first sitting"


class Blobs:
    def blob(self, data):
        return str(len(data))


class Provider:
    """A provider that keeps what it is told, and counts what its cache holds."""

    def __init__(self):
        self.store, self.seen = {}, set()

    def __call__(self, ask):
        if ask.path.startswith("/v1/responses/"):
            return JSONResponse({"output": [{"text": self.store}]})
        if ask.path != "/v1/responses":
            return self._chat(ask)
        told = self.store.get(ask.body.get("previous_response_id"), "")
        name = f"resp_{len(self.store)}"
        if ask.body.get("store", True):
            self.store[name] = f"{told}{ask.body['input']}"
        part = {"type": "output_text", "text": told or "noted", "annotations": []}
        item = {"type": "message", "role": "assistant", "content": [part]}
        return {"id": name, "output": [item], "usage": _counts("input_tokens")}

    def _chat(self, ask):
        text = json.dumps(ask.messages)
        cached = 800 if text in self.seen else 0
        self.seen.add(text)
        whole = usual(ask)
        details = {"prompt_tokens_details": {"cached_tokens": cached}}
        headers = {
            "openai-processing-ms": "12",
            "x-request-id": f"req_{ask.number}",
            "x-ratelimit-remaining-tokens": str(9_000 - ask.number),
        }
        unique = {"id": f"chatcmpl-{ask.number}", "created": 1_700_000_000 + ask.number}
        whole["choices"][0]["message"]["tool_calls"][0]["id"] = f"call_{ask.number}"
        usage = whole["usage"] | details
        return JSONResponse(
            whole | unique | {"usage": usage, "timings": {"ms": ask.number}}, headers=headers
        )


def _counts(name):
    return {name: 5, "output_tokens": 2, "total_tokens": 7}


@contextmanager
def gateway_at(answer, fields=(), **terms):
    """Yield a function that opens a session, and the provider's server."""
    with serving(answer) as (url, asked):
        provider = ModelProvider(url=f"{url}/v1", timeout_s=10, **terms)
        with ExitStack() as stack:
            made = stack.enter_context(ModelGateway(provider, frozenset(), fields))

            def sitting(scope="", *, hides=True):
                session = made.open(scope, hides=hides)
                client = httpx.Client(
                    base_url=f"http://127.0.0.1:{made.port}/v1",
                    headers={"authorization": f"Bearer {session.token}"},
                    timeout=20,
                )
                return session, stack.enter_context(client)

            yield sitting, asked


def old_rule(patch):
    """Pass every field on, as it came."""
    patch.setattr(server, "refusal", lambda *_: ("", ()))
    patch.setattr(server, "as_sent", lambda _session, _path, terms, _passed: terms)


# --- a memory -------------------------------------------------------------------------


def recalled(sitting):
    """Return what a second sitting reads of what the first one told the provider."""
    _, first = sitting("1", hides=False)
    told = first.post(RESPONSES, json={"model": "m", "input": SECRET, "store": True})
    if told.status_code != 200:
        told = first.post(RESPONSES, json={"model": "m", "input": SECRET})
    name = told.json()["id"]
    _, second = sitting("2", hides=False)
    body = {"model": "m", "input": "?", "previous_response_id": name}
    return second.post(RESPONSES, json=body).text


def test_a_provider_side_memory_is_refused(monkeypatch):
    provider = Provider()
    with gateway_at(provider) as (sitting, asked):
        assert "`previous_response_id` is refused" in recalled(sitting)
        assert not provider.store  # a request that says nothing of it is not stored
        assert [ask.body["store"] for ask in asked.asked] == [False]
    with gateway_at(Provider()) as (sitting, _), monkeypatch.context() as patch:
        old_rule(patch)
        assert SECRET in recalled(sitting)


@pytest.mark.slow
@needs_sandbox
def test_no_sitting_of_recall_reads_what_its_provider_kept(tmp_path, monkeypatch):
    """On a real run, and the control: under the old rule the provider is the memory."""

    def quality(name):
        draw = Draw(name="recall", families=("counterfactual",), tiers=(1,), deltas=(0.0,))
        agents = ("restart_cheats:Provider",)
        request = Request(agents=agents, draws=(draw,), sandbox="namespaces")
        layout = RunLayout(tmp_path / name)
        with serving(Provider()) as (url, _):
            reach = GatewayOptions(model_url=f"{url}/v1")
            options = RunOptions(home=tmp_path / "home", folder=BUILDERS, gateway=reach)
            batch.play(request, layout.root, options)
        (leaf,) = files.read_leaves(layout)
        return files.read_trace(layout, leaf).end.q_state

    assert quality("new") < 0.2
    with monkeypatch.context() as patch:
        old_rule(patch)  # and ids as the provider has them
        opened = ModelGateway.open
        patch.setattr(ModelGateway, "open", lambda made, scope="", **_: opened(made, scope))
        assert quality("old") == 1.0


@pytest.mark.parametrize(
    "name", ["../responses/resp_0", "x/../../responses/resp_0", "%2e%2e/responses/resp_0"]
)
def test_no_models_name_leads_to_what_is_stored(monkeypatch, name):
    provider = Provider()
    provider.store["resp_0"] = SECRET
    path = "/models/" + name.replace("../", "%2e%2e%2f")
    with gateway_at(provider) as (sitting, asked):
        assert sitting()[1].get(path).status_code == 404
        assert not asked.asked
        with monkeypatch.context() as patch:
            patch.setattr(server, "_MODEL", request_check.re.compile("/models/.*"))
            assert SECRET in sitting()[1].get(path).text


def test_a_cached_reply_of_another_session_is_not_read(tmp_path, monkeypatch):
    body = {"model": "m", "messages": [{"role": "user", "content": SECRET}], "seed": 1}

    def asked_by_two(sitting, asked):
        for scope in ("seat a", "seat b"):
            assert sitting(scope)[1].post(CHAT, json=body).status_code == 200
        return len(asked.asked)

    with gateway_at(usual, cache=str(tmp_path / "new")) as (sitting, asked):
        assert asked_by_two(sitting, asked) == 2
        sitting("seat a")[1].post(CHAT, json=body)  # a resumed run pays once
        assert len(asked.asked) == 2
    with monkeypatch.context() as patch:
        everywhere = property(lambda _: "", lambda *_: None)
        patch.setattr(GatewaySession, "scope", everywhere, raising=False)
        with gateway_at(usual, cache=str(tmp_path / "old")) as (sitting, asked):
            assert asked_by_two(sitting, asked) == 1


@pytest.mark.parametrize("name", ["prompt_cache_key", "cache_salt"])
def test_a_providers_cache_is_asked_under_a_key_of_the_session(name):
    body = {"model": "m", "messages": [], name: "shared by all sittings"}
    with gateway_at(usual) as (sitting, asked):
        for scope in ("1", "2"):
            sitting(scope)[1].post(CHAT, json=body)
    keys = {ask.body[name] for ask in asked.asked}
    assert len(keys) == 2
    assert "shared by all sittings" not in keys


# --- a channel ------------------------------------------------------------------------


def told_to(sitting, *, hides, stream=False):
    """Return what a second seat is told of a question that a first one asked before."""
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    body |= {"stream": True} if stream else {}
    told = []
    for scope in ("seat a", "seat b"):
        session, client = sitting(scope, hides=hides)
        reply = client.post(CHAT, json=body)
        headers = {n: v for n, v in reply.headers.items() if n not in ("date",)}
        told.append((reply.text, headers, session.take()[0].usage))
    return told


@pytest.mark.parametrize("stream", [False, True])
def test_a_seat_learns_nothing_of_anothers_questions(stream):
    def answer(ask):
        return usual(ask) | {"id": f"c{ask.number}"} if stream else Provider()(ask)

    provider = answer if stream else Provider()
    with gateway_at(provider) as (sitting, _):
        [first, second] = told_to(sitting, hides=True, stream=stream)
        assert first[:2] == second[:2]
        [first, second] = told_to(sitting, hides=False, stream=stream)
        assert first[:2] != second[:2]  # as it was


def test_the_price_reads_what_the_provider_counted():
    with gateway_at(Provider()) as (sitting, _):
        [first, second] = told_to(sitting, hides=True)
    assert (first[2].tokens_cached, second[2].tokens_cached) == (0, 800)
    assert "800" not in second[0]


def test_an_id_comes_back_to_the_provider_as_its_own():
    with gateway_at(Provider()) as (sitting, asked):
        _, client = sitting()
        messages = [{"role": "user", "content": "x"}]
        reply = client.post(CHAT, json={"model": "m", "messages": messages}).json()
        message = reply["choices"][0]["message"]
        (call,) = message["tool_calls"]
        assert call["id"] == "call_owa1"
        answer = {"role": "tool", "tool_call_id": call["id"], "content": "y"}
        body = {"model": "m", "messages": [*messages, message, answer]}
        assert client.post(CHAT, json=body).status_code == 200
    sent = asked.asked[1].messages
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == "call_0"


@pytest.mark.parametrize("status", [429, 500, 402])
def test_limits_of_an_account_are_told_to_no_seat(status):
    def limited(ask):
        words = f"Limit 30000, used {ask.number}, request req_{ask.number}aaaaaaaaaaaaa"
        headers = {"retry-after": str(ask.number), "x-ratelimit-reset": "1"}
        return JSONResponse({"error": {"message": words}}, status, headers)

    with gateway_at(limited) as (sitting, _):
        [first, second] = told_to(sitting, hides=True)
        assert first[:2] == second[:2]
        [first, second] = told_to(sitting, hides=False)
        assert first[:2] != second[:2]


# --- a door ---------------------------------------------------------------------------


def chat(*parts, **more):
    message = {"role": "user", "content": list(parts)} if parts else None
    return {"model": "m", "messages": [message] if message else [], **more}


URL = "https://elsewhere.example/x"
DOORS = [
    # hosted tools
    (RESPONSES, {"input": "x", "tools": [{"type": "mcp", "server_url": URL}]}, "mcp"),
    (RESPONSES, {"input": "x", "tools": [{"type": "web_search"}]}, "web_search"),
    (RESPONSES, {"input": "x", "tools": [{"type": "shell"}]}, "shell"),
    (RESPONSES, {"input": "x", "tools": ["web_search"]}, "tools"),
    (RESPONSES, {"input": "x", "tools": {"type": "mcp"}}, "mcp"),
    (RESPONSES, {"input": "x", "tool_choice": {"type": "file_search"}}, "file_search"),
    (CHAT, chat(tools=[{"type": "web_search"}]), "web_search"),
    (CHAT, chat(tools=[{"type": "function"}, {"type": "mcp"}]), "mcp"),
    (CHAT, chat(tools=[{"googleSearch": {}}]), "type"),
    (CHAT, chat(web_search_options={}), "web_search_options"),
    (CHAT, chat(plugins=[{"id": "web"}]), "plugins"),
    (CHAT, chat(search_parameters={"mode": "on"}), "search_parameters"),
    (CHAT, chat() | {"model": "vendor/m:online"}, "model"),
    (CHAT, chat() | {"model": "@preset/mine"}, "model"),
    (MESSAGES, chat(tools=[{"type": "web_search_20250305"}]), "web_search_20250305"),
    (MESSAGES, chat(tools=[{"type": "memory_20250818", "name": "m"}]), "memory"),
    (MESSAGES, chat(tools=[{"name": "f", "allowed_callers": ["code"]}]), "allowed"),
    (MESSAGES, chat(mcp_servers=[{"type": "url", "url": URL}]), "mcp_servers"),
    (MESSAGES, chat(container="box"), "container"),
    # remote files and files by an id
    (CHAT, chat({"type": "image_url", "image_url": {"url": URL}}), "url"),
    (CHAT, chat({"type": "image_url", "image_url": URL}), "image_url"),
    (CHAT, chat({"type": "image_url", "image_url": None, "uuid": "1"}), "uuid"),
    (CHAT, chat({"type": "file", "file": {"file_id": "file-1"}}), "file_id"),
    (CHAT, chat({"type": "file", "file": {"file_data": URL}}), "file_data"),
    (CHAT, chat({"type": "input_audio", "input_audio": {"data": URL}}), "data"),
    (RESPONSES, {"input": [{"type": "item_reference", "id": "i"}]}, "item_reference"),
    (RESPONSES, {"input": [{"id": "msg_1"}]}, "type"),
    (RESPONSES, {"input": [{"type": "reasoning", "id": "rs_1"}]}, "id"),
    (
        RESPONSES,
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": URL}]}]},
        "file_url",
    ),
    (
        RESPONSES,
        {
            "input": [
                {
                    "type": "function_call_output",
                    "call_id": "c",
                    "output": [{"type": "input_image", "file_id": "file-1"}],
                }
            ]
        },
        "file_id",
    ),
    (MESSAGES, chat({"type": "image", "source": {"type": "url", "url": URL}}), "url"),
    (MESSAGES, chat({"type": "document", "source": {"type": "file"}}), "file"),
    (
        MESSAGES,
        chat(
            {
                "type": "tool_result",
                "tool_use_id": "t",
                "content": [{"type": "image", "source": {"type": "file"}}],
            }
        ),
        "file",
    ),
    # stored state, background, and texts that others read
    (RESPONSES, {"input": "x", "conversation": "conv_1"}, "conversation"),
    (RESPONSES, {"input": "x", "prompt": {"id": "pmpt_1"}}, "prompt"),
    (RESPONSES, {"input": "x", "background": True}, "background"),
    (RESPONSES, {"input": "x", "store": 1}, "store"),
    (RESPONSES, {"input": "x", "context_management": [{}]}, "context_management"),
    (CHAT, chat(store=True), "store"),
    (CHAT, chat(Store=True), "Store"),
    (CHAT, chat(metadata={"a": "b"}), "metadata"),
    (CHAT, chat(user="told to another"), "user"),
    (CHAT, chat(prompt_cache_options={"comparison_response_id": "r"}), "comparison"),
    (CHAT, chat(id_slot=1), "id_slot"),
    (CHAT, chat(deferred=True), "deferred"),
    (MESSAGES, chat(metadata={"user_id": "u"}), "metadata"),
    (CHAT, chat(tools=[{"type": "function", "function": {"parameters": {"$ref": URL}}}]), "$ref"),
]


@pytest.mark.parametrize(("path", "body", "name"), DOORS)
def test_what_is_not_on_the_list_goes_nowhere(path, body, name, monkeypatch):
    body = {"model": "m", **body}
    with gateway_at(usual) as (sitting, asked):
        session, client = sitting()
        reply = client.post(path, json=body)
        assert (reply.status_code, asked.asked) == (400, [])
        words = reply.json()["error"]["message"]
        assert name in words
        assert "--model-field" in words
        assert session.blame() is None  # the agent's own, never its provider's
        with monkeypatch.context() as patch:
            old_rule(patch)
            client.post(path, json=body)
        assert len(asked.asked) == 1


def test_of_a_field_that_stands_twice_the_provider_gets_the_one_that_was_read():
    text = b'{"model": "m", "messages": [], "store": true, "store": false}'
    with gateway_at(usual) as (sitting, asked):
        assert sitting()[1].post(CHAT, content=text).status_code == 200
    assert asked.asked[0].body == {"model": "m", "messages": [], "store": False}


def test_a_model_may_only_be_told_back_what_it_said():
    """An unknown field of a reply comes back; another value of it does not."""

    def answer(ask):
        whole = usual(ask)
        whole["choices"][0]["message"]["x_vendor"] = {"file_id": "f"}
        return whole

    with gateway_at(answer) as (sitting, _):
        _, client = sitting(hides=False)
        message = client.post(CHAT, json=chat()).json()["choices"][0]["message"]
        assert client.post(CHAT, json=chat() | {"messages": [message]}).is_success
        message["x_vendor"] = {"file_id": "another"}
        told = client.post(CHAT, json=chat() | {"messages": [message]})
        assert "messages[0].x_vendor" in told.json()["error"]["message"]
        _, other = sitting(hides=False)
        message["x_vendor"] = {"file_id": "f"}  # of another session
        assert other.post(CHAT, json=chat() | {"messages": [message]}).status_code == 400


# --- what a user lets pass, and what a server does by itself --------------------------


def call_of(session):
    """Return the event of a session's last request."""
    record = session.take()[-1]
    return next(e for e in record.events(1, "", Blobs()) if isinstance(e, ModelCall))


def test_a_field_that_a_user_lets_pass_makes_cost_unknown_and_the_axes_blind():
    with gateway_at(usual, fields=("user",)) as (sitting, asked):
        session, client = sitting()
        client.post(CHAT, json=chat())
        plain = call_of(session)
        client.post(CHAT, json=chat(user="u"))
        event = call_of(session)
        assert asked.asked[1].body["user"] == "u"
    assert (plain.unlisted, event.unlisted) == ("", "user")
    assert unwatched_channel([plain]) == unknown_usage([plain]) == ""
    assert "user" in unwatched_channel([event])
    assert "user" in unknown_usage([event])


WORK = [
    (CHAT, {"annotations": [{"type": "url_citation", "url": URL}]}, "annotations"),
    (CHAT, {"executed_tools": [{"type": "search"}]}, "executed_tools"),
]


@pytest.mark.parametrize(("path", "more", "name"), WORK)
def test_a_tool_that_a_server_ran_by_itself_is_seen_in_its_reply(path, more, name):
    def answer(ask):
        whole = usual(ask)
        whole["choices"][0]["message"] |= more
        return whole

    with gateway_at(answer) as (sitting, _):
        session, client = sitting()
        client.post(path, json=chat())
        assert call_of(session).unlisted == name


@pytest.mark.parametrize(
    ("path", "reply", "name"),
    [
        (RESPONSES, {"output": [{"type": "web_search_call"}]}, "web_search_call"),
        (RESPONSES, {"output": [{"type": "mcp_call"}]}, "mcp_call"),
        (MESSAGES, {"content": [{"type": "server_tool_use"}]}, "server_tool_use"),
        (
            MESSAGES,
            {"content": [], "usage": {"server_tool_use": {"web_search_requests": 1}}},
            "server_tool_use",
        ),
        (RESPONSES, {"output": [{"type": "function_call", "arguments": "{}"}]}, ""),
        (MESSAGES, {"content": [{"type": "text", "text": "x", "citations": None}]}, ""),
    ],
)
def test_work_of_a_server_is_told_by_the_kinds_in_its_reply(path, reply, name):
    with gateway_at(lambda _: JSONResponse({"type": "message", **reply})) as (sitting, _):
        session, client = sitting()
        client.post(path, json={"model": "m", "input": "x"} if path == RESPONSES else chat())
        assert name in call_of(session).unlisted


def test_fields_that_are_let_pass_are_terms():
    assert "model_fields" in plans.Plan.__struct_fields__
    assert "model_fields" not in plans.NO_TERMS
