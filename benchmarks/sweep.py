"""The control battery: what must hold for the scores of a suite to mean anything.

    python benchmarks/sweep.py          ToolQuest, 200 seeds a cell
    python benchmarks/sweep.py --suite recall        3 seeds a cell
    python benchmarks/sweep.py --suite changesurf    in a real browser, one seed a cell
    python benchmarks/sweep.py --suite multicrew/codebase    real code, one seed a cell
    python benchmarks/sweep.py --slice  seeds and cells chosen by the commit, and the
                                        table's first seed, which its rows must fit
    python benchmarks/sweep.py --seeds 20              fewer a cell, told in the table
    python benchmarks/sweep.py --families reconcile    some families; writes nothing

Cells are those of sweep_grounds.py; all of them make a table in docs/tables/. In every
cell: the oracle scores 1, the no-op at most .05, the plausible-wrong policy at most .5,
the over-doer less than the oracle, the leak probe what the no-op scores, and three
reruns of the oracle leave one replay digest. On a honeypot nobody succeeds and the
oracle declares it infeasible.
"""

import argparse
import functools
import itertools
import multiprocessing
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from players import brief_agent, play_out
from rich.progress import Progress
from sweep_grounds import GROUNDS, NONE, POLICIES, Cell, Ground, calendar_of, magnitude_of

from owa_bench.canonical import sha256
from owa_bench.discovery import find, get
from owa_bench.drift import calendar as calendars
from owa_bench.drift import timeline as timelines
from owa_bench.interfaces import Sink
from owa_bench.records.instance import Instance
from owa_bench.records.trace import replay_line
from owa_bench.seeding import derive, stream
from owa_bench.shells.episode_events import ListSink, NullSink

ROOT = Path(__file__).resolve().parent.parent
TABLES = ROOT / "docs" / "tables"
RERUNS = 3


class Played(NamedTuple):
    """One instance under every policy: q_state by policy, and what else must hold."""

    cell: Cell
    seed: int
    scores: dict[str, float]
    outcome: str
    digests: int
    realised: float


class Task(NamedTuple):
    """One instance that a worker plays."""

    suite: str
    cell: Cell
    seed: int


def terms_digest(ground: Ground) -> str:
    """Return the digest of what a table is of: worlds, and versions of what made them.

    A change of a world changes its golden digest; a change of behaviour is a new
    version of the suite or of an operator. So code may be rearranged under a table.
    """
    card = get("suites", ground.suite).card
    operators = {
        name: entry.plugin.version
        for name, entry in find("operators").items()
        if name.startswith(f"{card.domain}/") and not entry.package
    }
    terms = {"version": card.version, "operators": operators, "policies": POLICIES}
    worlds = (ROOT / "tests" / "golden" / ground.golden).read_bytes()
    return sha256(msgspec.json.encode(terms, order="sorted") + worlds)


@functools.cache
def held(suite: str) -> Any:
    """Return what this worker keeps for all its episodes."""
    return GROUNDS[suite].hold()


def play_instance(task: Task) -> Played:
    """Return what every policy makes of one instance."""
    held(task.suite)
    suite, cell = get("suites", task.suite), task.cell
    calendar = calendars.parse(calendar_of(cell.drift), suite.card.domain)
    instance = Instance(
        suite=suite.card.name,
        version=suite.card.version,
        family=cell.family,
        tier=cell.tier,
        seed=task.seed,
    )
    if cell.drift != NONE:
        magnitude = magnitude_of(cell.drift)
        step = timelines.drift_step(task.suite, instance, magnitude, calendar)
        instance = msgspec.structs.replace(instance, drift_step=step)
    env: Any = suite.env(timelines.source(task.suite, calendar)).unwrapped
    # Nothing of the others is compared but the score: no need to record them.
    others = {name: play(env, name, instance, NullSink()) for name in POLICIES if name != "oracle"}
    runs = [ListSink() for _ in range(RERUNS)]
    found = [play(env, "oracle", instance, sink) for sink in runs]
    realised = env.timeline.realised
    env.close()
    return Played(
        cell=cell,
        seed=task.seed,
        scores={**{n: q for n, (q, _) in others.items()}, "oracle": found[0][0]},
        outcome=found[0][1],
        digests=len({replay_digest(sink) for sink in runs}),
        realised=realised,
    )


def play(env: Any, policy: str, instance: Instance, sink: Sink) -> tuple[float, str]:
    """Return q_state and outcome of one episode."""
    env.attach(sink)
    start = env.reset(options={"instance": instance})
    agent = get("suites", instance.suite).policies[policy](env.oracle_access())
    brief_agent(env, agent, Path())
    info = play_out(env, agent, start)
    agent.close()
    return info["q_state"], info["outcome"]


def replay_digest(sink: ListSink) -> str:
    """Return the digest of what an episode left and a replay must leave again."""
    lines = [line for event in sink.events if (line := replay_line(event)) is not None]
    return sha256(b"\n".join(lines))


def faults(ground: Ground, played: Played) -> list[str]:
    """Return what does not hold for one instance."""
    scores, theta = played.scores, get("suites", ground.suite).card.theta
    reruns = played.digests == 1
    if played.cell.family in ground.honeypots:
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
    ground: Ground, cells: Sequence[Cell], seeds: Sequence[int], workers: int
) -> Iterator[Played]:
    """Yield every instance played, in order, with a progress bar on the terminal."""
    tasks = [Task(ground.suite, cell, seed) for cell in cells for seed in seeds]
    chunk = max(1, min(8, len(tasks) // (4 * workers)))
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context)
    with Progress() as bar, pool:
        job = bar.add_task("control battery", total=len(tasks))
        for played in pool.map(play_instance, tasks, chunksize=chunk):
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


def stale_rows(page: str, results: Sequence[Played]) -> Iterator[str]:
    """Yield the results that the table's rows leave no room for.

    A row of one instance must be equal. A row of many holds extremes, which none of
    its instances may pass; the mean of the random policy says nothing of one instance.
    """
    rows = {}
    for line in page.splitlines():
        parts = [part.strip() for part in line.strip("|").split("|")]
        if len(parts) > 3 and parts[1].isdecimal():
            rows[Cell(parts[0], int(parts[1]), parts[2])] = (line, parts)
    for played in results:
        if played.cell not in rows:
            yield f"the table has no row of {played.cell}"
            continue
        line, (*_, count, _, oracle, noop, _, wrong, over, leak, _) = rows[played.cell]
        scores = {name: round(q, 3) for name, q in played.scores.items()}
        fits = (
            scores["oracle"] >= float(oracle)
            and scores["noop"] <= float(noop)
            and scores["plausible_wrong"] <= float(wrong)
            and scores["over_doer"] <= float(over)
            and scores["leak_probe"] <= float(leak)
        )
        if not fits or (count == "1" and line not in table([played])):
            yield f"{played.cell} seed {played.seed} is not what its row says: {scores}"


def write(ground: Ground, results: list[Played], broken: list[str]) -> None:
    """Write the committed table."""
    verdict = (
        f"Every rule holds on {len(results)} instances."
        if not broken
        else f"{len(broken)} rules are broken."
    )
    title = get("suites", ground.suite).card.title
    title += f", {ground.part}" if ground.part else ""
    count = len({played.seed for played in results})
    fewer = "" if count == ground.seeds else f" --seeds {count}"
    TABLES.mkdir(parents=True, exist_ok=True)
    (TABLES / ground.table).write_text(
        f"# Control battery of {title}\n\n"
        f"Made by `python benchmarks/sweep.py --suite {ground.name}{fewer}`, which"
        " says what each column must be.\nDrift at full magnitude of the class where no"
        " other is named; q_state of each control policy.\n\n"
        f"Worlds and versions: `{terms_digest(ground)}`\n\n{verdict}\n\n"
        f"{table(results)}\n"
    )


def of_commit() -> int:
    """Return a number that follows from the commit, so that CI roams over instances."""
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    return int(head[:12] or "0", 16)


def sliced(ground: Ground, cells: list[Cell]) -> list[Cell]:
    """Return the cells of a slice, drawn by the commit."""
    if not ground.slice_cells:
        return cells
    order = stream(of_commit(), "sweep", "cells").permutation(len(cells)).tolist()
    return [cells[i] for i in sorted(order[: ground.slice_cells])]


def arguments() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", choices=GROUNDS, default="toolquest")
    parser.add_argument("--seeds", type=int, help="seeds a cell")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--slice", action="store_true", help="what CI runs")
    parser.add_argument(
        "--families", nargs="+", help="only these families or sites; writes no table"
    )
    found = parser.parse_args()
    known = GROUNDS[found.suite].choices
    if unknown := set(found.families or ()) - set(known):
        parser.error(f"--families must be of {', '.join(known)}, got {unknown}")
    return found


def main() -> int:
    """Play the battery; 0 if every rule holds and the table is of these sources."""
    asked = arguments()
    ground = GROUNDS[asked.suite]
    cells = ground.cells(tuple(asked.families or ground.choices))
    first = derive(0, "sweep", 0) % ground.seed_limit
    if asked.slice:
        count, root = ground.slice_seeds, of_commit()
        cells = sliced(ground, cells)
    else:
        count, root = asked.seeds or ground.seeds, 0
    seeds = [derive(root, "sweep", i) % ground.seed_limit for i in range(count)]
    if asked.slice:
        seeds.append(first)
    results = list(sweep(ground, cells, seeds, asked.workers))
    broken = [fault for played in results for fault in faults(ground, played)]
    page = TABLES / ground.table
    if asked.slice:
        again = f"run `python benchmarks/sweep.py --suite {ground.name}`"
        text = page.read_text()
        if terms_digest(ground) in text:
            kept = [played for played in results if played.seed == first]
            broken += [f"{fault}: {again}" for fault in stale_rows(text, kept)]
        else:  # told, and no failure: the whole battery takes hours
            print(f"{page.relative_to(ROOT)} is of earlier worlds: {again}")
    elif not asked.families:
        write(ground, results, broken)
    print(table(results))
    print("\n".join(broken[:50]) or f"every rule holds on {len(results)} instances")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
