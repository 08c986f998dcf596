"""Cheats on ChangeSurf that are caught, and honest agents that are not.

    python benchmarks/changesurf_cheats.py   writes docs/tables/changesurf_cheats.md
    python benchmarks/changesurf_cheats.py --minutes 4   plays on where it stopped
    python benchmarks/changesurf_cheats.py --first 0 --who agentic   prints other seeds

Each cheat does the oracle's work but for one trick of its kind at its first chance; it
is caught when the rule of its kind is broken, and an episode without a chance (no link
to press, no trap to fill) is left out. An honest agent raises an alarm when any rule is
broken. `random` is set apart: it presses anything and says nothing of it, which no
rule can tell from hard-coding; a decoy that it hits is a flag. Honest episodes run over
all sites, the held-out one too, magnitudes 0, .5 and 1 and all tiers. Results are kept
in --state, a line each, so a run that was stopped goes on.
Intervals are Clopper and Pearson's, 95 percent.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import kept_results
import msgspec
from changesurf_cheaters import CHEATS, FAMILIES, Hardcoded, idents
from kept_results import share_of
from players import brief_agent, play_out
from scipy import stats

from owa_bench import discovery
from owa_bench.drift import calendar as calendars
from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf.generate import HELD_OUT_FAMILIES
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.interfaces import AgentConfig
from owa_bench.records.events import Violation
from owa_bench.records.instance import Instance
from owa_bench.seeding import derive
from owa_bench.shells.episode_events import ListSink
from owa_bench.shells.solution import solve

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "tables" / "changesurf_cheats.md"
STATE = ROOT / "runs" / "changesurf_cheats.jsonl"
POLICIES = ("oracle", "plausible_wrong", "over_doer")
SILENT = "random"  # presses anything and never says what it is
AGENTS = ("exact_label", "lexicon", "agentic", "orchestrator")
DELTAS = (0.0, 0.5, 1.0)
UNSEEN = 7  # the first seed that nobody looked at while the readers were written
SCORED_SEEDS = 1 << 62  # seeds from here on draw practice worlds


class Job(NamedTuple):
    """One episode to play: who, and where."""

    who: str
    family: str
    tier: int
    seed: int
    delta: float
    calendar: str = "nested"

    @property
    def key(self) -> str:
        """What the episode is known by."""
        return json.dumps(self)


class Result(NamedTuple):
    """What came of an episode: the rules broken, and whether the trick was tried."""

    rules: tuple[str, ...]
    tried: bool
    q_state: float


# --- playing --------------------------------------------------------------------------


def jobs(seeds: int, first: int = UNSEEN) -> list[Job]:
    """Return every episode; any beginning of the list has a share of all kinds."""
    found = []
    for i in range(first, first + seeds):
        drawn = derive(0, "changesurf cheats", i)
        for j, family in enumerate(FAMILIES):
            held_out = family in HELD_OUT_FAMILIES  # in no practice world
            seed = drawn % SCORED_SEEDS if held_out else drawn
            tier = 1 + (i + j) % len(SUITE.card.tiers)
            for delta in DELTAS:
                honest = (*POLICIES, *AGENTS)
                found += [Job(who, family, tier, seed, delta) for who in honest]
            found.append(Job(SILENT, family, tier, seed, DELTAS[i % len(DELTAS)]))
            for who, kind in CHEATS.items():
                if family in kind.families:
                    delta = max(kind.least, DELTAS[(i + j) % len(DELTAS)])
                    found.append(Job(who, family, tier, seed, delta, kind.calendar))
    return found


@cache
def script(still: Instance) -> tuple[str, ...]:
    """Return the oracle's actions on the undrifted site."""
    return solve(SUITE, timelines.source("changesurf")(still)).actions


@cache
def env_of(calendar: str) -> Any:
    """Return the env under a calendar; the browser is one for all of them."""
    schedule = calendars.parse(calendar, "web")
    source = timelines.source("changesurf", schedule)
    return SUITE.env(source, interventions=0).unwrapped


def play(job: Job) -> Result:
    """Play one episode."""
    env = env_of(job.calendar)
    still = Instance(
        suite="changesurf",
        version=SUITE.card.version,
        family=job.family,
        tier=job.tier,
        seed=job.seed,
    )
    schedule = calendars.parse(job.calendar, "web")
    step = timelines.drift_step("changesurf", still, job.delta, schedule)
    instance = msgspec.structs.replace(still, drift_step=step)
    hard_coded = job.who in CHEATS and CHEATS[job.who].make is Hardcoded
    known: frozenset[str] = frozenset()
    if hard_coded and not step:
        return Result((), tried=False, q_state=0.0)  # nothing was before it
    if hard_coded:
        env.attach(ListSink())
        before = msgspec.structs.replace(instance, drift_step=step - 1)
        known = idents(env, before)
    sink = ListSink()
    env.attach(sink)
    start = env.reset(options={"instance": instance})
    agent = player(job.who, env, still, known)
    info = play_out(env, agent, start)
    rules = {event.rule for event in sink.events if isinstance(event, Violation)}
    tried = bool(getattr(agent, "tried", True))
    return Result(tuple(sorted(rules)), tried, float(info["q_state"]))


def player(who: str, env: Any, still: Instance, known: frozenset[str]) -> Any:
    """Return who plays the episode that the env is at."""
    if who in CHEATS:
        return CHEATS[who].make(env, known)
    if who in SUITE.policies:
        agent: Any = SUITE.policies[who](env.oracle_access())
    else:
        card = discovery.get("agents", who)
        actions = script(still) if card.needs == "script" else ()
        agent = card.make(AgentConfig(script=actions))
    budgets = {"steps": float(SUITE.card.step_limit)}
    brief_agent(env, agent, interventions_left=0, budgets=budgets)
    return agent


def results(state: Path) -> dict[str, Result]:
    """Return the results that are kept."""
    found = kept_results.kept(state)
    return {key: Result(tuple(rules), *rest) for key, (rules, *rest) in found.items()}


# --- the table ------------------------------------------------------------------------


def share(count: int, total: int) -> str:
    """Return a share with its Clopper-Pearson interval."""
    if not total:
        return "- | -"
    low, high = stats.binomtest(count, total).proportion_ci(method="exact")
    return f"{count / total:.3f} | [{low:.3f}, {high:.3f}]"


def tables(found: Mapping[Job, Result]) -> Iterator[str]:
    """Yield the lines of both tables."""
    yield "| kind of cheat | what it does | rule | tried in | caught | share | 95 % |"
    yield "|---|---|---|---|---|---|---|"
    for who, kind in CHEATS.items():
        own = [r for job, r in found.items() if job.who == who and r.tried]
        caught = sum(kind.rule in result.rules for result in own)
        rest = f"{len(own)} | {caught} | {share(caught, len(own))}"
        yield f"| {who} | {kind.about} | `{kind.rule}` | {rest} |"
    yield ""
    yield "| honest agent | episodes | alarms | share | 95 % | rules |"
    yield "|---|---|---|---|---|---|"
    total: list[Result] = []
    for who in (*POLICIES, *AGENTS, "all of these", SILENT):
        own = [r for job, r in found.items() if job.who == who]
        total += own
        own = own or total
        alarms = [result for result in own if result.rules]
        rules = sorted({rule for result in alarms for rule in result.rules})
        rest = f"{len(own)} | {len(alarms)} | {share(len(alarms), len(own))}"
        yield f"| {who} | {rest} | {', '.join(rules) or '-'} |"
    yield ""
    yield "| mean q_state | " + " | ".join(f"magnitude {d:g}" for d in DELTAS) + " |"
    yield "|---" * (len(DELTAS) + 1) + "|"
    for who in (*POLICIES, *AGENTS):
        yield f"| {who} | " + " | ".join(kept(found, who, d) for d in DELTAS) + " |"


def kept(found: Mapping[Job, Result], who: str, delta: float) -> str:
    """Return an honest agent's mean q_state at a magnitude, and of how many."""
    own = [r.q_state for j, r in found.items() if (j.who, j.delta) == (who, delta)]
    return f"{sum(own) / len(own):.2f} (n {len(own)})" if own else "-"


def main() -> int:
    """Play, print and write the tables."""
    parser = kept_results.options(__doc__.splitlines()[0], STATE)
    parser.add_argument("--first", type=int, default=UNSEEN, help="the first seed")
    parser.add_argument("--who", action="append", help="only this player's episodes")
    given = parser.parse_args()
    todo = jobs(given.seeds, given.first)
    todo = [job for job in todo if not given.who or job.who in given.who]
    kept_results.run(share_of(todo, given.shard), given.state, given.minutes, play)
    done = results(given.state)
    found = {job: done[job.key] for job in todo if job.key in done}
    text = "\n".join(tables(found))
    print(text)
    if not (given.print_only or given.who or given.first != UNSEEN):
        TABLE.write_text(
            "# Cheats and honest agents on ChangeSurf\n\n"
            f"Made by `python benchmarks/changesurf_cheats.py --seeds {given.seeds}`,"
            f" which says what is played:\n{len(found)} of {len(todo)} episodes.\n\n"
            f"{text}\n\n"
            "A fill-all script also fills decoys.\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
