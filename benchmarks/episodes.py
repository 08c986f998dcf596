"""Seconds and bytes that an episode takes in a run, beside what the card says.

Whole runs as `owa-bench run` plays them: one worker, an agent that answers at once in a
process of its own, the recorder on with transcripts. Every tier, magnitudes 0, .5 and
1; of each kind of family (`stay/..`, `depot/..`) the first one. All suites but `projforge`,
half an hour of real projects (`--suite NAME`: one; `--small`: ToolQuest's first tier). The
card's figure (`episode_s`, and `episode_bytes`: without its transcripts, and those) is what
`run --dry-run` reckons with; change it where it is off by more than a machine is.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import speed

from owa_bench import discovery
from owa_bench.errors import MissingPartError
from owa_bench.interfaces import Suite
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch

AGENTS = {"cartpole3d": "pd"}
READER = "agentic"
DELTAS = (0.0, 0.5, 1.0)


def draw_of(suite: Suite, *, small: bool) -> Draw:
    """Return the episodes to play of a suite."""
    card = suite.card
    firsts = {family.partition("/")[0]: family for family in reversed(card.families)}
    return Draw(
        name=card.name,
        families=tuple(firsts.values())[: 1 if small else None],
        tiers=card.tiers[: 1 if small else None],
        deltas=DELTAS,
        interventions=(0,),
    )


class Played(NamedTuple):
    """Episodes of a run; seconds, and bytes on disk of each: record, transcripts."""

    episodes: int
    seconds: float
    record: float
    transcripts: float


def play(suite: Suite, root: Path, *, small: bool) -> Played:
    """Return what a run of a suite took."""
    name = suite.card.name
    request = Request(agents=(AGENTS.get(name, READER),), draws=(draw_of(suite, small=small),))
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


def row(name: str, *, small: bool) -> speed.Row:
    """Return what a run of a suite took, or why it cannot be played here."""
    suite: Suite = discovery.get("suites", name)
    try:
        with tempfile.TemporaryDirectory() as place:
            one = play(suite, Path(place), small=small)
    except MissingPartError as error:
        return speed.Row(name, note=str(error).splitlines()[0])
    record, texts = suite.card.episode_bytes
    figures = {
        "episodes": one.episodes,
        "s": one.seconds,
        "card: s": suite.card.episode_s,
        "bytes": one.record,
        "card: bytes": record,
        "transcripts": one.transcripts,
        "card: transcripts": texts,
    }
    return speed.Row(name, figures)


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield a row a suite."""
    quick = [name for name in discovery.find("suites") if name != "projforge"]
    names = given.suite or (["toolquest"] if given.small else quick)
    yield speed.Table("an episode of", [row(name, small=given.small) for name in names])


if __name__ == "__main__":
    arguments = speed.parser(__doc__)
    arguments.add_argument("--suite", action="append")
    speed.main(tables, arguments)
