"""The code of the pages: Python compiles, and commands and options exist."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

from owa_bench.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
GROUP = typer.main.get_command(app)


def code_of(page):
    """Yield language and text of a page's blocks; indented ones count as shell."""
    text = page.read_text()
    yield from BLOCK.findall(text)
    for block in re.findall(r"(?:^    \S.*\n)+", BLOCK.sub("", text), re.M):
        yield "shell", block


def commands_of(page):
    """Yield the words of every `owa-bench` command on a page."""
    for language, text in code_of(page):
        if language in ("shell", "console", "sh", "bash"):
            joined = text.replace("\\\n", " ")
            for line in joined.splitlines():
                for part in re.split(r"&&|\|\|?|;", line):
                    words = part.split("#")[0].split()
                    while words and words[0] in ("$", "./owa"):
                        words.pop(0)
                    if words[:1] == ["owa-bench"]:
                        yield words


def unknown(words):
    """Return what of a command does not exist; "" where all does."""
    command, rest = GROUP, words[1:]
    while rest and hasattr(command, "commands"):
        if rest[0].startswith("-"):
            break
        found = command.get_command(None, rest[0])
        if found is None:
            return f"command {rest[0]}"
        command, rest = found, rest[1:]
    known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    given = {word.split("=")[0] for word in rest if re.match(r"--[a-z-]+(=|$)", word)}
    return ", ".join(sorted(given - known - {"--help"}))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_compiles_and_commands_exist(page):
    for language, text in code_of(page):
        if language == "python" and ">>>" not in text:
            compile(text, str(page), "exec")
    wrong = {shlex.join(words): unknown(words) for words in commands_of(page)}
    assert {line: what for line, what in wrong.items() if what} == {}


def test_the_check_notices_what_does_not_exist():
    assert unknown(["owa-bench", "runn", "--suite", "x"]) == "command runn"
    assert unknown(["owa-bench", "run", "--suit", "x"]) == "--suit"
    assert unknown(["owa-bench", "run", "--suite", "x"]) == ""
    assert sum(1 for page in PAGES for _ in commands_of(page)) > 50


def test_the_workflow_runs_everything_on_every_python():
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert "- run: .ci/run\n" in text
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f'python: ["{oldest["requires-python"][2:]}"' in text
