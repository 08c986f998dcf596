"""`owa-bench power` prints what each gate needs."""

import json

import pytest


def test_it_prints_every_level(owa):
    said = owa("power default --tasks 100")
    assert said.code == 0
    assert "AAI-4" in said.out
    found = json.loads(owa("power default --json").out)
    assert {row["level"] for row in found["gates"]} == {1, 2, 3, 4}


def test_it_prints_the_power_of_each_level_and_what_it_leaves_out(owa):
    found = json.loads(owa("power default --json --tasks 100").out)
    assert found["tasks"] == 100
    one, two, three, _ = found["levels"]
    assert 1 > one["power"] > two["power"] > three["power"] > 0
    assert (two["gates"], two["left_out"]) == (12, ["cognitive", "assurance"])
    words = f"AAI-2: {two['power']:.3f} over 12 gates; not in it: cognitive, assurance"
    assert words in owa("power default --tasks 100").out
    more = json.loads(owa("power default --json --tasks 400").out)["levels"]
    assert more[1]["power"] > two["power"]


def test_bad_use_is_named(owa):
    assert owa("power nowhere.toml").code == 2
    assert owa("power default --units 0").code == 2
    assert owa("power default --tasks 0").code == 2


@pytest.mark.parametrize("units", ["0", "nan", "inf", "-1", "1e9"])
def test_units_that_are_no_amount_are_refused(owa, units):
    said = owa(f"power default --units {units}")
    assert said.code == 2
    assert "`--units` must lie in 1e-06 .. 1e+06" in said.err
