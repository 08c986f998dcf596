"""`owa-bench validate`: a real run of two knobs at two doses, its matrix and page."""

import json

import pytest

from owa_bench.records.validation import AXES

BATTERY = """\
name = "tiny"
gives_level = false

[[suite]]
name = "toolquest"
families = ["restock", "reconcile"]
tiers = [3]
deltas = [0.0]
episodes = 2
interventions = [0, "protocol"]
"""
PLAY = "validate --battery tiny.toml --knob calibration,asks --ends --in-process"


@pytest.fixture
def tiny(place):
    (place / "tiny.toml").write_text(BATTERY)


def cells(row):
    return {cell["axis"]: cell for cell in row["cells"]}


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_two_knobs_at_two_doses(owa, place):
    said = owa(f"{PLAY} --out v --json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert [arm["arm"] for arm in found["arms"]] == [
        *("agentic", "agentic-calibration-0", "agentic-asks-4")
    ]
    assert [arm["episodes"] for arm in found["arms"]] == [8, 8, 8]
    rows = {row["name"]: row for row in found["knobs"]}
    assert len(rows) == len(AXES) == 9
    calibration = cells(rows["calibration"])
    for axis in "AGP":
        assert calibration[axis]["effect"]["value"] == 0.0
        assert calibration[axis]["tasks_needed"] == 29
        assert calibration[axis]["verdict"] == "not shown"  # 4 tasks are too few
    asks = cells(rows["asks"])
    first, last = (reading["value"] for reading in asks["A"]["doses"])
    assert last < 0.5 < first  # four questions, granted under the protocol's budget
    assert asks["A"]["effect"]["value"] == pytest.approx(last - first, abs=1e-6)
    assert asks["P"]["effect"]["value"] == asks["G"]["effect"]["value"] == 0.0
    assert rows["asks"]["verdict"] == "as declared"
    assert rows["asks"]["tasks"] == rows["calibration"]["tasks"] == 4
    for name in ("depth", "crew", "half_life"):
        assert rows[name]["verdict"] == "NO EVIDENCE"
        assert rows[name]["reason"] == "this knob was not played"
    missing = dict(found["missing"])
    assert {"M", "S", "R"} <= set(missing)
    assert json.loads((place / "v/validation.json").read_text())["knobs"]
    page = (place / "v/validation.html").read_text()
    assert page.count("<svg") == 3
    assert "NO EVIDENCE" in page

    again = owa("validate --out v --resume")
    assert again.code == 0, again.err
    assert "0 of 4" not in again.out
    assert "24 of 24 episodes complete" in again.err
    assert "effect of each knob on each axis (4 tasks)" in again.out
    assert (place / "v/validation.html").read_text() == page
    assert owa("verify v").code == 0


@pytest.mark.usefixtures("tiny")
def test_wrong_use_names_flag_value_and_rule(owa):
    for words, message in (
        ("--knob sleep", "`--knob` must be one of"),
        ("--suite changesurf", "`--suite` must be one of toolquest"),
        ("--episodes 0", "`--episodes` must be at least 1, got 0"),
        ("--signs no.toml", "`--signs` must be a file, got 'no.toml'"),
        ("--resume --ends", "--ends shapes a plan"),
    ):
        said = owa(f"validate --battery tiny.toml --out x {words}")
        assert said.code == 2
        assert message in said.err or "shapes a plan" in said.err


@pytest.mark.usefixtures("tiny")
def test_a_dry_run_counts_every_arm(owa, place):
    said = owa("validate --battery tiny.toml --out x --dry-run --json")
    found = json.loads(said.out)
    assert found["by_arm"]["agentic"] == 8
    assert len(found["by_arm"]) == 44
    assert not (place / "x").exists()
