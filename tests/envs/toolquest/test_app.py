import base64
import json

import msgspec
import pytest

from owa_bench.envs.toolquest.world import Auth, Pager
from tests.builders.api_worlds import CLIENT, HOST, KEY, ROWS, small_world

OAUTH = Auth(kind="oauth2", token_path="/token", scope="retail.read", lifetime_ms=60_000)
ITEMS = "/v1/items"


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


# --- keys -------------------------------------------------------------------------


def test_api_key_in_a_header(caller):
    shop = caller(auth=Auth(kind="key_header", name="X-Api-Key"))
    shop.read_vault()
    refused = shop.http(ITEMS)
    assert refused["status"] == 401
    assert 'in="header", name="X-Api-Key"' in refused["headers"]["www-authenticate"]
    assert shop.http(ITEMS, headers={"X-Api-Key": "nonsense"})["status"] == 401
    answer = shop.http(ITEMS, headers={"x-api-key": KEY})
    assert answer["status"] == 200
    assert len(answer["body"]["data"]) == len(ROWS)


def test_api_key_in_the_query(caller):
    shop = caller(auth=Auth(kind="key_query", name="token"))
    shop.read_vault()
    refused = shop.http(ITEMS, headers={"token": KEY})
    assert refused["status"] == 401
    assert 'in="query parameter", name="token"' in refused["headers"]["www-authenticate"]
    assert shop.http(ITEMS, query={"token": KEY})["status"] == 200
    assert shop.http(f"{ITEMS}?token={KEY}")["status"] == 200


def test_revoked_key_says_that_it_was_rotated(caller):
    shop = caller(auth=Auth(kind="key_header", name="X-Api-Key"))
    shop.read_vault()
    answer = shop.http(ITEMS, headers={"X-Api-Key": "worn-out-key"})
    assert answer["status"] == 401
    assert answer["body"]["error"] == "revoked_key"


# --- OAuth2 -----------------------------------------------------------------------


def test_token_by_form_basic_or_json(caller):
    shop = caller(auth=OAUTH)
    shop.read_vault()
    mark = base64.b64encode(CLIENT.encode()).decode()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    grant = "grant_type=client_credentials&scope=retail.read"
    by_basic = shop.http(
        "/token", "POST", headers={"Authorization": f"Basic {mark}", **form}, body=grant
    )
    assert by_basic["status"] == 200
    assert by_basic["body"]["token_type"] == "Bearer"
    assert by_basic["body"]["expires_in"] == 60
    assert by_basic["body"]["scope"] == "retail.read"
    for token in (by_basic["body"]["access_token"], shop.token(scope="retail.read")):
        assert shop.http(ITEMS, headers=bearer(token))["status"] == 200


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, 401, "invalid_client"),
        (
            {"grant_type": "client_credentials", "client_id": "client-7", "client_secret": "wrong"},
            401,
            "invalid_client",
        ),
        (
            {
                "grant_type": "client_credentials",
                "client_id": "client-7",
                "client_secret": "s3cret-of-client",
                "scope": "retail.write",
            },
            400,
            "invalid_scope",
        ),
    ],
)
def test_token_endpoint_refuses(caller, form, status, error):
    shop = caller(auth=OAUTH)
    shop.read_vault()
    answer = shop.http("/token", "POST", body=form)
    assert answer["status"] == status
    assert answer["body"]["error"] == error
    assert ("www-authenticate" in answer["headers"]) == (status == 401)


def test_token_expires_on_the_simulated_clock(caller):
    shop = caller(auth=OAUTH)
    token = shop.token(scope="retail.read")
    shop.call("wait", seconds=58)
    assert shop.http(ITEMS, headers=bearer(token))["status"] == 200
    shop.call("wait", seconds=2)
    answer = shop.http(ITEMS, headers=bearer(token))
    assert answer["status"] == 401
    assert 'error="invalid_token"' in answer["headers"]["www-authenticate"]
    assert "expired" in answer["body"]["message"]
    fresh = shop.token(scope="retail.read")
    assert fresh != token
    assert shop.http(ITEMS, headers=bearer(fresh))["status"] == 200


def test_token_without_the_scope_is_forbidden(caller):
    shop = caller(auth=OAUTH)
    answer = shop.http(ITEMS, headers=bearer(shop.token()))
    assert answer["status"] == 403
    challenge = answer["headers"]["www-authenticate"]
    assert 'error="insufficient_scope", scope="retail.read"' in challenge


def test_unknown_token_and_no_token(caller):
    shop = caller(auth=OAUTH)
    assert shop.http(ITEMS)["body"]["error"] == "missing_token"
    assert shop.http(ITEMS, headers=bearer("made-up"))["status"] == 401


# --- pagers -----------------------------------------------------------------------


def walk(shop, kind, size):
    """Return the identifiers of all pages, fetched as the pager's documents say."""
    found, query = [], {}
    if kind == "page":
        query = {"page": 1, "per_page": size}
    elif kind == "offset":
        query = {"offset": 0, "limit": size}
    elif kind == "cursor":
        query = {"limit": size}
    for _ in range(40):
        body = shop.http(ITEMS, query=query)["body"]
        rows = body["data"]
        found += [row["item_id"] for row in rows]
        if kind == "none" or not rows:
            break
        if kind == "cursor":
            if body["next_cursor"] is None:
                break
            query["cursor"] = body["next_cursor"]
        else:
            query["page" if kind == "page" else "offset"] += 1 if kind == "page" else size
    return found


@pytest.mark.parametrize("size", [1, 5, 10, 23])
@pytest.mark.parametrize("kind", ["none", "offset", "page", "cursor"])
def test_every_pager_walks_all_rows_once(caller, kind, size):
    shop = caller(pager=Pager(kind=kind, size=10))
    walked = walk(shop, kind, min(size, 10))
    assert walked == [row[0] for row in ROWS]
    assert shop.session.state.fetched["shop", "items"] == (1 << len(ROWS)) - 1


def test_page_size_is_capped_and_total_told(caller):
    shop = caller(pager=Pager(kind="offset", size=10))
    body = shop.http(ITEMS, query={"limit": 500})["body"]
    assert len(body["data"]) == 10
    assert body["total"] == len(ROWS)


def test_a_bare_list_pages_by_headers(caller):
    shop = caller(pager=Pager(kind="cursor", size=10), wrapper="")
    first = shop.http(ITEMS)
    assert isinstance(first["body"], list)
    assert first["headers"]["x-total-count"] == "23"
    cursor = first["headers"]["x-next-cursor"]
    second = shop.http(ITEMS, query={"cursor": cursor})
    assert second["body"][0]["item_id"] == "r-10"


@pytest.mark.parametrize("query", [{"cursor": "forged"}, {"limit": 0}, {"limit": "x"}])
def test_bad_paging_is_a_400(caller, query):
    answer = caller(pager=Pager(kind="cursor", size=10)).http(ITEMS, query=query)
    assert answer["status"] == 400
    assert answer["body"]["error"] in ("invalid_cursor", "invalid_parameter")


def test_a_dotted_wrapper(caller):
    body = caller(wrapper="payload.rows").http(ITEMS)["body"]
    assert len(body["payload"]["rows"]) == len(ROWS)


# --- limits, errors, filters ------------------------------------------------------


def test_rate_limit_and_wait(caller):
    shop = caller(requests=3)
    assert [shop.http(ITEMS)["status"] for _ in range(4)] == [200, 200, 200, 429]
    answer = shop.http(ITEMS)
    seconds = int(answer["headers"]["retry-after"])
    assert 1 <= seconds <= 10
    shop.call("wait", seconds=seconds)
    assert shop.http(ITEMS)["status"] == 200


def test_retry_after_is_enough_and_no_more(caller):
    shop = caller(requests=1)
    shop.http(ITEMS)
    seconds = int(shop.http(ITEMS)["headers"]["retry-after"])
    shop.call("wait", seconds=seconds - 1.2)
    assert shop.http(ITEMS)["status"] == 429


def test_errors_name_the_way_out(caller):
    shop = caller(pager=Pager(kind="offset", size=10))
    unknown = shop.http(ITEMS, query={"page": 2})
    assert unknown["status"] == 400
    assert "`page`" in unknown["body"]["message"]
    assert "`offset`, `limit`, `kind`" in unknown["body"]["message"]
    missing = shop.http("/v9/items")
    assert missing["status"] == 404
    assert missing["body"]["collections"] == [ITEMS]
    wrong = shop.http(ITEMS, "PATCH")
    assert wrong["status"] == 405
    assert wrong["headers"]["allow"] == "GET, POST"
    assert shop.http("https://elsewhere.example/")["status"] == 421


def test_filters_compare_wire_values(caller):
    rows = caller().http(ITEMS, query={"kind": "odd"})["body"]["data"]
    assert [row["item_id"] for row in rows] == [r[0] for r in ROWS if r[2] == "odd"]


# --- units, writing ---------------------------------------------------------------


def test_money_is_served_in_the_unit_of_the_contract(caller):
    def price(unit):
        return caller(unit=unit).http(ITEMS)["body"]["data"][3]["price"]

    assert (price("cents"), price("dollars")) == (300, 3)
    assert type(price("dollars")) is int


def test_post_validates_and_creates(caller):
    shop = caller(unit="dollars")
    body = {"price": 9, "kind": "odd"}
    made = shop.http(ITEMS, "POST", body=body)
    assert made["status"] == 201
    assert made["body"]["price"] == 9
    record = shop.session.state.records[0]
    assert dict(record.values)["price"] == 900
    rows = shop.http(ITEMS)["body"]["data"]
    assert rows[-1]["item_id"] == made["body"]["item_id"]
    assert shop.http(ITEMS, "POST", body={"price": 9})["body"]["error"] == "missing_field"
    extra = shop.http(ITEMS, "POST", body={**body, "colour": "red"})
    assert "`colour`" in extra["body"]["message"]
    assert "`price`, `kind`" in extra["body"]["message"]
    wrong = shop.http(ITEMS, "POST", body={**body, "price": "9"})
    assert wrong["body"]["error"] == "invalid_field"
    assert shop.http(ITEMS, "POST", body="not json")["status"] == 400
    assert len(shop.session.state.records) == 1


def test_delete_removes_a_row(caller):
    shop = caller()
    assert shop.http(f"{ITEMS}/r-03", "DELETE")["status"] == 204
    assert shop.http(f"{ITEMS}/r-03", "DELETE")["status"] == 404
    left = [row["item_id"] for row in shop.http(ITEMS)["body"]["data"]]
    assert len(left) == len(ROWS) - 1
    assert "r-03" not in left


# --- pages ------------------------------------------------------------------------


def test_pages_lead_to_the_documents(caller):
    shop = caller()
    home = shop.http("/")
    assert home["headers"]["content-type"].startswith("text/html")
    assert 'href="/openapi.json"' in home["body"]
    assert "No changes so far." in shop.http("/docs")["body"]
    document = shop.http("/openapi.json")
    described = json.loads(json.dumps(document["body"]))
    assert described["openapi"] == "3.1.0"
    assert shop.session.state.docs == {"shop"}
    assert shop.session.state.homes == {"shop"}


def test_documents_are_served_as_they_are_documented_not_as_served(caller):
    world = small_world()
    provider = world.providers[0]
    items = provider.contract.resources[0]
    moved = msgspec.structs.replace(items, path="/v2/items")
    served = msgspec.structs.replace(provider, contract=provider.contract.with_resource(moved))
    shop = caller(world.with_provider(served))
    assert ITEMS in shop.http("/openapi.json")["body"]["paths"]
    assert shop.http(ITEMS)["body"]["collections"] == ["/v2/items"]


def test_registry_lists_every_vendor(caller):
    world = msgspec.structs.replace(small_world(), registry="https://registry.example/")
    shop = caller(world)
    vendors = shop.http("https://registry.example/")["body"]["vendors"]
    assert vendors[0]["home"] == f"https://{HOST}/"
    assert shop.session.state.registry_read
