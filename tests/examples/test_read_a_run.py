"""The notebook in examples/ runs as it stands, and its figures are the report's."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from owa_bench.reports import composition

SCRIPT = Path(__file__).parents[2] / "examples" / "read_a_run.py"


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path):
    pytest.importorskip("pandas")
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = composition.score(tmp_path / "run")
    counted = sum(verdict.counted for verdict in verdicts.values())
    assert re.search(rf"^{counted} episodes in ", done.stdout, re.M)
    assert re.search(r"^quality all  -0\.\d+", done.stdout, re.M)  # drift undoes `fixed`
    assert f"{counted} attempts, open" in done.stdout
    assert (tmp_path / "run" / "view" / "index.html").is_file()
