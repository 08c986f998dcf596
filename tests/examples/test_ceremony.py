"""The ceremony: submitter, verifier and reader, to a report at V4."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BATTERY = """\
name = "short"
underpowered = true

[[suite]]
name = "toolquest"
families = ["restock"]
tiers = [1]
interventions = [0, "protocol"]
"""


@pytest.mark.slow
def test_three_parties_reach_v4(tmp_path):
    program = tmp_path / "bin" / "owa-bench"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m owa_bench "$@"\n')
    program.chmod(0o755)
    (tmp_path / "short.toml").write_text(BATTERY)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", ROOT / "examples" / "ceremony.sh", "place", "short.toml"],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "V4 now, V4 when signed" in done.stdout
    assert "every seed is the master's" in done.stdout
