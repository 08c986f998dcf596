"""docs/add-an-agent.md followed literally: as a file, and installed as a package."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from owa_bench.runs.plan import draws
from tests.builders.plugin_package import code_blocks, install, owa

PAGE = Path(__file__).parents[2] / "docs" / "add-an-agent.md"


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    [table] = code_blocks(PAGE, "toml")
    points = tomllib.loads(table)["project"]["entry-points"]
    files = {"my_agent.py": code_blocks(PAGE)[0]}
    return install(tmp_path_factory.mktemp("stranger"), "my-package", files, points)


@pytest.mark.part(4)
@pytest.mark.slow
def test_the_commands_of_the_page_play_and_verify(env, tmp_path):
    (tmp_path / "my_agent.py").write_text(code_blocks(PAGE)[0])
    commands = re.findall(r"^    owa-bench (.+)$", PAGE.read_text(), re.M)
    places = (("runs/", f"{tmp_path}/"), ("my_agent.py", f"{tmp_path}/my_agent.py"))
    for page, here in places:
        commands = [command.replace(page, here) for command in commands]
    results = [owa(env, *command.split()) for command in commands]
    verbs = [command.split()[0] for command in commands]
    assert verbs == ["run", "report", "verify", "list", "run"]
    assert [result.returncode for result in results] == [0] * 5, results
    assert "my-package" in results[3].stdout


@pytest.mark.slow
def test_the_agent_of_the_page_survives_without_help(env, tmp_path):
    [drawn] = draws.load_battery("demo").suite
    (tmp_path / "my_agent.py").write_text(code_blocks(PAGE)[0])
    families = f"--family {','.join(drawn.families)} --tier 1 --delta 0,1"
    flags = f"--suite {drawn.name} {families} --interventions 0 --json"
    agent, out = tmp_path / "my_agent.py", tmp_path / "run"
    said = owa(env, "run", *flags.split(), "--agent", agent, "--out", out)
    assert said.returncode == 0, said.stderr
    [row] = json.loads(said.stdout)["played"]
    assert row["outcomes"] == {"finished": 2 * len(drawn.families)}


def test_the_contract_test_of_the_page_passes(env):
    result = subprocess.run(
        [sys.executable, "-c", code_blocks(PAGE)[1]],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
