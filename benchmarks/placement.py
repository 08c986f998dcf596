"""How often a placement says what is not so, and what it takes: a table by simulation.

    python benchmarks/placement.py                 writes its page in docs/tables
    python benchmarks/placement.py --rounds 200    a quick look, printed only; --write keeps it
    python benchmarks/placement.py --part "Days differ"    the parts whose headings begin so
    python benchmarks/placement.py --run RUN ..    how alike episodes of one world are in runs

The rule is that of reports (`PlacementRule.replay`) on the pool of battery `place`; agents are
planted (planted_agents.py). An agent whose gate lies just at what a PASS refutes may pass in .05;
one whose gate lies at what is required may be BELOW in .05.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from planted_agents import EARLY, GATES, SHAPES, Agent, PlantedPool, alike_in, clear, skilled

from owa_bench.placement.forecast import MARGINS, stage_forecasts
from owa_bench.records import price_card, protocol
from owa_bench.records.observables import Floats
from owa_bench.records.placement import BAR, DATES, LOST_MOST
from owa_bench.runs.plan.request import Request, draft_plan
from owa_bench.runs.plan.tokens import token_use
from owa_bench.scoring.placement.dates import is_below, passes
from owa_bench.scoring.placement.rule import PlacementRule
from owa_bench.seeding import stream

TABLE = Path(__file__).resolve().parent.parent / "docs" / "tables" / "placement.md"
CHUNK = 125
ROUNDS = 10_000  # agents of a row of uneven cells at a boundary
DAYS = "Days differ"
ALLOWED, OFTEN = 0.05, 0.95
ICC = 0.3  # [D] of a served model; `--run` prints a run's, and no gate reads a world twice
# [D] An episode of the whole battery `full` by a chat model with prompt caching and the default
# price card: 80,000 USD over 238,440 episodes.
USD = 0.34
SUCCESS = (0.25, 0.35, 0.45, 0.55, 0.60, 0.65, 0.75, 0.85)
# Aims: (success at most or at least, what is said, episodes, USD), in OFTEN of agents.
AIMS = ((0.35, "below", 200, 100.0), (0.75, "AAI-1", 350, 150.0))
SHOCKS = (0.0, 0.03, 0.06, 0.10)  # spread of what a date adds to all chances
SERVED = (0.25, 0.45, 0.65, 0.75, 0.85)  # success of served models
EACH = tuple(range(1, 20))  # batches with which a new date begins: every one
SPLIT = (2, 5)  # plans of one submitter
WITHIN = (0.56, 0.57, 0.58, 0.59)  # success between what a PASS shows and what is required
BLAMED = 0.3  # share of failures that an attacker lays to faults


class Row(NamedTuple):
    """Agents of one kind, placed.

    `gate` is the one that is looked at; `agents` how many; `plans` the plans challenged for one
    submitter; `dates` those that the level needs.
    """

    name: str
    gate: str
    agent: Agent
    agents: int
    plans: int = 1
    dates: int = 1


class Outcome(NamedTuple):
    """How one placement ended."""

    said: str
    passed: frozenset[str]
    below: frozenset[str]
    episodes: int
    lost: int
    batches: int

    @property
    def level(self) -> bool:
        """Whether the level is given: all gates, and not too many episodes lost."""
        return self.said == "AAI-1" and self.lost <= LOST_MOST * self.episodes


class Found(NamedTuple):
    """A row and how its placements ended."""

    row: Row
    outcomes: tuple[Outcome, ...]

    def passed(self) -> Floats:
        """Return whether the row's gate passed, by agent."""
        return np.array([self.row.gate in one.passed for one in self.outcomes], float)

    def below(self) -> Floats:
        """Return whether the row's gate was BELOW, by agent."""
        return np.array([self.row.gate in one.below for one in self.outcomes], float)

    def said(self, what: str) -> Floats:
        """Return whether a placement ended in `what`, by agent."""
        return np.array([one.said == what for one in self.outcomes], float)

    def episodes(self) -> Floats:
        """Return the episodes of each placement."""
        return np.array([one.episodes for one in self.outcomes], float)

    def batches(self) -> Floats:
        """Return the batches of each placement."""
        return np.array([one.batches for one in self.outcomes], float)


STAGES_TEXT = (
    "What comes after AAI-1 and the gates of AAI-2 that bet on the pool. Chance to pass, by "
    "formula, of an agent whose figures lie so much above what is required; of kappa, whose gain "
    "is so much; of maintenance, that keeps everything and whose episodes are not alike from lane "
    "to lane (where they are it is greater: maintenance_power.md). A blank has no formula. All: "
    "the product of the numbers. USD are of a chat agent, by the price card with its cache."
)

_POOLS: dict[tuple[int, int], PlantedPool] = {}


def pool_of(plans: int, dates: int = 1) -> PlantedPool:
    """Return the pool of battery `place`, under the bar of so many plans, for so many dates."""
    if (plans, dates) not in _POOLS:
        if _POOLS:
            rule = next(iter(_POOLS.values())).rule
        else:
            asked = Request(agents=("agentic",), battery="place", sandbox="none")
            draft = draft_plan(asked, in_process=True)
            rule = PlacementRule(draft.plan, protocol.load(draft.protocol), bounds=False).upto(1)
        terms = replace(rule.plan.placement, dates=dates)
        plan = replace(rule.plan, placement=terms)
        _POOLS[plans, dates] = PlantedPool(
            PlacementRule(plan, rule.protocol, plans, bounds=False).upto(1)
        )
    return _POOLS[plans, dates]


def placed(row: Row, chunk: int) -> list[Outcome]:
    """Return how the placements of a chunk of a row's agents end."""
    pool = pool_of(row.plans, row.dates)
    rng = stream(chunk, "placement", row.name)
    count = min(CHUNK, row.agents - chunk * CHUNK)
    ends = []
    for number, evidence in enumerate(row.agent.seen(pool, rng, count)):
        looks = pool.rule.with_key(f"{row.name} {chunk} {number}").replay(evidence)
        played = [index for look in looks[:-1] for index in look.batch.indices]
        lines = looks[-1].gates
        decision = looks[-1].decision
        ends.append(
            Outcome(
                said="below" if decision.startswith("below") else decision,
                passed=frozenset(one.gate for one in lines if passes(one, row.dates)),
                below=frozenset(one.gate for one in lines if is_below(one, row.dates)),
                episodes=len(played),
                lost=sum(evidence.lost[index] for index in played),
                batches=len(looks) - 1,
            )
        )
    return ends


def play(rows: Sequence[Row], jobs: int) -> dict[str, Found]:
    """Return all rows, played in as many processes."""
    tasks = [(row, chunk) for row in rows for chunk in range(-(-row.agents // CHUNK))]
    with ProcessPoolExecutor(jobs, get_context("fork")) as workers:
        ends = list(workers.map(placed, *zip(*tasks, strict=True)))
    found: dict[str, list[Outcome]] = {row.name: [] for row in rows}
    for (row, _), some in zip(tasks, ends, strict=True):
        found[row.name] += some
    return {row.name: Found(row, tuple(found[row.name])) for row in rows}


def estimate(values: Floats) -> str:
    """Return a share and its Monte-Carlo standard error."""
    share = values.mean()
    return f"{share:.4f} ± {np.sqrt(share * (1 - share) / len(values)):.4f}"


# --- tables -----------------------------------------------------------------------


class Part(NamedTuple):
    """A table of the page: its heading, what it says, and its columns (COLUMNS) by their heads."""

    heading: str
    text: str
    columns: dict[str, str]
    rows: tuple[Row, ...]

    def lines(self, found: dict[str, Found]) -> Iterator[str]:
        """Yield the part as Markdown."""
        yield from ("", f"## {self.heading}", "", self.text, "")
        yield f"| {' | '.join(self.columns)} |"
        yield "|---" * len(self.columns) + "|"
        for row in self.rows:
            cells = (COLUMNS[name](found[row.name]) for name in self.columns.values())
            yield f"| {' | '.join(cells)} |"


class StagePart(NamedTuple):
    """The table of the stages of AAI-2: size, cost and power, by formula and not by play."""

    heading: str = "AAI-2, by stages"
    rows: tuple[Row, ...] = ()

    def lines(self, _: dict[str, Found]) -> Iterator[str]:
        """Yield the part as Markdown."""
        asked = Request(agents=("agentic",), battery="place", sandbox="none")
        draft = draft_plan(asked, in_process=True)
        prices = price_card.load(draft.price_card)
        yield from ("", f"## {self.heading}", "", STAGES_TEXT, "")
        margins = " | ".join(f"+{margin:g}" for margin in MARGINS)
        yield f"| stage | episodes | USD, cached | gate | {margins} |"
        yield "|---" * (4 + len(MARGINS)) + "|"
        products, episodes, usd = [1.0] * len(MARGINS), 0, 0.0
        for one in stage_forecasts(draft.plan, protocol.load(draft.protocol)):
            cost = sum(use.cached_micro_usd or 0 for use in token_use(one.entries, prices)) / 1e6
            episodes, usd = episodes + len(one.entries), usd + cost
            head = f"| {one.stage.name} | {len(one.entries)} | {cost:.0f} |"
            for gate, powers in one.powers.items() or [("none", (None,) * len(MARGINS))]:
                cells = " | ".join("" if p is None else f"{p:.2f}" for p in powers)
                yield f"{head} {gate} | {cells} |"
                head = "| | | |"
                known = zip(products, powers, strict=True)
                products = [whole * (1.0 if p is None else p) for whole, p in known]
        yield f"| all | {episodes} | {usd:.0f} | | {' | '.join(f'{p:.2f}' for p in products)} |"


def aim(found: Found) -> str:
    """Return how often a row reached its aim, nothing where it has none."""
    success = float(found.row.name.split()[-1])
    for bound, said, episodes, usd in AIMS:
        if success <= bound if said == "below" else success >= bound:
            most = min(episodes, usd / USD)
            reached = (found.said(said) * (found.episodes() <= most)).mean()
            return f"{reached:.3f} {'' if reached >= OFTEN else 'SHORT'}".strip()
    return ""


def truths(found: Found) -> str:
    """Return the planted A, P, number of covered families, and success under mild drift."""
    pool, truth = pool_of(1), found.row.agent.truth
    a, p, tools = (pool.value(gate, truth) for gate in ("A", "P", "tools"))
    return f"A {a:.2f}, P {p:.2f}, G {pool.covered(truth)}, tools {tools:.2f}"


def falsely(found: Found) -> Floats:
    """Return whether a row's gate said what its truth lies at the boundary of."""
    return found.below() if "BELOW" in found.row.name else found.passed()


COLUMNS: dict[str, Callable[[Found], str]] = {
    "name": lambda f: f.row.name,
    "passed": lambda f: estimate(f.passed()),
    "below": lambda f: estimate(f.below()),
    "falsely": lambda f: estimate(falsely(f)),
    "above": lambda f: "ABOVE" if falsely(f).mean() > ALLOWED else "",
    "AAI-1": lambda f: estimate(f.said("AAI-1")),
    "is below": lambda f: estimate(f.said("below")),
    "undecided": lambda f: estimate(f.said("cap")),
    "level": lambda f: estimate(np.array([one.level for one in f.outcomes], float)),
    "lost": lambda f: f"{sum(one.lost for one in f.outcomes) / f.episodes().sum():.4f}",
    "median": lambda f: f"{np.median(f.episodes()):.0f}",
    "most": lambda f: f"{np.quantile(f.episodes(), OFTEN):.0f}",
    "median dates": lambda f: f"{np.median(f.batches()):.0f}",
    "most dates": lambda f: f"{np.quantile(f.batches(), OFTEN):.0f}",
    "usd": lambda f: f"{USD * np.median(f.episodes()):.0f}",
    "most usd": lambda f: f"{USD * np.quantile(f.episodes(), OFTEN):.0f}",
    "aim": aim,
    "truth": truths,
}


def parts(rounds: int) -> Iterator[Part]:
    """Yield the tables of the page."""
    pool, fifth, tenth = pool_of(1), max(rounds // 5, 1), max(rounds // 10, 1)
    slack = pool.rule.protocol.statistics.gate_slack
    required = pool.rule.required("tools")
    edge = required - slack

    def tools(name: str, value: float, shape: str = "alike", **how: Any) -> Row:
        return Row(name, "tools", Agent(clear(pool, "tools", value, shape), **how), tenth)

    yield Part(
        "Said falsely at the boundaries",
        f"PASS: the gate's value is what is required less {slack:g}; of G one family less than "
        "required is covered and all others lie at their threshold less the slack. BELOW: the "
        "value is what is required; of G just as many families as required lie at their "
        "threshold and all others at 0. All other gates pass clearly. Cells of family, tier and "
        "magnitude: `alike`; `uneven`; `first cells`: full marks at those tiers and magnitudes "
        f"of which the first {EARLY} worlds of each family hold most for their number, elsewhere "
        "as low as the mean of the whole pool then asks for.",
        {"gate, answer, cells": "name", "said falsely": "falsely", " ": "above"},
        tuple(
            Row(
                f"{gate} {answer}, {shape}",
                gate,
                Agent(clear(pool, gate, pool.rule.required(gate) - less, shape, passes=less > 0)),
                rounds if shape == "uneven" else tenth,
            )
            for gate in GATES
            for answer, less in (("PASS", slack), ("BELOW", 0.0))
            for shape in SHAPES
        ),
    )
    yield Part(
        "What a placement says, by success",
        "One skill feeds all gates; what a failed episode still earns in A, P and G is as in a "
        "placement of `agentic`. Success is under mild drift, cells are uneven, two episodes of a "
        f"world are alike to an ICC of {ICC:g}, USD are {USD:g} an episode. Aim, in {OFTEN:g} of "
        "agents: "
        + "; ".join(
            f"success {'<=' if said == 'below' else '>='} {bound:g}: {said} within {most} "
            f"episodes and {usd:g} USD"
            for bound, said, most, usd in AIMS
        )
        + ".",
        {
            "agents": "name",
            "truth": "truth",
            "AAI-1": "AAI-1",
            "below AAI-1": "is below",
            "undecided": "undecided",
            "episodes, median": "median",
            f"episodes, {OFTEN:g}": "most",
            "USD, median": "usd",
            f"USD, {OFTEN:g}": "most usd",
            "aim reached": "aim",
        },
        tuple(
            Row(f"success {s:.2f}", "tools", Agent(skilled(pool, s), icc=ICC), fifth)
            for s in SUCCESS
        ),
    )
    yield Part(
        "PASS says: at least what is required less the slack",
        f"Success under mild drift between {edge:g} and {required:g}. A PASS there is no error: "
        "it is printed as at least the lower of the two.",
        {"tools": "name", "PASS": "passed", "BELOW": "below"},
        tuple(tools(f"truth {v:g}", v, "uneven") for v in WITHIN),
    )
    yield days_differ(tenth)
    yield days_by_success(tenth)
    strong = skilled(pool, 0.75)
    blames = f"success {edge:g}, {BLAMED:g} of failures laid to a fault"
    yield Part(
        "Failures laid to faults",
        "The agent's server answers with an error after the first act, in a share of the episodes "
        "that go badly. By the rule such an episode is lost: 0 for a PASS, 1 for a BELOW, and "
        f"above {LOST_MOST:g} lost there is no level. In the control it is played again; there "
        "the attack works. The last rows lose episodes whether they go well or not.",
        {
            "agents": "name",
            "lost": "lost",
            "tools: PASS": "passed",
            "BELOW": "below",
            "AAI-1 by its gates": "AAI-1",
            "level given": "level",
        },
        (
            tools(f"success {edge:g}, none", edge),
            tools(f"{blames}: the rule", edge, excused=BLAMED),
            tools(f"{blames}: control, played again", edge, excused=BLAMED, again=True),
            *(
                Row(f"success .75, {s:g} lost", "tools", Agent(strong, faults=s), tenth)
                for s in (0.01, 0.03, 0.1)
            ),
        ),
    )
    yield Part(
        "Bets on episodes instead of worlds",
        "A control. Gate tools reads several episodes of each world, at the boundary, alike to an "
        f"ICC of {ICC:g}. Each is a bet of its own (naive), or their mean is one bet (worlds). A "
        "gate of the pool reads one episode of each world.",
        {"tools": "name", "false PASS": "passed", " ": "above"},
        tuple(
            tools(f"{k} a world, {words}", edge, icc=ICC, repeats=k, naive=words == "naive")
            for k in (3, 5, 10)
            for words in ("naive", "worlds")
        ),
    )


def days_differ(agents: int) -> Part:
    """Return the table of what is said falsely of a served model whose dates differ.

    Args:
        agents: Agents a row.
    """
    pool = pool_of(1)

    def row(gate: str, answer: str, shock: float, *, dated: bool) -> Row:
        slack = pool.rule.protocol.statistics.gate_slack if answer == "PASS" else 0.0
        truth = clear(pool, gate, pool.rule.required(gate) - slack, "alike", passes=slack > 0)
        agent = Agent(truth, shock=shock, dates=EACH if dated else ())
        words = "a date a batch" if dated else "one date, the rule of programs"
        name = f"{gate} {answer}, sd {shock:g}, {words}"
        return Row(name, gate, agent, agents, dates=DATES if dated else 1)

    return Part(
        DAYS,
        "Each date moves the chances of all episodes alike (sd); the gate lies at its boundary, "
        "cells are alike. A served model plays one batch a date, and its level needs "
        f"{DATES} dates and {DATES} more for each date against it. Control: all on one date by the "
        "rule of programs, which is what a line `as served on DATE` says.",
        {"gate, answer": "name", "said falsely": "falsely", " ": "above"},
        tuple(
            row(gate, answer, shock, dated=dated)
            for gate in GATES
            for answer in ("PASS", "BELOW")
            for shock in (SHOCKS if gate in ("G", "tools") else SHOCKS[-1:])
            for dated in ((True, False) if gate == "tools" else (True,))
        ),
    )


def days_by_success(agents: int) -> Part:
    """Return the table of what a placement says of a served model whose dates differ.

    Args:
        agents: Agents a row.
    """
    pool, shock = pool_of(1), SHOCKS[2]

    def row(success: float) -> Row:
        agent = Agent(skilled(pool, success), icc=ICC, shock=shock, dates=EACH)
        return Row(f"served, success {success:.2f}", "tools", agent, agents, dates=DATES)

    return Part(
        f"{DAYS}, by success",
        f"As above, sd {shock:g}; agents as in *What a placement says, by success*.",
        {
            "agents": "name",
            "AAI-1": "AAI-1",
            "below AAI-1": "is below",
            "undecided": "undecided",
            "dates, median": "median dates",
            f"dates, {OFTEN:g}": "most dates",
            "episodes, median": "median",
            f"episodes, {OFTEN:g}": "most",
            "USD, median": "usd",
        },
        tuple(map(row, SERVED)),
    )


def split(rounds: int) -> list[Row]:
    """Return rows of one weak agent whose submitter has k plans challenged, at the rule's bar."""
    pool = pool_of(1)
    edge = pool.rule.required("tools") - pool.rule.protocol.statistics.gate_slack
    weak = Agent(clear(pool, "tools", edge, "uneven"))
    return [
        Row(f"{k} plans, bar {BAR * k:g}", "tools", weak, max(rounds // 10, 1) * k, k)
        for k in SPLIT
    ]


def split_table(found: dict[str, Found], rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of submitters who keep the best of k plans.

    At the bar of one plan it takes the agents of the row at the boundary.
    """
    yield from ("", "## One agent, several plans", "")
    yield (
        "Success under mild drift at the boundary; the submitter keeps the best of k plans. The "
        f"rule's bar is {BAR:g} k."
    )
    yield from ("", f"| plans | any passes at {BAR:g} | any passes at {BAR:g} k |", "|---|---|---|")
    alone = found["tools PASS, uneven"].passed()
    yield f"| 1 | {estimate(alone)} | {estimate(alone)} |"
    for row in rows:
        cells = (best_of(alone, row.plans), best_of(found[row.name].passed(), row.plans))
        yield f"| {' | '.join((str(row.plans), *map(estimate, cells)))} |"


def best_of(passed: Floats, plans: int) -> Floats:
    """Return whether any of so many plans passed, by submitter."""
    best: Floats = passed[: len(passed) // plans * plans].reshape(-1, plans).max(axis=1)
    return best


def page(rounds: int, jobs: int) -> str:
    """Return the page of so many agents a row of uneven cells at a boundary."""
    tables, plans = [*parts(rounds), StagePart()], split(rounds)
    found = play([*chain.from_iterable(part.rows for part in tables), *plans], jobs)
    rule = pool_of(1).rule
    asked = "" if rounds == ROUNDS else f" --rounds {rounds} --write"
    head = (
        "# What a placement says falsely, and what it takes",
        "",
        f"Made by `python benchmarks/placement.py{asked}`: {rounds} planted agents a row of "
        f"uneven cells at a boundary, {max(rounds // 5, 1)} a row by success, "
        f"{max(rounds // 10, 1)} elsewhere, on the pool of battery `place` "
        f"({len(rule.pool_plan.entries)} episodes of {len(rule.worlds)} families), placed by the "
        f"rule that reports use. Behind ±: the simulation's standard error. "
        f"ABOVE: said falsely in more than {ALLOWED:g}.",
    )
    body = chain.from_iterable(part.lines(found) for part in tables)
    return "\n".join([*head, *body, *split_table(found, plans), ""])


def part_anew(heading: str, rounds: int, jobs: int) -> str:
    """Return the page on record with the parts anew whose headings begin so.

    Args:
        heading: Its beginning.
        rounds: As of the page on record.
        jobs: Processes.
    """
    text = TABLE.read_text(encoding="utf-8")
    every = (*parts(rounds), StagePart())
    chosen = [part for part in every if part.heading.startswith(heading)]
    found = play([*chain.from_iterable(part.rows for part in chosen)], jobs)
    first, *others = text.split("\n## ")
    places = (k for k, other in enumerate(others) if other.startswith(heading))
    place = next(places, len(others))
    kept = [other for other in others if not other.startswith(heading)]
    made = ["\n".join(part.lines(found))[len("\n## ") :] + "\n" for part in chosen]
    return "\n## ".join((first, *kept[:place], *made, *kept[place:]))


def main() -> None:
    """Simulate, print, and write the page when it is the full one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="agents a row of uneven cells at a boundary")
    parser.add_argument("--part", default="", help="make only parts anew whose headings begin so")
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--run", type=Path, action="append", default=[], help="print its ICC")
    given = parser.parse_args()
    if given.run:
        print(*map(alike_in, given.run), sep="\n")
        return
    began = time.monotonic()
    rounds = given.rounds or ROUNDS
    make = partial(part_anew, given.part) if given.part else page
    text = make(rounds, given.jobs)
    print(text)
    print(f"{(time.monotonic() - began) / 60:.1f} minutes, {given.jobs} processes")
    if given.write or given.rounds is None:
        TABLE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
