import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "golden.py"


@pytest.mark.parametrize("more", [[], ["--masked"]])
def test_worlds_have_their_golden_digests(more):
    checked = subprocess.run(
        [sys.executable, SCRIPT, "--check", *more],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert " 0 differ" in checked.stdout
