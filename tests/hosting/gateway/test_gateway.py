"""The model gateway on real runs against a provider of our own on loopback."""

import json
import socket
import threading
from base64 import b64encode

import httpx
import pytest
from starlette.responses import StreamingResponse

from owa_bench.errors import FieldError
from owa_bench.hosting.agent_process import AgentLauncher
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.hosting.gateway.server import ModelGateway
from owa_bench.hosting.gateway.translation import ModelProvider
from owa_bench.records.events import Egress, ModelCall, Resource
from owa_bench.records.packs import Transcripts
from owa_bench.records.plan import Budget
from owa_bench.reports import statement, verify
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store import files, keys
from owa_bench.sandbox.views import namespaces_fault
from tests.builders.stub_server import TOKENS_IN, TOKENS_OUT, completion, error, serving

KEY = "sk-canary-77aa01bc"
REPLY = completion(("finish", {}), content=f"your key is {KEY}")


def frames(*chunks, end=True):
    """Return a streamed reply of these chunks."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    lines += ["data: [DONE]\n\n"] if end else []
    return StreamingResponse(iter(lines), media_type="text/event-stream")


def chunk(text, **more):
    return {"choices": [{"delta": {"content": text}}], **more}


USAGE = {"prompt_tokens": 5, "completion_tokens": 2}


@pytest.fixture
def gateway():
    """Return a function that opens a gateway, its session and a client of it."""
    opened = []

    def make(url="", allowed=(), key=KEY, **terms):
        provider = ModelProvider(url=url, key=key, timeout_s=20, **terms)
        made = ModelGateway(provider, frozenset(allowed))
        session = made.open()
        client = httpx.Client(
            transport=httpx.HTTPTransport(uds=made.socket_path),
            base_url="http://gateway/v1",
            headers={"authorization": f"Bearer {session.token}"},
        )
        opened.extend((client, made))
        return made, session, client

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def calls(played, small):
    """Return a function that plays an agent at a provider and returns its traces."""

    def play(policy, agent, key="", **changes):
        with serving(policy, key) as url:
            reach = GatewayOptions(model_url=url, **changes.pop("reach", {}))
            request = small(f"odd_agents:{agent}", **changes)
            layout = played(request, in_process=False, gateway=reach)
        leaves = files.read_leaves(layout)
        return layout, [files.read_trace(layout, leaf) for leaf in leaves]

    return play


def tokens(trace, source="harness"):
    return {
        event.meter: event.amount
        for event in trace.of(Resource)
        if event.source == source and event.meter.startswith("tokens")
    }


def judged(layout, run_options):
    """Return the axes of a run's first arm, after its checks."""
    key = keys.load(run_options.home, run_options.key)
    (verdict,) = statement.write(layout.root, key).verdicts
    failed = [check for check in verify.verify(layout.root) if not check.ok]
    assert failed == []
    return {axis.symbol: axis for axis in verdict.axes}


# --- one request ----------------------------------------------------------------------


def test_the_key_stays_outside_and_comes_back_in_no_reply(gateway):
    with serving(lambda _: REPLY, KEY) as url:
        made, session, client = gateway(url)
        reply = client.post("/chat/completions", json={"model": "m", "messages": []})
        assert reply.status_code == 200
        assert KEY not in reply.text
        assert KEY not in json.dumps(made.environment(session))
    (record,) = session.close()
    assert record.usage == (TOKENS_IN, TOKENS_OUT, 0)
    assert KEY.encode() not in record.reply


@pytest.mark.parametrize("token", ["none", "owa-guess", KEY])
def test_a_request_without_a_token_of_an_episode_goes_nowhere(gateway, token):
    asked = []
    with serving(lambda m: asked.append(m) or REPLY) as url:
        _, session, client = gateway(url)
        headers = {"authorization": f"Bearer {token}"}
        body = {"model": "m", "messages": []}
        for path in ("/chat/completions", "/models"):
            verb = "POST" if "chat" in path else "GET"
            sent = client.request(verb, path, json=body, headers=headers)
            assert sent.status_code == 401
        session.close()
        assert client.post("/chat/completions", json=body).status_code == 401
    assert asked == []


def test_other_paths_and_bodies_that_do_not_parse_are_refused(gateway):
    _, session, client = gateway("http://127.0.0.1:9/v1")
    assert client.post("/files", json={}).status_code == 404
    for body in (b"[" * 60_000, b"[]", b"{"):
        assert client.post("/chat/completions", content=body).status_code == 400
    assert session.close() == []


@pytest.mark.parametrize("asks", [False, True])
def test_a_stream_passes_as_it_comes_and_its_usage_is_read(gateway, asks):
    def policy(messages):
        last = {"choices": [], "usage": USAGE}
        return frames(chunk("a"), chunk(KEY), last)

    body = {"model": "m", "messages": [], "stream": True}
    if asks:
        body["stream_options"] = {"include_usage": True}
    with serving(policy) as url:
        _, session, client = gateway(url)
        with client.stream("POST", "/chat/completions", json=body) as reply:
            text = reply.read().decode()
    assert text.endswith("data: [DONE]\n\n")
    assert ("prompt_tokens" in text) is asks
    assert '"content": "a"' in text
    assert KEY not in text
    (record,) = session.close()
    assert record.usage == (5, 2, 0)
    assert not record.failure


def test_a_cached_reply_costs_its_tokens_and_no_request(gateway, tmp_path):
    body = {"model": "m", "messages": []}
    with serving(lambda _: REPLY) as url:
        _, first, client = gateway(url, cache=str(tmp_path))
        sent = client.post("/chat/completions", json=body).json()
    _, second, client = gateway(cache=str(tmp_path), key="")
    assert client.post("/chat/completions", json=body).json() == sent
    assert client.post("/chat/completions", json={}).status_code == 503
    [before], [after, missed] = first.close(), second.close()
    assert before.usage == after.usage == (TOKENS_IN, TOKENS_OUT, 0)
    assert (before.cached, after.cached, missed.usage) == (False, True, None)


# --- runs -----------------------------------------------------------------------------


@pytest.mark.parametrize("sandbox", ["namespaces", "none"])
def test_tokens_come_from_the_replies_and_are_priced(calls, run_options, sandbox):
    if sandbox != "none" and (fault := namespaces_fault()):
        pytest.skip(fault)
    layout, [trace] = calls(lambda _: REPLY, "AsksModel", sandbox=sandbox)
    [arm] = read_plan(layout).arms
    assert arm.hosting == ("unsandboxed" if sandbox == "none" else "sandboxed")
    (call,) = trace.of(ModelCall)
    assert (call.source, call.status, call.path) == ("harness", 200, "/chat/completions")
    assert call.latency_s > 0
    assert Transcripts(layout).read(call.prompt) == b'{"model":"m","messages":[]}'
    assert tokens(trace) == {"tokens_in": TOKENS_IN, "tokens_out": TOKENS_OUT}
    assert tokens(trace, "agent") == {}
    judged(layout, run_options)
    escrow.reveal(run_options.home, layout)
    assert replay.replay_run(layout).passed


@pytest.mark.part(3)
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failure_that_the_gateway_saw_is_never_the_agents(calls, status):
    _, traces = calls(lambda _: error(status, "later"), "AsksModel")
    assert [trace.leaf.status for trace in traces] == ["provider", "provider"]
    for trace in traces:
        assert f"HTTP {status}" in trace.end.reason
        (call,) = trace.of(ModelCall)
        assert call.status == status
        assert call.failure.startswith(f"HTTP {status} (")


def test_a_request_that_the_agent_alone_writes_wrongly_is_the_agents(calls):
    """The server answers a plain request at the same time, so it is well."""

    def policy(messages):
        return REPLY if messages else error(400, "no messages")

    _, [refused] = calls(policy, "AsksModel")
    assert (refused.leaf.status, refused.end.outcome) == ("complete", "agent_raised")


def test_without_the_plain_question_the_agent_voids_its_episode(calls, monkeypatch):
    """The control: what the agent wrote wrongly is then laid to the provider."""
    monkeypatch.setattr(AgentLauncher, "model_answers", lambda *_: False)

    def policy(messages):
        return REPLY if messages else error(400, "no messages")

    _, traces = calls(policy, "AsksModel")
    assert {trace.leaf.status for trace in traces} == {"provider"}


def test_a_server_that_refuses_a_plain_request_too_is_not_well(calls):
    _, traces = calls(lambda _: error(400, "no such model"), "AsksModel")
    assert {trace.leaf.status for trace in traces} == {"provider"}


def test_a_provider_that_is_gone_gave_no_reply(played, small):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    reach = GatewayOptions(model_url=f"http://127.0.0.1:{port}/v1")
    request = small("odd_agents:AsksModel")
    layout = played(request, in_process=False, gateway=reach)
    first, second = files.read_leaves(layout)
    assert (first.status, second.status) == ("provider", "provider")
    assert "could not be reached" in files.read_trace(layout, first).end.reason


def test_a_ceiling_on_tokens_counts_what_the_gateway_saw(calls):
    budget = Budget(episode_meters=(("tokens_in", 500.0),))
    _, [trace] = calls(lambda _: REPLY, "AsksModelForever", budget=budget)
    assert (trace.end.outcome, trace.end.reason) == ("truncated", "budget:tokens_in")
    assert trace.end.steps == 1


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("agent", "usage", "reason"),
    [
        ("AsksModel", True, ""),
        ("AsksAndDeclares", True, ""),
        ("DeclaresMore", True, "declared usage that no gateway saw"),
        ("AsksModel", False, "did not say what a reply used"),
        ("Streams", False, "did not say what a reply used"),
    ],
)
def test_usage_that_nobody_saw_makes_the_cost_unknown(calls, run_options, agent, usage, reason):
    def policy(messages):
        if agent == "Streams":
            return frames(chunk("a"))
        return completion(("finish", {}), usage=usage)

    layout, _ = calls(policy, agent)
    economics = judged(layout, run_options)["$"]
    assert (reason in (economics.reason or "")) if reason else not economics.reason


# --- other hosts ----------------------------------------------------------------------


@pytest.fixture
def echo():
    """A server that says hello and closes, as "host:port"."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            while True:
                try:
                    far, _ = server.accept()
                except OSError:
                    return
                far.recv(100)
                far.sendall(b"hello")
                far.close()

        threading.Thread(target=answer, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def tunnelled(made, token, host):
    """Return what a CONNECT to a host answers, and what comes through it."""
    with socket.socket(socket.AF_UNIX) as near:
        near.connect(made.socket_path)
        mark = b64encode(f"owa:{token}".encode()).decode()
        head = f"CONNECT {host} HTTP/1.1\r\nproxy-authorization: Basic {mark}\r\n\r\n"
        near.sendall(head.encode())
        status = near.recv(1000).split(b"\r\n")[0].decode()
        near.sendall(b"hi") if "200" in status else None
        near.settimeout(60)
        return status, near.recv(100)


def test_named_hosts_are_reached_and_no_other(gateway, echo):
    made, session, _ = gateway(allowed=[echo])
    assert tunnelled(made, session.token, echo) == ("HTTP/1.1 200 Connection Established", b"hello")
    assert "403" in tunnelled(made, session.token, "127.0.0.1:1")[0]
    assert "407" in tunnelled(made, "guess", echo)[0]
    through, refused = session.close()
    assert (through.host, through.sent, through.received) == (echo, 2, 5)
    assert (refused.host, refused.refused) == ("127.0.0.1:1", True)


def test_a_host_that_is_not_on_the_list_is_refused_and_recorded(
    calls, run_options, echo, monkeypatch
):
    monkeypatch.setenv("OWA_TEST_HOSTS", "elsewhere.example")
    reach = {"allow_host": (echo,), "pass_env": ("OWA_TEST_HOSTS",)}
    layout, [trace] = calls(lambda _: REPLY, "Connects", reach=reach)
    (refusal,) = trace.of(Egress)
    assert (refusal.host, refusal.refused) == ("elsewhere.example:443", True)
    assert "no meter" not in (judged(layout, run_options)["$"].reason or "")


def test_an_allowed_host_makes_the_cost_unknown(calls, run_options, echo, monkeypatch):
    monkeypatch.setenv("OWA_TEST_HOSTS", echo)
    reach = {"allow_host": (echo,), "pass_env": ("OWA_TEST_HOSTS",)}
    layout, [trace] = calls(lambda _: REPLY, "Connects", reach=reach)
    (used,) = trace.of(Egress)
    assert not used.refused
    (carried,) = [r for r in trace.of(Resource) if r.meter == "bytes"]
    assert carried.amount == used.sent + used.received > 0
    assert "allowed host" in judged(layout, run_options)["$"].reason


@pytest.mark.parametrize(
    "options",
    [
        {"model_url": "127.0.0.1:8000"},
        {"allow_host": ("api.example",)},
        {"allow_host": ("https://api.example:443",)},
        {"pass_env": ("OWA_NOT_SET",)},
    ],
)
def test_options_that_cannot_be_are_refused(options):
    (name,) = options
    with pytest.raises(FieldError, match=f"--{name.replace('_', '-')}"):
        GatewayOptions(**options).check()
