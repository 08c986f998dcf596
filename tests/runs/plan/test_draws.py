"""Batteries: the two that ship, and what is refused."""

from importlib import resources

import pytest

from owa_bench.errors import BatteryError, UnknownNameError
from owa_bench.records import protocol
from owa_bench.runs.plan import draws
from owa_bench.runs.plan.draws import MAGNITUDES

DEFAULT = protocol.load((resources.files("owa_bench.protocols") / "default.toml").read_bytes())
SMALL = b"""
name = "mine"
[[suite]]
name = "toolquest"
"""


def test_a_campaign_may_draw_from_several_suites():
    twice = SMALL + b'[[suite]]\nname = "changesurf"\n[campaign]\ndays = 2\n'
    assert [draw.name for draw in draws.parse_battery(twice).suite] == ["toolquest", "changesurf"]


def test_what_ships():
    assert {"demo", "toolquest", "web", "web_demo"} <= set(draws.battery_names())


@pytest.mark.parametrize("name", ["toolquest", "web", "level_2", "level_4", "full"])
def test_a_whole_battery_is_admissible(name):
    battery = draws.load_battery(name)
    draws.check_admissible(battery, DEFAULT)
    assert battery.gives_level
    assert tuple(DEFAULT.drift.magnitudes) == MAGNITUDES


def test_the_frontiers_cells_are_played_at_every_budget():
    budgets = {}
    for draw in draws.load_battery("toolquest").suite:
        card = draws.check(draw, BatteryError).card
        for cell in draws.entries(draw, card):
            budgets.setdefault((cell.pair, cell.delta), set()).add(cell.interventions)
    assert all({0, "protocol"} <= played for played in budgets.values())
    helped = {delta for (_, delta), played in budgets.items() if len(played) > 2}
    assert helped == {0.25, 1.0}
    assert {len(v) for (_, delta), v in budgets.items() if delta in helped} == {5}


def test_the_demo_gives_a_level_line_and_is_no_placement():
    demo = draws.load_battery("demo")
    draws.check_admissible(demo, DEFAULT)
    assert demo.gives_level
    assert demo.underpowered


def test_too_few_instances_are_refused():
    with pytest.raises(BatteryError, match="at least 20 instances of toolquest/"):
        draws.check_admissible(draws.parse_battery(SMALL), DEFAULT)


@pytest.mark.parametrize(
    "budgets", ["[0]", '["protocol"]', '["unlimited"]', "[0, 3]", '["protocol", 1]']
)
def test_a_battery_without_either_budget_of_the_axes_is_refused(budgets):
    data = SMALL + b"episodes = 20\ninterventions = " + budgets.encode()
    with pytest.raises(BatteryError, match='must draw 0 and "protocol"'):
        draws.check_admissible(draws.parse_battery(data), DEFAULT)


def test_a_missing_magnitude_is_refused():
    data = SMALL + b"episodes = 20\ndeltas = [0.0, 1.0]\n"
    with pytest.raises(BatteryError, match="every magnitude of the protocol"):
        draws.check_admissible(draws.parse_battery(data), DEFAULT)


def test_unknown_battery():
    with pytest.raises(UnknownNameError, match="Did you mean `toolquest`"):
        draws.load_battery("toolqest")


def test_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(SMALL)
    assert draws.load_battery(str(path)).name == "mine"
    with pytest.raises(BatteryError, match="`battery` must be a file"):
        draws.load_battery(str(tmp_path / "gone.toml"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"name = ", "`file` must be TOML"),
        (b'name = "x"\nsuite = []', "at least one suite"),
        (b'[[suite]]\nname = "toolquest"', "`name` must be given"),
        (SMALL + b'tiers = ["one"]', r"`suite.0.tiers.0` must obey its rule"),
        (SMALL + b"tier = [1]", "`suite.0.tier` is not a field"),
        (SMALL + b"tiers = [7]", "`suite.0.tiers` must be one of 1, 2, 3"),
        (SMALL + b'families = ["restok"]', "did you mean `restock`"),
        (b'name = "x"\n[[suite]]\nname = "tolquest"', "did you mean `toolquest`"),
    ],
)
def test_bad_files_name_field_value_and_rule(data, words):
    with pytest.raises(BatteryError, match=words):
        draws.parse_battery(data)
