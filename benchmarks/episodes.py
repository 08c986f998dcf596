"""Seconds that an episode takes in a run, beside what each suite's card says.

    python benchmarks/episodes.py [--suite changesurf]

Whole runs as `owa-bench run` plays them: one worker, an agent that answers at once in a
process of its own, the recorder on with transcripts. Every tier, magnitudes 0, .5 and
1; of each kind of family (`stay/..`, `depot/..`) the first one. The card's figure
(`episode_s`) is what `run --dry-run` reckons with; change it where it is off by more
than a machine is.
"""

import argparse
import tempfile
import time
from pathlib import Path

from owa_bench import discovery
from owa_bench.interfaces import Suite
from owa_bench.run.plan.draws import Draw
from owa_bench.run.plan.request import Request, RunOptions
from owa_bench.run.play import batch

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


def play_s(suite: Suite, root: Path) -> tuple[int, float]:
    """Return how many episodes were played and the seconds that each took."""
    name = suite.card.name
    request = Request(agents=(AGENTS.get(name, READER),), draws=(draw_of(suite),))
    began = time.perf_counter()
    found = batch.play(request, root / name, RunOptions(home=root / "home"))
    took = time.perf_counter() - began
    if found.missing:
        raise SystemExit(f"{found.missing} episodes of {name} are missing")
    return found.entries, took / found.entries


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", action="append")
    given = parser.parse_args()
    print("| suite | episodes | seconds an episode | the card says |")
    print("|---|---|---|---|")
    for name in given.suite or discovery.find("suites"):
        suite: Suite = discovery.get("suites", name)
        with tempfile.TemporaryDirectory() as place:
            count, seconds = play_s(suite, Path(place))
        print(f"| {name} | {count} | {seconds:.2f} | {suite.card.episode_s:.2f} |")


if __name__ == "__main__":
    main()
