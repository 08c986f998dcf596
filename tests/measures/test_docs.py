"""The code blocks of docs/companions.md run."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "companions.md"


def test_code_blocks_run():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.S | re.M)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})
