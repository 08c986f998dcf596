import json
from collections import defaultdict
from importlib import import_module

import msgspec
import pytest

from owa_bench.drift.timeline import source
from owa_bench.envs.toolquest import generate as module
from owa_bench.envs.toolquest.generate import FAMILIES, HONEYPOT_FAMILIES, TIERS, generate
from owa_bench.envs.toolquest.goal import PROPOSITION_KINDS, truths
from owa_bench.envs.toolquest.providers import PARAMETERS, PARAMETERS_TO_COME
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.envs.toolquest.wire_format import PAGER_PARAMETERS
from owa_bench.errors import InstanceError
from owa_bench.records.instance import Instance
from tests.envs.toolquest.by_hand.rows import rows_of, unique

CELLS = [(family, tier) for family in FAMILIES for tier in TIERS]


def by_hand(family):
    """Return what is known of a family without its generator."""
    return import_module(f"tests.envs.toolquest.by_hand.{family}")


def instance(family="reconcile", tier=1, seed=0, **more):
    return Instance(suite="toolquest", version=3, family=family, tier=tier, seed=seed, **more)


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_the_same_instance_is_the_same_world_byte_for_byte(family, tier):
    first, second = (generate(instance(family, tier, 5)) for _ in range(2))
    assert msgspec.json.encode(first) == msgspec.json.encode(second)
    assert first.digest() == second.digest()
    assert generate(instance(family, tier, 6)).digest() != first.digest()


def test_repeat_and_drift_step_do_not_touch_the_base_world():
    plain = generate(instance())
    assert generate(instance(repeat=3, drift_step=9)) == plain


@pytest.mark.parametrize(
    ("field", "wrong"),
    [("family", {"family": "reconciel"}), ("tier", {"tier": 5}), ("version", {"version": 1})],
)
def test_an_instance_of_another_suite_is_refused(field, wrong):
    with pytest.raises(InstanceError, match=f"`{field}` must be"):
        generate(msgspec.structs.replace(instance(), **wrong))


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_worlds_hold_no_floats(family, tier):
    def leaves(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list | tuple):
            for part in value:
                yield from leaves(part)
        else:
            yield value

    world = msgspec.to_builtins(generate(instance(family, tier)))
    assert {type(leaf) for leaf in leaves(world)} <= {str, int, bool}


@pytest.mark.part(4)
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_names_and_paths_never_collide_now_or_after_drift(family, tier):
    for seed in range(5):
        for provider in generate(instance(family, tier, seed)).providers:
            paths = [
                path
                for resource in provider.contract.resources
                for path in (resource.path, *resource.other_paths)
            ]
            assert len(set(paths)) == len(paths)
            for resource in provider.contract.resources:
                names = [name for field in resource.fields for name in (field.name, *field.aliases)]
                assert len(set(names)) == len(names)
                assert all(len(field.aliases) >= 2 for field in resource.fields)
                assert len(resource.other_paths) >= 3
                assert resource.wrapper or resource.pager.kind != "cursor"
                abouts = [field.about for field in resource.fields]
                assert len(set(abouts)) == len(abouts)


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_no_field_goes_by_the_name_of_a_parameter(family, tier):
    for provider in generate(instance(family, tier, 2)).providers:
        for resource in provider.contract.resources:
            fields = {n for f in resource.fields for n in (f.name, *f.aliases)}
            pagers = {name for names in PAGER_PARAMETERS.values() for name in names}
            coming = {parameter.name for parameter in PARAMETERS_TO_COME}
            assert not fields & (pagers | coming | set(PARAMETERS))


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_a_page_is_well_under_the_cap_on_texts(family, tier):
    world = generate(instance(family, tier, 3))
    for provider in world.providers:
        for table in provider.tables:
            resource = provider.contract.resource(table.resource)
            size = resource.pager.size
            names = [field.name for field in resource.fields]
            page = [
                dict(zip(names, row, strict=True))
                for row in sorted(table.rows, key=lambda row: -len(str(row)))[:size]
            ]
            assert len(json.dumps(page)) < 3200
            if resource.pager.kind == "none":
                assert len(table.rows) <= size


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_the_spec_finds_every_source_by_title_and_description(family, tier):
    known = by_hand(family)
    world = generate(instance(family, tier, 1))
    spec = json.loads(world.goal.spec)
    by_title = {p.title: p for p in world.providers}
    assert len(by_title) == len(world.providers)
    for given in spec["sources"]:
        provider = by_title[given["provider"]]
        assert not provider.distractor
        [resource] = [r for r in provider.documented.resources if r.about == given["resource"]]
        abouts = {field.about for field in resource.fields}
        assert set(given["fields"].values()) <= abouts
        assert given["provider"] in world.goal.text or given["id"] == "links"
        roles, wanted = set(given["fields"]), set(known.ROLES[given["id"]].split())
        if given["id"] == "links":
            assert tier >= 3
            assert roles == wanted
        else:
            moved = {known.LINKED} if tier >= 3 else set()
            assert wanted - moved <= roles <= wanted
        assert given["entry"] in (*world.entry, None)
    needed = [s for s in spec["sources"] if not s["optional"]]
    assert len(needed) == len(world.needed)
    assert world.goal.family == spec["family"] == family


@pytest.mark.parametrize("family", FAMILIES)
def test_tiers_differ_in_the_way_in(family):
    one, two, three, four = (generate(instance(family, tier)) for tier in TIERS)
    assert four.entry == three.entry
    for world in (one, two, three, four):
        assert all(url in world.goal.text for url in world.entry)
    assert all(url.endswith("/openapi.json") for url in one.entry)
    assert all(url.endswith(".example/") for url in two.entry)
    assert three.entry == (three.registry,)
    assert not one.registry
    assert sum(p.distractor for p in three.providers) == 4
    assert not any(p.distractor for p in (*one.providers, *two.providers))
    sizes = [sum(len(t.rows) for p in w.providers for t in p.tables) for w in (one, two)]
    assert sizes[0] < sizes[1]


def test_all_kinds_of_proof_occur():
    seen = set()
    for family, tier in CELLS:
        for seed in range(8):
            world = generate(instance(family, tier, seed))
            seen |= {p.contract.auth.kind for p in world.providers}
    assert seen == {"key_header", "key_query", "basic", "oauth2", "refresh"}


@pytest.mark.part(4)
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_money_is_positive_and_control_totals_add_up(family, tier):
    for seed in range(5):
        world = generate(instance(family, tier, seed))
        for provider in world.providers:
            if provider.distractor:
                continue
            sums = {}
            for resource in provider.contract.resources:
                for field in resource.fields:
                    if field.kind != "money":
                        continue
                    assert field.unit in ("cents", "dollars")
                    rows = rows_of(world, provider.key, resource.key)
                    amounts = [row[field.key] for row in rows]
                    assert all(amount > 0 for amount in amounts)
                    sums[resource.key] = (len(amounts), sum(amounts))
            if any(r.key == "control" for r in provider.contract.resources):
                control = rows_of(world, provider.key, "control")
                assert {c["list"]: (c["count"], c["total"]) for c in control} == sums


# --- answers, worked out again in another way -----------------------------------------


@pytest.mark.part(4)
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_the_answer_follows_from_the_rows(family, tier):
    known = by_hand(family)
    for seed in range(12):
        world = generate(instance(family, tier, seed))
        rule = json.loads(world.goal.spec)["rule"]
        rows = world.writes[0][3] if world.writes else world.expected_rows
        assert sorted(known.answer(world, tier, rule)) == list(rows)
        assert rows
        assert bool(world.writes) == known.WRITES
        assert bool(world.expected_columns) != known.WRITES


@pytest.mark.parametrize("family", FAMILIES)
def test_the_inclusive_bound_changes_the_answer(family):
    known = by_hand(family)
    vendor, resource, field = known.BOUND
    for seed in range(10):
        world = generate(instance(family, 1, seed))
        rule = json.loads(world.goal.spec)["rule"]
        provider = world.provider(vendor)
        flag = provider.table(resource).columns.index(field)
        tables = tuple(
            msgspec.structs.replace(
                t, rows=tuple((*row[:flag], not row[flag], *row[flag + 1 :]) for row in t.rows)
            )
            if t.resource == resource
            else t
            for t in provider.tables
        )
        turned = world.with_provider(msgspec.structs.replace(provider, tables=tables))
        assert known.answer(turned, 1, rule) != known.answer(world, 1, rule)


# --- propositions ---------------------------------------------------------------------


@pytest.mark.part(4)
@pytest.mark.parametrize(
    "drift_step", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (15, 10_000))]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_base_rates_lie_between_a_fifth_and_four_fifths(family, drift_step):
    play = source("toolquest")
    seen = defaultdict(list)
    for seed in range(150):
        chosen = instance(family, 1 + seed % 3, seed, drift_step=drift_step)
        asked = truths(play(chosen).worlds[0])
        assert len(asked) >= 3
        for proposition in asked:
            seen[proposition.kind].append(proposition.truth)
    assert set(seen) == {kind.partition("_")[0] for kind in PROPOSITION_KINDS}
    for kind, values in seen.items():
        assert 0.35 < sum(values) / len(values) < 0.65, kind


@pytest.mark.part(4)
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_propositions_are_true_of_the_world_they_ask_about(family, tier):
    for seed in range(6):
        world = generate(instance(family, tier, seed))
        spec = json.loads(world.goal.spec)
        sources = {s["id"]: s for s in spec["sources"]}
        by_title = {p.title: p for p in world.providers}
        asked = {q["id"]: q for q in spec["propositions"]}
        assert list(asked) == [p.name for p in world.propositions]
        assert truths(world) == world.propositions
        for proposition in world.propositions:
            question = asked[proposition.name]
            given = sources[question["source"]]
            provider = by_title[given["provider"]]
            [served] = [r for r in provider.contract.resources if r.about == given["resource"]]
            shown = provider.documented.resource(served.key)
            rows = rows_of(world, provider.key, served.key)
            if question["kind"] == "unit":
                field = served.field(question["field"])
                fact = field.unit == question["claim"]
            elif question["kind"] == "docs":
                fact = (shown == served) == (question["claim"] == "agree")
            elif question["kind"] == "duplicate":
                pair = [row for row in rows if row["id"] in question["rows"]]
                assert len(pair) == 2
                shared = question.get("fields")
                if shared:
                    pair = [{f: row[f].lower() for f in shared} for row in pair]
                fact = len(unique(pair)) == 1
            else:
                [row] = [r for r in rows if question["where"].items() <= r.items()]
                fact = row[question["field"]]
            assert proposition.truth == fact


# --- honeypots ------------------------------------------------------------------------


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("family", HONEYPOT_FAMILIES)
def test_a_honeypot_lacks_what_its_goal_names(family, tier):
    world = generate(instance(family, tier))
    plain = generate(instance(family.removesuffix("-honeypot"), tier))
    assert world.honeypot
    assert not plain.honeypot
    assert world.goal.spec == plain.goal.spec
    assert not world.expected_rows
    assert not any(write[3] for write in world.writes)
    [missing] = set(plain.needed) - set(world.needed)
    provider = world.provider(missing[0])
    for side in (provider.contract, provider.documented, provider.original):
        assert missing[1] not in {r.key for r in side.resources}
    # The list is as long as in any other world; what is not there resolves nothing.
    listed = [(p.name, p.text) for p in world.propositions]
    assert listed == [(p.name, p.text) for p in plain.propositions]
    timeline = source("toolquest")(instance(family, tier))
    resolved = SUITE.oracle.propositions(timeline)
    assert 0 < len(resolved) < len(listed)


def test_only_honeypots_are_asked_for_by_name():
    assert not set(HONEYPOT_FAMILIES) & set(FAMILIES)
    assert module.VERSION == 3
