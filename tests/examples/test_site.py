"""The docs site: every link and heading is there, nothing is fetched from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FETCHED = re.compile(
    r'<(?:script|img|iframe)[^>]+src="https?:|<link[^>]+rel="stylesheet"[^>]+https?:'
    r"|@import|url\([\"']?https?:"
)

pytestmark = pytest.mark.slow


def build(folder, config):
    pytest.importorskip("material", reason="pip install 'owa_bench[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(
        [*command, "-f", str(config), "--site-dir", str(folder / "site")],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_the_site_builds_and_fetches_nothing(tmp_path):
    done = build(tmp_path, ROOT / "mkdocs.yml")
    assert done.returncode == 0, done.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))
    styles = sorted((tmp_path / "site").rglob("*.css"))
    fetched = {p.name: FETCHED.findall(p.read_text()) for p in (*pages, *styles)}
    assert {name: what for name, what in fetched.items() if what} == {}
    drawn = [p.name for p in pages if 'class="mermaid"' in p.read_text()]
    assert drawn == [], "the theme would fetch what draws them"


def test_a_lost_page_or_heading_fails_the_build(tmp_path):
    pages = tmp_path / "docs"
    pages.mkdir()
    (pages / "README.md").write_text("[a](none.md) [b](#nowhere)\n")
    text = (ROOT / "mkdocs.yml").read_text()
    rest = text[: text.index("nav:\n  - Pages")].replace("hooks: [", "# [")
    (tmp_path / "mkdocs.yml").write_text(rest)
    done = build(tmp_path, tmp_path / "mkdocs.yml")
    assert done.returncode == 1
    assert "none.md" in done.stderr
    assert "#nowhere" in done.stderr
