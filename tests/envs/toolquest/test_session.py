import base64
import json

import msgspec
import pytest

from owa_bench.canonical import sha256
from owa_bench.envs.toolquest.session import TEXT_ROOM
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.envs.toolquest.world import Auth, Pager
from owa_bench.errors import UsageError
from owa_bench.interfaces import Setting
from owa_bench.records.events import Artifact, Call, Resource
from owa_bench.runs.store.redaction import Redactor
from owa_bench.shells.calls import REPLY_LIMIT
from owa_bench.shells.episode_events import NullSink
from tests.builders.api_worlds import CLIENT, HOST, KEY, ROWS, drawn, play, small_world, still

HEADER = Auth(kind="key_header", name="X-Api-Key")
ITEMS = "/v1/items"


def test_state_is_one_object_while_nothing_changes(caller):
    shop = caller()
    shop.http(ITEMS)
    before = shop.session.state
    assert not shop.call("read", handle="art:99").ok
    assert not shop.call("http", method="GET", url="nonsense").ok
    shop.call("table", source="art:1")
    assert shop.session.state is before


def test_vault_lists_and_tells_and_remembers(caller):
    shop = caller(auth=HEADER)
    names = [e["name"] for e in json.loads(shop.call("vault").text)["entries"]]
    assert names == ["old", "shop"]
    assert not shop.session.state.has_secret("shop")
    shop.call("vault", name="old")
    assert not shop.session.state.has_secret("shop")
    assert json.loads(shop.call("vault", name="shop").text)["value"] == KEY
    assert shop.session.state.has_secret("shop")
    assert not shop.call("vault", name="nothing").ok


def test_latency_is_the_noise_stream_and_nothing_else(caller):
    first, second = caller(), caller()
    for shop in (first, second):
        for _ in range(5):
            shop.http(ITEMS)
    assert first.now_ms == second.now_ms
    assert 5 * 40 <= first.now_ms <= 5 * 80


def test_a_long_body_is_cut_and_kept(caller):
    shop = caller()
    answer = shop.http("/openapi.json")
    whole = shop.call("read", handle=answer["handle"]).text
    if "cut" in answer["body"]:
        assert answer["body"]["head"] in json.loads(whole)["text"]
    big = "x" * 3_000
    for _ in range(3):
        shop.http(ITEMS, "POST", body={"price": 1, "kind": big})
    text = shop.call("http", method="GET", url=f"https://{HOST}{ITEMS}").text
    assert len(text) <= TEXT_ROOM <= REPLY_LIMIT
    answer = json.loads(text)
    assert answer["body"]["cut"] is True
    parts, offset = [], 0
    while offset is not None:
        piece = shop.call("read", handle=answer["handle"], offset=offset).text
        assert len(piece) <= TEXT_ROOM
        parts.append(json.loads(piece)["text"])
        offset = json.loads(piece)["next_offset"]
    rows = json.loads("".join(parts))["data"]
    assert [row["item_id"] for row in rows][: len(ROWS)] == [row[0] for row in ROWS]


def test_read_by_pointer(caller):
    shop = caller()
    handle = shop.http("/openapi.json")["handle"]
    answer = shop.call("read", handle=handle, pointer="/paths/~1v1~1items/get/summary")
    assert json.loads(json.loads(answer.text)["text"]) == "Items of the shop."
    assert not shop.call("read", handle=handle, pointer="/nothing").ok


def test_table_over_pages_and_artifact_from_it(caller):
    shop = caller(pager=Pager(kind="offset", size=10))
    handles = [shop.http(ITEMS, query={"offset": start})["handle"] for start in (0, 10, 20)]
    made = json.loads(
        shop.call(
            "table",
            source=handles,
            where={"kind": "odd"},
            columns=["item_id", "price"],
            sort=["-price"],
        ).text
    )
    assert made["total"] == 11
    assert made["rows"][0] == ["r-21", 2100]
    result = shop.call(
        "write_artifact",
        name="answer",
        columns=["id", "price"],
        rows=[dict(zip(["id", "price"], row, strict=True)) for row in made["rows"]],
        sources=handles,
    )
    (event,) = result.events
    assert isinstance(event, Artifact)
    assert event.provenance == (1, 2, 3)
    assert shop.session.state.artefact.rows[0] == ("r-21", 2100)
    assert event.blob == sha256(shop.sink.blobs[event.blob])


@pytest.mark.parametrize("rows", [[["r-01", 100]], [{"price": 100, "id": "r-01", "more": 1}]])
def test_artifact_from_lists_or_objects(caller, rows):
    shop = caller()
    assert shop.call("write_artifact", name="answer", columns=["id", "price"], rows=rows).ok
    assert shop.session.state.artefact.rows == (("r-01", 100),)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([["r-01"]], "2 cells"),
        ([{"id": "r-01"}], "lack the columns price"),
        ([["r-01", [1]]], "A cell must be"),
        ("art:9", "no handle"),
        ([["r-01", 1], {"id": 1}], "2 cells"),
    ],
)
def test_bad_artifacts_are_words(caller, rows, words):
    shop = caller()
    result = shop.call("write_artifact", name="answer", columns=["id", "price"], rows=rows)
    assert not result.ok
    assert words in result.text
    assert shop.session.state.artefact is None


def test_calls_and_costs_are_events(caller):
    shop = caller(auth=HEADER)
    shop.http("/openapi.json")
    shop.http(ITEMS, headers={"X-Api-Key": "wrong"})
    shop.call("vault", name="shop")
    shop.http(ITEMS, headers={"X-Api-Key": KEY})
    shop.http("/")
    calls = [event for event in shop.events if isinstance(event, Call)]
    seen = [(c.method, c.status, c.ok) for c in calls]
    assert seen == [
        ("GET", 200, True),
        ("GET", 401, False),
        ("VAULT", 200, True),
        ("GET", 200, True),
        ("GET", 200, True),
    ]
    assert calls[1].headers == ("x-api-key",)
    assert [c.attempt for c in calls] == [0, 0, 0, 1, 0]
    costs = [event for event in shop.events if isinstance(event, Resource)]
    assert sum(c.amount for c in costs if c.meter == "api_calls") == 4
    assert all(c.amount > 0 for c in costs)


def test_every_secret_is_told_to_the_sink_before_it_can_be_seen(caller):
    auth = Auth(kind="oauth2", token_path="/token", lifetime_ms=1000)
    shop = caller(auth=auth)
    name, _, password = CLIENT.partition(":")
    assert {name, password, "worn-out-key"} <= set(shop.sink.secrets.values())
    token = shop.token()
    assert token in shop.sink.secrets.values()


@pytest.mark.parametrize("tier", [1, 3])
@pytest.mark.parametrize("family", SUITE.card.families)
def test_no_secret_is_left_in_any_record(family, tier):
    """What the recorder's redactor learns from the sink is enough, Basic included."""
    timeline = drawn(family, tier, seed=14, drift="nested")
    run = play(timeline, "oracle")
    redactor = Redactor(b"key")
    for name, value in run.sink.secrets.items():
        redactor.learn(name, value)
    lines = b"\n".join(redactor.encode(event).line for event in run.events)
    blobs = b"\n".join(redactor.data(blob) for blob in run.sink.blobs.values())
    pairs = [s.value for p in timeline.worlds[0].providers for s in p.secrets]
    values = [*run.sink.secrets.values(), *pairs]
    values += [base64.b64encode(pair.encode()).decode() for pair in pairs]
    assert b"{secret:" in lines
    assert b"{secret:" in blobs
    for value in values:
        assert value.encode() not in lines
        assert value.encode() not in blobs


def test_tokens_are_equal_in_a_replay_and_differ_between_instances(caller):
    world = small_world(auth=Auth(kind="oauth2", token_path="/t", lifetime_ms=1000))

    def token(seed):
        shop = caller(still(world, seed))
        shop.read_vault()
        body = {
            "grant_type": "client_credentials",
            "client_id": "client-7",
            "client_secret": "s3cret-of-client",
        }
        return shop.http("/t", "POST", body=body)["body"]["access_token"]

    assert token(1) == token(1) != token(2)


def test_entering_another_world_changes_what_is_served(caller):
    shop = caller()
    shop.http(ITEMS)
    world = shop.timeline.worlds[0]
    provider = world.providers[0]
    items = provider.contract.resources[0]
    moved = msgspec.structs.replace(items, path="/v2/items")
    contract = provider.contract.with_resource(moved)
    later = world.with_provider(msgspec.structs.replace(provider, contract=contract))
    shop.session.enter(later, now_ms=shop.now_ms)
    assert shop.http(ITEMS)["status"] == 404
    assert shop.http("/v2/items")["status"] == 200
    assert shop.session.state.fetched["shop", "items"] == (1 << len(ROWS)) - 1


def test_an_unknown_tool_is_the_shells_fault(caller):
    with pytest.raises(UsageError, match="must be one of http"):
        caller().call("shell")


def test_task_and_tools():
    timeline = drawn("restock", 2, seed=1)
    session = SUITE.session(timeline, NullSink(), Setting())
    assert session.task.goal["family"] == "restock"
    assert len(session.task.propositions) >= 3
    assert [tool.name for tool in session.tools] == [
        "http",
        "wait",
        "vault",
        "read",
        "table",
        "write_artifact",
    ]
