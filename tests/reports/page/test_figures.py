import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import msgspec
import pytest

from owa_bench.records.score import Curve
from owa_bench.reports.page import figures
from tests.builders.report_record import report

VERDICTS = report().judgement.verdicts


def drawings() -> dict[str, str]:
    series = {
        "axis": [figures.ArmSeries(v.arm, i, v.axes) for i, v in enumerate(VERDICTS)],
        "curve": [figures.ArmSeries(v.arm, i, v.curves[0]) for i, v in enumerate(VERDICTS)],
        "frontier": [figures.ArmSeries(v.arm, i, v.frontier) for i, v in enumerate(VERDICTS)],
        "cost": [figures.ArmSeries(v.arm, i, v.cost_micro_usd) for i, v in enumerate(VERDICTS)],
    }
    return {name: getattr(figures, f"{name}_figure")(rows) for name, rows in series.items()}


def test_drawn_twice_is_equal_byte_for_byte_whatever_the_users_settings():
    before = drawings()
    with mpl.rc_context({"font.size": 23, "axes.facecolor": "red", "svg.hashsalt": "x"}):
        assert drawings() == before


@pytest.mark.parametrize("name", ["axis", "curve", "frontier", "cost"])
def test_is_one_svg_element_that_names_itself_and_takes_the_pages_colours(name):
    svg = drawings()[name]
    tree = ET.fromstring(svg)
    assert tree.get("role") == "img"
    assert tree.get("aria-label")
    assert "width" not in tree.attrib
    assert "var(--agent0)" in svg
    assert "var(--agent1)" in svg
    assert "#0101" not in svg
    assert "<metadata" not in svg


def test_what_is_missing_is_said_and_not_drawn_at_zero():
    drawn = drawings()
    assert drawn["axis"].count("no evidence") == 1
    assert drawn["cost"].count("unknown") == 2


def test_a_diagonal_is_drawn_only_where_it_is_asked_for():
    plain = VERDICTS[0].curves[0]
    asked = msgspec.structs.replace(plain, diagonal=True)
    drawn = [figures.curve_figure([figures.ArmSeries("a", 0, c)]) for c in (plain, asked)]
    dashes = [svg.count("stroke-dasharray") for svg in drawn]
    assert dashes[1] == dashes[0] + 1


def test_a_curve_over_episodes_is_drawn_as_far_as_it_goes():
    x = (-4.0, -1.0, 0.0, 6.0)
    low = Curve(
        name="around",
        x_label="episodes",
        y_label="q",
        x=x,
        y=(1.0, 1.0, 0.5, 0.25),
        low=(None,) * 4,
        high=(None,) * 4,
        used=(1,) * 4,
    )
    drawn = figures.curve_figure([figures.ArmSeries("a", 0, low)])
    labels = {float(t.replace("−", "-")) for t in ticks(drawn)}
    assert min(labels) <= -4.0 + 2.0
    assert max(labels) >= 4.0


def ticks(svg: str) -> list[str]:
    """Return the numbers written at an x axis."""
    group = svg[svg.index('id="matplotlib.axis_1"') : svg.index("matplotlib.axis_2")]
    return re.findall(r">([−-]?[\d.]+)</text>", group)
