"""Sign files: every cell has a sign, every knob an agent that can use it."""

import re

import pytest

from owa_bench import discovery
from owa_bench.agents.solvers.handicaps import KNOBS, Handicaps, read_handicaps
from owa_bench.errors import ProtocolError
from owa_bench.hosting.spec import load_agent
from owa_bench.records.validation import (
    AXES,
    arm_of,
    crossed_arms,
    default_signs,
    knob_arms,
    load_signs,
)
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.validation import agent_spec, validation_arms

TEXT = default_signs().decode()
DRAWS = (Draw(name="toolquest"),)


def test_nine_knobs_by_nine_axes_are_all_declared():
    design = load_signs(default_signs())
    assert [knob.name for knob in design.knobs] == [
        *("half_life", "depth", "tools", "calibration", "asks", "calls", "crew"),
        *("revisions", "families_off"),
    ]
    assert {knob.axis for knob in design.knobs} == set(AXES)
    for knob in design.knobs:
        assert set(knob.signs) == set(AXES)
        assert knob.axis == KNOBS[knob.name].axis
        assert knob.signs[knob.axis] == "-"


def test_every_agent_takes_its_knobs_and_first_doses_limit_nothing():
    design = load_signs(default_signs())
    for arm in validation_arms(design):
        handle = load_agent(agent_spec(arm, DRAWS))
        assert handle.name == arm.name
    for knob in design.knobs:
        card = discovery.get("agents", knob.agent)
        assert card.options[knob.name] == KNOBS[knob.name].about
        first = "" if knob.name == "families_off" else knob.doses[0]
        assert read_handicaps({knob.name: first}) == Handicaps()
        arms = knob_arms(knob)
        assert arms[0] == arm_of(knob.agent, [])
        assert len({arm.name for arm in arms}) == len(knob.doses)


def test_the_crossed_design_has_twenty_variants_and_shares_arms_with_the_knobs():
    design = load_signs(default_signs())
    arms = {arm for row in crossed_arms(design.crossed) for arm in row}
    assert len(arms) >= 20
    depth = next(knob for knob in design.knobs if knob.name == "depth")
    assert set(knob_arms(depth)) <= arms
    names = [arm.name for arm in validation_arms(design)]
    assert len(names) == len(set(names))
    assert set(design.agents.names) <= set(names)
    assert len(design.agents.names) == 8


def test_families_go_off_by_name_and_a_greater_share_holds_the_smaller():
    off = [
        set(load_agent(agent_spec(arm, DRAWS)).options["families_off"].split(","))
        for dose in ("0.25", "0.5")
        for arm in [arm_of("agentic", [("families_off", dose, "0")])]
    ]
    families = set(discovery.get("suites", "toolquest").card.families)
    assert [len(names) for names in off] == [2, 4]
    assert off[0] < off[1] <= families


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('M = "-", T = "0"', 'T = "0"', r"knobs.0.signs` .* lacks M"),
        ('"$" = "0" }', '"$" = "0", E = "0" }', r"knobs.0.signs` must hold A, G, P"),
        ('M = "-"', 'M = "0"', r'knobs.0.signs` must be "-" on .* own axis M'),
        ('M = "-"', 'M = "+"', r"knobs.0.signs.M"),
        ('doses = ["none", "8", "2", "1"]', 'doses = ["none"]', r"knobs.0.doses"),
        ('name = "crew"', 'name = "calls"', r"knobs.name` must name each once"),
        ("margin = 0.10", "margin = 0.0", r"numbers.margin"),
        ("margin = 0.10", "margins = 0.10", r"numbers"),
    ],
)
def test_a_wrong_sign_file_is_refused_by_field(old, new, message):
    broken = TEXT.replace(old, new, 1)
    assert broken != TEXT
    with pytest.raises(ProtocolError, match=message):
        load_signs(broken.encode(), "mine.toml")
    with pytest.raises(ProtocolError, match=re.escape("mine.toml")):
        load_signs(broken.encode(), "mine.toml")
