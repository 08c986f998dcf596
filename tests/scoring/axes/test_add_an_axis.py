"""docs/add-an-axis.md followed literally: installed, played, reported, verified."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from owa_bench.errors import UsageError
from owa_bench.scoring.axis import Axis, checked_axes
from tests.builders.plugin_package import check_types, code_blocks, install, owa

PAGE = Path(__file__).parents[3] / "docs" / "add-an-axis.md"


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    [code] = code_blocks(PAGE)
    [table] = code_blocks(PAGE, "toml")
    points = tomllib.loads(table)["project"]["entry-points"]
    files = {"my_package/__init__.py": "", "my_package/help.py": code}
    return install(tmp_path_factory.mktemp("stranger"), "my-package", files, points)


@pytest.fixture(scope="module")
def run(env, tmp_path_factory):
    """Return the folder of the page's own run, reported."""
    home = tmp_path_factory.mktemp("runs")
    commands = re.findall(r"^    owa-bench (.+)$", PAGE.read_text(), re.M)
    assert [command.split()[0] for command in commands] == ["run", "report"]
    for command in commands:
        said = owa(env, *command.replace("runs/", f"{home}/").split())
        assert said.returncode == 0, said.stdout + said.stderr
    return home / "help"


@pytest.mark.slow
def test_the_axis_stands_in_the_report_and_on_the_page(run):
    report = json.loads((run / "report.json").read_bytes())
    [verdict] = report["judgement"]["verdicts"]
    axis = next(axis for axis in verdict["axes"] if axis["symbol"] == "H")
    assert (axis["name"], axis["raw"], axis["value"]) == ("help", 0.0, 0.0)
    assert axis["details"]["beside"]["finished"]["value"] == 1.0
    assert "axis help comes from package my-package" in verdict["warnings"]
    assert not any(gate["gate"] == "H" for gate in verdict["gates"])
    assert "<b>H</b> help</th>" in (run / "report.html").read_text()


@pytest.mark.slow
def test_the_run_is_verified_and_its_figures_recomputed(env, run):
    for command in ("verify", "recompute"):
        said = owa(env, command, run)
        assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.slow
def test_the_axis_of_the_page_passes_mypy_in_its_strict_mode(env):
    said = check_types(env, "my_package/help.py")
    assert said.returncode == 0, said.stdout


def test_a_taken_symbol_is_refused_by_name():
    axis = Axis("A", "another", lambda x: x, columns={"x": lambda s: s.table.q})
    with pytest.raises(UsageError, match="`A` of axis `another` from package other"):
        checked_axes([(axis, "other")])


def test_a_taken_name_is_refused_by_name():
    axis = Axis("X", "autonomy", lambda x: x, columns={"x": lambda s: s.table.q})
    with pytest.raises(UsageError, match="name `autonomy` of axis"):
        checked_axes([(axis, "other")])


def test_a_plug_in_that_is_no_axis_is_refused_by_name():
    with pytest.raises(UsageError, match="got a str from package other"):
        checked_axes([("AXIS", "other")])


def test_an_axis_without_columns_is_refused():
    with pytest.raises(UsageError, match="must declare `columns`"):
        Axis("X", "empty", lambda x: x)
