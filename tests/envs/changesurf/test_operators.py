"""The contract of every web operator, and what each one does."""

from functools import cache

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owa_bench.discovery import find
from owa_bench.envs.changesurf.generate import FAMILIES, TIERS, generate
from owa_bench.envs.changesurf.world import distance
from owa_bench.errors import DriftError
from owa_bench.records.instance import ANNOUNCEMENTS, Instance

OPERATORS = {
    name.removeprefix("web/"): found.plugin
    for name, found in find("operators").items()
    if name.startswith("web/")
}
HEADINGS = ("Changes", "Leaves alone", "Announcement", "Raises", "Source")
GROUPS = {"DOM", "Label", "Layout", "Flow", "Auth", "Friction"}
HELD_OUT = {"shadow_root", "frame"}


@cache
def world(family="stay/book", tier=2, seed=0):
    return generate(Instance(suite="changesurf", version=3, family=family, tier=tier, seed=seed))


def apply(base, name, target, intensity=1.0, seed=0):
    rng = np.random.Generator(np.random.PCG64(seed))
    return OPERATORS[name].apply(base, target, intensity, rng=rng)


def strikes(base):
    return [(n, t) for n, o in OPERATORS.items() for t in o.targets(base)]


def consistent(base):
    """Check that a world can be served: nothing is asked twice or not at all."""
    for workflow in base.spec.workflows:
        flow = base.plan.flow(workflow.key)
        keys = [key for page in flow.pages for key in page]
        assert sorted(keys) == sorted(slot.key for slot in workflow.slots)
        assert all(flow.pages)
        for slot in workflow.slots:
            if slot.when is not None:
                assert keys.index(slot.when[0]) < keys.index(slot.key)
        for later, first in workflow.after:
            assert keys.index(first) < keys.index(later)
    for collection in base.spec.collections:
        plan = base.plan.listing(collection.key)
        shown = [*plan.columns, *plan.drawer]
        open_ones = {c.key for c in collection.columns} - set(collection.secluded)
        assert sorted(shown) == sorted(open_ones)
        assert collection.title in plan.columns
    assert sorted(base.plan.menu) == sorted(world_menu(base))
    assert len({label.key for label in base.plan.labels}) == len(base.plan.labels)
    assert base.plan.auth.password not in base.plan.auth.former


def world_menu(base):
    free = [w.key for w in base.spec.workflows if not w.record]
    return ["home", *(c.key for c in base.spec.collections), *free]


def test_there_are_operators_of_every_family_and_class():
    assert {o.group for o in OPERATORS.values()} >= GROUPS
    assert {o.announcement for o in OPERATORS.values()} == set(ANNOUNCEMENTS)
    held_out = {n for n, o in OPERATORS.items() if o.held_out}
    assert held_out >= HELD_OUT


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_says_what_it_does(name):
    operator = OPERATORS[name]
    text = operator.__doc__
    assert [h for h in HEADINGS if f"{h}:" not in text] == []
    assert f"Announcement: {operator.announcement}" in text
    assert f"Weight: {operator.weight:g}." in text
    assert operator.name == name
    assert operator.version >= 1


@pytest.mark.parametrize("name", OPERATORS)
def test_every_target_can_be_changed_and_meaning_stays(name):
    targets = 0
    for family in FAMILIES:
        for tier in TIERS:
            base = world(family, tier)
            for target in OPERATORS[name].targets(base):
                after = apply(base, name, target, seed=tier)
                assert after.digest() != base.digest()
                assert distance(base, after) > 0
                assert after.spec == base.spec
                consistent(after)
                assert apply(base, name, target, seed=tier) == after
                targets += 1
    assert targets


@pytest.mark.parametrize("target", ["", "nobody", "nobody.slot"])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_target_that_is_not_there_is_refused(name, target):
    with pytest.raises(DriftError, match="must"):
        apply(world(), name, target)


WORLDS = st.builds(world, st.sampled_from(FAMILIES), st.sampled_from(TIERS), st.integers(0, 2))


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_order_of_any_strikes_leaves_a_world_that_can_be_served(data):
    base = data.draw(WORLDS)
    now = base
    for i, (name, target) in enumerate(data.draw(st.permutations(strikes(base)))):
        after = apply(now, name, target, data.draw(st.floats(0.01, 1)), i)
        assert after.digest() != now.digest()
        now = after
    consistent(now)
    assert now.spec == base.spec


SETTLED_LAST = {"told", "hinted"}  # whether a page says it: by the last of two


def facts(base):
    """Return what a plan says, each fact by its place."""
    plan = msgspec.to_builtins(base.plan)
    for part in ("labels", "slots", "lists", "flows"):
        for each in plan.pop(part):
            yield from (((part, each["key"], name), value) for name, value in each.items())
    for name in ("auth", "friction"):
        yield from (((name, key), value) for key, value in plan.pop(name).items())
    yield from (((name,), value) for name, value in plan.items())


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_no_strike_undoes_another_so_more_drift_is_never_less(data):
    base = data.draw(WORLDS)
    plain, now, changed = dict(facts(base)), base, set()
    for i, (name, target) in enumerate(data.draw(st.permutations(strikes(base)))):
        now = apply(now, name, target, data.draw(st.floats(0.01, 1)), i)
        changed |= {at for at, value in facts(now) if value != plain[at]}
    end = dict(facts(now))
    back = {at for at in changed if end[at] == plain[at]}
    assert not {at for at in back if at[-1] not in SETTLED_LAST}


@pytest.mark.parametrize(
    ("first", "last", "target", "says"),
    [
        ("units", "silent_units", "entries", False),
        ("silent_units", "units", "entries", True),
        ("date_form", "untold_date_form", "site", False),
        ("untold_date_form", "date_form", "site", True),
    ],
)
def test_of_a_told_and_an_untold_change_the_last_one_is_believed(first, last, target, says):
    base = world("ledger/reverse" if target == "entries" else "stay/book", 2)
    now = apply(apply(base, first, target), last, target, seed=1)
    if target == "site":
        assert (now.plan.dates != base.plan.dates, now.plan.hinted) == (True, says)
    else:
        shown = now.plan.listing(target)
        assert (shown.cents, shown.told) == (True, says)


def test_the_truth_of_what_is_asked_follows_silent_drift():
    base = world("ledger/total", 2)
    after = apply(base, "silent_units", "entries")
    assert after.plan.listing("entries").cents
    assert not after.plan.listing("entries").told
    assert apply(base, "units", "entries").plan.listing("entries").told


def test_a_rotated_password_leaves_the_old_one_behind():
    base = world("stay/book", 2)
    after = apply(base, "credential_rotation", "site").plan.auth
    assert after.former == (base.plan.auth.password,)
    assert after.password in base.plan.auth.spares


def test_a_label_goes_by_a_word_of_its_own_pool():
    base = world()
    key = "slot:checkin"
    [old] = [label for label in base.plan.labels if label.key == key]
    assert apply(base, "label_synonym", key).plan.label(key) in old.others


def test_practice_worlds_know_no_held_out_word_layout_or_sign_in():
    practice = generate(
        Instance(suite="changesurf", version=3, family="stay/book", tier=2, seed=(1 << 62) | 5)
    )
    assert max(practice.plan.templates) < max(world().plan.templates)
    assert "redirect" in world().plan.auth.others
    assert "redirect" not in practice.plan.auth.others
    assert sum(len(label.others) for label in practice.plan.labels) < sum(
        len(label.others) for label in world().plan.labels
    )


def test_worlds_are_frozen_all_the_way_down():
    base = world()
    before = msgspec.json.encode(base)
    for name, target in strikes(base):
        apply(base, name, target)
    assert msgspec.json.encode(base) == before
