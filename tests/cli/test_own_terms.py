"""A battery of easy tasks and a protocol whose gates ask for nothing give no level."""

import json

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.report.terms import own_terms
from owa_bench.run.plan.plan import read_plan
from tests.builders.episodes import PROTOCOL_BYTES

BATTERY = """\
name = "{name}"
protocol = "{protocol}"
underpowered = true

[[suite]]
name = "toolquest"
families = ["restock"]
tiers = [1]
episodes = 1
interventions = [0, "protocol"]
"""


def reported(owa, place, name, protocol):
    (place / "mine.toml").write_text(BATTERY.format(name=name, protocol=protocol))
    flags = "--battery mine.toml --agent noop --sandbox none --out x"
    assert owa(f"run {flags}").code == 0
    said = owa("report x --json")
    assert said.code == 0, said.err
    [verdict] = json.loads(said.out)["verdicts"]
    return verdict


@pytest.mark.parametrize("name", ["mine", "toolquest"])
def test_a_protocol_and_a_battery_of_ones_own_give_no_level(owa, place, name):
    text = PROTOCOL_BYTES.decode().replace('name = "default', 'name = "mine', 1)
    (place / "protocol.toml").write_text(text)
    verdict = reported(owa, place, name, place / "protocol.toml")
    assert verdict["level"] is None
    start = f"not placed (own terms: protocol and battery {name}); by them "
    assert verdict["level_text"].startswith(start)
    assert owa("verify x").code == 0
    assert owa("recompute x").code == 0


def test_a_battery_under_the_name_of_a_shipped_one_is_told_by_its_digest(owa, place):
    """The attack: the package's protocol, and easy tasks called `toolquest`."""
    verdict = reported(owa, place, "toolquest", "default")
    assert verdict["level_text"].startswith("not placed (own terms: battery toolquest)")
    plan = read_plan(RunLayout(place / "x"))
    assert own_terms(plan) == "battery toolquest"


def test_the_packages_terms_are_nobodys_own(owa, place):
    assert owa("run --battery demo --agent noop --out x --plan-only").code == 0
    assert own_terms(read_plan(RunLayout(place / "x"))) == ""
