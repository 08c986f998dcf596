"""Credentials, tokens, waits and documents, against a vendor made of a dictionary."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from owa_bench.agents.solvers.api_solver.authentication import AuthenticatedClient, candidates
from owa_bench.agents.solvers.api_solver.http_session import HttpSession, VaultEntry
from owa_bench.agents.solvers.api_solver.providers import DocumentSearch
from owa_bench.agents.solvers.memory import FactMemory
from owa_bench.agents.solvers.openapi import Security
from owa_bench.agents.solvers.planning import PlanCall, ToolPlan, reply

VAULT = {"halden_key": "old", "halden_key_2": "new", "other_key": "x"}
ABOUT = {
    "halden_key": "API key of Halden Ledger. Issued later.",
    "halden_key_2": "API key of Halden Ledger.",
    "other_key": "API key of Other Bank.",
}
Server = Callable[[dict[str, Any]], dict[str, Any]]


def drive(plan: ToolPlan[Any], server: Server, calls: list[PlanCall] | None = None) -> Any:
    """Walk a plan: http goes to `server`, the vault is VAULT; return its value."""
    call = next(plan)
    while True:
        if calls is not None:
            calls.append(call)
        match call.tool:
            case "http":
                answer = {"headers": {}, "handle": "art:1", **server(call.arguments)}
            case "vault" if "name" in call.arguments:
                answer = {"value": VAULT[call.arguments["name"]]}
            case "vault":
                answer = {"entries": [{"name": n, "about": a} for n, a in ABOUT.items()]}
            case _:
                answer = {}
        try:
            call = plan.send(reply(json.dumps(answer)))
        except StopIteration as end:
            return end.value


def access(security: Security, folder: Path) -> AuthenticatedClient:
    server = "https://h.example"
    return AuthenticatedClient(
        "Halden Ledger", security, server, HttpSession(0), FactMemory(folder)
    )


def test_candidates_are_the_vendors_own_newest_first() -> None:
    entries = tuple(VaultEntry(name, about) for name, about in ABOUT.items())
    own = candidates(("Halden Ledger",), entries, "")
    assert own == ["halden_key", "halden_key_2"]
    assert candidates(("Halden Ledger",), entries, "halden_key_2")[0] == "halden_key_2"


def test_tries_the_next_key_when_one_is_refused(tmp_path: Path) -> None:
    def server(request: dict[str, Any]) -> dict[str, Any]:
        key = request.get("headers", {}).get("X-Key")
        return {"status": 200 if key == "new" else 401, "body": [{"id": 1}]}

    caller = access(Security("header", "X-Key"), tmp_path)
    answer = drive(caller.request("GET", "https://h.example/a"), server)
    assert answer.status == 200


def test_gives_up_when_no_key_is_left(tmp_path: Path) -> None:
    caller = access(Security("query", "key"), tmp_path)
    plan = caller.request("GET", "https://h.example/a")
    assert drive(plan, lambda _: {"status": 401, "body": {}}).status == 401


def test_takes_over_the_scheme_that_a_challenge_names(tmp_path: Path) -> None:
    def server(request: dict[str, Any]) -> dict[str, Any]:
        if "token" in request.get("query", {}):
            return {"status": 200, "body": []}
        told = {"www-authenticate": 'ApiKey in="query parameter", name="token"'}
        return {"status": 401, "headers": told, "body": {}}

    caller = access(Security("header", "X-Key"), tmp_path)
    assert drive(caller.request("GET", "https://h.example/a"), server).status == 200


def test_renews_a_token_that_expired(tmp_path: Path) -> None:
    grants: list[str] = []
    calls = 0

    def server(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal calls
        if request["url"].endswith("/token"):
            given = request["headers"]["Authorization"].removeprefix("Basic ")
            grants.append(base64.b64decode(given).decode())
            assert request["body"]["scope"] == "read"
            return {"status": 200, "body": {"access_token": f"t{len(grants)}"}}
        calls += 1
        bearer = request["headers"]["Authorization"]
        live = bearer == ("Bearer t1" if calls < 2 else "Bearer t2")
        return {"status": 200 if live else 401, "body": []}

    security = Security("oauth2", "Authorization", "https://h.example/token", "read")
    caller = access(security, tmp_path)
    for _ in range(2):
        assert drive(caller.request("GET", "https://h.example/a"), server).status == 200
    assert grants == ["old", "old"]


def test_sends_the_refresh_token_that_came_of_the_last_one(tmp_path: Path) -> None:
    sent: list[str] = []
    calls = 0

    def server(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal calls
        if request["url"].endswith("/token"):
            sent.append(request["body"]["refresh_token"])
            given = request["headers"]["Authorization"].removeprefix("Basic ")
            assert base64.b64decode(given).decode() == "client:secret"
            number = len(sent)
            made = {"access_token": f"t{number}", "refresh_token": f"next{number}"}
            return {"status": 200, "body": made}
        calls += 1
        bearer = request["headers"]["Authorization"]
        live = bearer == ("Bearer t1" if calls < 2 else "Bearer t2")
        return {"status": 200 if live else 401, "body": []}

    token = "https://h.example/token"
    security = Security("oauth2", "Authorization", token, "read", "refresh_token")
    desk = HttpSession(0)
    desk.renew("halden_key", "client:secret:first")
    server_of = "https://h.example"
    memory = FactMemory(tmp_path)
    caller = AuthenticatedClient("Halden Ledger", security, server_of, desk, memory)
    for _ in range(2):
        assert drive(caller.request("GET", "https://h.example/a"), server).status == 200
    assert sent == ["first", "next1"]


def test_asks_for_the_scope_that_a_refused_grant_names(tmp_path: Path) -> None:
    scopes: list[str] = []

    def server(request: dict[str, Any]) -> dict[str, Any]:
        if request["url"].endswith("/token"):
            scopes.append(request["body"]["scope"])
            if scopes[-1] == "use":
                return {"status": 200, "body": {"access_token": "t"}}
            words = {"error": "invalid_scope", "message": "We offer `use`."}
            return {"status": 400, "body": words}
        return {"status": 200, "body": []}

    security = Security("oauth2", "Authorization", "https://h.example/token", "read")
    caller = access(security, tmp_path)
    assert drive(caller.request("GET", "https://h.example/a"), server).status == 200
    assert scopes == ["read", "use"]


def test_waits_as_long_as_it_is_told(tmp_path: Path) -> None:
    waiting = [True]

    def server(request: dict[str, Any]) -> dict[str, Any]:
        if waiting.pop() if waiting else False:
            return {"status": 429, "headers": {"Retry-After": "7"}, "body": {}}
        return {"status": 200, "body": []}

    calls: list[PlanCall] = []
    drive(HttpSession(0).http("GET", "https://h.example/a"), server, calls)
    assert [call.tool for call in calls] == ["http", "wait", "http"]
    assert calls[1].arguments == {"seconds": 7}


def test_finds_documents_through_registry_and_home_page() -> None:
    pages: dict[str, Any] = {
        "https://registry.example/": {
            "vendors": [
                {"title": "Other Bank", "home": "https://o.example/"},
                {"title": "Halden Ledger", "home": "https://h.example/"},
            ]
        },
        "https://h.example/": '<a href="/help">Help</a><a href="/spec">API</a>',
        "https://h.example/spec": {
            "openapi": "3.1.0",
            "info": {"title": "Halden Ledger"},
            "paths": {},
        },
    }

    def server(request: dict[str, Any]) -> dict[str, Any]:
        body = pages.get(request["url"])
        return {"status": 200 if body else 404, "body": body}

    calls: list[PlanCall] = []
    plan = DocumentSearch(HttpSession(0)).find("Halden Ledger", "https://registry.example/")
    model = drive(plan, server, calls)
    assert model.title == "Halden Ledger"
    assert not any("o.example" in call.arguments["url"] for call in calls)
