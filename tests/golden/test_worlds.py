import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import golden, golden_command

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "golden.py"


@pytest.mark.parametrize("more", [[], pytest.param(["--masked"], marks=pytest.mark.slow)])
def test_worlds_have_their_golden_digests(more):
    checked = subprocess.run(
        [sys.executable, SCRIPT, "--check", *more], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "568 digests hold, 0 differ" in checked.stdout


def test_a_digest_that_changed_is_named(monkeypatch, capsys):
    kept = json.loads((golden.GOLDEN / "sites.json").read_text())
    name = "changesurf/stay/find/1/0"
    made = kept | {name: ["0", "0"]}
    monkeypatch.setattr(golden, "KEPT", {"changesurf": golden.KEPT["changesurf"]})
    monkeypatch.setattr(golden, "digests", lambda suite: made)
    monkeypatch.setattr(sys, "argv", ["golden.py", "--check"])
    assert golden_command.run("", golden.write, golden.check) == 1
    assert capsys.readouterr().out.splitlines()[0] == f"changed: {name}"
