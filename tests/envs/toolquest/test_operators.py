"""The contract of every API operator, and what each one does."""

from functools import cache

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owa_bench.discovery import find
from owa_bench.envs.toolquest.generate import FAMILIES, TIERS, generate
from owa_bench.envs.toolquest.world import distance
from owa_bench.errors import DriftError
from owa_bench.records.instance import ANNOUNCEMENTS, Instance

OPERATORS = {
    name.removeprefix("api/"): found.plugin
    for name, found in find("operators").items()
    if name.startswith("api/")
}
HEADINGS = ("Changes", "Leaves alone", "Announcement", "Raises", "Source")
# Weight and class of the operators that docs/toolquest.md names.
SPEC = {
    "field_rename": (1.0, "D1"),
    "path_rename": (1.0, "D1"),
    "wrapper_swap": (0.7, "D1"),
    "pager_swap": (1.0, "D1"),
    "key_rotation": (0.5, "D2"),
    "stale_docs": (1.0, "D2"),
    "silent_units": (0.7, "D3"),
    "rate_cut": (0.5, "D0"),
    # one of weight 0.5, D0 or D1
    "version_added": (0.25, "D0"),
    "version_bump": (0.25, "D1"),
    # one of weight 0.8, D1 or D2
    "required_parameter": (0.4, "D1"),
    "untold_parameter": (0.4, "D2"),
    "auth_swap": (1.0, "D1"),
    "units": (0.7, "D1"),
    "flake": (0.6, "D2"),
    "enum_rename": (0.5, "D3"),
    "date_bound": (0.5, "D3"),
    "id_format": (0.4, "D1"),
    "provider_retired": (1.0, "D1"),
    "soft_deprecation": (0.3, "D0"),
}
# Families without a period of their own have no bound that could move.
WITHOUT_BOUND = ("deduplicate", "restock", "sla_report", "webhook_replay")


@cache
def world(family="reconcile", tier=2, seed=0):
    return generate(Instance(suite="toolquest", version=3, family=family, tier=tier, seed=seed))


def apply(base, name, target, intensity=1.0, seed=0):
    rng = np.random.Generator(np.random.PCG64(seed))
    return OPERATORS[name].apply(base, target, intensity, rng=rng)


def strikes(base):
    return [
        (name, target) for name, operator in OPERATORS.items() for target in operator.targets(base)
    ]


def canonical(base):
    """Return what no operator may touch."""
    spared = (
        *("contract", "documented", "secrets", "docs_frozen"),
        *("title", "host", "family", "successors", "former_hosts"),
    )
    providers = [
        {
            field: getattr(provider, field)
            for field in provider.__struct_fields__
            if field not in spared
        }
        for provider in base.providers
    ]
    return providers, msgspec.structs.replace(base, providers=())


def keys(contract):
    return [(r.key, r.methods, [f.key for f in r.fields]) for r in contract.resources]


def consistent(base):
    """Check that a world can be served and solved."""
    for provider in base.providers:
        paths = [resource.path for resource in provider.contract.resources]
        assert len(set(paths)) == len(paths)
        assert provider.contract.limit.requests >= 2
        assert [s.revoked for s in provider.secrets].count(False) == 1
        names = [secret.name for secret in provider.secrets]
        assert len(set(names)) == len(names)
        assert keys(provider.contract) == keys(provider.original)
        for resource in provider.contract.resources:
            fields = [field.name for field in resource.fields]
            assert len(set(fields)) == len(fields)
            assert resource.wrapper or resource.pager.kind != "cursor"
        if not provider.docs_frozen:
            for resource in provider.contract.resources:
                shown = provider.documented.resource(resource.key)
                assert (shown.path, shown.wrapper, shown.pager) == (
                    resource.path,
                    resource.wrapper,
                    resource.pager,
                )
                assert {f.name for f in resource.fields} <= {f.name for f in shown.fields}


def test_the_operators_are_those_of_the_specification():
    made = {name: (o.weight, o.announcement) for name, o in OPERATORS.items()}
    assert made.items() >= SPEC.items()


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_says_what_it_does(name):
    operator = OPERATORS[name]
    text = operator.__doc__
    assert [h for h in HEADINGS if f"{h}:" not in text] == []
    assert f"Announcement: {operator.announcement}" in text
    assert f"Weight: {operator.weight:g}." in text
    assert operator.announcement in ANNOUNCEMENTS
    assert operator.version >= 1


@pytest.mark.part(3)
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", OPERATORS)
def test_every_target_can_be_changed_and_nothing_else_changes(name, family, tier):
    base = world(family, tier)
    before = msgspec.json.encode(base)
    targets = OPERATORS[name].targets(base)
    if name == "date_bound" and family in WITHOUT_BOUND:
        assert targets == ()
        return
    assert targets or tier == 4  # documents that are frozen cannot go stale
    assert len(set(targets)) == len(targets)
    for target in targets:
        after = apply(base, name, target, seed=tier)
        assert after.digest() != base.digest()
        assert distance(base, after) > 0
        assert canonical(after) == canonical(base)
        consistent(after)
        key = target.split("/")[0]
        for old, new in zip(base.providers, after.providers, strict=True):
            assert (old == new) == (old.key != key)
        assert apply(base, name, target, seed=tier) == after
    assert msgspec.json.encode(base) == before


@pytest.mark.parametrize("name", OPERATORS)
def test_targets_are_only_what_the_task_rests_on(name):
    base = world("sla_report", 3)
    for target in OPERATORS[name].targets(base):
        vendor, *rest = target.split("/")
        if rest:
            assert (vendor, rest[0]) in base.needed
        assert not base.provider(vendor).distractor


@pytest.mark.parametrize("target", ["", "nobody", "nobody/rows/id"])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_target_that_is_not_there_is_refused(name, target):
    with pytest.raises(DriftError, match="must"):
        apply(world(), name, target)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_order_of_any_strikes_leaves_a_world_that_can_be_served(data):
    base = world(
        data.draw(st.sampled_from(FAMILIES)),
        data.draw(st.sampled_from(TIERS)),
        data.draw(st.integers(0, 3)),
    )
    order = data.draw(st.permutations(strikes(base)))
    seed = data.draw(st.integers(0, 100))
    now = base
    for i, (name, target) in enumerate(order):
        after = apply(now, name, target, data.draw(st.floats(0.01, 1)), seed + i)
        assert after.digest() != now.digest()
        now = after
    consistent(now)
    assert canonical(now) == canonical(base)
    for provider in now.providers:
        if provider.docs_frozen:
            shown = {r.key: r for r in provider.documented.resources}
            served = {r.key: r for r in provider.contract.resources}
            assert any(shown[k].path != served[k].path for k in shown)


# --- what each one does ---------------------------------------------------------------


def parts(base, after, target):
    vendor, *rest = target.split("/")
    return base.provider(vendor), after.provider(vendor), *rest


def test_field_rename_gives_another_name_and_the_documents_follow():
    base, target = world(), "bank/transfers/amount"
    old, new, resource, field = parts(base, apply(base, "field_rename", target), target)
    was = old.contract.resource(resource).field(field)
    now = new.contract.resource(resource).field(field)
    assert now.name in was.aliases
    assert now == msgspec.structs.replace(was, name=now.name)
    assert new.documented.resource(resource).field(field).name == now.name
    assert f"`{was.name}` is now called `{now.name}`" in new.documented.changelog[-1]


def test_path_rename_moves_to_a_free_path_and_the_documents_follow():
    base, target = world(), "bank/transfers"
    old, new, resource = parts(base, apply(base, "path_rename", target), target)
    path = new.contract.resource(resource).path
    assert path in old.contract.resource(resource).other_paths
    assert new.documented.resource(resource).path == path
    assert path in new.documented.changelog[-1]


def test_wrapper_swap_never_leaves_a_cursor_without_a_place():
    for seed in range(30):
        base = world("reconcile", 1, seed % 6)
        after = apply(base, "wrapper_swap", "bank/transfers", seed=seed)
        old = base.provider("bank").contract.resource("transfers")
        new = after.provider("bank").contract.resource("transfers")
        assert new.wrapper != old.wrapper
        assert new.wrapper or new.pager.kind != "cursor"


def test_pager_swap_keeps_the_size_and_refuses_lists_without_pages():
    base = world()
    after = apply(base, "pager_swap", "ledger/entries")
    old = base.provider("ledger").contract.resource("entries").pager
    new = after.provider("ledger").contract.resource("entries").pager
    assert new.kind not in (old.kind, "none")
    assert new.size == old.size
    with pytest.raises(DriftError, match="paged"):
        apply(base, "pager_swap", "ledger/periods")


def test_key_rotation_revokes_the_old_and_keeps_it_in_the_vault():
    kinds = set()
    for seed in range(12):
        base = world("reconcile", 2, seed)
        after = apply(base, "key_rotation", "bank", seed=seed)
        [old], (kept, fresh) = (w.provider("bank").secrets for w in (base, after))
        assert kept == msgspec.structs.replace(old, revoked=True)
        assert not fresh.revoked
        assert fresh.value != old.value
        assert fresh.name != old.name
        assert fresh.value.rpartition(":")[0] == old.value.rpartition(":")[0]
        assert after.provider("bank").documented == base.provider("bank").documented
        kinds.add(base.provider("bank").contract.auth.kind)
    assert "oauth2" in kinds
    emptied = base.with_provider(msgspec.structs.replace(base.provider("bank"), secrets=()))
    assert "bank" not in OPERATORS["key_rotation"].targets(emptied)
    with pytest.raises(DriftError, match="valid secret"):
        apply(emptied, "key_rotation", "bank")


def test_stale_docs_bite_alone_and_stay_behind():
    base = world()
    stale = apply(base, "stale_docs", "bank")
    bank = stale.provider("bank")
    assert bank.docs_frozen
    assert bank.contract == base.provider("bank").contract
    [wrong] = [
        r.key for r in bank.documented.resources if r.path != bank.contract.resource(r.key).path
    ]
    assert ("bank", wrong) in base.needed
    moved = apply(stale, "field_rename", "bank/transfers/amount")
    assert moved.provider("bank").documented == bank.documented
    assert "bank" not in OPERATORS["stale_docs"].targets(stale)
    with pytest.raises(DriftError, match="follow"):
        apply(stale, "stale_docs", "bank")


def test_stale_docs_after_changes_tell_of_the_world_before_them():
    base = world()
    moved = apply(base, "field_rename", "bank/transfers/amount")
    stale = apply(moved, "stale_docs", "bank").provider("bank")
    told = stale.documented.resource("transfers").field("amount").name
    assert told == base.provider("bank").contract.resource("transfers").field("amount").name
    assert told != stale.contract.resource("transfers").field("amount").name
    assert stale.documented.changelog == ()


def test_silent_units_tell_nobody():
    base, target = world(), "bank/transfers/amount"
    after = apply(base, "silent_units", target)
    old, new, resource, field = parts(base, after, target)
    assert new.documented == old.documented
    units = {s.contract.resource(resource).field(field).unit for s in (old, new)}
    assert units == {"cents", "dollars"}
    assert apply(after, "silent_units", target) == base
    with pytest.raises(DriftError, match="money"):
        apply(base, "silent_units", "bank/transfers/id")


def test_rate_cut_grows_with_intensity_and_stops_at_the_least_limit():
    base = world()
    limits = [
        apply(base, "rate_cut", "bank", intensity).provider("bank").contract.limit
        for intensity in (0.01, 0.25, 0.5, 0.75, 1.0)
    ]
    requests = [limit.requests for limit in limits]
    full = base.provider("bank").contract.limit
    assert requests == sorted(requests, reverse=True)
    assert requests[0] == full.requests - 1
    assert requests[-1] == full.requests - int(full.requests * 0.75)
    assert {limit.window_ms for limit in limits} == {full.window_ms}
    least = base
    for _ in range(12):
        if "bank" not in OPERATORS["rate_cut"].targets(least):
            break
        least = apply(least, "rate_cut", "bank")
    assert least.provider("bank").contract.limit.requests == 2
    with pytest.raises(DriftError, match="more than 2"):
        apply(least, "rate_cut", "bank")
