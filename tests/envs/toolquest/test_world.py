import msgspec
import pytest

from owa_bench.envs.toolquest import world_edits as api_edits
from owa_bench.envs.toolquest.world import (
    ApiResource,
    ApiWorld,
    Auth,
    Contract,
    Field,
    Goal,
    Limit,
    Pager,
    Provider,
    Secret,
    Table,
    distance,
)
from owa_bench.errors import DriftError

FIELDS = (
    Field(key="id", name="id", kind="string", about="Identifier."),
    Field(key="amount", name="amount", kind="money", about="Amount.", unit="cents"),
)
ROWS = ApiResource(
    key="rows",
    path="/rows",
    about="Rows.",
    fields=FIELDS,
    wrapper="data",
    pager=Pager(kind="page", size=2),
)
CONTRACT = Contract(
    auth=Auth(kind="key_header", name="X-Key"),
    limit=Limit(requests=5, window_ms=1000),
    resources=(ROWS,),
)


def shop(key="shop", **changes):
    made = Provider(
        key=key,
        host=f"{key}.example",
        title=key.title(),
        family="supply",
        contract=CONTRACT,
        documented=CONTRACT,
        original=CONTRACT,
        tables=(Table(resource="rows", columns=("id", "amount"), rows=(("a", 100),)),),
        secrets=(Secret(name=f"{key}_key", value="s3cret", about="Key."),),
    )
    return msgspec.structs.replace(made, **changes)


def world(*providers):
    return ApiWorld(
        goal=Goal(family="toy", text="Do.", spec="{}"),
        tier=1,
        providers=providers or (shop(), shop("depot")),
        entry=(),
        writes=(),
        needed=(("shop", "rows"), ("shop", "rows"), ("depot", "rows")),
        propositions=(),
    )


def test_distance_is_zero_for_equals_one_for_strangers_and_symmetric():
    here, there = world(shop()), world(shop("depot"))
    assert distance(here, here) == 0.0
    assert distance(here, there) == 1.0
    near = here.with_provider(shop(secrets=()))
    assert 0 < distance(here, near) == distance(near, here) < 1


def test_distance_leaves_rows_and_goal_out():
    here = world(shop())
    other_goal = msgspec.structs.replace(here, goal=Goal(family="x", text="", spec="{}"))
    assert distance(here, other_goal) == 0.0
    assert distance(here, world(shop(tables=()))) == 0.0


def test_distance_of_worlds_without_facts_is_zero():
    empty = msgspec.structs.replace(world(), providers=())
    assert distance(empty, empty) == 0.0


@pytest.mark.parametrize(
    "change",
    [
        {"docs_frozen": True},
        {"title": "Shop2"},
        {"tables": ()},
        {"secrets": (Secret(name="shop_key", value="other", about="Key."),)},
    ],
)
def test_the_digest_sees_every_change_of_a_provider(change):
    assert world(shop(**change)).digest() != world(shop()).digest()


def test_the_digest_sees_the_rest_and_the_order_of_providers():
    here = world()
    assert here.digest() == world().digest()
    assert msgspec.structs.replace(here, tier=2).digest() != here.digest()
    turned = msgspec.structs.replace(here, providers=here.providers[::-1])
    assert turned.digest() != here.digest()


def test_look_ups_name_what_is_missing():
    here = world()
    assert here.provider("depot").table("rows").rows == (("a", 100),)
    assert here.provider("shop").contract.resource("rows").field("id").kind == "string"
    for look_up in (
        lambda: here.provider("none"),
        lambda: here.provider("shop").table("none"),
        lambda: here.provider("shop").contract.resource("none"),
        lambda: ROWS.field("none"),
    ):
        with pytest.raises(KeyError):
            look_up()


def test_live_parts_are_what_is_needed_once_each():
    here = world()
    assert [p.key for p in api_edits.live_providers(here)] == ["shop", "depot"]
    assert [(p.key, r.key) for p, r in api_edits.live_resources(here)] == [
        ("shop", "rows"),
        ("depot", "rows"),
    ]


@pytest.mark.parametrize("target", ["", "none", "shop/none", "shop", "shop/rows/none"])
def test_a_target_that_names_no_field_is_refused_with_its_text(target):
    with pytest.raises(DriftError, match=f"{target!r}"):
        api_edits.locate_field(world(), target)


def test_an_announced_change_reaches_documents_until_they_are_frozen():
    def faster(contract):
        limit = Limit(requests=9, window_ms=1000)
        return msgspec.structs.replace(contract, limit=limit)

    here = world()
    told = api_edits.announce(here, here.provider("shop"), faster, "Faster.")
    assert told.provider("shop").documented.limit.requests == 9
    assert told.provider("shop").documented.changelog == ("Faster.",)
    assert told.provider("shop").original == CONTRACT
    assert told.provider("depot") == here.provider("depot")
    frozen = here.with_provider(shop(docs_frozen=True))
    quiet = api_edits.announce(frozen, frozen.provider("shop"), faster, "Faster.")
    assert quiet.provider("shop").contract.limit.requests == 9
    assert quiet.provider("shop").documented == CONTRACT
