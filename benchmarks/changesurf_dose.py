"""Dose and response on ChangeSurf: what scripted agents keep, by magnitude and class.

    python benchmarks/changesurf_dose.py            writes docs/tables/changesurf_dose.md
    python benchmarks/changesurf_dose.py --print-only   and leaves it alone

Each agent knows the way that solves the undrifted site and walks it again: `ids` by the
ids of the controls (no tool can name an id, so it plays in process), `fixed` by their
numbers, `exact_label` by their words, `lexicon` by likely words. The placebo arm is the
undrifted site with fresh ids and classes and nothing else: a drop there is hard-coding,
not weakness under drift. Cells hold the mean q_state; all agents meet the same sites.
"""

import argparse
import json
import multiprocessing
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from owa_bench import calendars, discovery
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.interfaces import AgentConfig, Brief
from owa_bench.records.instance import Instance
from owa_bench.run import assembly
from owa_bench.seeding import derive
from owa_bench.shells.solution import solve

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "tables" / "changesurf_dose.md"
AGENTS = ("ids", "fixed", "exact_label", "lexicon")
FAMILIES = ("stay/find", "ledger/transfer", "permit/apply", "depot/buy")
PLACEBO = "single:web/id_churn"
LEVELS = {"nested": (0.0, 0.25, 0.5, 1.0)} | {
    f"nested:D{i}": (0.25, 1.0) for i in range(4)
}


class Cell(NamedTuple):
    """One column of the table: a calendar at a magnitude."""

    calendar: str
    delta: float

    @property
    def title(self) -> str:
        """What the column is called."""
        if self.calendar == PLACEBO:
            return "placebo"
        kind = self.calendar.partition(":")[2] or "all"
        return "0" if not self.delta else f"{kind} {self.delta:g}"


class Played(NamedTuple):
    """What every agent made of one instance in one cell."""

    cell: Cell
    scores: dict[str, float]


class ById:
    """Walks the undrifted way by the ids its controls had."""

    def __init__(self, privilege: Any, way: tuple[tuple[str, str], ...]) -> None:
        self._privilege = privilege
        self._way = list(way)

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next act of the way, the end if its id is not there."""
        end = {"tool": "finish", "arguments": {"answer": "", "p": 0.5}}
        if not self._way:
            return json.dumps(end)
        ident, action = self._way.pop(0)
        call = json.loads(action)
        if not ident:
            return action
        _, state = self._privilege.observe()
        refs = [c.ref for c in state.controls if c.ident == ident]
        if not refs:
            self._way.clear()
            return json.dumps(end)
        call["arguments"]["ref"] = refs[0]
        return json.dumps(call)


def cells() -> list[Cell]:
    """Return every column: the placebo, then classes by magnitude."""
    found = [Cell("nested", 0.0), Cell(PLACEBO, 1.0)]
    return found + [Cell(c, d) for c, ds in LEVELS.items() for d in ds if d]


def way_of(env: Any, still: Instance, script: tuple[str, ...]) -> Any:
    """Return (id, action) for each action of the oracle on the undrifted site."""
    env.reset(options={"instance": still})
    way = []
    for action in script:
        ref = json.loads(action)["arguments"].get("ref", 0)
        control = env.session.state.page.control(ref)
        way.append((control.ident if control else "", action))
        env.step(action)
    return tuple(way)


def finish(env: Any, agent: Any, observation: Any, info: Any) -> float:
    """Return the q_state that an agent comes to."""
    over = False
    while not over:
        observation, _, ended, cut, info = env.step(agent.act(observation, info))
        over = ended or cut
    return float(info["q_state"])


def play(task: tuple[str, int]) -> list[Played]:
    """Play one instance in every cell."""
    family, seed = task
    still = Instance(suite="changesurf", version=1, family=family, tier=1, seed=seed)
    script = solve(SUITE, assembly.source("changesurf")(still)).actions
    results = []
    for cell in cells():
        calendar = calendars.parse(cell.calendar, "web")
        step = 0
        if cell.delta:
            step = assembly.drift_step("changesurf", still, cell.delta, calendar)
        instance = msgspec.structs.replace(still, drift_step=step)
        env: Any = SUITE.env(assembly.source("changesurf", calendar)).unwrapped
        way = way_of(env, still, script)
        scores = {}
        for name in AGENTS:
            observation, info = env.reset(options={"instance": instance})
            if name == "ids":
                agent: Any = ById(env.privilege(), way)
            else:
                card = discovery.get("agents", name)
                agent = card.make(AgentConfig(script=script))
                brief = Brief(text=env.task.text, goal=env.task.goal)
                agent.reset(brief, env.tools, Path())
            scores[name] = finish(env, agent, observation, info)
        env.close()
        results.append(Played(cell, scores))
    return results


def table(results: list[Played]) -> str:
    """Return the table in Markdown."""
    order = cells()
    rows = [
        "| agent | " + " | ".join(cell.title for cell in order) + " |",
        "|---" * (len(order) + 1) + "|",
    ]
    for name in AGENTS:
        means = []
        for cell in order:
            found = [p.scores[name] for p in results if p.cell == cell]
            means.append(f"{sum(found) / len(found):.2f}")
        rows.append(f"| {name} | " + " | ".join(means) + " |")
    return "\n".join(rows)


def main() -> int:
    """Play, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--print-only", action="store_true")
    arguments = parser.parse_args()
    seeds = [derive(0, "changesurf dose", i) for i in range(arguments.seeds)]
    tasks = [(family, seed) for family in FAMILIES for seed in seeds]
    context = multiprocessing.get_context("spawn")
    with context.Pool(arguments.workers) as pool:
        results = [p for found in pool.imap(play, tasks) for p in found]
    text = table(results)
    print(text)
    if not arguments.print_only:
        TABLE.write_text(
            "# Dose and response on ChangeSurf\n\n"
            f"Made by `python benchmarks/changesurf_dose.py --seeds"
            f" {arguments.seeds}`, which says what the agents are. Tier 1, families"
            f" {', '.join(FAMILIES)}, {arguments.seeds} seeds each: mean q_state by"
            " announcement class and magnitude.\n\n"
            f"{text}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
