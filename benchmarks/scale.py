"""Cost of a run by its number of episodes: seconds, memory and bytes on disk.

    python benchmarks/scale.py                      # 100 and 1,000 episodes, minutes
    python benchmarks/scale.py --most 10000         # what docs/scale.md shows
    python benchmarks/scale.py --most 100 --executor ray

Each size is planned, played by an agent that answers at once and by two workers, and
its leaves are made again from the shards, as a resumed run does. What lies beyond is
extrapolated: a line through the two largest sizes, a constant and a cost an episode.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files

BEYOND = (100_000, 1_000_000)
FAMILIES = 8  # of ToolQuest, tier 1, one magnitude: an instance of each is 8 episodes
COLUMNS = ("plan s", "play s", "leaves s", "plan MB", "shards MB", "packs MB")


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
    weights = (
        megabytes(layout.plan, layout.plan_envelope),
        megabytes(layout.shards, layout.leaves),
        megabytes(layout.blobs),
    )
    return summary.entries, (*seconds, *weights)


def extrapolated(sizes, rows, beyond):
    """Return the row of a size beyond: the line through the two largest, or 0."""
    (n, low), (m, high) = (sizes[-2], rows[-2]), (sizes[-1], rows[-1])
    slopes = [(b - a) / (m - n) for a, b in zip(low, high, strict=True)]
    return tuple(max(0.0, b + s * (beyond - m)) for b, s in zip(high, slopes, strict=True))


def line(name, row):
    print(f"| {name} |" + "".join(f" {value:,.2f} |" for value in row), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--executor", default="local")
    arguments = parser.parse_args()
    print(f"| episodes | {' | '.join(COLUMNS)} |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    sizes, rows = [], []
    with tempfile.TemporaryDirectory() as place:
        size = 100
        while size <= arguments.most:
            count, row = measure(size, Path(place), arguments)
            line(f"{count:,}", row)
            sizes.append(count)
            rows.append(row)
            size *= 10
    if len(sizes) > 1:
        for beyond in BEYOND:
            line(f"{beyond:,} *", extrapolated(sizes, rows, beyond))
    *_, shards, packs = rows[-1]
    print(f"KB an episode: {1e3 * shards / sizes[-1]:.2f} without transcripts,", end=" ")
    print(f"{1e3 * (shards + packs) / sizes[-1]:.2f} with them")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the driver: {peak:.0f} MB at {sizes[-1]:,} episodes")


if __name__ == "__main__":
    main()
