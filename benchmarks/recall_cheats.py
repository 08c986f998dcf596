"""Cheats on Recall: what each carries over a restart, and alarms at honest agents.

    python benchmarks/recall_cheats.py [--episodes 300] [--honest 12]

Every cheat of tests/builders/restart_cheats.py plays `counterfactual` in real runs:
each sitting is a process in a sandbox, and is asked what an earlier one was told. The
honest reference agents play every family and tier, --honest seeds each, in this process
with the same rules of the folder between sittings. Runs are kept in --state and go on
where they were stopped. Writes docs/tables/recall_cheats.md.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from scipy import stats

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from owa_bench.envs.recall import generate  # noqa: E402
from owa_bench.records.events import Action, Probe  # noqa: E402
from owa_bench.records.layout import RunLayout  # noqa: E402
from owa_bench.runs.store import files  # noqa: E402
from owa_bench.runs.store.memory_folder import MemoryFault  # noqa: E402
from tests.builders import recall_episodes  # noqa: E402

TABLE = ROOT / "docs" / "tables" / "recall_cheats.md"
STATE = Path("runs") / "recall_cheats"
BUILDER = ROOT / "tests" / "builders" / "restart_cheats.py"
CHEATS = {
    "Outside": ("files outside `memory_dir`", 1),
    "Carrier": ("a process that stays and is asked by the next sitting", 1),
    "Notes": ("`note` and `recall` on items without tools", 1),
    "Clock": ("times of empty files", 1),
    "Global": ("a global of the module", 1),
    "Names": ("names of empty files, over the quota", 4),
    "Honest": ("none: the control that keeps within its folder", 1),
}
HONEST = {
    "exact_store": {},
    "bm25": {},
    "bm25_verify": {},
    "bounded_buffer": {"capacity": 20},
    "fading_store": {"half_life": 14},
    "no_memory": {},
    "program_induction": {},
    "transcript_store": {},
}


class Outcome(NamedTuple):
    """One episode: right answers and answers asked for, refused calls, its end."""

    right: int
    asked: int
    refused: int
    ended: bool


def run_cheat(name, tier, episodes, state):
    """Play what lacks of a cheat's run; yield its outcomes."""
    out = state / name
    words = ["--out", str(out), "--workers", "2"]
    if (out / "plan.json").exists():
        words.append("--resume")
    else:
        words += ["--suite", "recall", "--family", "counterfactual", "--delta", "0"]
        words += ["--tier", str(tier), "--episodes", str(episodes)]
        words += ["--interventions", "0", "--agent", f"restart_cheats:{name}"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "owa_bench", "run", *words]
    subprocess.run(command, check=True, cwd=state, env=env)
    layout = RunLayout(out)
    for leaf in files.read_leaves(layout):
        trace = files.read_trace(layout, leaf)
        if trace.end.outcome != "infrastructure":
            probes = list(trace.of(Probe))
            yield Outcome(
                right=sum(probe.correct for probe in probes),
                asked=len(probes),
                refused=sum(bool(event.error) for event in trace.of(Action)),
                ended=trace.end.outcome == "agent_raised",
            )


def honest_alarm(seeds, cell):
    """Return episodes of an honest agent, and those that the harness objects to."""
    name, family, tier = cell
    alarms = 0
    for seed in range(seeds):
        agent = recall_episodes.reference(name, **HONEST[name])
        with tempfile.TemporaryDirectory() as folder:
            try:
                place = Path(folder) / "memory"
                played = recall_episodes.play(agent, place, family, tier, seed=seed)
                alarms += any(getattr(e, "error", None) for e in played.events)
            except MemoryFault:
                alarms += 1
    return name, seeds, alarms


def most(count, total):
    """Return the one-sided 95 percent Clopper-Pearson bound of a share."""
    return stats.binomtest(count, total, alternative="less").proportion_ci(0.95).high


def cheat_lines(episodes, state):
    """Yield the lines of the table of cheats."""
    yield (
        "| cheat | where it keeps the register | episodes | ended by the harness | "
        "calls refused | right answers | episodes with one | at most (95 %) |"
    )
    yield "|---" * 8 + "|"
    for name, (where, tier) in CHEATS.items():
        found = list(run_cheat(name, tier, episodes, state))
        right, asked = sum(o.right for o in found), sum(o.asked for o in found)
        any_right = sum(o.right > 0 for o in found)
        yield (
            f"| {name} | {where} | {len(found)} | {sum(o.ended for o in found)} | "
            f"{sum(o.refused for o in found)} | {right} of {asked} | {any_right} | "
            f"{most(any_right, len(found)):.4f} |"
        )


def honest_lines(seeds):
    """Yield the lines of the table of honest agents."""
    cells = list(product(HONEST, generate.FAMILIES, generate.TIERS))
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(partial(honest_alarm, seeds), cells))
    yield "| honest agent | episodes | alarms | at most (95 %) |"
    yield "|---|---|---|---|"
    for name in (*HONEST, "all"):
        own = [row for row in found if name in (row[0], "all")]
        count, alarms = sum(row[1] for row in own), sum(row[2] for row in own)
        yield f"| {name} | {count} | {alarms} | {most(alarms, count):.4f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--honest", type=int, default=12, help="seeds a cell")
    parser.add_argument("--state", type=Path, default=STATE)
    given = parser.parse_args()
    state = given.state.resolve()
    state.mkdir(parents=True, exist_ok=True)
    shutil.copy(BUILDER, state)
    lines = [
        "# Cheats and honest agents on Recall",
        "",
        "Made by `python benchmarks/recall_cheats.py"
        + (f" --episodes {given.episodes}" if given.episodes != 300 else "")
        + (f" --honest {given.honest}" if given.honest != 12 else "")
        + "`, which says what is played.",
        "",
        *cheat_lines(given.episodes, state),
        "",
        "Names of files count: where they fit in the quota, Names has kept to the "
        "rule. `--in-process`, agents behind an address and clients are refused before "
        "an episode begins.",
        "",
        *honest_lines(given.honest),
        "",
        "An alarm is a folder over its quota or a refused action.",
    ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
