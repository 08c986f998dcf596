"""Quality of the agents by tier, drift magnitude and drift class: a table for the docs.

    python benchmarks/archetypes.py                  writes docs/tables/archetypes.md
    python benchmarks/archetypes.py --episodes 2     a quick look, printed only

Every cell is played through the whole pipeline (plan, run, verified traces) in a
temporary directory. A class column applies that class of operators alone, at full
magnitude. Means of q_state with a 95 percent t interval over instances, Wilson's
where all are equal.
"""

import argparse
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.progress import Progress
from scipy import stats

from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.reports.read import bundle
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch

TABLE = Path(__file__).resolve().parent.parent / "docs" / "tables" / "archetypes.md"
AGENTS = ("oracle", "orchestrator", "agentic", "self_improving", "fixed", "random", "noop")
DELTAS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
CLASSES = ("D0", "D1", "D2", "D3")
TIERS = (1, 2, 3, 4)
FAMILIES = SUITE.card.families


class Key(NamedTuple):
    """One cell of the tables: `column` is a magnitude or a class."""

    agent: str
    tier: int
    column: str


def main() -> None:
    """Play, print, and write the table when it is the full one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, help="instances per family and tier")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    episodes = given.episodes or 8
    cells = played(episodes, given.workers)
    text = page(cells, episodes)
    print(text)
    if given.episodes is None:
        TABLE.parent.mkdir(parents=True, exist_ok=True)
        TABLE.write_text(text)


def played(episodes: int, workers: int) -> dict[Key, list[float]]:
    """Return every q_state by cell."""
    cells: dict[Key, list[float]] = defaultdict(list)
    calendars = [("nested", DELTAS), *((f"nested:{c}", (1.0,)) for c in CLASSES)]
    with tempfile.TemporaryDirectory() as folder, Progress() as bar:
        total = sum(len(deltas) for _, deltas in calendars)
        total *= episodes * len(FAMILIES) * len(TIERS) * len(AGENTS)
        task = bar.add_task("playing", total=total)
        for number, (calendar, deltas) in enumerate(calendars):
            request = Request(
                agents=AGENTS,
                draws=(
                    Draw(name="toolquest", deltas=deltas, episodes=episodes, interventions=(0,)),
                ),
                calendar=calendar,
                transcripts=False,
            )
            options = RunOptions(
                home=Path(folder) / "home",
                workers=workers,
                in_process=True,
                progress=lambda _: bar.advance(task),
            )
            out = Path(folder) / str(number)
            batch.play(request, out, options)
            for key, quality in _qualities(out, calendar):
                cells[key].append(quality)
    return cells


def _qualities(out: Path, calendar: str) -> Iterator[tuple[Key, float]]:
    """Yield the cell and q_state of every counted episode."""
    for trace in bundle.read(out).traces():
        start = trace.start
        name = calendar.partition(":")[2] or f"{start.delta:g}"
        yield Key(start.arm, start.instance.tier, name), trace.end.q_state


def page(cells: dict[Key, list[float]], episodes: int) -> str:
    """Return the tables as Markdown."""
    columns = tuple(f"{delta:g}" for delta in DELTAS)
    return "\n".join(
        (
            "# Quality by agent, tier, drift magnitude and drift class",
            "",
            f"Made by `python benchmarks/archetypes.py`: {episodes} instances of each "
            f"of {len(FAMILIES)} families in a cell, nobody may ask the supervisor, "
            "q_state as mean [95 percent t interval]. Every episode begins without a "
            "memory, so self_improving is here the beginner that it starts as: how it "
            "gets on is for a campaign to show (`docs/archetypes.md`).",
            "",
            "## By magnitude (all operators)",
            "",
            *_table(cells, columns),
            "",
            "## By class, each alone at full magnitude",
            "",
            *_table(cells, CLASSES),
            "",
        )
    )


def _table(cells: dict[Key, list[float]], columns: tuple[str, ...]) -> Iterator[str]:
    yield "| agent | tier | " + " | ".join(columns) + " |"
    yield "|---" * (len(columns) + 2) + "|"
    for agent in AGENTS:
        for tier in TIERS:
            shown = (_cell(cells[Key(agent, tier, column)]) for column in columns)
            yield f"| {agent} | T{tier} | " + " | ".join(shown) + " |"


def _cell(values: list[float]) -> str:
    """Return mean and interval; values that are all equal get Wilson's interval."""
    mean, count = statistics.fmean(values), len(values)
    if min(values) == max(values):
        wilson = stats.binomtest(round(mean * count), count).proportion_ci(method="wilson")
        low, high = wilson.low, wilson.high
    else:
        half = stats.sem(values) * stats.t.ppf(0.975, count - 1)
        low, high = np.clip((mean - half, mean + half), 0.0, 1.0)
    return f"{mean:.2f} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
