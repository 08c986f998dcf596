"""Cost of a run by its number of episodes: seconds, memory and bytes on disk.

Each size is planned, played by an agent that answers at once (`fixed`; ToolQuest tier 1) and
by two workers, its leaves are made again from the shards, as a resumed run does, and it is
reported and recomputed. `--most` is the largest size that is played (docs/scale.md: 10,000);
what lies beyond is extrapolated: a line through the two largest, a constant and a cost an
episode. "report" and "recompute" are commands of their own, with their largest process.

A plan holds 100,000 episodes, so ten million are a hundred runs: what they cost is reckoned from
the same line. Workers share the playing; planning, leaves, report and recomputation of a run are
one process, and as many runs as there are machines go on at once.
"""

import tempfile
import time
from pathlib import Path

import speed

from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files

BEYOND = (100_000, 1_000_000)
FAMILIES = 8  # of ToolQuest, tier 1, one magnitude: an instance of each is 8 episodes
COLUMNS = (
    *("plan s", "play s", "leaves s", "report s", "recompute s", "plan MB", "shards MB"),
    *("packs MB", "report memory MB", "recompute memory MB"),
)
AIMED = A_RUN = 100_000  # what a plan may hold: `records.bounds`
TEN_MILLION = 10_000_000
WORKERS = (64, 1_024, 8_192)
AIMS = [
    *(speed.Aim(f"{verb} s", "<=", 60) for verb in ("report", "recompute")),
    *(speed.Aim(f"{verb} memory MB", "<=", 600) for verb in ("report", "recompute")),
]


def megabytes(*paths):
    parts = (p for path in paths for p in (path.rglob("*") if path.is_dir() else [path]))
    return sum(part.stat().st_size for part in parts if part.is_file()) / 1e6


def measure(episodes, folder, arguments):
    """Return what a run of so many episodes takes, and how many it has."""
    draw = Draw(name="toolquest", tiers=(1,), deltas=(0.5,), episodes=-(-episodes // FAMILIES))
    request = Request(agents=("fixed",), draws=(draw,), name="scale")
    options = RunOptions(
        home=folder / "home", workers=arguments.workers, executor=arguments.executor
    )
    layout = RunLayout(folder / f"run-{episodes}")
    seconds = []

    def timed(call):
        began = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - began)
        return result

    timed(lambda: batch.play(request, layout.root, options, plan_only=True))
    summary = timed(lambda: batch.resume(layout.root, options))
    timed(lambda: files.leaves_of_shards(layout))
    assert summary.missing == 0
    speed.command(speed.owa("escrow", "reveal", layout.root), folder)
    ends = [speed.command(speed.owa(verb, layout.root), folder) for verb in ("report", "recompute")]
    weights = (
        megabytes(layout.plan, layout.plan_envelope),
        megabytes(layout.shards, layout.leaves),
        megabytes(layout.blobs),
    )
    walls, peaks = ([getattr(end, name) for end in ends] for name in ("wall_s", "mb"))
    return summary.entries, (*seconds, *walls, *weights, *peaks)


def extrapolated(sizes, rows, beyond):
    """Return the row of a size beyond: the line through the two largest, never falling."""
    (n, low), (m, high) = (sizes[-2], rows[-2]), (sizes[-1], rows[-1])
    slopes = [max(0.0, (b - a) / (m - n)) for a, b in zip(low, high, strict=True)]
    return tuple(b + s * (beyond - m) for b, s in zip(high, slopes, strict=True))


def tables(given):
    """Yield a row a size, played or extrapolated."""
    sizes, figures, rows = [], [], []
    steps = (16,) if given.small else (100, 1_000, 10_000, 100_000)
    with tempfile.TemporaryDirectory() as place:
        for size in steps:
            if size <= given.most:
                count, row = measure(size, Path(place), given)
                sizes.append(count)
                figures.append(row)
                rows.append(row_of(count, row))
    if len(sizes) > 1:
        beyond = [size for size in BEYOND if size > sizes[-1]]
        rows += [row_of(s, extrapolated(sizes, figures, s), "extrapolated") for s in beyond]
    elif given.small:
        rows.append(speed.Row(f"{AIMED:,}", {}, AIMS, "takes two sizes"))
    yield speed.Table("episodes", rows)
    if len(sizes) > 1:
        yield paper(extrapolated(sizes, figures, A_RUN), given.workers)


def paper(row, workers):
    """Return what TEN_MILLION episodes cost, by the number of workers.

    Args:
        row: Of a run of A_RUN episodes, in the order of COLUMNS.
        workers: Processes that played it at once.
    """
    figures, runs = dict(zip(COLUMNS, row, strict=True)), TEN_MILLION // A_RUN
    worker_s = runs * figures["play s"] * workers
    alone_s = runs * sum(figures[f"{verb} s"] for verb in ("plan", "leaves", "report", "recompute"))
    gigabytes = runs * sum(figures[f"{part} MB"] for part in ("plan", "shards", "packs")) / 1e3
    rows = [
        speed.Row(
            f"{many:,} workers",
            {
                "worker hours": worker_s / 3600,
                "hours of play": worker_s / many / 3600,
                "hours of the rest, one process": alone_s / 3600,
                "GB": gigabytes,
                "MB/s while played": gigabytes * 1e3 / (worker_s / many),
            },
        )
        for many in WORKERS
    ]
    return speed.Table(f"{TEN_MILLION:,} episodes as {runs} runs, on paper", rows)


def row_of(count, figures, note=""):
    """Return a row; at 100,000 episodes there are aims."""
    aims = AIMS if round(count, -3) == AIMED else ()
    return speed.Row(f"{count:,}", dict(zip(COLUMNS, figures, strict=True)), aims, note)


if __name__ == "__main__":
    arguments = speed.parser(__doc__)
    arguments.add_argument("--most", type=int, default=1_000)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--executor", default="local")
    speed.main(tables, arguments)
