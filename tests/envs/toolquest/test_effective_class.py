"""Effective classes against real requests: what a caller sees after each change.

A caller who goes on as before, and one who reads the documents that are served now,
send the same requests to the world after a change. Their replies decide the class.
"""

import base64
import json

import pytest
from msgspec.structs import replace

from owa_bench import discovery, seeding
from owa_bench.envs.toolquest import wire_format
from owa_bench.envs.toolquest.effective_class import effective_class
from owa_bench.envs.toolquest.world import ApiWorld, Provider
from owa_bench.shells.episode_events import drift_events
from tests.builders.api_worlds import Caller, drawn, still

OPERATORS = sorted(name for name in discovery.find("operators") if name.startswith("api/"))
STATES = ("documented", "frozen", "undocumented")
PAGE = 9  # rows asked for
SEED = 12
# Class by operator: documents that follow, frozen ones, none but a changelog.
EXPECTED = {
    "auth_swap": "D1 D2 D1",
    "date_bound": "D3 D3 D3",
    "enum_rename": "D3 D3 D3",
    "field_rename": "D1 D2 D1",
    "flake": "D2 D2 D2",
    "id_format": "D1 D3 D1",
    "key_rotation": "D2 D2 D2",
    "pager_swap": "D1 D2 D1",
    "path_rename": "D1 D2 D1",
    "provider_retired": "D1 D1 D1",
    "rate_cut": "D0 D0 D0",
    "required_parameter": "D1 D2 D1",
    "silent_units": "D3 D3 D3",
    "soft_deprecation": "D0 D0 D0",
    "stale_docs": "D2 - D0",
    "units": "D1 D3 D1",
    "untold_parameter": "D2 D2 D2",
    "version_added": "D0 D0 D0",
    "version_bump": "D1 D2 D1",
    "wrapper_swap": "D1 D2 D1",
}


def struck(name, state, seed=SEED):
    """Return world before, world after and the vendor's key, None if it cannot act."""
    world = drawn("currency_rollup", 1, seed=seed).worlds[0]
    states = {
        "documented": {},
        "frozen": {"docs_frozen": True},
        "undocumented": {"undocumented": True},
    }
    for provider in world.providers:
        clean = replace(provider, documented=provider.contract, **states[state])
        world = world.with_provider(clean)
    operator = discovery.get("operators", name)
    targets = operator.targets(world)
    if not targets:
        return None
    rng = seeding.stream(seed, name)
    return world, operator.apply(world, targets[0], 1.0, rng=rng), targets[0]


def reading(world: ApiWorld, known: Provider) -> str:
    """Return how a vendor reads to a caller who knows it as the documents of `known`.

    "refused": a reply is an error or lacks what is looked for. "right": every row means
    what the vendor holds. "wrong": it looks right and some row means something else.
    """
    caller, found = Caller(still(world)), "right"
    caller.read_vault()
    for resource in known.documented.resources:
        headers, query = credential(known)
        query |= {parameter.name: parameter.value for parameter in resource.required}
        if resource.pager.kind != "none":
            first, size = wire_format.PAGER_PARAMETERS[resource.pager.kind]
            query |= {"offset": {first: "0"}, "page": {first: "1"}}.get(first, {})
            query[size] = str(PAGE)
        for _ in range(30):  # meets a burst
            url = f"https://{known.host}{resource.path}"
            got = caller.http(url, headers=headers, query=query)
            if got["status"] not in (200, 429):
                return "refused"
            caller.now_ms += 60_000
        body = whole(caller, got["body"])
        if not goes_on(resource.pager.kind, got["headers"], body):
            return "refused"
        for part in filter(None, resource.wrapper.split(".")):
            body = body.get(part) if isinstance(body, dict) else None
        if not isinstance(body, list):
            return "refused"
        table = world.provider(known.key).table(resource.key)
        rows = table.rows[: len(body)]
        meant = wire_format.render_rows(resource, table.columns, list(rows))
        if any(set(one) != set(row) for one, row in zip(meant, body, strict=True)):
            return "refused"
        found = found if meant == body else "wrong"
    return found


def goes_on(pager: str, headers: dict[str, str], body: object) -> bool:
    """Return whether a first page says where the next one is, or that there is none."""
    if pager == "cursor":
        return isinstance(body, dict) and "next_cursor" in body
    if pager == "link":
        count = headers.get("x-total-count") or (body["total"] if isinstance(body, dict) else 0)
        return 'rel="next"' in headers.get("link", "") or int(count) <= PAGE
    return True


def credential(known: Provider) -> tuple[dict[str, str], dict[str, str]]:
    """Return headers and query by which the newest vault entry is sent."""
    auth, secret = known.documented.auth, known.secrets[-1].value
    if auth.kind == "basic":
        coded = base64.b64encode(secret.encode()).decode()
        return {"authorization": f"Basic {coded}"}, {}
    if auth.kind == "key_header":
        return {auth.name: secret}, {}
    return {}, {auth.name: secret}


def whole(caller: Caller, body: object) -> object:
    """Return a reply's body in full where the agent was shown its head."""
    if isinstance(body, dict) and body.get("cut"):
        return json.loads(caller.sink.blobs[caller.events[-1].response])
    return body


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", OPERATORS)
def test_a_class_is_what_the_documents_and_replies_show(name, state):
    found = struck(name, state)
    expected = EXPECTED[name.removeprefix("api/")].split()[STATES.index(state)]
    if found is None:
        assert expected == "-"
        return
    before, after, _ = found
    assert effective_class(before, after, after) == expected


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", OPERATORS)
def test_real_requests_show_what_the_class_says(name, state):
    found = struck(name, state)
    if found is None:
        return
    before, after, target = found
    old, new = (world.provider(target.split("/")[0]) for world in (before, after))
    assert reading(before, old) == "right"
    going_on = reading(after, old)
    told = effective_class(before, after, after)
    if state == "undocumented":
        noted = old.documented.changelog != new.documented.changelog
        moved = new.host != old.host
        assert (told == "D1") == ((noted or moved) and going_on != "right")
        assert (told == "D0") == (going_on == "right")
        return
    documented = reading(after, new)
    if told == "D0":
        assert (going_on, documented) == ("right", "right")
    elif told == "D1":
        assert going_on != "right"
        assert documented == "right" or new.host != old.host
    else:
        assert documented == {"D2": "refused", "D3": "wrong"}[told] or (
            name == "api/key_rotation" and going_on == "refused"
        )


@pytest.mark.parametrize("tier", [1, 4])
def test_classes_of_drawn_worlds_are_recorded_on_their_drift_events(tier):
    changes = [
        change
        for seed in range(12)
        for change in drawn("restock", tier, seed, "nested", 0.25).changes[0]
    ]
    documented = [c for c in changes if c.announcement == "D1"]
    kept = sum(c.effective == "D1" for c in documented) / len(documented)
    assert kept > 0.6 if tier == 1 else kept < 0.6
    event = drift_events(drawn("restock", tier, 3, "nested", 0.25), 0)[0]
    assert event.effective in ("D0", "D1", "D2", "D3")


def test_documents_that_freeze_later_make_an_announced_change_a_silent_one():
    before, after, target = struck("api/units", "documented")
    key = target.split("/")[0]
    provider = after.provider(key)
    frozen = replace(provider, documented=provider.original, docs_frozen=True)
    assert effective_class(before, after, after.with_provider(frozen)) == "D3"


def test_a_list_of_one_page_is_read_as_before_when_links_turn_into_cursors():
    before, after, target = struck("api/pager_swap", "documented", seed=11)
    key, resource = target.split("/")
    kinds = [w.provider(key).contract.resource(resource).pager for w in (before, after)]
    assert [pager.kind for pager in kinds] == ["link", "cursor"]
    assert effective_class(before, after, after) == "D0"
    assert reading(after, before.provider(key)) == "right"
