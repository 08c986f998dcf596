"""Preflight: what answered, what is refused, and that a refusal writes nothing."""

import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from owa_bench.errors import AgentSpecError, PreflightError
from owa_bench.run.agents.spec import load_agent
from owa_bench.run.gateway.options import GatewayOptions
from owa_bench.run.play import batch
from owa_bench.run.play.failures import preflight
from tests.builders.stub_server import completion, error, serving

MODEL = "language-model:model=stub,retries=0,max_tokens=64,name=asker"
NOWHERE = "http://127.0.0.1:9"
KEY = "sk-canary-1f00aa77"
ACT_S = 10.0


@contextmanager
def agent_server(status=200, reply=b"{}"):
    """Yield the address of an agent that answers so, and the requests it got."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(
                json.loads(self.rfile.read(int(self.headers["content-length"])))
            )
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


def lines(*specs, **options):
    agents = [load_agent(spec) for spec in specs]
    return list(preflight(agents, GatewayOptions(**options), ACT_S))


def test_each_arm_that_names_a_model_is_asked_once_with_its_own_parameters():
    asked = []

    def policy(messages):
        asked.append(messages)
        return completion(content="ok")

    with serving(policy) as url:
        said = lines(MODEL, "noop", model_url=url)
    [line] = said
    host = url.removeprefix("http://").removesuffix("/v1")
    assert line.startswith(f"asker: model stub at {host} answered in ")
    assert line.endswith(" ms")
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (error(401, f"Incorrect API key provided: {KEY}"), "check the key in $OWA_KEY"),
        (error(404, "The model `stub` does not exist"), "`stub` does not exist"),
        (error(400, "temperature is not supported"), "temperature=none"),
        (error(503, "overloaded " * 100), "overloaded " * 99),
        ({"choices": []}, "answered with no chat completion: '{\"choices\":[]}'"),
    ],
)
def test_a_model_that_does_not_answer_is_refused_with_error_and_fix(
    answer, words, monkeypatch
):
    monkeypatch.setenv("OWA_KEY", KEY)
    with serving(lambda _: answer) as url, pytest.raises(PreflightError) as refusal:
        lines(MODEL, model_url=url, model_key_env="OWA_KEY")
    assert words in str(refusal.value)
    assert "--no-preflight" in str(refusal.value)
    assert KEY not in str(refusal.value)


def test_a_provider_that_is_gone_or_not_named():
    with pytest.raises(PreflightError, match=r"ConnectError: .*--model-url right"):
        lines(MODEL, model_url=f"{NOWHERE}/v1")
    with pytest.raises(
        PreflightError, match=r"provider at 127.0.0.1:9 answered HTTP 502"
    ):
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
    assert "127.0.0.1: the agent at 127.0.0.1:" in line
    first, second = asked
    assert ("reset" in first, "close" in second) == (True, True)
    assert first["episode"] == second["episode"]


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
def test_a_refusal_writes_nothing_and_a_resumed_run_is_asked_again(
    tmp_path, small, run_options
):
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
    assert batch.resume(tmp_path / "run", here).missing == 0
    assert said == []
    assert batch.resume(tmp_path / "run", asking).missing == 0  # nothing left to play
