"""The page on robots: every block runs, with the mock in a robot's place."""

import re
from pathlib import Path

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("numba")

PAGE = Path(__file__).parents[2] / "docs" / "add-a-robot.md"


def test_every_block_of_the_page_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    scope = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), scope)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("ok ") for line in lines) == 9
    assert lines[-1].startswith(("done", "too late"))
