"""One plan, played in every way there is, must give one replay root.

    python benchmarks/replay_root.py            a small plan, about a minute
    python benchmarks/replay_root.py --kills 30 so many SIGKILLs on the way

Ways: 1, 2 and 4 workers; agents in the worker or in processes of their own; in process
or over loopback HTTP; killed at random moments and resumed; on a CPU whose vector
instructions are masked. Ends with a replay of every episode after the reveal. Exits 1
if a root differs.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
from golden_command import masked_environment

from owa_bench.records.layout import RunLayout
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.seeding import fresh_bytes, stream

AGENTS = ("agentic", "fixed", "random")


class Way(NamedTuple):
    """A way of playing: flags of `owa-bench run`, and how often it is killed."""

    name: str
    flags: tuple[str, ...]
    kills: int = 0
    masked: bool = False


def ways(kills: int) -> tuple[Way, ...]:
    """Return every way that the plan is played."""
    return (
        Way("1 worker, agents in the worker", ("--in-process",)),
        Way("1 worker, agents in processes", ()),
        Way("2 workers", ("--workers", "2")),
        Way("4 workers, 2 episodes at once", ("--workers", "4", "--concurrency", "8")),
        Way("over loopback HTTP", ("--in-process", "--wire")),
        Way(f"killed {kills} times, resumed", ("--workers", "2"), kills=kills),
        Way("CPU features masked", ("--in-process",), masked=True),
    )


def main() -> int:
    """Play the plan in every way and print its roots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan, home = folder / "plan", folder / "home"
        draw = Draw(name="toolquest", deltas=(0.0, 0.5, 1.0), episodes=2)
        request = Request(agents=AGENTS, draws=(draw,))
        batch.play(request, plan, RunOptions(home=home), plan_only=True)
        roots = {way.name: root_of(way, plan, folder, home) for way in ways(given.kills)}
        for way, root in roots.items():
            print(f"{root[:32]}  {way}")
        last = RunLayout(folder / "0")
        escrow.reveal(home, last)
        replays = replay.replay_run(last)
        print(f"replayed after the reveal: {len(replays.attempts)}, {replays.passed=}")
    one = len(set(roots.values())) == 1
    print("one replay root" if one else "THE ROOTS DIFFER")
    return 0 if one and replays.passed else 1


def root_of(way: Way, plan: Path, folder: Path, home: Path) -> str:
    """Return the replay root of a copy of the plan, played this way."""
    out = folder / str(sum(path.name.isdigit() for path in folder.iterdir()))
    shutil.copytree(plan, out)
    environment = {**(masked_environment() if way.masked else os.environ)}
    environment["OWA_BENCH_HOME"] = str(home)
    line = ("-m", "owa_bench", "run", "--out", str(out), "--resume", "--json")
    command = (sys.executable, *line, *way.flags)
    rng = stream(int.from_bytes(fresh_bytes(8), "big"), "kills")
    for _ in range(way.kills):
        killed(command, environment, after_s=1.0 + 2.5 * float(rng.random()))
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    summary = msgspec.json.decode(done.stdout)
    if summary["missing"]:
        raise SystemExit(f"{way.name}: {summary['missing']} episodes are missing")
    return str(summary["replay_root"])


def killed(command: tuple[str, ...], environment: Mapping[str, str], *, after_s: float) -> None:
    """Play, and SIGKILL the whole process group at an odd moment."""
    running = subprocess.Popen(
        command,
        env=dict(environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(after_s)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()


if __name__ == "__main__":
    sys.exit(main())
