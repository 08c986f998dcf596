"""Start of the commands that do little, and the CPU time of the demonstration.

Wall time of a command in a process of its own; the raw limit is a Python that does nothing.
The demonstration is what `./owa demo` plays: battery `demo`, two agents, 288 episodes, a worker
a processor; CPU time of all its processes (`--small`: two episodes).
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import speed

STARTS = {
    "owa-bench --help": (("--help",), 0.31),
    "owa-bench list suites": (("list", "suites"), 0.40),
}
BARE = "python -c pass"
SMALL = (
    *("--suite", "toolquest", "--family", "reconcile", "--tier", "1", "--delta", "0"),
    *("--episodes", "1", "--interventions", "0"),
)
DEMO = ("--battery", "demo", "--workers", str(os.cpu_count()))


def starts(folder: Path, rounds: int) -> speed.Table:
    """Return the least wall time of each command."""
    ways = {BARE: partial(speed.command, [sys.executable, "-c", "pass"], folder)}
    for name, (words, _) in STARTS.items():
        ways[name] = partial(speed.command, speed.owa(*words), folder)
    found, rows = speed.in_turns(ways, rounds), []
    for name, spent in found.items():
        figures = {"s": min(one.wall_s for one in spent), "CPU s": min(one.cpu_s for one in spent)}
        aims = [speed.Aim("s", "<=", STARTS[name][1])] if name in STARTS else []
        rows.append(speed.Row(f"`{name}`", figures, aims))
    return speed.Table("start of a command", rows)


def demo(folder: Path, *, small: bool) -> speed.Table:
    """Return what the demonstration's run takes."""
    words = SMALL if small else DEMO
    agents = ("--agent", "agentic", "--agent", "fixed")
    spent = speed.command(speed.owa("run", *words, *agents, "--out", "demo"), folder)
    figures = {"CPU s": spent.cpu_s, "s": spent.wall_s, "MB": spent.mb}
    aims = () if small else [speed.Aim("CPU s", "<=", 9)]
    name = "a run of two episodes" if small else "288 episodes of battery `demo`"
    return speed.Table("a run of", [speed.Row(name, figures, aims)])


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield both tables."""
    with tempfile.TemporaryDirectory() as place:
        yield starts(Path(place), 1 if given.small else 9)
        yield demo(Path(place), small=given.small)


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))
