"""Seconds and bytes that an episode takes in a run, beside what the card says.

    python benchmarks/episodes.py [--suite changesurf]

Whole runs as `owa-bench run` plays them: one worker, an agent that answers at once in a
process of its own, the recorder on with transcripts. Every tier, magnitudes 0, .5 and
1; of each kind of family (`stay/..`, `depot/..`) the first one. The card's figure
(`episode_s`, and `episode_bytes`: without its transcripts, and those) is what
`run --dry-run` reckons with; change it where it is off by more than a machine is.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from owa_bench import discovery
from owa_bench.interfaces import Suite
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch

AGENTS = {"cartpole3d": "pd"}
READER = "agentic"
DELTAS = (0.0, 0.5, 1.0)


def draw_of(suite: Suite) -> Draw:
    """Return the episodes to play of a suite."""
    card = suite.card
    firsts = {family.partition("/")[0]: family for family in reversed(card.families)}
    return Draw(
        name=card.name,
        families=tuple(firsts.values()),
        tiers=card.tiers,
        deltas=DELTAS,
        interventions=(0,),
    )


class Played(NamedTuple):
    """Episodes of a run; seconds, and bytes on disk of each: record, transcripts."""

    episodes: int
    seconds: float
    record: float
    transcripts: float


def play(suite: Suite, root: Path) -> Played:
    """Return what a run of a suite took."""
    name = suite.card.name
    request = Request(agents=(AGENTS.get(name, READER),), draws=(draw_of(suite),))
    began = time.perf_counter()
    found = batch.play(request, root / name, RunOptions(home=root / "home"))
    took = time.perf_counter() - began
    if found.missing:
        raise SystemExit(f"{found.missing} episodes of {name} are missing")
    files = [path for path in found.root.rglob("*") if path.is_file()]
    packs = sum(path.stat().st_size for path in files if path.suffix == ".pack")
    whole = sum(path.stat().st_size for path in files)
    count = found.entries
    return Played(count, took / count, (whole - packs) / count, packs / count)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", action="append")
    given = parser.parse_args()
    print("| suite | episodes | seconds | card | bytes | with transcripts | card |")
    print("|---|---|---|---|---|---|---|")
    for name in given.suite or discovery.find("suites"):
        suite: Suite = discovery.get("suites", name)
        with tempfile.TemporaryDirectory() as place:
            one = play(suite, Path(place))
        card = suite.card
        whole = one.record + one.transcripts
        print(
            f"| {name} | {one.episodes} | {one.seconds:.2f} | {card.episode_s:.2f} "
            f"| {one.record:,.0f} | {whole:,.0f} = {whole / one.record:.2f} x "
            f"| {card.episode_bytes} |"
        )


if __name__ == "__main__":
    main()
