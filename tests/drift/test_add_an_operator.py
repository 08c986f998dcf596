"""docs/add-an-operator.md followed literally: installed, listed, played, reported."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.builders.plugin_package import check_types, code_blocks, install, owa

PAGE = Path(__file__).parents[2] / "docs" / "add-an-operator.md"


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    code, _ = code_blocks(PAGE)
    [table] = code_blocks(PAGE, "toml")
    points = tomllib.loads(table)["project"]["entry-points"]
    files = {"my_package/__init__.py": "", "my_package/slow_lane.py": code}
    return install(tmp_path_factory.mktemp("stranger"), "my-package", files, points)


@pytest.mark.part(4)
@pytest.mark.slow
def test_the_page_can_be_followed_literally(env, tmp_path):
    commands = re.findall(r"^    owa-bench (.+)$", PAGE.read_text(), re.M)
    assert [command.split()[0] for command in commands] == ["list", "run", "report"]
    said = [owa(env, *command.replace("runs/", f"{tmp_path}/").split()) for command in commands]
    assert [one.returncode for one in said] == [0, 0, 0], said
    assert "api/slow_lane" in said[0].stdout
    listed = json.loads(owa(env, "list", "operators", "--json").stdout)["operators"]
    [row] = [row for row in listed if row["operator"] == "api/slow_lane"]
    assert row["about"].startswith("Stretch one vendor's rate window")
    assert row["from"] == "my-package"
    plan = json.loads((tmp_path / "slow" / "plan.json").read_bytes())
    assert "single:api/slow_lane" in json.dumps(plan)


@pytest.mark.part(4)
@pytest.mark.slow
def test_the_page_passes_strict_type_checking(env):
    pytest.importorskip("mypy")
    folder = Path(env["PYTHONPATH"])
    said = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(folder / "my_package")],
        cwd=PAGE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout


def test_the_contract_test_of_the_page_passes(env):
    command = [sys.executable, "-c", code_blocks(PAGE)[1]]
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr


@pytest.mark.slow
def test_the_operator_of_the_page_passes_mypy_in_its_strict_mode(env):
    said = check_types(env, "my_package/slow_lane.py")
    assert said.returncode == 0, said.stdout
