"""Dose and response on ChangeSurf: what agents keep, by magnitude and class.

    python benchmarks/changesurf_dose.py   docs/tables/changesurf_dose.md and a figure
    python benchmarks/changesurf_dose.py --minutes 4   plays on where it stopped

Four agents know the way that solves the undrifted site and walk it again: `ids` by the
ids of the controls (no tool can name an id, so it plays in process), `fixed` by their
numbers, `exact_label` by their words, `lexicon` by likely words. The others are told
nothing but the goal: `agentic` and `orchestrator` read the site with every habit on,
`self_improving` with those of a beginner. Nobody asks the supervisor. The placebo arm
is the undrifted site with fresh ids and classes and nothing else: a drop there is
hard-coding, not weakness under drift. Cells hold the mean q_state; all agents meet the
same sites. Results are kept in --state, a line each: a stopped run goes on.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import kept_results
import msgspec
from kept_results import share_of
from players import brief_agent, play_out

from owa_bench import discovery
from owa_bench.drift import calendar as calendars
from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.interfaces import AgentConfig
from owa_bench.records.instance import Instance
from owa_bench.seeding import derive
from owa_bench.shells.solution import solve

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "tables" / "changesurf_dose.md"
FIGURE = ROOT / "docs" / "figures" / "changesurf_dose.svg"
STATE = ROOT / "runs" / "changesurf_dose.jsonl"
WALKERS = ("ids", "fixed", "exact_label", "lexicon")
AGENTS = (*WALKERS, "self_improving", "agentic", "orchestrator")
FAMILIES = ("stay/find", "ledger/transfer", "permit/apply", "depot/buy")
PLACEBO = "single:web/id_churn"
LEVELS = {"nested": (0.0, 0.25, 0.5, 1.0)} | {f"nested:D{i}": (0.25, 1.0) for i in range(4)}


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


class Task(NamedTuple):
    """One site in one cell, for all agents."""

    family: str
    seed: int
    cell: Cell

    @property
    def key(self) -> str:
        """What its results are kept under."""
        return json.dumps(self)


Results = Mapping[str, Mapping[str, float]]


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


@cache
def still_of(family: str, seed: int) -> tuple[Instance, tuple[str, ...]]:
    """Return a site before any drift, and the oracle's actions on it."""
    still = Instance(suite="changesurf", version=3, family=family, tier=1, seed=seed)
    return still, solve(SUITE, timelines.source("changesurf")(still)).actions


def play(task: Task) -> dict[str, float]:
    """Let every agent play one site in one cell."""
    still, script = still_of(task.family, task.seed)
    calendar = calendars.parse(task.cell.calendar, "web")
    step = 0
    if task.cell.delta:
        step = timelines.drift_step("changesurf", still, task.cell.delta, calendar)
    instance = msgspec.structs.replace(still, drift_step=step)
    source = timelines.source("changesurf", calendar)
    env: Any = SUITE.env(source, interventions=0).unwrapped
    way = way_of(env, still, script)
    scores = {}
    for name in AGENTS:
        start = env.reset(options={"instance": instance})
        agent: Any = ById(env.oracle_access(), way)
        if name != "ids":
            known = script if name in WALKERS else ()
            agent = discovery.get("agents", name).make(AgentConfig(script=known))
            brief_agent(env, agent, interventions_left=0, seed=task.seed % 2**31)
        scores[name] = float(play_out(env, agent, start)["q_state"])
    env.close()
    return scores


def tasks(seeds: int) -> list[Task]:
    """Return every site in every cell; a beginning of the list has all cells."""
    drawn = [derive(0, "changesurf dose", i) for i in range(seeds)]
    order = cells()
    return [Task(f, seed, cell) for seed in drawn for f in FAMILIES for cell in order]


def means(results: Results, todo: Sequence[Task], name: str) -> list[float]:
    """Return an agent's mean score in every cell, in order; NaN where none played."""
    found = []
    for cell in cells():
        own = [results[t.key][name] for t in todo if t.cell == cell and t.key in results]
        found.append(sum(own) / len(own) if own else float("nan"))
    return found


def table(results: Results, todo: Sequence[Task]) -> str:
    """Return the table in Markdown."""
    rows = [
        "| agent | " + " | ".join(cell.title for cell in cells()) + " |",
        "|---" * (len(cells()) + 1) + "|",
    ]
    for name in AGENTS:
        row = " | ".join(f"{mean:.2f}" for mean in means(results, todo, name))
        rows.append(f"| {name} | {row} |")
    return "\n".join(rows)


def figure(results: Results, todo: Sequence[Task]) -> None:
    """Draw the response to all operators, and to each class at full magnitude."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "changesurf dose"
    from matplotlib import pyplot as plt

    order = cells()
    doses = [i for i, c in enumerate(order) if c.calendar == "nested"]
    classes = [i for i, c in enumerate(order) if ":D" in c.calendar and c.delta == 1.0]
    drawing, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True)
    for name in AGENTS:
        scores = means(results, todo, name)
        left.plot([order[i].delta for i in doses], [scores[i] for i in doses], "o-")
        right.plot([order[i].title[:2] for i in classes], [scores[i] for i in classes], "o")
    left.set(xlabel="magnitude, all operators", ylabel="mean q_state")
    right.set(xlabel="class alone, magnitude 1")
    right.legend(AGENTS, loc="center left", bbox_to_anchor=(1.0, 0.5))
    drawing.tight_layout()
    drawing.savefig(FIGURE, metadata={"Date": None})
    plt.close(drawing)


def main() -> int:
    """Play, print and write the table and the figure."""
    given = kept_results.options(__doc__.splitlines()[0], STATE).parse_args()
    todo = tasks(given.seeds)
    kept_results.run(share_of(todo, given.shard), given.state, given.minutes, play)
    results = kept_results.kept(given.state)
    text = table(results, todo)
    print(text)
    if not given.print_only:
        figure(results, todo)
        played = sum(task.key in results for task in todo)
        TABLE.write_text(
            "# Dose and response on ChangeSurf\n\n"
            f"Made by `python benchmarks/changesurf_dose.py --seeds {given.seeds}`,"
            " which says what the agents are.\n"
            f"Tier 1, families {', '.join(FAMILIES)}, {given.seeds} seeds each"
            f" ({played} of {len(todo)} sites in cells\nplayed by every agent): mean"
            " q_state by announcement class and magnitude.\n\n"
            f"{text}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
