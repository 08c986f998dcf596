from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owa_bench.discovery import find, get
from owa_bench.drift import calendar as calendars
from owa_bench.drift import order as orders
from owa_bench.envs.toolquest.generate import FAMILIES, TIERS, generate
from owa_bench.errors import FieldError, UnknownNameError
from owa_bench.records.instance import Instance
from owa_bench.seeding import is_practice


def draw(family="reconcile", tier=1, seed=0, **more):
    instance = Instance(suite="toolquest", version=3, family=family, tier=tier, seed=seed, **more)
    return instance, generate(instance)


class Domain:
    """Worlds of one suite, for what must hold of the calendars of every domain."""

    def __init__(self, suite):
        self.suite = suite

    def __repr__(self):
        return self.suite.card.name

    def world(self, seed):
        card = self.suite.card
        family, tier = card.families[seed % len(card.families)], card.tiers[-1]
        instance = Instance(
            suite=card.name, version=card.version, family=family, tier=tier, seed=seed
        )
        return card.domain, instance, self.suite.generate(instance)


DRAWN = [Domain(found.plugin) for found in find("suites").values()]


def at(instance, step):
    return msgspec.structs.replace(instance, drift_step=step)


INSTANCES = st.builds(
    draw, st.sampled_from(FAMILIES), st.sampled_from(TIERS), st.integers(0, 2**63 - 1)
)


@settings(max_examples=25, deadline=None)
@given(drawn=INSTANCES)
def test_prefixes_are_nested_and_end_with_everything(drawn):
    instance, world = drawn
    calendar = calendars.nested("api")
    whole = calendar.possible(instance, world)
    pairs = {
        (name, target)
        for name, found in find("operators").items()
        if name.startswith("api/")
        for target in found.plugin.targets(world)
        if not (is_practice(instance.seed) and found.plugin.held_out)
    }
    assert len(whole) == len(pairs)
    assert {(s.operator, s.target) for s in whole} == pairs
    assert calendar(instance, world) == ()
    for step in (1, 2, len(whole) // 2, len(whole), len(whole) + 7):
        assert calendar(at(instance, step), world) == whole[:step]
    assert all(0.25 <= s.intensity <= 1 and s.at_ms == 0 for s in whole)


@settings(max_examples=25, deadline=None)
@given(drawn=INSTANCES, deltas=st.lists(st.floats(0, 1), min_size=2, max_size=6))
def test_magnitude_and_step_are_one_object(drawn, deltas):
    instance, world = drawn
    calendar = calendars.nested("api")
    whole = calendar.possible(instance, world)
    shares = [orders.share(whole[:d], whole) for d in range(len(whole) + 1)]
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
    assert all(a < b for a, b in pairwise(shares))
    steps = [calendar.steps_for(instance, world, delta) for delta in sorted(deltas)]
    assert steps == sorted(steps)
    for delta, step in zip(sorted(deltas), steps, strict=True):
        assert shares[step] <= delta + 1e-6
        assert step == len(whole) or shares[step + 1] > delta - 1e-6
    for d, share in enumerate(shares):
        assert orders.longest_prefix(whole, share + 1e-6) == d


def test_instances_have_orders_of_their_own_but_repeats_share_one():
    instance, world = draw(seed=1)
    calendar = calendars.nested("api")
    again = msgspec.structs.replace(instance, repeat=4)
    assert calendar.possible(again, world) == calendar.possible(instance, world)
    other = calendar.possible(*draw(seed=2))
    assert [s[1:3] for s in other] != [s[1:3] for s in calendar.possible(instance, world)]


def test_classes_keep_the_order_of_the_whole():
    instance, world = draw()
    whole = calendars.nested("api").possible(instance, world)
    silent = calendars.nested("api", ("D3",)).possible(instance, world)
    assert {s.operator for s in silent} == {"api/date_bound", "api/enum_rename", "api/silent_units"}
    assert [s for s in whole if s in silent] == list(silent)
    two = calendars.nested("api", ("D0", "D3"))
    operators = {s.operator for s in two.possible(instance, world)}
    assert operators == {s.operator for s in silent} | {
        "api/rate_cut",
        "api/soft_deprecation",
        "api/version_added",
    }
    assert two.steps_for(instance, world, 1.0) == len(two.possible(instance, world))


def test_single_is_one_operator_at_one_magnitude_on_all_its_targets():
    instance, world = draw()
    calendar = calendars.single("api", "api/rate_cut", 0.4, onset_ms=5000)
    made = calendar(at(instance, 99), world)
    targets = find("operators")["api/rate_cut"].plugin.targets(world)
    assert {s.target for s in made} == set(targets)
    assert {(s.operator, s.intensity, s.at_ms) for s in made} == {("api/rate_cut", 0.4, 5000)}


def test_days_strike_a_share_of_the_weight_each():
    instance, world = draw()
    calendar = calendars.daily("api", 0.1)
    whole = calendar.possible(instance, world)
    counts = [len(calendar(at(instance, day), world)) for day in range(13)]
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[10] == counts[12] == len(whole)
    for day in range(11):
        realised = orders.share(whole[: counts[day]], whole)
        assert day * 0.1 - 0.06 < realised <= day * 0.1 + 1e-6
    assert calendar.steps_for(instance, world, 0.3) == 3
    assert calendar.steps_for(instance, world, 1.0) == 10


def in_every_domain(*, least_turn):
    """Draw a world of any suite, and a calendar of days that turns."""
    drawn = given(
        of=st.sampled_from(DRAWN),
        seed=st.integers(0, 2**63 - 1),
        share=st.floats(0.02, 1.0),
        turn=st.integers(least_turn, 12),
    )
    return lambda test: settings(max_examples=40, deadline=None)(drawn(test))


@in_every_domain(least_turn=2)
def test_what_recurs_comes_back_the_same_in_every_domain(of, seed, share, turn):
    domain, instance, world = of.world(seed)
    days = calendars.daily(domain, share)
    back = calendars.daily(domain, share, course="recurring", turn=turn)
    assert back.possible(instance, world) == days.possible(instance, world)
    for day in range(3 * turn + 1):
        now = back(at(instance, day), world)
        assert now == days(at(instance, day % turn), world)
        assert now == back(at(instance, day + turn), world)
    assert back(at(instance, 4 * turn), world) == ()


@in_every_domain(least_turn=1)
def test_what_reverses_is_undone_in_the_order_in_which_it_came(of, seed, share, turn):
    domain, instance, world = of.world(seed)
    days = calendars.daily(domain, share)
    there = calendars.daily(domain, share, course="reversing", turn=turn)
    played = [there(at(instance, day), world) for day in range(2 * turn + 3)]
    assert played[: turn + 1] == [days(at(instance, day), world) for day in range(turn + 1)]
    assert played[turn : 2 * turn + 1] == played[turn::-1]
    assert played[2 * turn :] == [(), (), ()]


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("nested", 1.0),
        ("daily:0.3", 1.0),
        ("recurring:0.25@3", 0.5),
        ("recurring:0.5@4", 1.0),
        ("reversing:0.1@7", 0.7),
    ],
)
def test_a_calendar_says_how_far_it_goes(text, reach):
    instance, world = draw()
    calendar = calendars.parse(text, "api")
    assert calendar.reach == reach
    step = calendar.steps_for(instance, world, reach)
    made = calendar(at(instance, step), world)
    assert orders.share(made, calendar.possible(instance, world)) <= reach + 1e-6
    assert calendar.steps_for(instance, world, 0.0) == 0
    if reach < 1:
        assert step == calendar.turn - (calendar.course == "recurring")
        with pytest.raises(FieldError, match=f"`delta` must be at most {reach:g}"):
            calendar.steps_for(instance, world, reach + 0.1)


def test_a_domain_without_operators_has_no_drift():
    instance, world = draw()
    calendar = calendars.nested("nowhere")
    assert calendar.possible(instance, world) == ()
    assert calendar.steps_for(instance, world, 1.0) == 0
    assert orders.share((), ()) == 0.0


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("nested", calendars.nested("api")),
        ("nested^250", calendars.nested("api", onset_ms=250)),
        ("nested:D0+D3", calendars.nested("api", ("D0", "D3"))),
        ("single:api/rate_cut@0.5", calendars.single("api", "api/rate_cut", 0.5)),
        ("single:api/rate_cut", calendars.single("api", "api/rate_cut")),
        ("daily:0.05", calendars.daily("api", 0.05)),
        ("recurring:0.2@3", calendars.daily("api", 0.2, course="recurring", turn=3)),
        (
            "reversing:0.1@5^40",
            calendars.daily("api", 0.1, course="reversing", turn=5, onset_ms=40),
        ),
    ],
)
def test_a_plan_names_its_calendar_in_words(text, made):
    assert calendars.parse(text, "api") == made


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("weekly", "calendar"),
        ("nested:D9", "classes"),
        ("nested:", "classes"),
        ("nested:D1+", "classes"),
        ("single", "calendar"),
        ("single:", "calendar"),
        ("single:api/rate_cut@", "calendar"),
        ("single:web/id_churn", "operator"),
        ("recurring:0.1@2.5", "calendar"),
        ("nested^soon", "calendar"),
        ("nested^-1", "onset_ms"),
        ("single:api/rate_cut@2", "magnitude"),
        ("single:api/rate_cut@much", "calendar"),
        ("daily:0", "share"),
        ("daily:", "calendar"),
        ("daily:0.1@4", "calendar"),
        ("recurring:0.1", "calendar"),
        ("recurring:0.1@1", "turn"),
        ("reversing:0.1@0", "turn"),
        ("reversing:0.1@soon", "calendar"),
    ],
)
def test_a_calendar_with_a_bad_field_names_it(text, field):
    with pytest.raises(FieldError, match=f"`{field}` must"):
        calendars.parse(text, "api")


def test_an_unknown_operator_gets_the_nearest_name():
    with pytest.raises(UnknownNameError, match="Did you mean `api/rate_cut`"):
        calendars.parse("single:api/rate_cuts", "api")


@pytest.mark.parametrize("delta", [-0.1, 1.1])
def test_a_magnitude_outside_its_range_is_refused(delta):
    with pytest.raises(FieldError, match="`delta` must be in"):
        calendars.nested("api").steps_for(*draw(), delta)


def test_calendars_are_plain_values():
    assert replace(calendars.nested("api"), onset_ms=3).onset_ms == 3


def test_a_group_of_operators_can_drift_alone():
    calendar = calendars.parse("nested:Label+D1", "web")
    assert (calendar.groups, calendar.classes) == (("Label",), ("D1",))
    kept = {strike.operator for strike in strikes_of(calendar)}
    named = set(orders.groups("web")["Label"])
    assert kept
    assert kept <= named
    assert {get("operators", name).announcement for name in kept} == {"D1"}


def test_every_web_operator_is_in_one_group():
    found = orders.groups("web")
    assert set(found) == {"DOM", "Label", "Layout", "Flow", "Auth", "Friction"}
    names = [name for group in found.values() for name in group]
    assert sorted(names) == [n for n in find("operators") if n.startswith("web/")]
    assert orders.groups("api") == {}


def test_an_unknown_group_is_refused_with_those_there_are():
    with pytest.raises(FieldError, match=r"one of D0, D1, D2, D3, Auth.*got 'Labels'"):
        calendars.parse("nested:Labels", "web")


def strikes_of(calendar):
    """Return what a web calendar would ever do to one instance."""
    from owa_bench.envs.changesurf.generate import generate

    instance = Instance(suite="changesurf", version=3, family="stay/book", tier=2, seed=3)
    return calendar.possible(instance, generate(instance))
