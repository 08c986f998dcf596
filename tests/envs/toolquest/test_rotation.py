"""Refresh tokens work once: by hand, through the hints and by the API solver."""

import base64

import pytest
from msgspec.structs import replace

from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.envs.toolquest.world import Auth, Pager, Secret
from tests.builders.api_worlds import small_world

AUTH = Auth(kind="refresh", token_path="/token", scope="retail.read", lifetime_ms=1_000)
PAIR, FIRST = "client-7:s3cret", "rt-first"


@pytest.fixture
def shop(caller):
    """A shop whose tokens come by refresh token and live for a second."""
    world = small_world(auth=AUTH)
    [provider] = world.providers
    secret = Secret(name="shop", value=f"{PAIR}:{FIRST}", about="Grant of Shop.")
    shop = caller(world.with_provider(replace(provider, secrets=(secret,))))
    shop.read_vault()
    return shop


def ask(shop, refresh):
    mark = base64.b64encode(PAIR.encode()).decode()
    form = {"grant_type": "refresh_token", "refresh_token": refresh}
    reply = shop.http(
        "/token",
        "POST",
        headers={
            "Authorization": f"Basic {mark}",
            "Content-Type": "application/x-www-form-urlencoded",
        },
        body=form | {"scope": AUTH.scope},
    )
    return reply["status"], reply["body"]


def test_a_refresh_token_used_twice_is_refused(shop):
    status, first = ask(shop, FIRST)
    assert status == 200
    status, again = ask(shop, FIRST)
    assert (status, again["error"]) == (400, "invalid_grant")
    assert "used already" in again["message"]
    status, second = ask(shop, first["refresh_token"])
    assert status == 200
    assert ask(shop, first["refresh_token"])[0] == 400
    assert ask(shop, second["refresh_token"])[0] == 200
    assert len({FIRST, first["refresh_token"], second["refresh_token"]}) == 3


def test_a_made_up_refresh_token_is_unknown(shop):
    status, answer = ask(shop, "rt-made-up")
    assert (status, answer["error"]) == (400, "invalid_grant")
    assert "Unknown" in answer["message"]


def test_refresh_tokens_are_taught_to_the_sink(shop):
    _, answer = ask(shop, FIRST)
    assert answer["refresh_token"] in shop.sink.secrets.values()


def test_hints_send_the_newest_refresh_token(caller):
    world = small_world(auth=AUTH, pager=Pager(kind="cursor", size=4), requests=2)
    [provider] = world.providers
    secret = Secret(name="shop", value=f"{PAIR}:{FIRST}", about="Grant of Shop.")
    auth = replace(AUTH, lifetime_ms=8_000)
    contract = replace(provider.contract, auth=auth)
    kept = replace(provider, secrets=(secret,), contract=contract, documented=contract)
    shop = caller(world.with_provider(kept))
    sent = []
    for _ in range(60):
        hint = SUITE.oracle.hint(shop.timeline, shop.session.state)
        if hint["tool"] == "finish":
            break
        body = hint["arguments"].get("body")
        if isinstance(body, dict) and "refresh_token" in body:
            sent.append(body["refresh_token"])
        assert shop.call(hint["tool"], **hint["arguments"]).ok
    assert SUITE.oracle.quality(shop.timeline, shop.session.state) == 1.0
    assert sent[0] == FIRST
    assert len(set(sent)) == len(sent) >= 2
