"""What agents send the gateway besides chat, and failures of the gateway's own."""

import base64
import json
from contextlib import contextmanager
from urllib.parse import quote

import httpx
import pytest
from starlette.responses import Response

from owa_bench.errors import FieldError
from owa_bench.hosting.gateway import upstream
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.hosting.gateway.scrubbing import Scrubber
from owa_bench.hosting.gateway.server import ModelGateway
from owa_bench.hosting.gateway.translation import ModelProvider
from owa_bench.records.events import ModelCall
from owa_bench.records.model_replies import judge_events
from tests.field.server import error, serving, usual

BODY = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
CHAT = "/v1/chat/completions"


class Blobs:
    def blob(self, data):
        return str(len(data))


@contextmanager
def opened(answer, **terms):
    """Yield a gateway, a session, a client with its token, and the provider."""
    with serving(answer) as (url, server):
        provider = ModelProvider(url=f"{url}/v1", timeout_s=10, **terms)
        with ModelGateway(provider, frozenset()) as gateway:
            session = gateway.open("here")
            with httpx.Client(
                base_url=f"http://127.0.0.1:{gateway.port}",
                headers={"authorization": f"Bearer {session.token}"},
                timeout=20,
            ) as client:
                yield gateway, session, client, server


# --- doors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/openai/deployments/d/chat/completions?api-version=1", CHAT),
        (f"/openai{CHAT}", CHAT),
        ("/openai/responses?api-version=1", "/v1/responses"),
        ("/v1/messages/count_tokens", "/v1/messages/count_tokens"),
    ],
)
def test_a_door_leads_to_the_provider(path, there):
    with opened(usual) as (_, _, client, server):
        headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "memory"}
        body = {"model": "m", "input": "x"} if "responses" in path else BODY
        client.post(path, json=body, headers=headers)
    (ask,) = server.asked
    assert (ask.path, ask.query) == (there, "")
    assert ask.headers["anthropic-version"] == "2023-06-01"
    assert "anthropic-beta" not in ask.headers  # it opens tools and memories


def test_the_head_of_a_list_is_asked_for():
    with opened(usual) as (_, _, client, _):
        assert client.head("/v1/models").status_code == 200
        assert client.head(CHAT).status_code == 404


@pytest.mark.parametrize("name", ["api-key", "x-api-key", "x-goog-api-key"])
def test_a_token_beside_another_key_is_found(name):
    with opened(usual) as (_, session, client, _):
        headers = {"authorization": "Bearer none", name: session.token}
        assert client.post(CHAT, json=BODY, headers=headers).status_code == 200


def test_what_no_model_reads_voids_no_accounts():
    with opened(usual) as (_, session, client, _):
        client.get("/v1/models/m")
        client.post("/v1/messages/count_tokens", json=BODY)
        for record in session.take():
            call = next(e for e in record.events(1, "", Blobs()))
            assert isinstance(call, ModelCall)
            assert call.metered


@pytest.mark.parametrize(
    ("path", "first", "last"),
    [
        ("/messages", {"type": "message_start"}, {"type": "message_stop"}),
        ("/responses", {"type": "response.created"}, {"type": "response.completed"}),
        ("/embeddings", {"data": []}, {"data": []}),
    ],
)
def test_each_stream_has_its_end(path, first, last):
    whole = [b"data: %s\n\n" % json.dumps(each).encode() for each in (first, last)]
    assert judge_events(b"".join(whole), path).verdict == "completion"
    cut = judge_events(whole[0], path)
    assert cut.verdict == ("completion" if path == "/embeddings" else "failure")


# --- failures of our own --------------------------------------------------------------


def test_a_failure_of_the_gateway_is_never_the_agents(monkeypatch):
    def broken(_):
        raise ZeroDivisionError

    with opened(usual) as (_, session, client, _):
        monkeypatch.setattr(upstream, "usage_of", broken)
        reply = client.post(CHAT, json=BODY)
        assert reply.status_code == 500
        assert "ZeroDivisionError" in session.blame().reason


@pytest.mark.parametrize("status", [403, 404])
def test_a_request_that_only_this_agent_makes_is_no_outage(status):
    """A model without access, a text that a firewall stops: others are answered."""

    def strict(ask):
        return usual(ask) if ask.body["model"] == "m" else error(status, "no access")

    with opened(strict) as (gateway, session, client, _):
        client.post(CHAT, json=BODY)
        client.post(CHAT, json={**BODY, "model": "other"})
        assert session.blame().may_be_request
        assert gateway.answers("other")


def test_the_plain_question_is_put_to_the_provider_itself(tmp_path):
    gone = []

    def dying(ask):
        return error(404, "gone") if gone else usual(ask)

    with opened(dying, cache=str(tmp_path)) as (gateway, _, _, _):
        assert gateway.answers("m")
        gone.append(True)
        assert not gateway.answers("m")


def test_what_lies_in_a_cache_and_is_no_completion_is_asked_again(tmp_path):
    with opened(usual, cache=str(tmp_path)) as (_, _, client, server):
        body = {**BODY, "seed": 1}
        client.post(CHAT, json=body)
        (kept,) = tmp_path.rglob("*.json")
        kept.write_text('{"error": {"message": "of an older version"}}')
        assert client.post(CHAT, json=body).status_code == 200
        assert client.post(CHAT, json=body).status_code == 200
    assert len(server.asked) == 2


def test_a_cache_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("file", "file/below"):
        options = GatewayOptions(model_cache=str(tmp_path / place))
        with pytest.raises(FieldError, match="must be a folder that can be written"):
            options.check()


def test_a_cache_that_fails_in_mid_run_costs_no_reply(tmp_path):
    (tmp_path / "file").write_text("")
    with opened(usual, cache=str(tmp_path / "file")) as (_, _, client, _):
        assert client.post(CHAT, json=BODY).status_code == 200


# --- keys -----------------------------------------------------------------------------

KEY = "sk-cana+ry/5fd0=a1b2c3"


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        KEY.replace("/", "\\/"),
        KEY.replace("+", "\\u002B"),
        "".join(f"\\u{ord(sign):04x}" for sign in KEY),
        quote(KEY, safe="").replace("%2F", "%2f"),
        "".join(f"&#{ord(sign)};" for sign in KEY),
        base64.urlsafe_b64encode(f"Bearer {KEY}".encode()).decode(),
        KEY.encode().hex().upper(),
    ],
)
def test_a_key_is_found_in_each_form(form):
    clean = Scrubber([KEY]).clean(f'{{"message": "{form}"}}'.encode())
    assert form.encode() not in clean
    json.loads(clean)


def test_no_header_of_a_reply_holds_the_key():
    def echo(_):
        headers = {"x-request-id": KEY, "retry-after": KEY}
        return Response("{}", 401, headers=headers)

    with opened(echo, key=KEY) as (_, _, client, _):
        reply = client.post(CHAT, json=BODY)
    assert KEY not in str(reply.headers)
