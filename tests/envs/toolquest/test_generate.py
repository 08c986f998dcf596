import json
from collections import defaultdict

import msgspec
import pytest

from owa_bench.envs.toolquest import generate as module
from owa_bench.envs.toolquest.generate import (
    CATEGORIES,
    FAMILIES,
    HONEYPOT_FAMILIES,
    TIERS,
    generate,
)
from owa_bench.envs.toolquest.propositions import PROPOSITION_KINDS, truths
from owa_bench.errors import InstanceError
from owa_bench.records.instance import Instance
from owa_bench.run.assembly import source

CELLS = [(family, tier) for family in FAMILIES for tier in TIERS]
ROLES = {
    "periods": "name first_day last_day last_day_included",
    "accounts": "id code status bank_account",
    "entries": "id account reference date amount",
    "transfers": "id bank_account reference date amount",
    "customers": "id code contract",
    "tickets": "id customer subject priority opened minutes",
    "agreements": "contract plan",
    "targets": "plan priority minutes limit_is_breach credit",
    "classes": "class reorder_level target_level at_level",
    "items": "sku class status on_hand part",
    "offers": "id part pack_size price available",
    "orders": "id offer quantity total status",
    "control": "list count total",
    "ledger_control": "list count total",
    "bank_control": "list count total",
}


def instance(family="reconcile", tier=1, seed=0, **more):
    return Instance(
        suite="toolquest", version=1, family=family, tier=tier, seed=seed, **more
    )


def rows_of(world, vendor, resource):
    table = world.provider(vendor).table(resource)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


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
    [
        ("family", {"family": "reconciel"}),
        ("tier", {"tier": 5}),
        ("version", {"version": 2}),
    ],
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
                names = [
                    name
                    for field in resource.fields
                    for name in (field.name, *field.aliases)
                ]
                assert len(set(names)) == len(names)
                assert all(len(field.aliases) >= 2 for field in resource.fields)
                assert len(resource.other_paths) >= 3
                assert resource.wrapper or resource.pager.kind != "cursor"
                abouts = [field.about for field in resource.fields]
                assert len(set(abouts)) == len(abouts)


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
    world = generate(instance(family, tier, 1))
    spec = json.loads(world.goal.spec)
    by_title = {p.title: p for p in world.providers}
    assert len(by_title) == len(world.providers)
    for given in spec["sources"]:
        provider = by_title[given["provider"]]
        assert not provider.distractor
        [resource] = [
            r for r in provider.documented.resources if r.about == given["resource"]
        ]
        abouts = {field.about for field in resource.fields}
        assert set(given["fields"].values()) <= abouts
        assert given["provider"] in world.goal.text or given["id"] == "links"
        roles = set(given["fields"])
        if given["id"] == "links":
            assert tier >= 3
            assert len(roles) == 2
        else:
            linked = {"bank_account", "contract", "part"} if tier >= 3 else set()
            wanted = set(ROLES[given["id"]].split())
            assert wanted - linked <= roles <= wanted
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
    sizes = [
        sum(len(t.rows) for p in w.providers for t in p.tables) for w in (one, two)
    ]
    assert sizes[0] < sizes[1]


def test_every_category_of_a_world_is_on_the_card_and_all_auth_kinds_occur():
    seen = set()
    for family, tier in CELLS:
        for seed in range(8):
            world = generate(instance(family, tier, seed))
            seen |= {p.category for p in world.providers}
    assert seen <= set(CATEGORIES)
    assert {name.split(":")[1] for name in seen} == {
        "key_header",
        "key_query",
        "basic",
        "oauth2",
        "refresh",
    }


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


def unique(rows):
    seen, kept = set(), []
    for row in rows:
        mark = json.dumps({k: v for k, v in row.items() if k != "id"}, sort_keys=True)
        if mark not in seen:
            seen.add(mark)
            kept.append(row)
    return kept


def linked(world, tier, vendor, resource, key, value):
    place = ("directory", "links") if tier >= 3 else (vendor, resource)
    return {row[key]: row[value] for row in rows_of(world, *place)}


def answer_reconcile(world, tier, rule):
    bank_of = linked(world, tier, "ledger", "accounts", "code", "bank_account")
    found = []
    for entry in unique(rows_of(world, "ledger", "entries")):
        [account] = [
            a
            for a in rows_of(world, "ledger", "accounts")
            if a["id"] == entry["account"]
        ]
        [period] = [
            p
            for p in rows_of(world, "ledger", "periods")
            if p["name"] == rule["period"]
        ]
        late = entry["date"] > period["last_day"] or (
            entry["date"] == period["last_day"] and not period["last_day_included"]
        )
        if account["status"] != "open" or late or entry["date"] < period["first_day"]:
            continue
        paid = [
            t["amount"]
            for t in unique(rows_of(world, "bank", "transfers"))
            if t["reference"] == entry["reference"]
            and t["bank_account"] == bank_of[account["code"]]
        ]
        assert len(paid) <= 1
        if entry["amount"] != sum(paid):
            gap = entry["amount"] - sum(paid)
            found.append((account["code"], entry["reference"], gap))
    return found


def answer_sla_report(world, tier, rule):
    contract_of = linked(world, tier, "helpdesk", "customers", "code", "contract")
    found = []
    for customer in rows_of(world, "helpdesk", "customers"):
        [plan] = [
            a["plan"]
            for a in rows_of(world, "contracts", "agreements")
            if a["contract"] == contract_of[customer["code"]]
        ]
        breaches = minutes = credit = 0
        for ticket in unique(rows_of(world, "helpdesk", "tickets")):
            if ticket["customer"] != customer["id"]:
                continue
            [level] = [
                t
                for t in rows_of(world, "contracts", "targets")
                if (t["plan"], t["priority"]) == (plan, ticket["priority"])
            ]
            if ticket["opened"] < rule["first_day"]:
                continue
            if ticket["opened"] > rule["last_day"]:
                continue
            allowed = level["minutes"] - (1 if level["limit_is_breach"] else 0)
            if ticket["minutes"] > allowed:
                breaches += 1
                minutes += ticket["minutes"] - level["minutes"]
                credit += level["credit"]
        if breaches:
            found.append((customer["code"], breaches, minutes, credit))
    return found


def answer_restock(world, tier, rule):
    part_of = linked(world, tier, "inventory", "items", "sku", "part")
    offers = rows_of(world, "supply", "offers")
    found = []
    for item in rows_of(world, "inventory", "items"):
        [level] = [
            c
            for c in rows_of(world, "inventory", "classes")
            if c["class"] == item["class"]
        ]
        threshold = level["reorder_level"] + (1 if level["at_level"] else 0)
        if item["status"] != "active" or item["on_hand"] >= threshold:
            continue
        mine = [o for o in offers if o["part"] == part_of[item["sku"]]]
        names = {o["id"] for o in mine}
        if any(
            o["offer"] in names and o["status"] == "open"
            for o in rows_of(world, "supply", "orders")
        ):
            continue
        best = sorted(
            (o["price"], o["id"], o["pack_size"]) for o in mine if o["available"]
        )[0]
        quantity = best[2]
        while item["on_hand"] + quantity < level["target_level"]:
            quantity += best[2]
        found.append((best[1], quantity, quantity * best[0]))
    return found


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_the_answer_follows_from_the_rows(family, tier):
    answer = globals()[f"answer_{family}"]
    for seed in range(12):
        world = generate(instance(family, tier, seed))
        rule = json.loads(world.goal.spec)["rule"]
        rows = world.writes[0][3] if world.writes else world.expected_rows
        assert sorted(answer(world, tier, rule)) == list(rows)
        assert rows
        assert bool(world.writes) == (family == "restock")
        assert bool(world.expected_columns) == (family != "restock")


@pytest.mark.parametrize(
    ("family", "place", "flag"),
    [
        ("reconcile", ("ledger", "periods"), 3),
        ("sla_report", ("contracts", "targets"), 3),
        ("restock", ("inventory", "classes"), 3),
    ],
)
def test_the_inclusive_bound_changes_the_answer(family, place, flag):
    answer = globals()[f"answer_{family}"]
    for seed in range(10):
        world = generate(instance(family, 1, seed))
        rule = json.loads(world.goal.spec)["rule"]
        provider = world.provider(place[0])
        tables = tuple(
            msgspec.structs.replace(
                t,
                rows=tuple(
                    (*row[:flag], not row[flag], *row[flag + 1 :]) for row in t.rows
                ),
            )
            if t.resource == place[1]
            else t
            for t in provider.tables
        )
        turned = world.with_provider(msgspec.structs.replace(provider, tables=tables))
        assert answer(turned, 1, rule) != answer(world, 1, rule)


# --- propositions ---------------------------------------------------------------------


@pytest.mark.parametrize("drift_step", [0, 15, 10_000])
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
    assert set(seen) == set(PROPOSITION_KINDS)
    for kind, values in seen.items():
        assert 0.35 < sum(values) / len(values) < 0.65, kind


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
            [served] = [
                r for r in provider.contract.resources if r.about == given["resource"]
            ]
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
    assert 0 < len(world.propositions) < len(plain.propositions)


def test_only_honeypots_are_asked_for_by_name():
    assert not set(HONEYPOT_FAMILIES) & set(FAMILIES)
    assert module.VERSION == 1
