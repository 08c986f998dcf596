"""The ceremony of examples/ceremony.sh, held in a folder with a short battery."""

import os
import subprocess
import sys
from pathlib import Path

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


def hold_ceremony(folder: Path) -> str:
    """Hold the ceremony in `folder`/place and return what was printed."""
    program = folder / "bin" / "owa-bench"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m owa_bench "$@"\n')
    program.chmod(0o755)
    (folder / "short.toml").write_text(BATTERY)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", ROOT / "examples" / "ceremony.sh", "place", "short.toml"],
        cwd=folder,
        env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
