"""The names at the root: they load when used, and do what the commands do."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import owa_bench
from owa_bench import api
from owa_bench.agents.floors import AGENTS
from owa_bench.errors import UsageError

EXAMPLE = Path(__file__).parents[1] / "examples" / "from_python.py"


def python(*words, **options):
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def test_importing_the_package_loads_neither_half():
    code = "import sys, owa_bench; print([m for m in sys.modules if m.startswith('owa_bench.')])"
    assert python("-c", code).strip() == "['owa_bench.registration']"


def test_every_name_of_the_root_loads_before_and_after_its_sub_packages():
    code = """
import owa_bench, owa_bench.runs, owa_bench.reports
for name in owa_bench.__all__:
    assert callable(getattr(owa_bench, name)), name
import owa_bench.runs.play.batch, owa_bench.reports.statement
assert owa_bench.run.__module__ == owa_bench.report.__module__ == "owa_bench.api"
"""
    assert python("-c", code) == ""


def test_an_agent_of_a_file_is_played_reported_checked_and_compared(tmp_path):
    shutil.copy(EXAMPLE, tmp_path)
    said = python(EXAMPLE.name, cwd=tmp_path).splitlines()
    assert [line.split()[0] for line in said] == ["from_python", "noop", "quality:"]
    assert (tmp_path / "run" / "report.html").is_file()


def test_an_agent_is_named_so_that_its_process_finds_it():
    assert api.spec_of("agentic") == "agentic"
    assert api.spec_of(AGENTS[0]) == AGENTS[0].name
    assert api.spec_of(python) == f"{__name__}:python"


@pytest.mark.parametrize("agent", [lambda observation, info: "", 3, print, object()])
def test_an_agent_that_no_process_can_import_is_refused(agent):
    with pytest.raises(UsageError, match="at the top of a file"):
        api.spec_of(agent)


@pytest.mark.parametrize(
    ("terms", "rule"),
    [
        ({}, "`suite` or `battery`"),
        ({"suite": "toolquest", "battery": "demo"}, "`suite` or `battery`"),
        ({"suite": "toolquest", "workrs": 2}, "did you mean `workers`"),
        ({"suite": "toolquets"}, "did you mean `toolquest`"),
        ({"suite": "toolquest", "tier": 9}, "`suite.tiers` must be one of 1, 2, 3, 4, got 9"),
    ],
)
def test_wrong_terms_are_named_with_the_fix(tmp_path, terms, rule):
    with pytest.raises(UsageError, match=rule):
        owa_bench.run("noop", out=tmp_path / "run", **terms)
    assert not (tmp_path / "run").exists()


def test_a_run_needs_an_agent(tmp_path):
    with pytest.raises(UsageError, match="at least one agent"):
        owa_bench.run(suite="toolquest", out=tmp_path / "run")


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="nothing"):
        owa_bench.nothing  # noqa: B018


def test_an_env_is_made_with_or_without_the_prefix():
    for name in ("ToolQuest-v3", "owa_bench/ToolQuest-v3"):
        env = owa_bench.make(name, tier=1)
        assert env.unwrapped.spec.id == "owa_bench/ToolQuest-v3"
        env.close()
