"""A project whose libraries uv installs: the same verdicts, the same replay root."""

import shutil

import pytest

from owa_bench.envs.projforge import workshop
from owa_bench.sandbox import views
from tests.envs.projforge.test_forge_tools import conflict
from tests.envs.projforge.test_interrupted_project import RUN, owa, root

pytestmark = [pytest.mark.project, pytest.mark.slow]
pytest.importorskip("uv")
WITH_UV = """
import runpy, sys
from owa_bench.envs.projforge import workshop
workshop.INSTALLER = "uv"
installed = workshop.Workshop._installed
def shown(*given):
    print("installed by", workshop.INSTALLER)
    return installed(*given)
workshop.Workshop._installed = shown
sys.argv[0] = "owa-bench"
runpy.run_module("owa_bench", run_name="__main__")
"""


def verdicts(project, change):
    """Return what installing the right pins, an old one and an unknown one gives."""
    forge = project(days=3, changes={1: change})
    shop = forge.session._workshop
    lines = forge.call("read", path=forge.state.world.lock).splitlines()
    pins = [line for line in lines if "==" in line]
    name, found = pins[0].partition("==")[0], []
    for day in (0, 1):
        for chosen in (pins, [*pins, "nothing==1.0.0"], [*pins[1:], f"{name}==9.9"]):
            try:
                site = shop._installed(forge.state.world, chosen)
            except workshop.JobFailure:
                found.append((day, "refused"))
                continue
            shop._environments[f"{day} {chosen}"] = site
            folder = shop._folder / site.lstrip("/")
            code = {p.parent.name: p.read_text() for p in folder.glob("*/__init__.py")}
            found.append((day, code))
        forge.call("next_day")
    return found


def test_both_installers_say_the_same_of_good_bad_and_conflicting_pins(project, monkeypatch):
    by_pip = verdicts(project, conflict)
    monkeypatch.setattr(workshop, "INSTALLER", "uv")
    assert verdicts(project, conflict) == by_pip
    assert len(by_pip[0][1]) == 3
    assert [code for _, code in by_pip[1:]] == ["refused"] * 5


@pytest.mark.part(4)
def test_a_project_by_uv_has_the_root_of_one_by_pip(tmp_path):
    if fault := views.bubblewrap_fault():
        pytest.skip(f"bubblewrap: {fault}")
    first, second = tmp_path / "pip", tmp_path / "uv"
    planned = owa(*RUN, "--plan-only", "--out", first)
    assert planned.returncode == 0, planned.stderr
    shutil.copytree(first, second)  # one plan draws one project
    by_uv = owa("--resume", "--out", second, program=("-c", WITH_UV))
    assert "installed by uv" in by_uv.stdout
    assert root(by_uv) == root(owa("--resume", "--out", first))
