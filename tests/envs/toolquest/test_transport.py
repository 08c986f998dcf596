import json
import time

import httpx
import pytest

from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.envs.toolquest.transport import HttpRequest, InProcessTransport, LoopbackTransport
from owa_bench.errors import InfrastructureFailure
from owa_bench.shells.solution import solve
from tests.builders.api_worlds import drawn, play


@pytest.mark.parametrize("tier", [1, 3])
@pytest.mark.parametrize("family", SUITE.card.families)
def test_wire_and_in_process_leave_one_trace(family, tier):
    timeline = drawn(family, tier, seed=5, drift="nested")
    by_hand, wired = play(timeline, "oracle"), play(timeline, "oracle", wire=True)
    assert by_hand.q_state == 1.0
    assert by_hand.actions == wired.actions
    assert by_hand.replay == wired.replay
    assert by_hand.events == wired.events


ODD = (
    {"method": "GET", "url": "https://shop.example/a%20b/%2e%2e?x=1&y=%C3%A9"},
    {"method": "GET", "url": "https://shop.example/v1/items?kind=odd&kind=even"},
    {"method": "GET", "url": "https://shop.example/v1/items", "query": {"é": "ü&="}},
    {"method": "DELETE", "url": "https://shop.example/v1/items/r-01"},
    {"method": "DELETE", "url": "https://shop.example/v1/items/r-02", "body": "x"},
    {"method": "PUT", "url": "https://shop.example/v1/items", "body": {"a": "é"}},
    {"method": "POST", "url": "https://shop.example/v1/items"},
    {"method": "POST", "url": "https://shop.example/v1/items", "body": "é" * 9000},
    {"method": "GET", "url": "https://shop.example/v1/items", "headers": {"A": " b "}},
    {"method": "GET", "url": "https://shop.example//v1//items"},
    {"method": "GET", "url": "https://shop.example/../v1/items"},
    {"method": "GET", "url": "https://shop.example/v1/items/./#part"},
    {"method": "GET", "url": "https://nowhere.example/"},
)


def test_odd_requests_have_equal_answers(caller):
    by_hand, wired = caller(), caller(wire=True)
    for arguments in ODD:
        assert by_hand.call("http", **arguments) == wired.call("http", **arguments)
    assert by_hand.session.state == wired.session.state


def test_wire_is_fast_enough_to_have_no_delayed_acknowledgements(caller):
    shop = caller(wire=True)
    shop.http("/v1/items")
    begin = time.perf_counter()
    for _ in range(20):
        shop.http("/v1/items", "POST", body={"price": 1, "kind": "odd"})
    assert (time.perf_counter() - begin) / 20 < 0.04


def test_an_endpoint_that_waits_is_the_harness_fault():
    class Pending:
        def __await__(self):
            yield None

    async def waits(scope, receive, send):
        await Pending()

    with pytest.raises(InfrastructureFailure, match="must not really wait"):
        InProcessTransport(waits).send(HttpRequest("GET", "a.example", "/"))


def test_wire_shows_only_headers_that_mean_something():
    async def chatty(scope, receive, send):
        headers = [(b"x-total-count", b"3"), (b"x-noise", b"1"), (b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})

    wire = LoopbackTransport(chatty)
    try:
        reply = wire.send(HttpRequest("GET", "a.example", "/"))
    finally:
        wire.close()
    assert reply == (200, (("x-total-count", "3"),), b"{}")


@pytest.mark.parametrize("kind", [InProcessTransport, LoopbackTransport])
def test_an_app_that_raises_is_the_harness_fault(kind):
    async def broken(scope, receive, send):
        msg = "a bug of ours"
        raise KeyError(msg)

    transport = kind(broken)
    try:
        with pytest.raises(KeyError, match="a bug of ours"):
            transport.send(HttpRequest("GET", "a.example", "/"))
    finally:
        transport.close()


def test_script_replays_over_the_wire():
    timeline = drawn("restock", 2, seed=3)
    actions = solve(SUITE, timeline).actions
    assert json.loads(actions[-1])["tool"] == "finish"

    class Script:
        def __init__(self, privilege):
            self._left = list(actions)

        def reset(self, brief, tools, memory_dir):
            pass

        def act(self, observation, info):
            return self._left.pop(0)

        def close(self):
            pass

    assert play(timeline, Script, wire=True).q_state == 1.0


@pytest.mark.parametrize("key", [None, "guess"])
def test_nobody_else_on_this_machine_is_served(caller, key):
    """The attack: find the port, call the interfaces past the recorder."""
    shop = caller(wire=True)
    before = shop.session.state
    port = shop.session._transport._client.port
    headers = {"host": "shop.example"} | ({"x-owa-key": key} if key else {})
    url = f"http://127.0.0.1:{port}/v1/items"
    for send in (httpx.get, httpx.delete):
        assert send(url, headers=headers).status_code == 403
    assert shop.session.state == before
    assert shop.http("/v1/items")["status"] == 200
