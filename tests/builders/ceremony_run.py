"""The ceremony of examples/ceremony.sh, held in a folder over a small pool of tasks."""

import os
import subprocess
import sys
from pathlib import Path

from tests.builders.placements import QUICK, pool_file

ROOT = Path(__file__).parents[2]
# `owa-bench`, but that `place` plays the small pool.
PROGRAM = """\
#!{python}
from owa_bench.cli import placing
from owa_bench.cli.app import main

placing.BATTERY = "{pool}"
main()
"""


def hold_ceremony(folder: Path) -> str:
    """Hold the ceremony in `folder`/place and return what was printed."""
    program = folder / "bin" / "owa-bench"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable, pool=pool_file(folder, QUICK)))
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", ROOT / "examples" / "ceremony.sh", "place"],
        cwd=folder,
        env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
