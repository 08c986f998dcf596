"""docs/add-a-suite.md followed literally: installed, listed, played, verified."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.builders.plugin_package import code_blocks, install, owa

PAGE = Path(__file__).parents[2] / "docs" / "add-a-suite.md"


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    [table] = code_blocks(PAGE, "toml")
    points = tomllib.loads(table)["project"]["entry-points"]
    files = {"my_package/__init__.py": "", "my_package/vault.py": code_blocks(PAGE)[0]}
    return install(tmp_path_factory.mktemp("stranger"), "my-package", files, points)


@pytest.mark.part(4)
@pytest.mark.slow
def test_the_commands_of_the_page_play_and_verify(env, tmp_path):
    commands = re.findall(r"^    owa-bench (.+)$", PAGE.read_text(), re.M)
    words = [command.replace("runs/", f"{tmp_path}/").split() for command in commands]
    assert [line[0] for line in words] == ["list", "run", "report", "verify"]
    results = [owa(env, *line) for line in words]
    assert [result.returncode for result in results] == [0, 0, 0, 0], results
    assert "vault" in results[0].stdout
    assert "my-package" in results[0].stdout
    plan = json.loads((tmp_path / "vault" / "plan.json").read_bytes())
    assert plan["suites"][0]["name"] == "vault"
    drifted = [entry["delta"] for entry in plan["entries"]]
    assert drifted == [1.0] * 4  # two instances, without help and with priced help


def test_the_contract_test_of_the_page_passes(env):
    result = subprocess.run(
        [sys.executable, "-c", code_blocks(PAGE)[1]],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
