"""The contract of every physics operator, and the worlds that the levels are."""

import msgspec
import numpy as np
import pytest

from owa_bench.discovery import find
from owa_bench.envs.cartpole3d.levels import DOMAIN, LEVELS, OPERATORS, level
from owa_bench.envs.cartpole3d.world import PRESETS, SPECS, base, distance
from owa_bench.errors import DriftError, FieldError
from owa_bench.seeding import stream

FOUND = {
    name.removeprefix(f"{DOMAIN}/"): found.plugin
    for name, found in find("operators").items()
    if name.startswith(f"{DOMAIN}/")
}
HEADINGS = ("Changes", "Leaves alone", "Announcement", "Raises", "Source")
EASY, MEDIUM, HARD = PRESETS.values()


def grades(spec, number, read):
    """Return what `read` finds in easy, medium and hard."""
    return tuple(read(level(spec, number, size)) for size in (EASY, MEDIUM, HARD))


def law(world):
    (found,) = world.laws
    return found


def pull(world):
    (found,) = world.pulls
    return found.target, found.size


def spawn(world):
    (found,) = world.spawns
    return found


def test_every_level_above_the_base_is_one_operator():
    assert set(OPERATORS[1:]) <= set(FOUND)
    assert len(LEVELS) == 17


def test_operators_have_targets_of_their_own():
    targets = [t for o in FOUND.values() for t in o.targets(base("table1"))]
    assert len(set(targets)) == len(targets) == len(FOUND)


@pytest.mark.parametrize("name", FOUND)
def test_an_operator_says_what_it_does(name):
    operator = FOUND[name]
    text = operator.__doc__
    assert [h for h in HEADINGS if f"{h}:" not in text] == []
    assert f"Announcement: {operator.announcement}" in text
    assert f"Weight: {operator.weight}" in text


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", FOUND)
def test_an_operator_is_pure_and_draws_nothing(name, spec):
    operator = FOUND[name]
    before = base(spec)
    (target,) = operator.targets(before)
    rng = stream(0, "any")
    state = rng.bit_generator.state
    after = operator.apply(before, target, 0.4, rng=rng)
    assert rng.bit_generator.state == state
    assert after == operator.apply(before, target, 0.4, rng=stream(1, "other"))
    assert after != before == base(spec)
    assert operator.apply(before, target, 0.0, rng=rng) == before
    with pytest.raises(DriftError):
        operator.apply(before, "nothing", 0.4, rng=rng)
    with pytest.raises(FieldError):
        operator.apply(before, target, 1.5, rng=rng)


@pytest.mark.parametrize("spec", SPECS)
def test_operators_act_in_any_order(spec):
    def world(order):
        made = base(spec)
        for name in order:
            (target,) = FOUND[name].targets(made)
            made = FOUND[name].apply(made, target, 0.7, rng=stream(0, "x"))
        return made

    def unordered(made):
        parts = {
            part: sorted(map(repr, getattr(made, part))) for part in ("laws", "pulls", "spawns")
        }
        return parts, msgspec.structs.replace(made, laws=(), pulls=(), spawns=())

    names = list(FOUND)
    assert unordered(world(names)) == unordered(world(names[::-1]))


def test_the_distance_grows_with_the_magnitude():
    for number in LEVELS[1:]:
        sizes = [
            distance(base("table1"), level("table1", number, size)) for size in (0.0, 0.2, 0.6, 1.0)
        ]
        assert sizes[0] == 0 < sizes[1] <= sizes[2] <= sizes[3] < 1


# What each level's numbers are, from section 2 of the facts page: released first.


def test_1_the_cart_weighs_ten_kilograms():
    assert grades("released", 1, lambda w: w.cart.mass) == (10, 10, 10)
    assert grades("table1", 1, lambda w: w.cart.mass) == (5, 10, 50)


def test_2_balls_are_fixed():
    assert grades("released", 2, lambda w: law(w).share) == (1, 1, 1)
    assert law(level("released", 2)).heights == (1, 9)
    shares = grades("table1", 2, lambda w: law(w).share)
    assert shares == pytest.approx((1 / 3, 2 / 3, 1))
    assert law(level("table1", 2)).heights == (0.5, 0.5)


def test_3_balls_fly_to_one_point():
    assert grades("released", 3, lambda w: law(w).speeds) == ((0, 10),) * 3
    assert grades("released", 3, lambda w: law(w).share) == (1, 1, 1)
    assert law(level("released", 3)).alike


def test_4_balls_are_larger_and_no_heavier():
    assert grades("released", 4, lambda w: w.ball.radius) == (1, 1, 1)
    assert grades("released", 4, lambda w: w.ball.mass) == (1, 1, 1)
    assert level("released", 4).start.clearance == 1
    big = level("table1", 4)
    assert big.ball.radius == 1
    assert big.start.clearance == 1.5
    assert big.start.ball + big.ball.radius <= big.arena.half


def test_5_released_balls_go_together_and_table1_ones_apart():
    assert grades("released", 5, pull) == (("centroid", (0, 6)),) * 3
    assert grades("table1", 5, lambda w: pull(w)[1][0]) == (-2, -4, -6)


def test_6_released_gravity_reaches_balls_and_grows_in_table1():
    assert grades("released", 6, lambda w: w.gravity) == (9.8, 9.8, 9.8)
    assert grades("table1", 6, lambda w: w.gravity) == (20, 30, 40)
    for spec in SPECS:
        assert grades(spec, 6, lambda w: w.ball.weighs) == (True, True, True)


def test_7_balls_are_pulled_to_the_origin():
    for spec in SPECS:
        sizes = grades(spec, 7, lambda w: pull(w))
        assert sizes == tuple(("origin", (n, n)) for n in (15, 25, 35))


def test_8_resting_balls_come_every_50_15_7_ticks():
    for spec in SPECS:
        assert grades(spec, 8, lambda w: spawn(w).every) == (50, 15, 7)
        assert grades(spec, 8, lambda w: spawn(w).speeds) == ((0, 0),) * 3
    assert spawn(level("released", 8)).distances == (0, 10)
    assert spawn(level("released", 8)).clearance == 0.75


def test_9_the_pole_is_longer_and_its_inertia_grows():
    assert grades("released", 9, lambda w: w.pole.length) == (3, 5, 8)
    assert grades("released", 9, lambda w: w.pole.centre) == (1, 1, 1)
    assert grades("table1", 9, lambda w: w.pole.centre) == (3, 5, 8)
    across = grades("released", 9, lambda w: round(w.pole.inertia[0], 4))
    assert across == (0.0753, 0.2089, 0.5342)
    plain = base("released").pole.inertia
    assert [round(x, 4) for x in plain] == [0.0085, 0.0001]


def test_10_balls_are_on_rails():
    for spec in SPECS:
        bands = grades(spec, 10, lambda w: law(w).distances)
        assert bands == ((3, 4), (2, 3), (1.5, 2))
        assert law(level(spec, 10)).speeds == (6, 10)


def test_11_a_share_of_balls_flies_to_the_cart():
    for spec in SPECS:
        assert grades(spec, 11, lambda w: law(w).share) == (0.25, 0.5, 0.75)
        assert law(level(spec, 11)).speeds == (0, 10)


def test_12_restitution_has_its_bands():
    bands = ((1.05, 1.15), (1.2, 1.3), (1.35, 1.45))
    for spec in SPECS:
        assert grades(spec, 12, lambda w: w.ball.restitution) == bands


def test_13_released_balls_go_apart_and_table1_ones_together():
    assert grades("released", 13, lambda w: pull(w)[1][0]) == (-1, -3, -5)
    assert grades("table1", 13, lambda w: pull(w)[1][0]) == (1, 3, 5)


def test_14_wind_blows():
    assert grades("released", 14, lambda w: w.wind.speed) == (16, 18, 20)
    assert grades("table1", 14, lambda w: w.wind.speed) == (1, 2, 3)


def test_15_balls_are_pulled_to_the_pole():
    for spec, target in (("released", "middle"), ("table1", "tip")):
        found = grades(spec, 15, pull)
        assert found == tuple((target, (n, n)) for n in (10, 20, 30))


def test_16_balls_come_every_3_2_1_ticks():
    for spec, around in (("released", "start"), ("table1", "cart")):
        assert grades(spec, 16, lambda w: spawn(w).every) == (3, 2, 1)
        assert spawn(level(spec, 16)).speeds == (3, 5)
        assert spawn(level(spec, 16)).around == around


def test_magnitudes_between_presets_are_between():
    values = [level("table1", 7, m).pulls[0].size[0] for m in np.linspace(0.1, 1, 10)]
    assert values == sorted(values)
    assert level("table1", 7, 0.5).pulls[0].size == (20, 20)
