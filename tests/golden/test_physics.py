import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.physics

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "golden_physics.py"


def checked(script, *more):
    return subprocess.run(
        [sys.executable, script, "--check", *more],
        capture_output=True,
        text=True,
        check=False,
        cwd=SCRIPT.parent.parent,
    )


@pytest.mark.parametrize("more", [[], pytest.param(["--masked"], marks=pytest.mark.slow)])
def test_worlds_starts_and_trajectories_have_their_golden_digests(more):
    pytest.importorskip("pybullet")
    found = checked(SCRIPT, *more)
    assert found.returncode == 0, found.stdout + found.stderr
    if "not compared" in found.stdout:
        pytest.skip(found.stdout.splitlines()[-1])
    assert "510 digests hold, 0 differ" in found.stdout


@pytest.mark.slow
def test_recorded_episodes_of_the_released_generator_go_as_they_went():
    pytest.importorskip("pybullet")
    found = checked(SCRIPT.with_name("cartpole3d_parity.py"))
    assert found.returncode == 0, found.stdout + found.stderr


def test_levels_of_one_spec_lead_to_trajectories_of_their_own():
    """A digest that did not see its level would be that of level 0."""
    kept = json.loads((Path(__file__).parent / "physics.json").read_text())
    for spec in ("table1", "released"):
        hard = [kept["trajectories"][f"{spec}/{level}/3"] for level in range(17)]
        assert len(set(hard)) == 17
