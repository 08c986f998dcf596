"""Preflight: what answered, what is refused, and that a refusal writes nothing."""

import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from owa_bench.errors import AgentSpecError, PreflightError
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.hosting.spec import load_agent
from owa_bench.records.plan import Budget
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, draft_plan
from owa_bench.runs.play import batch
from owa_bench.runs.play.preflight import preflight
from tests.builders.stub_server import completion, error, serving

pytestmark = pytest.mark.part(2)

MODEL = "language-model:model=stub,retries=0,max_tokens=64,name=asker"
NOWHERE = "http://127.0.0.1:9"
KEY = "sk-canary-1f00aa77"
SUITES = (Draw(name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0,)),)


@contextmanager
def agent_server(status=200, reply=b"{}"):
    """Yield the address of an agent that answers so, and the requests it got."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/agent", asked
    server.shutdown()
    server.server_close()


def lines(*specs, draws=SUITES, **options):
    budget = Budget(act_s=10.0)
    request = Request(agents=specs, draws=draws, budget=budget, sandbox="none")
    plan = draft_plan(request).plan
    agents = [(arm.name, load_agent(arm.agent)) for arm in plan.arms]
    return list(preflight(plan, agents, GatewayOptions(**options)))


def test_each_model_gets_the_first_request_of_each_suite():
    """With system text, the suite's tools, and the agent's own parameters."""
    asked = []
    recall = Draw(name="recall", tiers=(1,), deltas=(0.0,), episodes=1)

    def policy(body):
        asked.append(body)
        return completion((body["tools"][0]["function"]["name"], {}))

    with serving(policy, whole=True) as url:
        said = lines(MODEL, "noop", draws=(*SUITES, recall), model_url=url)
    host = url.removeprefix("http://").removesuffix("/v1")
    for line, suite in zip(said, ("toolquest", "recall"), strict=True):
        assert line.startswith(f"asker: model stub at {host} answered in ")
        assert line.endswith(f" ms ({suite})")
    assert [body["messages"][0]["role"] for body in asked] == ["system", "system"]
    first, second = ({t["function"]["name"] for t in b["tools"]} for b in asked)
    assert {"http", "vault"} <= first
    assert "go_on" in second
    assert all(body["max_tokens"] == 64 for body in asked)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (completion(content="Hm."), "held no tool call: tool_choice=required makes"),
        (completion(("vault", {}), usage=False), "cost will be unknown"),
        (completion(("vault", {}), model="other-7b"), "other-7b answered"),
        (
            completion(("vault", {}), usage=False)
            | {"usage": {"prompt_tokens": 40, "completion_tokens": 9}},
            "fewer tokens than it was sent",
        ),
    ],
)
def test_what_will_matter_later_is_said_before_the_first_episode(reply, words):
    with serving(lambda _: reply) as url:
        [line] = lines(MODEL, model_url=url)
    assert words in line


def test_calls_written_into_the_text_are_refused_naming_the_tool_parser():
    text = '<tool_call>{"name": "vault", "arguments": {}}</tool_call>'
    with (
        serving(lambda _: completion(content=text)) as url,
        pytest.raises(PreflightError, match="--tool-call-parser"),
    ):
        lines(MODEL, model_url=url)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python3 no/such/agent.py", "can't open file"),
        ("sh -c 'echo Loading model; cat'", "print anything else to standard error"),
        ("sh -c 'exit 3'", "exit"),
    ],
)
def test_a_command_begins_and_ends_one_episode(command, words):
    with pytest.raises(PreflightError, match=words):
        lines(command)


def test_a_command_that_speaks_the_protocol():
    [line] = lines("python3 examples/agents/json_lines.py")
    assert line.startswith("json_lines: the command began in ")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (error(401, f"Incorrect API key provided: {KEY}"), "check the key in $OWA_KEY"),
        (error(404, "The model `stub` does not exist"), "`stub` does not exist"),
        (error(400, "temperature is not supported"), "temperature=none"),
        (error(503, "overloaded " * 100), "overloaded " * 99),
        ({"choices": []}, "this is no chat completion: --model-url must lead to"),
        (error(400, "tools are not supported"), "takes no tools of this form"),
    ],
)
def test_a_model_that_does_not_answer_is_refused_with_error_and_fix(answer, words, monkeypatch):
    monkeypatch.setenv("OWA_KEY", KEY)
    with serving(lambda _: answer) as url, pytest.raises(PreflightError) as refusal:
        lines(MODEL, model_url=url, model_key_env="OWA_KEY")
    assert words in str(refusal.value)
    assert "--no-preflight" in str(refusal.value)
    assert KEY not in str(refusal.value)


def test_a_provider_that_is_gone_or_not_named():
    with pytest.raises(PreflightError, match=r"ConnectError.*--model-url right"):
        lines(MODEL, model_url=f"{NOWHERE}/v1")
    with pytest.raises(PreflightError, match=r"provider at 127.0.0.1:9 answered HTTP 502"):
        lines("noop", model_url=f"{NOWHERE}/v1")
    with pytest.raises(AgentSpecError, match=r"'asker' needs a model's provider"):
        lines(MODEL)


def test_a_cache_alone_and_agents_without_a_model_need_no_call(tmp_path):
    assert lines("noop", "fixed") == []
    assert lines(MODEL, model_cache=str(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_an_agents_address_begins_and_ends_an_episode():
    with agent_server() as (url, asked):
        [line] = lines(url)
    host = urlsplit(url).netloc
    assert line.startswith(f"{host.replace(':', '-')}: the agent at {host} answered in ")
    first, second = asked
    assert ("reset" in first, "close" in second) == (True, True)
    assert first["episode"] == second["episode"]


def test_it_calls_an_agent_what_the_user_calls_it():
    """`--agent big=language-model:..` was answered by a line on `language-model`."""

    def policy(body):
        return completion((body["tools"][0]["function"]["name"], {}))

    with serving(policy, whole=True) as url, agent_server() as (address, _):
        model, server = lines(f"big={MODEL}", f"far={address}", model_url=url)
    assert model.startswith("big: model stub at ")
    assert server.startswith("far: the agent at ")


@pytest.mark.parametrize(
    ("status", "reply", "words"),
    [
        (500, b"KeyError: no weights", "HTTP 500: KeyError: no weights"),
        (200, b"<html>", "answered nonsense"),
        (200, b'{"error": "no GPU"}', "no GPU"),
    ],
)
def test_an_address_that_answers_otherwise_is_refused(status, reply, words):
    with agent_server(status, reply) as (url, _), pytest.raises(PreflightError) as said:
        lines(url)
    assert words in str(said.value)
    with pytest.raises(PreflightError, match="ConnectError"):
        lines(f"{NOWHERE}/")


@pytest.mark.slow
def test_a_refusal_writes_nothing_and_a_resumed_run_is_asked_again(tmp_path, small, run_options):
    said = []
    reach = GatewayOptions(model_url=f"{NOWHERE}/v1")
    here = replace(run_options, in_process=False, gateway=reach)
    asking = replace(here, preflight=said.append)
    with pytest.raises(PreflightError):
        batch.play(small(MODEL), tmp_path / "run", asking)
    assert list(tmp_path.iterdir()) == []
    batch.play(small(MODEL), tmp_path / "run", asking, plan_only=True)
    with pytest.raises(PreflightError):
        batch.resume(tmp_path / "run", asking)
    lost = batch.resume(tmp_path / "run", here)
    assert lost.missing == lost.missing_through_provider == 1
    assert said == []
    with serving(lambda _: completion(("finish", {"p": 0.5}))) as url:
        well = replace(asking, gateway=GatewayOptions(model_url=url))
        assert batch.resume(tmp_path / "run", well).missing == 0
        assert len(said) == 1
    assert batch.resume(tmp_path / "run", asking).missing == 0  # nothing left to play
