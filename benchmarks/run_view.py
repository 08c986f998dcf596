"""How long the site of a large run takes to open, and how heavy it is beside the run.

Plays ToolQuest once (2,048 episodes with transcripts; `--small`: 8), writes the run's site,
opens its list and an episode in a browser from the disk. With --pictures it writes the
pictures of docs/read-a-run.md instead, of a run of each suite that has something to look at.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import speed
from report_pages import ROOT, SCREEN, browser, owa, picture

from owa_bench.reports.page.site import write_site

OPENINGS = 5
SMALL = ("--family", "restock", "--tier", "1", "--delta", "0,1", "--episodes", "2")
LARGE = ("--tier", "1,2", "--delta", "0,1", "--episodes", "32")  # of 8 families
AGENTS = ("--agent", "agentic", "--agent", "fixed")
SHOWN = {
    "toolquest": (
        *("--suite", "toolquest", "--family", "restock,reconcile", "--tier", "1"),
        *("--delta", "0,1", "--episodes", "2", *AGENTS),
    ),
    "changesurf": ("--battery", "web_demo", "--agent", "lexicon"),
    "cartpole3d": (
        *("--suite", "cartpole3d", "--family", "table1/3", "--tier", "2"),
        *("--delta", "1", "--episodes", "1", "--agent", "pd"),
    ),
    "recall": (
        *("--suite", "recall", "--family", "retrieval", "--tier", "1"),
        *("--episodes", "1", "--agent", "exact_store"),
    ),
    "multicrew": (
        *("--suite", "multicrew", "--family", "schedule", "--tier", "1"),
        *("--delta", "1", "--episodes", "1", "--agent", "fifo"),
    ),
    "selfrev": (
        *("--suite", "selfrev", "--family", "memory", "--tier", "1"),
        *("--delta", "0", "--episodes", "1", "--agent", "revise_bonferroni"),
    ),
    "projforge_fast": (
        *("--suite", "projforge_fast", "--family", "billing", "--tier", "1"),
        *("--delta", "1", "--episodes", "1", "--agent", "codemod"),
    ),
}


def played(folder: Path, *, small: bool) -> Path:
    """Play the run and return its folder."""
    draw = ("--suite", "toolquest", *(SMALL if small else LARGE), "--interventions", "0")
    owa(folder, "run", *draw, *AGENTS, "--out", "large")
    return folder / "large"


def opening(found: Any, page: Path) -> tuple[float, float]:
    """Return the seconds in which a browser opens the list and an episode."""
    window = found.new_page()
    began = time.perf_counter()
    window.goto(page.as_uri())
    window.wait_for_selector("html[data-ready]")
    listed = time.perf_counter() - began
    last = window.evaluate("order[order.length - 1]")
    began = time.perf_counter()
    window.goto(f"{page.as_uri()}#{last}")
    window.wait_for_selector(f"html[data-ready='#{last}']")
    opened = time.perf_counter() - began
    window.close()
    return listed, opened


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield the site's weight and times, or write the pictures."""
    with tempfile.TemporaryDirectory() as scratch, browser() as found:
        folder = Path(scratch)
        if given.pictures:
            show_suites(found, folder)
            return
        run = given.run or played(folder, small=given.small)
        began = time.perf_counter()
        made = write_site(run, folder / "site")
        wrote = time.perf_counter() - began
        openings = [opening(found, made.page) for _ in range(2 if given.small else OPENINGS)]
    listed, opened = map(min, zip(*openings, strict=True))
    figures = {
        "site written s": wrote,
        "list opens s": listed,
        "episode opens s": opened,
        "bytes": made.size,
        "x run": made.size / made.run_size,
    }
    yield speed.Table("site of a run", [speed.Row(f"{made.attempts:,} attempts", figures)])


def show_suites(found: Any, folder: Path) -> None:
    """Play a run of each suite and write pictures of its list and of an episode.

    Args:
        found: The browser.
        folder: Where runs go.
    """
    for name, words in SHOWN.items():
        owa(folder, "run", *words, "--out", name)
        made = write_site(folder / name, folder / f"{name}-site")
        window = found.new_page(viewport={"width": 1280, "height": SCREEN})
        for label, place in PLACES[name].items():
            window.goto(f"{made.page.as_uri()}#{place}")
            window.wait_for_selector(f"html[data-ready='#{place}']")
            window.wait_for_timeout(500)
            target = ROOT / "docs" / "pictures" / f"view_{label}.png"
            target.write_bytes(picture(window))
            print(f"{target.name}: {target.stat().st_size // 1000} kB")
        window.close()


# Label of the picture: the place in the site.
PLACES = {
    "toolquest": {"list": "", "toolquest": "000004.0/3"},
    "changesurf": {"changesurf": "000000.0/6"},
    "cartpole3d": {"cartpole3d": "000000.0"},
    "recall": {"recall": "000000.0"},
    "multicrew": {"multicrew": "000000.0/8"},
    "selfrev": {"selfrev": "000000.0/4"},
    "projforge_fast": {"projforge_fast": "000000.0/12"},
}


if __name__ == "__main__":
    arguments = speed.parser(__doc__)
    arguments.add_argument("--run", type=Path, help="a run that was played already")
    arguments.add_argument("--pictures", action="store_true")
    speed.main(tables, arguments)
