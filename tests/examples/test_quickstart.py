"""docs/quickstart.md: what its commands and its Python print is what the page says."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.M | re.S)


def commands():
    """Return (arguments, expected output) of every command on the page, in order."""
    found = []
    for block in CONSOLE.findall(PAGE.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, expected = part.split("\n", 1)
            found.append((shlex.split(line), expected))
    return found


@pytest.mark.part(4)
@pytest.mark.slow
def test_the_commands_print_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.setenv("OWA_BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")
    assert len(commands()) == 6
    for words, expected in commands():
        assert words[0] == "owa-bench"
        done = subprocess.run(
            [sys.executable, "-m", "owa_bench", *words[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert doctest.OutputChecker().check_output(expected, done.stdout, FLAGS), (
            f"{words}\n{done.stdout}\nis not\n{expected}"
        )


def test_the_python_prints_what_the_page_says():
    text = PAGE.read_text().split("```python\n")[1].split("```")[0]
    test = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0
