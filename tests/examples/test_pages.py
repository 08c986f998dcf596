"""The pages for people: the index names all of them, and every link leads somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "docs" / "README.md"
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "docs/tables/*.md", "owa_bench/**/*.md")
    for path in ROOT.glob(pattern)
)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def links(page):
    """Return what a page links to in this repository, as paths."""
    targets = LINK.findall(page.read_text())
    return [page.parent / target for target in targets if "://" not in target]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page):
    assert [str(path) for path in links(page) if not path.exists()] == []


def test_the_index_names_every_page_and_table():
    named = {path.resolve() for path in links(INDEX)}
    pages = {*ROOT.glob("docs/*.md"), *ROOT.glob("docs/tables/*.md")} - {INDEX}
    assert sorted(str(page) for page in pages - named) == []


def test_the_readme_leads_to_the_index():
    assert INDEX in links(ROOT / "README.md")


def test_figures_that_a_claim_points_to_are_there():
    """A page that lost its section in a merge would leave the claim without figures."""
    rows = (ROOT / "docs" / "what-must-hold.md").read_text().splitlines()
    lost = []
    for row in rows:
        claimed = re.search(r"`python (benchmarks/\w+\.py).*?` -> \[(.+?)\]", row)
        if claimed:
            script, page = claimed.groups()
            if script not in (ROOT / "docs" / page).read_text():
                lost.append(f"{page} has nothing of {script}")
    assert lost == []
