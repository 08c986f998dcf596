"""`owa-bench power` prints what each gate needs."""

import json

import pytest


def test_it_prints_every_level(owa):
    said = owa("power default --tasks 100")
    assert said.code == 0
    assert "AAI-4" in said.out
    rows = json.loads(owa("power default --json").out)
    assert {row["level"] for row in rows} == {1, 2, 3, 4}


def test_bad_use_is_named(owa):
    assert owa("power nowhere.toml").code == 2
    assert owa("power default --units 0").code == 2
    assert owa("power default --tasks 0").code == 2


@pytest.mark.parametrize("units", ["0", "nan", "inf", "-1", "1e9"])
def test_units_that_are_no_amount_are_refused(owa, units):
    said = owa(f"power default --units {units}")
    assert said.code == 2
    assert "`--units` must lie in 1e-06 .. 1e+06" in said.err
