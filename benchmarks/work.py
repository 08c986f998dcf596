"""What an episode is to whoever plays it: expert minutes, and what the suites' cards say.

    python benchmarks/work.py [--suite NAME]    the cards' `work`, measured; nothing is written
    python benchmarks/work.py --minutes         docs/tables/expert_minutes.md, from the cards

Played at rest by the answer key, and by `agentic`, which reads what it is not told; each text
counts once in `read` and `written`. A project's reader is shown less than a person must read,
so the texts of its issues are added. Tables are of cards: nobody measured a person.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import owa_bench
from owa_bench import discovery
from owa_bench.envs.projforge.world import ProjectWorld
from owa_bench.envs.projforge.world_rules import feature_prose, incident_text
from owa_bench.envs.recall.world import RecallWorld
from owa_bench.interfaces import EpisodeWork, Setting, Suite
from owa_bench.records import price_card, protocol
from owa_bench.records.events import Action, Observation, Sitting
from owa_bench.records.instance import Timeline
from owa_bench.records.trace import Trace
from owa_bench.reports.read.run_tables import OpenRun
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.scoring.observe.expert_time import minutes_of_work
from owa_bench.shells.episode_events import NullSink
from owa_bench.shells.standard_tools import tools_of

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "tables" / "expert_minutes.md"
KEY, READER = "oracle", "agentic"
WITHOUT_READER = ("projforge", "projforge_fast", "selfrev")  # `agentic` does not play them
MOST_FAMILIES = {"projforge": 1, "selfrev": 2}  # dear episodes
PROTOCOLS = ROOT / "owa_bench" / "protocols"


def draw_of(suite: Suite) -> Draw:
    """Return the episodes to play: of each kind of family the first one, every tier."""
    card = suite.card
    firsts = {family.partition("/")[0]: family for family in reversed(card.families)}
    families = tuple(firsts.values())[: MOST_FAMILIES.get(card.name)]
    return Draw(
        name=card.name, families=families, tiers=card.tiers, deltas=(0.0,), interventions=(0,)
    )


def once(texts: Iterable[str]) -> int:
    """Return the characters of lines, each different one counted once."""
    return sum(map(len, {line for text in texts for line in text.splitlines()}))


def work_of(suite: Suite, run: OpenRun, trace: Trace) -> EpisodeWork:
    """Return what one episode was."""
    actions = list(trace.of(Action))
    shown = [run.text(seen.blob) or "" for seen in trace.of(Observation)]
    typed = [action.action.replace("\\n", "\n") for action in actions]
    given = trace.start.instance
    world = suite.generate(given)
    line = Timeline(instance=given, starts=(0,), worlds=(world,), changes=((),), realised=0.0)
    session = suite.session(line, NullSink(), Setting())
    tools = json.dumps([tool.function for tool in tools_of(session.tools)])
    session.close()
    questions = len(suite.oracle.propositions(line))
    nodes = world.items if isinstance(world, RecallWorld) else len(suite.oracle.subgoals(world))
    return EpisodeWork(
        steps=len(actions),
        brief=len(shown[0]),
        tools=len(tools),
        shown=sum(map(len, shown[1:])),
        typed=sum(len(action.action) for action in actions),
        conversations=max(1, len(list(trace.of(Sitting)))),
        read=once(shown) + documents(world),
        decisions=nodes + questions,
        written=once(typed),
    )


def documents(world: object) -> int:
    """Return the characters that a person must read and no player is shown unasked."""
    if not isinstance(world, ProjectWorld):
        return 0
    texts = [feature_prose(world, feature) for feature in (*world.features, *world.wishes)]
    return once([*texts, *map(incident_text, world.incidents)])


def measured(suite: Suite, root: Path) -> Iterator[tuple[int, EpisodeWork]]:
    """Yield the mean work of each tier: the answer key's, what was read by who read more."""
    arms = (KEY,) if suite.card.name in WITHOUT_READER else (KEY, READER)
    request = Request(agents=arms, draws=(draw_of(suite),))
    found = batch.play(request, root / "run", RunOptions(home=root / "home", workers=2))
    run = owa_bench.open_run(found.root)
    by_tier: dict[tuple[int, str], list[EpisodeWork]] = {}
    for trace in run.bundle.traces():
        place = trace.start.instance.tier, trace.start.arm
        by_tier.setdefault(place, []).append(work_of(suite, run, trace))
    for tier in suite.card.tiers:
        key = by_tier[tier, KEY]
        mean = EpisodeWork(*(round(statistics.mean(part)) for part in zip(*key, strict=True)))
        reads = [round(statistics.mean(one.read for one in by_tier[tier, arm])) for arm in arms]
        yield tier, mean._replace(read=max(reads))


ABOUT = (
    "Made by `python benchmarks/work.py --minutes` from the suites' cards (characters to read and"
    " to write, each text once; decisions: nodes of the task and questions asked) at the"
    " protocol's rates (`[economics.expert]`), priced as the supervisor's minute. **Nobody measured"
    " a person**: the rates of reading and typing are of the literature, the minutes of a decision"
    " are set."
)
HEAD = f"""# An expert's minutes by suite and tier

{ABOUT}

| suite | tier | to read | decisions | to write | min reading | deciding | typing | min | USD |
|---|---|---|---|---|---|---|---|---|---|
"""


def minutes_table() -> str:
    """Return the table of expert minutes and their price, from cards and protocol."""
    rates = protocol.load((PROTOCOLS / "default.toml").read_bytes()).economics.expert
    prices = price_card.load((PROTOCOLS / "price_card.toml").read_bytes())
    assert rates is not None
    rows = []
    for name in discovery.find("suites"):
        for tier, work in discovery.get("suites", name).card.work.items():
            amounts = (work.read, work.decisions, work.written)
            parts = minutes_of_work(name, *amounts, rates)
            usd = (prices.cost("supervisor_min", sum(parts)) or 0) / 1e6
            counts = " | ".join(f"{amount:,}" for amount in amounts)
            minutes = " | ".join(f"{part:.1f}" for part in (*parts, sum(parts)))
            rows.append(f"| {name} | {tier} | {counts} | {minutes} | {usd:,.2f} |\n")
    return HEAD + "".join(rows)


def main() -> None:
    """Print the cards' `work`, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", action="append")
    parser.add_argument("--minutes", action="store_true")
    given = parser.parse_args()
    if given.minutes:
        TABLE.write_text(minutes_table())
        return
    for name in given.suite or discovery.find("suites"):
        suite: Suite = discovery.get("suites", name)
        if suite.card.native:
            continue
        with tempfile.TemporaryDirectory() as place:
            for tier, work in measured(suite, Path(place)):
                print(f"{name} {tier}: EpisodeWork{tuple(work)}", flush=True)


if __name__ == "__main__":
    main()
