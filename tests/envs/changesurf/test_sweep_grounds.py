"""The control battery of ChangeSurf covers what it says it covers."""

import itertools

from benchmarks.sweep_grounds import GROUNDS, calendar_of, magnitude_of
from owa_bench.drift import calendar as calendars
from owa_bench.drift import order as orders
from owa_bench.envs.changesurf.generate import (
    FAMILIES,
    HELD_OUT_FAMILIES,
    HONEYPOT_FAMILIES,
    TIERS,
    sites,
)
from owa_bench.records.instance import ANNOUNCEMENTS

GROUND = GROUNDS["changesurf"]


def test_every_site_tier_kind_of_drift_and_magnitude_has_a_cell():
    cells = GROUND.cells(GROUND.choices)
    plain = [cell for cell in cells if cell.family not in HONEYPOT_FAMILIES]
    found = {
        (
            cell.family.partition("/")[0],
            cell.tier,
            calendar_of(cell.drift),
            magnitude_of(cell.drift),
        )
        for cell in plain
    }
    kinds = ["nested", *(f"nested:{group}" for group in orders.groups("web"))]
    assert len(kinds) == 7
    for site, tier in itertools.product(sites(), TIERS):
        assert (site, tier, "nested", 0.0) in found
        for kind, magnitude in itertools.product(kinds, (0.5, 1.0)):
            assert (site, tier, kind, magnitude) in found
        for name in ANNOUNCEMENTS:
            assert (site, tier, f"nested:{name}", 1.0) in found
    assert {cell.family for cell in plain} == {*FAMILIES, *HELD_OUT_FAMILIES}
    assert {cell.family for cell in cells} >= set(HONEYPOT_FAMILIES)
    for cell in cells:
        calendars.parse(calendar_of(cell.drift), "web")
