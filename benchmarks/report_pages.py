"""Pages of four runs, as a browser shows their first screen: docs/pictures/page_*.png.

A healthy run, one whose agent crashes in about half of its episodes, one whose model
is unreachable, one out of budget; docs/read-a-report.md shows the pictures.
Run: python benchmarks/report_pages.py [--runs FOLDER] [--pictures FOLDER]
"""

import argparse
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from owa_bench.envs.changesurf.browser.host import FLAGS, find_browser

ROOT = Path(__file__).resolve().parent.parent
WIDTHS = {"wide": 1280, "phone": 390}
SCREEN = 900  # pixels of height
COLOURS = 64  # of a picture: frequent and vivid ones
NOTHING_LISTENS = "http://127.0.0.1:9/v1"
DRAW = (
    *("--suite", "toolquest", "--family", "restock,reconcile", "--tier", "1"),
    *("--delta", "0,1"),
)
CRASHING = '''"""An agent that raises on odd seeds, else finishes at once."""

import json


class Crashing:
    """Raises on odd seeds."""

    def reset(self, brief, tools, memory_dir):
        self.broken = brief.seed % 2

    def act(self, observation, info):
        if self.broken:
            raise KeyError("the model's answer has no field `choices`")
        return json.dumps({"tool": "finish", "arguments": {}})

    def close(self):
        pass
'''
MISSING = 5  # exit code of a run whose episodes a model's provider failed
RUNS = {
    "healthy": ("--agent", "agentic", "--agent", "fixed"),
    "crashing": ("--agent", "crashing.py", "--agent", "fixed"),
    "unreachable": (
        *("--agent", "language-model:model=any,retries=0,name=model"),
        *("--agent", "fixed", "--model-url", NOTHING_LISTENS),
        *("--no-preflight", "--failure-share", "1"),
    ),
    "budget": (*("--agent", "agentic", "--agent", "fixed"), *("--run-budget", "api_calls=150")),
}


class Sizes(NamedTuple):
    """Width of the window, and width and height of a page in it, in pixels."""

    window: int
    width: int
    height: int


def owa(folder: Path, *arguments: str) -> None:
    """Call the command line in a folder with keys of its own."""
    command = (sys.executable, "-m", "owa_bench", *arguments)
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "OWA_BENCH_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, MISSING):
        raise SystemExit(f"{' '.join(arguments)}: {done.stdout}{done.stderr}")


def play(folder: Path, name: str, episodes: int = 4) -> Path:
    """Play and report one of the runs.

    Args:
        folder: Where the run is made.
        name: One of RUNS.
        episodes: Of each family and magnitude.

    Returns:
        Its page.
    """
    (folder / "crashing.py").write_text(CRASHING)
    if name == "crashing":  # with few tasks all seeds are even now and then
        episodes *= 2
    draw = (*DRAW, "--episodes", str(episodes))
    owa(folder, "run", *draw, *RUNS[name], "--out", name)
    owa(folder, "report", name)
    return folder / name / "report.html"


@contextmanager
def browser() -> Iterator[Any]:
    """Give a browser of the machine."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        found = running.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        yield found
        found.close()


def show(found: Any, page: Path, width: int) -> Any:
    """Return a window of a width that shows a page."""
    window = found.new_page(viewport={"width": width, "height": SCREEN})
    window.set_content(page.read_text())
    return window


def sizes(window: Any) -> Sizes:
    """Return how large the page is in its window."""
    return Sizes(
        *window.evaluate(
            "[innerWidth, document.documentElement.scrollWidth,"
            " document.documentElement.scrollHeight]"
        )
    )


def picture(window: Any) -> bytes:
    """Return the first screen as a small PNG."""
    shot = Image.open(io.BytesIO(window.screenshot())).convert("RGB")
    counts = shot.getcolors(shot.width * shot.height)
    vivid = {colour: n * (1 + max(colour) - min(colour)) for n, colour in counts}
    found = sorted(vivid, key=lambda colour: (-vivid[colour], colour))
    palette, small = Image.new("P", (1, 1)), io.BytesIO()
    palette.putpalette([part for colour in found[:COLOURS] for part in colour])
    few = shot.quantize(palette=palette, dither=Image.Dither.NONE)
    few.save(small, "PNG", optimize=True)
    return small.getvalue()


def main() -> int:
    """Play the runs and write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--pictures", type=Path, default=ROOT / "docs" / "pictures")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, browser() as found:
        folder = (chosen.runs or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        chosen.pictures.mkdir(parents=True, exist_ok=True)
        for name in RUNS:
            page = play(folder, name)
            for label, width in WIDTHS.items():
                window = show(found, page, width)
                target = chosen.pictures / f"page_{name}_{label}.png"
                target.write_bytes(picture(window))
                kilobytes = target.stat().st_size // 1000
                print(f"{target.name}: {kilobytes} kB, {sizes(window)}")
                window.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
