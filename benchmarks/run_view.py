"""How long the site of a large run takes to open, and how heavy it is beside the run.

Plays ToolQuest once (2,048 episodes with transcripts), writes the run's site, opens its
list and an episode in a browser from the disk. With --pictures it writes the pictures
of docs/read-a-run.md instead, of a run of each suite that has something to look at.
Run: python benchmarks/run_view.py [--run RUN] [--pictures]
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from report_pages import ROOT, SCREEN, browser, owa, picture

from owa_bench.reports.page.site import write_site

EACH = 32  # instances of a family and tier: 8 families, 2 tiers, 2 magnitudes
OPENINGS = 5
DRAW = ("--suite", "toolquest", "--tier", "1,2", "--delta", "0,1")
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


def main() -> int:
    """Measure, or write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, help="a run that was played already")
    parser.add_argument("--pictures", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, browser() as found:
        folder = Path(scratch)
        if chosen.pictures:
            show_suites(found, folder)
        else:
            measure(found, chosen.run or played(folder), folder / "site")
    return 0


def played(folder: Path) -> Path:
    """Play the large run and return its folder."""
    words = (*DRAW, "--episodes", str(EACH), "--interventions", "0", *AGENTS)
    owa(folder, "run", *words, "--out", "large")
    return folder / "large"


def measure(found: Any, run: Path, site: Path) -> None:
    """Print the site's weight and the times to write and to open it.

    Args:
        found: The browser.
        run: The run directory.
        site: Folder of its site.
    """
    began = time.perf_counter()
    made = write_site(run, site)
    wrote = time.perf_counter() - began
    listed, opened = [], []
    for _ in range(OPENINGS):
        window = found.new_page()
        began = time.perf_counter()
        window.goto(f"{made.page.as_uri()}")
        window.wait_for_selector("html[data-ready]")
        listed.append(time.perf_counter() - began)
        last = window.evaluate("order[order.length - 1]")
        began = time.perf_counter()
        window.goto(f"{made.page.as_uri()}#{last}")
        window.wait_for_selector(f"html[data-ready='#{last}']")
        opened.append(time.perf_counter() - began)
        window.close()
    load = os.getloadavg()[0]
    print(f"{made.attempts} attempts, written in {wrote:.1f} s at load {load:.1f}")
    ratio = made.size / made.run_size
    print(f"site {made.size:,} bytes, run {made.run_size:,}: {ratio:.2f}")
    medians = [statistics.median(times) for times in (listed, opened)]
    print("list opens in {:.2f} s, an episode in {:.2f} s".format(*medians))


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
    sys.exit(main())
