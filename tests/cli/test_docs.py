"""docs/cli.md: every command and every Python call in it runs, in its order."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


@pytest.mark.part(4)
@pytest.mark.slow
def test_the_page_runs_from_top_to_bottom(owa, place):
    (place / "runs").mkdir()
    names = {}
    pattern = re.compile(r"^```python\n(.*?)^```|^    owa-bench (.*?)$", re.S | re.M)
    found = pattern.findall(PAGE.read_text())
    assert len(found) > 20
    for code, arguments in found:
        if code:
            exec(compile(code, str(PAGE), "exec"), names)
        else:
            said = owa(arguments)
            assert said.code == 0, (arguments, said)


def test_every_verb_has_a_section(owa):
    verbs = re.findall(r"^│ (\w+) ", owa("--help").out, re.M)
    sections = re.findall(r"^## (\w+)$", PAGE.read_text(), re.M)
    assert sorted(verbs) == sorted(sections)
