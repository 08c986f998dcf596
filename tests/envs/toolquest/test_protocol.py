"""The real parts of HTTP, each in a drawn world of every family."""

import json

import pytest
from msgspec.structs import replace

from owa_bench.discovery import find
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.envs.toolquest.world import PAGERS, Auth, Former, FormerHost, Limit, Pager
from tests.builders.api_worlds import Caller, drawn, still

FAMILIES = SUITE.card.families


class Vendor:
    """The last vendor that a family's task needs, open to all, one part changed."""

    def __init__(self, family, provider=None, resource=None, **contract):
        world = drawn(family, 2, seed=41).worlds[0]
        self.place = world.needed[-1]
        kept = world.provider(self.place[0])
        limit = Limit(requests=1_000, window_ms=60_000)
        terms = {"auth": Auth(kind="none"), "limit": limit, **contract}
        changed = replace(kept.contract, **terms)
        changed = changed.with_resource(
            replace(changed.resource(self.place[1]), **(resource or {}))
        )
        self.provider = replace(kept, contract=changed, documented=changed, **(provider or {}))
        self.resource = changed.resource(self.place[1])
        self.caller = Caller(still(world.with_provider(self.provider)))
        self.rows = world.provider(self.place[0]).table(self.place[1]).rows

    def get(self, path="", method="GET", **more):
        url = f"https://{self.provider.host}{path or self.resource.path}"
        return self.caller.http(url, method, **more)

    def post(self, **more):
        """Post a record made of an earlier one's writable fields."""
        first = dict(zip(self.columns, self.rows[0], strict=True))
        body = {f.name: first[f.key] for f in self.resource.fields if f.writable}
        return self.get(method="POST", body=body | more.pop("change", {}), **more)

    @property
    def columns(self):
        return self.provider.table(self.place[1]).columns


@pytest.mark.parametrize("family", FAMILIES)
def test_a_page_that_did_not_change_is_not_sent_again(family):
    shop = Vendor(family)
    first = shop.get()
    tag = first["headers"]["etag"]
    again = shop.get(headers={"If-None-Match": tag})
    assert (again["status"], again["body"]) == (304, "")
    assert shop.get(headers={"If-None-Match": '"other"'})["status"] == 200


@pytest.mark.parametrize("family", FAMILIES)
def test_a_reply_is_packed_for_who_can_unpack_it(family):
    shop = Vendor(family)
    plain = shop.get(headers={"Accept-Encoding": "identity"})
    packed = shop.get(headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain["headers"]
    assert packed["headers"]["content-encoding"] == "gzip"
    assert packed["body"] == plain["body"]


@pytest.mark.parametrize("family", FAMILIES)
def test_errors_are_problems_where_the_contract_says_so(family):
    told = Vendor(family, problems=True).get(query={"nonsense": "1"})
    assert told["status"] == 400
    assert told["headers"]["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= set(told["body"])
    assert told["body"]["status"] == 400
    plain = Vendor(family, problems=False).get(query={"nonsense": "1"})
    assert set(plain["body"]) == {"error", "message"}


@pytest.mark.parametrize("dated", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_limit_counts_down_and_says_when_to_come_back(family, dated):
    limit = Limit(requests=2, window_ms=30_000)
    shop = Vendor(family, limit=limit, counted=True, dated=dated)
    left = [shop.get()["headers"]["ratelimit"] for _ in range(2)]
    assert left[0] != left[1]
    refused = shop.get()
    assert refused["status"] == 429
    after = refused["headers"]["retry-after"]
    assert after.endswith("GMT") if dated else 0 < int(after) <= 30
    shop.caller.now_ms += 30_000
    assert shop.get()["status"] == 200


@pytest.mark.parametrize("family", FAMILIES)
def test_a_burst_of_503_ends_when_it_says(family):
    shop = Vendor(family, outages=100, dated=False)
    refused = shop.get()
    assert refused["status"] == 503
    wait = int(refused["headers"]["retry-after"])
    assert 1 <= wait <= 8
    sooner = shop.get()
    assert sooner["status"] == 503
    assert int(sooner["headers"]["retry-after"]) <= wait
    ends = shop.caller.session.state.outages[shop.place[0]]
    shop.caller.now_ms = ends
    assert shop.get()["status"] != 503  # it held what it said
    shop.get()
    assert shop.caller.session.state.outages[shop.place[0]] > ends  # another burst


@pytest.mark.parametrize("status", [301, 308, 410])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_collection_that_moved_says_where_to(family, status):
    former = Former(path="/old/place", status=status)
    shop = Vendor(family, resource={"formers": (former,)})
    reply = shop.get("/old/place")
    assert reply["status"] == status
    if status == 410:
        assert shop.resource.path not in reply["headers"].get("location", "")
    else:
        assert reply["headers"]["location"].endswith(shop.resource.path)


@pytest.mark.parametrize("status", [301, 308, 410])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_host_that_was_left_leads_on(family, status):
    left = FormerHost(host="left.example", title="Left", status=status)
    shop = Vendor(family, provider={"former_hosts": (left,)})
    reply = shop.caller.http(f"https://left.example{shop.resource.path}")
    assert reply["status"] == status
    assert shop.provider.host in json.dumps(reply["headers"])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_collection_that_goes_says_when(family):
    shop = Vendor(family, resource={"sunset": "2032-07-01"})
    headers = shop.get()["headers"]
    assert headers["sunset"] == "Thu, 01 Jul 2032 00:00:00 GMT"
    assert headers["deprecation"].startswith("@")
    assert "sunset" not in Vendor(family).get()["headers"]


@pytest.mark.parametrize("kind", PAGERS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_pager_gives_every_row_once(family, kind):
    more = {"pager": Pager(kind=kind, size=3), "wrapper": "data"}
    shop = Vendor(family, resource=more)
    query = {"page": "page", "offset": "offset"}.get(kind)
    got, step, link = [], {}, None
    while len(got) < len(shop.rows):
        reply = shop.caller.http(link) if link else shop.get(query=step)
        assert reply["status"] == 200
        rows = reply["body"]["data"]
        assert 0 < len(rows) <= 3
        got += map(json.dumps, rows)
        if query:
            step = {query: len(got) if kind == "offset" else len(got) // 3 + 1}
        elif kind == "cursor":
            step = {"cursor": reply["body"]["next_cursor"]}
        elif "link" in reply["headers"]:
            link = reply["headers"]["link"].split(">")[0][1:]
    assert len(set(got)) == len(got) == len(shop.rows)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_idempotency_key_makes_one_record(family):
    world = drawn(family).worlds[0]
    if not world.writes:
        assert all("POST" not in r.methods for _, r in needed(world))
        return
    shop = Written(family)
    keyed = {"Idempotency-Key": "first"}
    made = [shop.post(headers=keyed) for _ in range(3)]
    assert [reply["status"] for reply in made] == [201] * 3
    assert len({json.dumps(reply["body"]) for reply in made}) == 1
    assert len(shop.caller.session.state.records) == 1
    assert "idempotency-replayed" in made[1]["headers"]
    number = next(f.name for f in shop.resource.fields if f.kind == "integer")
    other = shop.post(headers=keyed, change={number: 10_000})
    assert other["status"] == 422
    assert shop.post(headers={"Idempotency-Key": "second"})["status"] == 201
    bare = shop.post()
    assert bare["status"] == (400 if shop.resource.keyed else 201)
    assert len(shop.caller.session.state.records) == (2 if shop.resource.keyed else 3)


class Written(Vendor):
    """The collection that a family's task writes to."""

    def __init__(self, family):
        world = drawn(family, 2, seed=41).worlds[0]
        self.place = world.writes[0][:2]
        kept = world.provider(self.place[0])
        contract = replace(kept.contract, auth=Auth(kind="none"))
        fields = tuple(
            replace(field, unit="cents", decimal=False) if field.kind == "money" else field
            for field in contract.resource(self.place[1]).fields
        )
        resource = replace(contract.resource(self.place[1]), fields=fields)
        contract = contract.with_resource(resource)
        self.resource = resource
        self.provider = replace(kept, contract=contract)
        self.caller = Caller(still(world.with_provider(self.provider)))
        self.rows = kept.table(self.place[1]).rows


def needed(world):
    """Return the collections that a task rests on, each with its vendor."""
    found = []
    for vendor, resource in world.needed:
        provider = world.provider(vendor)
        found.append((provider, provider.contract.resource(resource)))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_every_part_occurs_in_drawn_worlds(family):
    """Auth kinds, pagers, problems, counters and dates, without drift or with it."""
    seen = set()
    for seed in range(60):
        for provider, resource in needed(drawn(family, 3, seed=seed).worlds[0]):
            contract = provider.contract
            seen |= {contract.auth.kind, resource.pager.kind}
            flags = ("problems", "dated", "counted")
            seen |= {flag for flag in flags if getattr(contract, flag)}
    kinds = {"key_header", "key_query", "basic", "oauth2", "refresh"}
    assert kinds | set(PAGERS) | {"problems", "dated", "counted"} <= seen


@pytest.mark.parametrize("family", FAMILIES)
def test_every_operator_but_a_bounds_finds_a_target(family):
    operators = {n: f.plugin for n, f in find("operators").items() if "api/" in n}
    for tier in SUITE.card.tiers:
        world = drawn(family, tier, seed=5).worlds[0]
        idle = {name for name, each in operators.items() if not each.targets(world)}
        bounds = any(f.bound for _, r in needed(world) for f in r.fields)
        assert idle - {"api/stale_docs"} <= (set() if bounds else {"api/date_bound"})
        assert tier == 4 or "api/stale_docs" not in idle
