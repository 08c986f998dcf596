"""Plug-ins of another package are found by their entry points and flagged as such."""

import json
import os
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from owa_bench.scoring import pipeline
from owa_bench.scoring.axis import all_axes
from tests.builders.episodes import episode
from tests.builders.verdicts import verdict

EXAMPLE = Path(__file__).parent
PROBE = """
import json
from owa_bench import discovery
names = {"agents": "parrot", "operators": "api/slow_lane", "axes": "mean_quality"}
print(json.dumps({
    kind: [discovery.get(kind, name).name, discovery.find(kind)[name].package]
    for kind, name in names.items()
} | {"ours": discovery.find("agents")["noop"].package}))
"""


def install(example: Path, target: Path) -> None:
    """Do what an installer does with the example's wheel: files and metadata."""
    project = tomllib.loads((example / "pyproject.toml").read_text())["project"]
    shutil.copytree(example / "owa_example", target / "owa_example")
    info = target / f"owa_example-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    sections = []
    for group, points in project["entry-points"].items():
        lines = "\n".join(f"{name} = {place}" for name, place in points.items())
        sections.append(f"[{group}]\n{lines}\n")
    (info / "entry_points.txt").write_text("\n".join(sections))


def probe(path: Path, code: str = PROBE) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(path)}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("target")
    install(EXAMPLE, target)
    return target


def test_found_and_flagged_as_third_party(installed: Path) -> None:
    found = probe(installed)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout) == {
        "agents": ["parrot", "owa-example"],
        "operators": ["slow_lane", "owa-example"],
        "axes": ["mean_quality", "owa-example"],
        "ours": "",
    }


def test_the_plan_and_so_the_report_names_the_package_of_an_operator(installed):
    """An installed operator changes every nested drift of its domain."""
    code = (
        "import json; from owa_bench.runs.store.directory import environment;"
        "print(json.dumps(environment()))"
    )
    assert json.loads(probe(installed, code).stdout).count(["owa-example", "1.0"]) == 1


def test_gone_when_not_installed(tmp_path: Path) -> None:
    found = probe(tmp_path)
    assert found.returncode != 0
    assert "No agent is called `parrot`" in found.stderr


def test_its_axis_is_estimated_beside_those_of_the_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    source = EXAMPLE / "owa_example" / "mean_quality.py"
    axis = runpy.run_path(str(source))["AXIS"]
    axes = (*all_axes(), axis)
    monkeypatch.setattr(pipeline, "all_axes", lambda: axes)
    traces = [episode(index=k, pair=f"p{k}", q_state=float(k < 3), stated=None) for k in range(4)]
    score = next(s for s in verdict(traces).axes if s.symbol == "Q")
    assert score.name == "mean_quality"
    assert score.value == pytest.approx(0.9 * 0.75 + 0.1 * 0.75)
    assert score.tasks_like_these.low is not None
