"""The pages for people: the index names all of them, and every link leads somewhere."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import ways

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


TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_a_page_names_exist(page):
    lost = []
    for path, name in TEST.findall(page.read_text()):
        file = ROOT / path
        if not file.exists() or (f"def {name}(" not in file.read_text() and name):
            lost.append(f"{path}::{name}")
    assert lost == []


OF_THE_AGENT = "hosting/fork_template.py"  # runs in the agent's process, not under the profiler
ASIDE = {  # on the entry's way, and no place to look for it
    "runs/plan/budget.py",  # its sink counts
    "runs/store/redaction.py",  # the recorder's
    "runs/play/failures.py",
    "runs/store/files.py",
    "runs/plan/witness.py",
}


def test_each_way_enters_the_files_of_the_page_in_order():
    """One episode is played, recorded and reported under a profiler."""
    text = (ROOT / "docs" / "how-it-flows.md").read_text()
    pages = [
        [name.removeprefix("owa_bench/") for name in re.findall(r"^\d+\. `(.*?)`", way, re.M)]
        for way in re.split(r"^## ", text, flags=re.M)[1:]
    ]
    assert len(pages) == 4
    measured = ways.measured(reported=True)
    for files in pages:
        entered = iter(measured.entered)
        for name in files:
            assert (ROOT / "owa_bench" / name).is_file()
            assert name == OF_THE_AGENT or name in entered, f"{name} is not entered in this order"
    crossed = {module for module, _ in measured.functions if module.startswith("runs/")}
    assert crossed - ASIDE <= set(pages[0]), "files that the page leaves out"


def test_the_map_is_of_these_imports_and_its_files_exist():
    script = ROOT / "benchmarks" / "package_map.py"
    checked = subprocess.run([sys.executable, script, "--check"], cwd=ROOT, check=False)
    assert checked.returncode == 0, "run `make map`"
    changes = (ROOT / "docs" / "map.md").read_text().split("## Where do I change")[1]
    rows = re.findall(r"^\| (?!you want|---)(.*?) \| (.*?) \|", changes, re.M)
    assert len(rows) == 14
    for _, files in rows:
        for name in re.findall(r"`(owa_bench/[\w/.]*)", files):
            assert (ROOT / name).exists(), name


def test_every_dependency_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    core = page.split("## Core")[1].split("## Extras")[0]
    named = re.findall(r"^\| ([\w-]+) \|", core, re.M)
    wanted = [re.split(r"[<>=\[; ]", line)[0] for line in project["dependencies"]]
    assert sorted(set(named) - {"package"}) == sorted(wanted)
