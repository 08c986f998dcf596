"""Episodes on Ray while actors are killed: one replay root with plain worker processes?

    python benchmarks/actor_kills.py [--least 1000] [--most 1000] [--kills 30]

Each plan (ToolQuest tier 1, no transcripts, agents `noop` and `random`, no help) is played
twice by as many workers: by processes, left alone, and in actors on a Ray cluster that is
started here. Actors of the second are ended by SIGKILL at `--kills` moments (at most one for
a hundred episodes), which are drawn: after how many episodes, how much later, and whom. Then the
replay roots are compared, and the record of the killed run is checked ("faults"). Exits 1 if
a root differs or there are faults. The first row has agents in sandboxes, the others in the
worker's process, which is cheapest.

Figures are an episode's unless their column says otherwise. CPU is of the whole tree of processes,
Ray's own among them; "driver" is the one process that writes the record. An actor that is killed
when all is played is not noted as dead; an attempt that was open when its actor died and had begun
is played again. By the rule an episode under which two actors died is "given up" and scores 0,
which changes the root: so nobody is killed before a dead actor's successor has played. "s to
replace" is the median time until then. Ten million episodes are reckoned from the last row as runs
of a hundred thousand; `--usd` for an hour of a core is an assumption, no measurement.
"""

import contextlib
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import speed
from scale import A_RUN, FAMILIES, TEN_MILLION, megabytes

from owa_bench.records.layout import RunLayout
from owa_bench.reports.check.integrity_checks import check_attempts
from owa_bench.reports.read.bundle import read
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.play.work_items import MAX_WORKER_DEATHS
from owa_bench.runs.store import files
from owa_bench.seeding import stream

AGENTS = ("noop", "random")
SIZES = (1_000, 10_000, 100_000)
ACTOR = "ray::NodeWorker"  # how a process that plays calls itself
LOOK_S = 0.1
FORKS = "owa_bench.hosting.fork_template"  # the server of agents' processes
TICKS = os.sysconf("SC_CLK_TCK")
PLAYED = 10_000  # bytes of a shard whose actor has played an episode or more


class Kill(NamedTuple):
    """When an actor is killed: after so many closed episodes, so much later, and whom."""

    after: int
    pause_s: float
    whom: float  # in [0, 1): of the actors there are, by number of process


class Spent(NamedTuple):
    """What playing took; `noted` deaths of those `killed`; `replaced`: seconds after each kill."""

    wall_s: float
    cpu_s: float
    driver_cpu_s: float
    driver_mb: float
    killed: int = 0
    noted: int = 0
    replaced: tuple[float, ...] = ()


class Process(NamedTuple):
    """A process of the tree: its command line, its CPU time, and that of children it reaped."""

    pid: int
    parent: int
    name: str
    own_s: float
    waited_s: float


def kills(episodes: int, count: int, seed: int = 0) -> list[Kill]:
    """Return the moments of a run, in order, none at its very ends."""
    rng = stream(seed, "kills")
    moments = sorted(rng.uniform(0.02, 0.9, size=count))
    return [
        Kill(int(share * episodes), float(rng.random()), float(rng.random())) for share in moments
    ]


def processes(root: int) -> list[Process]:
    """Return a process and all below it."""
    found, below = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            head, _, rest = (folder / "stat").read_text().rpartition(")")
            name = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended
            continue
        fields = rest.split()
        own, waited = (sum(map(int, fields[at : at + 2])) / TICKS for at in (11, 13))
        pid, parent = int(head.partition(" ")[0]), int(fields[1])
        found[pid] = Process(pid, parent, name, own, waited)
        below.setdefault(parent, []).append(pid)
    tree = [root] if root in found else []
    for pid in tree:
        tree += below.get(pid, [])
    return [found[pid] for pid in tree]


def cpu_of(tree: list[Process]) -> dict[int, float]:
    """Return the CPU seconds of each process of a tree, agents' with the server that forks them.

    They are too short for all of them to be seen.
    """
    servers = {each.pid for each in tree if FORKS in each.name}
    return {
        each.pid: each.own_s + (each.waited_s if each.pid in servers else 0.0)
        for each in tree
        if each.parent not in servers
    }


def largest_mb(pid: int) -> float:
    """Return the most memory that a process has had; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    sizes = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(next(sizes, "0")) / 1024


class Closed:
    """Counts the lines of a growing file of leaves."""

    def __init__(self, path: Path) -> None:
        self.count = 0
        self._path, self._place = path, 0

    def look(self) -> int:
        """Return how many there are now."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._place)
                data = file.read()
            self._place += len(data)
            self.count += data.count(b"\n")
        return self.count


def play(
    run: Path, folder: Path, flags: tuple[str, ...], moments: list[Kill], workers: int
) -> Spent:
    """Go on with a run in a process of its own; kill its actors at the moments.

    Nobody is killed before all `workers` have played: each has a shard of its own.
    """
    words = speed.owa("run", "--out", run, "--resume", *flags)
    environment = {**os.environ, "OWA_BENCH_HOME": str(folder / "home")}
    environment["PYTHONPATH"] = str(speed.ROOT)
    environment["RAY_worker_niceness"] = "0"  # else actors yield to all others, processes do not
    layout, left, due = RunLayout(run), list(moments), workers
    closed = Closed(layout.leaves)
    used: dict[int, float] = {}
    driver_mb = 0.0
    killed, killed_at, replaced = 0, math.nan, []
    with (folder / "said").open("w+") as said:
        began = time.perf_counter()
        driver = subprocess.Popen(words, cwd=folder, env=environment, stdout=said, stderr=said)
        while driver.poll() is None:
            time.sleep(LOOK_S)
            tree = processes(driver.pid)
            if not tree:
                continue
            used |= cpu_of(tree)
            driver_mb = max(driver_mb, largest_mb(driver.pid))
            if not left and math.isnan(killed_at):
                continue
            actors = sorted(each.pid for each in tree if each.name.startswith(ACTOR))
            playing = sum(path.stat().st_size > PLAYED for path in layout.shards.glob("*.zst"))
            if playing < due:
                continue
            if not math.isnan(killed_at):
                replaced.append(time.perf_counter() - killed_at)
                killed_at = math.nan
            if left and actors and closed.look() >= left[0].after:
                moment = left.pop(0)
                time.sleep(moment.pause_s)
                with contextlib.suppress(ProcessLookupError):  # the run was over
                    os.kill(actors[int(moment.whom * len(actors))], signal.SIGKILL)
                    killed_at = time.perf_counter()
                    killed += 1
                    due += 1
        wall_s = time.perf_counter() - began
        said.seek(0)
        text = said.read()
    if driver.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {text}")
    noted = text.count("a worker died (")
    cpu_s = sum(used.values())
    return Spent(wall_s, cpu_s, used[driver.pid], driver_mb, killed, noted, tuple(replaced))


def measure(episodes: int, count: int, folder: Path, *, workers: int, sandboxed: bool):
    """Return the row of a plan that is played both ways, and whether nothing differs."""
    folder.mkdir()
    draw = Draw(
        name="toolquest",
        tiers=(1,),
        deltas=(0.5,),
        episodes=-(-episodes // (FAMILIES * len(AGENTS))),
        interventions=(0,),
    )
    request = Request(agents=AGENTS, draws=(draw,), name="kills", transcripts=False)
    options = RunOptions(home=folder / "home", in_process=not sandboxed)
    plain, killed = folder / "plain", folder / "killed"
    planned = batch.play(request, plain, options, plan_only=True)
    shutil.copytree(plain, killed)
    number = ("--workers", str(workers))
    alone = play(plain, folder, number, [], workers)
    moments = kills(planned.entries, count)
    on_ray = play(killed, folder, ("--executor", "ray", *number), moments, workers)
    ends = [batch.summary(RunLayout(run)) for run in (plain, killed)]
    faults = sum(map(len, check_attempts(read(killed)).faults.values()))
    leaves = files.read_leaves(RunLayout(killed))
    again = [leaf.status for leaf in leaves].count("unfinished")
    twice = sum(leaf.attempt >= MAX_WORKER_DEATHS for leaf in leaves)
    one_root = len({end.replay_root for end in ends}) == 1
    fine = one_root and not any(end.missing for end in ends) and not faults
    layout = RunLayout(killed)
    weight = megabytes(layout.plan, layout.shards, layout.leaves, layout.blobs) * 1e6
    n = planned.entries
    figures = {
        "processes: episodes/s": n / alone.wall_s,
        "processes: CPU ms": alone.cpu_s / n * 1e3,
        "Ray: episodes/s": n / on_ray.wall_s,
        "Ray: CPU ms": on_ray.cpu_s / n * 1e3,
        "driver: CPU ms": on_ray.driver_cpu_s / n * 1e3,
        "driver: MB": on_ray.driver_mb,
        "bytes": weight / n,
        "kills": on_ray.killed,
        "deaths noted": on_ray.noted,
        "played again": again,
        "given up": twice,
        "faults": faults,
    }
    if on_ray.replaced:
        figures["s to replace"] = statistics.median(on_ray.replaced)
    where = "sandboxes" if sandboxed else "in the worker"
    return speed.Row(f"{n:,}, {where}", figures, (), "same root" if fine else "DIFFERS"), fine


def tables(given):
    """Yield the rows of all sizes, and what ten million cost by the last."""
    if find_spec("ray") is None:
        note = f"{speed.MISSING}: pip install 'owa_bench[ray]'"
        yield speed.Table("episodes, agents", [speed.Row("on Ray", note=note)])
        return
    steps = [200] if given.small else [n for n in SIZES if given.least <= n <= given.most]
    sandboxed = [] if given.least > SIZES[0] else steps[:1]
    ways = [*((size, True) for size in sandboxed), *((size, False) for size in steps)]
    rows, all_fine = [], True
    with tempfile.TemporaryDirectory() as place:
        for number, (size, sandboxed) in enumerate(ways):
            folder, count = Path(place) / str(number), min(given.kills, size // 100)
            row, fine = measure(size, count, folder, workers=given.workers, sandboxed=sandboxed)
            shutil.rmtree(folder)
            rows.append(row)
            all_fine &= fine
            print(row, file=sys.stderr, flush=True)  # large sizes take long
    yield speed.Table("episodes, agents", rows)
    yield paper(rows[-1].figures, given.usd)
    if not all_fine:
        raise SystemExit("A replay root differs, or the record of a killed run has faults.")


def paper(row, usd):
    """Return what TEN_MILLION episodes cost by a row's figures an episode.

    Args:
        row: Figures of the largest run.
        usd: Price of a core for an hour.
    """
    core_hours = TEN_MILLION * row["Ray: CPU ms"] / 3.6e6
    driver_hours = TEN_MILLION * row["driver: CPU ms"] / 3.6e6
    figures = {
        "runs": TEN_MILLION // A_RUN,
        "core hours": core_hours,
        "USD": core_hours * usd,
        "of them drivers' hours": driver_hours,
        "episodes/s a driver takes": 1e3 / row["driver: CPU ms"],
        "cores a driver feeds": core_hours / driver_hours,
        "hours, 10 drivers": driver_hours / 10,
        "GB": TEN_MILLION * row["bytes"] / 1e9,
    }
    title = f"{TEN_MILLION:,} episodes on paper"
    return speed.Table(title, [speed.Row(f"{usd} USD an hour of a core", figures)])


if __name__ == "__main__":
    arguments = speed.parser(__doc__)
    arguments.add_argument("--least", type=int, default=1_000)
    arguments.add_argument("--most", type=int, default=1_000)
    arguments.add_argument("--kills", type=int, default=30)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--usd", type=float, default=0.04)
    speed.main(tables, arguments)
