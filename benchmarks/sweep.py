"""The control battery of ToolQuest: what must hold for the scores to mean anything.

    python benchmarks/sweep.py          200 seeds a cell; writes docs/tables/sweep.md
    python benchmarks/sweep.py --slice  a few seeds chosen by the commit; checks that
                                        the committed table is of these sources
    python benchmarks/sweep.py --seeds 6 --families reconcile   some; writes nothing

A cell is a family at a tier under the drift of one announcement class at full magnitude
(`all`: every class; `none`: no drift). In every cell: the oracle scores 1, the no-op at
most .05, the plausible-wrong policy at most .5, the over-doer less than the oracle,
the leak probe what the no-op scores, and three reruns of the oracle leave one replay
digest. On a honeypot nobody succeeds and the oracle declares it infeasible.
"""

import argparse
import hashlib
import itertools
import multiprocessing
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from rich.progress import Progress

from owa_bench import calendars
from owa_bench.canonical import sha256
from owa_bench.envs.toolquest.generate import HONEYPOT_FAMILIES
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.interfaces import Brief
from owa_bench.records.events import replay_line
from owa_bench.records.instance import Instance
from owa_bench.run import assembly
from owa_bench.seeding import derive
from owa_bench.shells.sink import ListSink

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "tables" / "sweep.md"
SOURCES = (
    "owa_bench/envs/toolquest/**/*.py",
    "owa_bench/drift/api/*.py",
    "owa_bench/worlds/api*.py",
    # What calendars.py, which other domains share, makes of them: every drift order.
    "tests/golden/worlds.json",
)
CLASSES = {
    "none": "nested",
    "D0": "nested:D0",
    "D1": "nested:D1",
    "D2": "nested:D2",
    "D3": "nested:D3",
    "all": "nested",
}
POLICIES = (
    "noop",
    "random",
    "plausible_wrong",
    "over_doer",
    "leak_probe",
    "oracle",
)
RERUNS = 3
SLICE_SEEDS = 3


class Cell(NamedTuple):
    """One row of the table before it is played."""

    family: str
    tier: int
    drift: str


class Played(NamedTuple):
    """One instance under every policy: q_state by policy, and what else must hold."""

    cell: Cell
    seed: int
    scores: dict[str, float]
    outcome: str
    digests: int
    realised: float


def source_digest() -> str:
    """Return the digest of the sources and of the worlds that they make."""
    digest = hashlib.sha256()
    for path in sorted(p for pattern in SOURCES for p in ROOT.glob(pattern)):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def cells(families: Sequence[str]) -> list[Cell]:
    """Return every cell: families by tier by drift class, and undrifted honeypots."""
    plain = itertools.product(families, SUITE.card.tiers, CLASSES)
    robbed = [name for name in HONEYPOT_FAMILIES if name.partition("-")[0] in families]
    pots = itertools.product(robbed, SUITE.card.tiers, ("none",))
    return [Cell(*row) for row in (*plain, *pots)]


def play_instance(task: tuple[Cell, int]) -> Played:
    """Return what every policy makes of one instance."""
    cell, seed = task
    calendar = calendars.parse(CLASSES[cell.drift], SUITE.card.domain)
    instance = Instance(
        suite=SUITE.card.name,
        version=SUITE.card.version,
        family=cell.family,
        tier=cell.tier,
        seed=seed,
    )
    if cell.drift != "none":
        step = assembly.drift_step("toolquest", instance, 1.0, calendar)
        instance = msgspec.structs.replace(instance, drift_step=step)
    env: Any = SUITE.env(assembly.source("toolquest", calendar)).unwrapped
    runs = {name: _play(env, name, instance) for name in POLICIES}
    again = [_play(env, "oracle", instance)[2] for _ in range(RERUNS - 1)]
    realised = env.timeline.realised
    env.close()
    return Played(
        cell=cell,
        seed=seed,
        scores={name: run[0] for name, run in runs.items()},
        outcome=runs["oracle"][1],
        digests=len({runs["oracle"][2], *again}),
        realised=realised,
    )


def _play(env: Any, policy: str, instance: Instance) -> tuple[float, str, str]:
    """Return q_state, outcome and replay digest of one episode."""
    sink = ListSink()
    env.attach(sink)
    observation, info = env.reset(options={"instance": instance})
    agent = SUITE.policies[policy](env.privilege())
    task = env.task
    brief = Brief(text=task.text, goal=task.goal, propositions=task.propositions)
    agent.reset(brief, env.tools, Path())
    over = False
    while not over:
        action = agent.act(observation, info)
        observation, _, ended, cut, info = env.step(action)
        over = ended or cut
    agent.close()
    lines = [line for event in sink.events if (line := replay_line(event)) is not None]
    return info["q_state"], info["outcome"], sha256(b"\n".join(lines))


def faults(played: Played) -> list[str]:
    """Return what does not hold for one instance."""
    scores, theta = played.scores, SUITE.card.theta
    reruns = played.digests == 1
    if played.cell.family in HONEYPOT_FAMILIES:
        rules = {
            "the oracle declares a honeypot infeasible": played.outcome == "infeasible",
            "nobody passes a honeypot": max(scores.values()) < theta,
        }
    else:
        rules = {
            "oracle = 1": scores["oracle"] == 1.0,
            "no-op <= .05": scores["noop"] <= 0.05,
            "plausible-wrong <= .5": scores["plausible_wrong"] <= 0.5,
            "over-doer < oracle": scores["over_doer"] < scores["oracle"],
            "leak probe = no-op": scores["leak_probe"] == scores["noop"],
        }
    rules[f"{RERUNS} reruns, one digest"] = reruns
    where = f"{played.cell} seed {played.seed} {scores}"
    return [f"{rule}: {where}" for rule, holds in rules.items() if not holds]


def sweep(
    families: Sequence[str], seeds: Sequence[int], workers: int
) -> Iterator[Played]:
    """Yield every instance played, in order, with a progress bar on the terminal."""
    tasks = [(cell, seed) for cell in cells(families) for seed in seeds]
    context = multiprocessing.get_context("spawn")
    with Progress() as bar, context.Pool(workers) as pool:
        job = bar.add_task("control battery", total=len(tasks))
        for played in pool.imap(play_instance, tasks, chunksize=8):
            bar.advance(job)
            yield played


def table(results: list[Played]) -> str:
    """Return the table in Markdown: extremes of q_state in each cell."""
    head = (
        "| family | tier | drift | n | realised | oracle min | no-op max |"
        " random mean | plausible-wrong max | over-doer max | leak probe max |"
        " one digest |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|"
    )
    rows = [head]
    for cell, group in itertools.groupby(results, key=lambda played: played.cell):
        members = list(group)
        by = {name: [m.scores[name] for m in members] for name in POLICIES}
        random = sum(by["random"]) / len(members)
        same = sum(m.digests == 1 for m in members)
        realised = sum(m.realised for m in members) / len(members)
        rows.append(
            f"| {cell.family} | {cell.tier} | {cell.drift} | {len(members)} |"
            f" {realised:.2f} | {min(by['oracle']):.3f} | {max(by['noop']):.3f} |"
            f" {random:.3f} | {max(by['plausible_wrong']):.3f} |"
            f" {max(by['over_doer']):.3f} | {max(by['leak_probe']):.3f} |"
            f" {same}/{len(members)} |"
        )
    return "\n".join(rows)


def write(results: list[Played], broken: list[str]) -> None:
    """Write the committed table."""
    verdict = "Every rule holds." if not broken else f"{len(broken)} rules are broken."
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text(
        "# Control battery of ToolQuest\n\n"
        "Made by `make sweep` (`python benchmarks/sweep.py`), which says what each"
        " column must be.\nDrift at full magnitude of the class; q_state of each"
        " control policy.\n\n"
        f"Sources: `{source_digest()}`\n\n{verdict}\n\n{table(results)}\n"
    )


def commit_seeds(count: int) -> list[int]:
    """Return seeds that follow from the commit, so that CI roams over the instances."""
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return [derive(int(head[:12] or "0", 16), "sweep", i) for i in range(count)]


def main() -> int:
    """Play the battery; 0 if every rule holds and the table is of these sources."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200, help="seeds a cell")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--slice", action="store_true", help="what CI runs")
    parser.add_argument(
        "--families",
        nargs="+",
        choices=SUITE.card.families,
        help="only these; writes no table",
    )
    arguments = parser.parse_args()
    if arguments.slice:
        seeds = commit_seeds(SLICE_SEEDS)
    else:
        seeds = [derive(0, "sweep", i) for i in range(arguments.seeds)]
    families = arguments.families or SUITE.card.families
    results = list(sweep(families, seeds, arguments.workers))
    broken = [fault for played in results for fault in faults(played)]
    if not (arguments.slice or arguments.families):
        write(results, broken)
    elif arguments.slice and (
        not TABLE.exists() or source_digest() not in TABLE.read_text()
    ):
        broken.append(f"{TABLE.relative_to(ROOT)} is stale: run `make sweep`")
    print(table(results))
    print("\n".join(broken[:50]) or f"every rule holds on {len(results)} instances")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
