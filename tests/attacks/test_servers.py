"""Servers that others can reach: `serve --http` and `verifier serve`."""

import json
import os
import threading
from contextlib import contextmanager
from typing import ClassVar

import httpx
import pytest
from typer.testing import CliRunner

from owa_bench.bridges import client_door
from owa_bench.bridges.client_door import ClientDoor, fresh_token
from owa_bench.errors import CheckFailure, NoRoomError
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Budget
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.store import challenge_log, files
from owa_bench.runs.store.challenge_log import ChallengedPlan, ChallengeLog, LogLimits

pytest.importorskip("mcp.server.lowlevel.server")

from owa_bench.bridges import mcp

pytestmark = pytest.mark.filterwarnings("default")  # those of the package are its own
VERSION = "2025-11-25"
START = {
    "protocolVersion": VERSION,
    "capabilities": {},
    "clientInfo": {"name": "c", "version": "1"},
}


@pytest.fixture(autouse=True)
def _closed():
    yield
    while Caller.clients:
        Caller.clients.pop().close()


class Caller:
    """A client by hand: what it sends is JSON-RPC over HTTP."""

    clients: ClassVar = []

    def __init__(self, url, token):
        headers = {"accept": "application/json, text/event-stream"}
        headers |= {"authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.Client(headers=headers, timeout=30, trust_env=False)
        self.clients.append(self.http)
        self.url = url

    def send(self, method, params, **headers):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.http.post(self.url, json=body, headers=headers)

    def begin(self, **headers):
        reply = self.send("initialize", START, **headers)
        if reply.is_success:
            session = reply.headers["mcp-session-id"]
            self.http.headers["mcp-session-id"] = session
            self.http.headers["mcp-protocol-version"] = VERSION
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            self.http.post(self.url, json=note)
        return reply

    def call(self, tool, **arguments):
        return self.send("tools/call", {"name": tool, "arguments": arguments})


@contextmanager
def served(tmp_path, token="", act_s=60.0):
    """Yield the line that a client is given; the run ends with its one episode."""
    line, ready = [], threading.Event()
    draw = Draw(name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0,))
    request = Request(agents=("client:tester",), draws=(draw,), budget=Budget(act_s=act_s))

    def announce(text):
        line.append(text)
        ready.set()

    thread = threading.Thread(
        target=mcp.serve,
        args=(
            request,
            tmp_path / "run",
            RunOptions(home=tmp_path / "home", in_process=True),
            mcp.Address(port=0, token=token),
            announce,
        ),
        daemon=True,
    )
    thread.start()
    assert ready.wait(60)
    (server,) = json.loads(line[0])["mcpServers"].values()
    yield server["url"], server["headers"]["Authorization"].removeprefix("Bearer ")
    thread.join(60)
    assert not thread.is_alive()


def ended(tmp_path):
    (leaf,) = files.read_leaves(RunLayout(tmp_path / "run"))
    return files.read_trace(RunLayout(tmp_path / "run"), leaf).end


def test_a_second_client_does_not_end_the_firsts_episode(tmp_path):
    with served(tmp_path) as (url, token):
        first = Caller(url, token)
        assert first.begin().is_success
        for bad in ("", "guess", token[:-1], token + "0"):
            other = Caller(url, bad)
            refused = other.call("finish", answer="", p=0.0)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Bearer")
        second = Caller(url, token)
        told = second.begin()
        assert told.status_code == 409
        assert "Another client plays this run" in told.json()["error"]["message"]
        stolen = second.send("tools/call", {"name": "finish"}, **{"mcp-session-id": "x"})
        assert stolen.status_code == 409
        modern = {"mcp-protocol-version": "2026-07-28"}  # calls without a session
        assert second.send("tools/call", {"name": "finish"}, **modern).status_code == 400
        assert "Reconcile" in first.call("brief").text
        first.call("finish", answer="", p=0.25)
    assert ended(tmp_path).stated == 0.25


def test_without_the_door_a_second_client_ends_it(tmp_path, monkeypatch):
    """The control."""
    monkeypatch.setattr(ClientDoor, "_refusal", lambda *_: None)
    with served(tmp_path) as (url, token):
        first = Caller(url, token)
        assert first.begin().is_success
        second = Caller(url, "")
        assert second.begin().is_success
        second.call("finish", answer="", p=0.75)
        assert "has been played" in first.call("vault").text
    assert ended(tmp_path).stated == 0.75


def test_a_client_that_left_makes_room(tmp_path):
    with served(tmp_path, token="t" * 20) as (url, token):
        assert token == "t" * 20
        first, second = Caller(url, token), Caller(url, token)
        first.begin()
        assert second.begin().status_code == 409
        assert first.http.delete(url).is_success
        assert second.begin().is_success
        second.call("finish", answer="", p=0.5)
    assert ended(tmp_path).stated == 0.5


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example:8321"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "localhost:1"}, 200),
        ({"origin": "http://localhost:3000"}, 200),
    ],
)
def test_a_page_of_another_site_reaches_nothing(headers, status):
    assert door_status(headers) == status


def door_status(headers, session="", **door):
    """Return the status of a request at a door before an application that answers."""
    from starlette.responses import Response
    from starlette.testclient import TestClient

    made = ClientDoor(
        Response("ok"), token="t" * 20, host="127.0.0.1", idle_s=60, versions=(VERSION,), **door
    )
    client = TestClient(made, base_url="http://127.0.0.1:8321")
    sent = {"authorization": f"Bearer {'t' * 20}", **headers}
    return client.post("/mcp", headers=sent).status_code


def test_a_session_that_is_silent_for_too_long_makes_room():
    from starlette.responses import Response
    from starlette.testclient import TestClient

    now = [0.0]
    door = ClientDoor(
        Response("ok", headers={"mcp-session-id": "s1"}),
        token="t" * 20,
        host="127.0.0.1",
        idle_s=60,
        versions=(VERSION,),
        clock=lambda: now[0],
    )
    client = TestClient(door, base_url="http://127.0.0.1")
    client.headers["authorization"] = f"Bearer {'t' * 20}"
    assert client.post("/mcp").status_code == 200
    now[0] = 59.0
    assert client.post("/mcp").status_code == 409
    assert client.post("/mcp", headers={"mcp-session-id": "s1"}).status_code == 200
    now[0] = 118.0
    assert client.post("/mcp").status_code == 409
    now[0] = 120.0
    assert client.post("/mcp").status_code == 200


def test_a_token_comes_by_a_variable_and_is_long(tmp_path, monkeypatch):
    from owa_bench.cli.app import app

    monkeypatch.setenv("SHORT", "abc")
    for words, said in (
        (("--http", "--token-env", "SHORT"), "16 ASCII characters"),
        (("--http", "--token-env", "OWA_NOT_SET"), "16 ASCII characters"),
        (("--token-env", "SHORT"), "must come with --http"),
    ):
        done = CliRunner().invoke(app, ["serve", "--out", str(tmp_path / "x"), *words])
        text = f"{done.output} {done.exception}"
        assert said in text
    assert len({fresh_token() for _ in range(9)}) == 9
    assert len(fresh_token()) >= client_door.SHORTEST_TOKEN


# --- the log of a verifier ------------------------------------------------------------


def line(name, key, **more):
    """Return what makes the line of a plan."""
    terms = {"commitment": "c", "battery": "full", "episodes": 1, "time": "t"} | more
    return name, lambda: ChallengedPlan(plan_digest=name, submitter=key, **terms)


def flood(log, keys, each=1):
    """Return how many of a flood's plans were taken."""
    taken = 0
    for key in range(keys):
        for place in range(each):
            try:
                log.line_of(*line(f"flood {key} {place}", f"fresh {key}"))
            except NoRoomError:
                continue
            taken += 1
    return taken


SMALL = LogLimits(lines=40, of_key=8, of_key_hourly=4, of_fresh_hourly=10)
WIDE = SMALL._replace(of_key=10**6, of_key_hourly=10**6, of_fresh_hourly=10**6)


def test_a_flood_fills_no_disk_and_shuts_out_no_key_at_work(tmp_path):
    now = [0.0]
    log = ChallengeLog(tmp_path / "log", SMALL, clock=lambda: now[0])
    log.line_of(*line("mine", "honest"))
    assert flood(log, keys=100) == 9  # fresh keys an hour, the honest one of them
    for _ in range(9):
        now[0] += 3601.0
        flood(log, keys=100, each=20)
    size = (tmp_path / "log").stat().st_size
    assert len((tmp_path / "log").read_bytes().splitlines()) <= SMALL.lines
    assert log.line_of(*line("mine", "honest")).submitter == "honest"
    assert (tmp_path / "log").stat().st_size == size
    again = ChallengeLog(tmp_path / "log", SMALL)
    assert again.count("honest") == 1


def test_half_of_the_room_is_for_keys_at_work(tmp_path):
    log = ChallengeLog(tmp_path / "log", WIDE)
    log.line_of(*line("mine", "honest"))
    assert flood(log, keys=100) == WIDE.lines // 2 - 1
    assert log.line_of(*line("next", "honest"))
    with pytest.raises(NoRoomError, match="is full"):
        log.line_of(*line("x", "another"))


def test_without_limits_a_flood_is_taken_whole(tmp_path):
    """The control."""
    log = ChallengeLog(tmp_path / "log", WIDE._replace(lines=10**6))
    assert flood(log, keys=50, each=20) == 1000


def test_one_key_has_a_share_of_an_hour_and_of_the_log(tmp_path):
    now = [0.0]
    log = ChallengeLog(tmp_path / "log", SMALL, clock=lambda: now[0])

    def ask(count):
        for place in range(count):
            log.line_of(*line(f"{now[0]} {place}", "one"))

    with pytest.raises(NoRoomError, match="ask later") as refusal:
        ask(5)
    assert refusal.value.wait_s == 3600.0
    now[0] += 3600.0
    ask(4)
    now[0] += 3600.0
    with pytest.raises(NoRoomError, match="has had 8 plans"):
        ask(1)
    assert log.line_of(*line("0.0 0", "one"))  # what is known is answered for ever


@pytest.mark.parametrize("field", ["battery", "commitment"])
def test_no_line_is_longer_than_a_line(field, tmp_path):
    log = ChallengeLog(tmp_path / "log")
    with pytest.raises(CheckFailure, match="at most 200"):
        log.line_of(*line("x", "key", **{field: "a" * 10**6}))
    assert (tmp_path / "log").stat().st_size == 0


def test_a_cut_last_line_is_read_and_another_is_named(tmp_path):
    path = tmp_path / "log"
    log = ChallengeLog(path)
    log.line_of(*line("first", "k"))
    log.line_of(*line("second", "k"))
    whole = path.read_bytes()
    for cut in range(1, len(whole) // 2):
        path.write_bytes(whole[:-cut])
        assert ChallengeLog(path).count("k") == 1
    later = ChallengeLog(path)
    later.line_of(*line("third", "k"))
    assert ChallengeLog(path).count("k") == 2
    path.write_bytes(b"{}\n" + whole)
    with pytest.raises(CheckFailure, match="line 1 is no line"):
        ChallengeLog(path)


def test_a_full_disk_leaves_no_half_of_a_line(tmp_path, monkeypatch):
    path = tmp_path / "log"
    log = ChallengeLog(path)
    log.line_of(*line("first", "k"))

    def full(_):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(challenge_log.os, "fsync", full)
        with pytest.raises(NoRoomError, match="No space left"):
            log.line_of(*line("second", "k"))
    assert log.count("k") == 1
    assert log.line_of(*line("third", "k"))
    assert ChallengeLog(path).count("k") == 2
