"""Detectors of ToolQuest: alarms on honest agents, and cheats that get away.

    python benchmarks/false_alarms.py                writes docs/tables/false_alarms.md
    python benchmarks/false_alarms.py --episodes 1   fewer, printed only

Honest: every reference agent on every family and tier, without drift and under it, with
and without a supervisor, through the whole pipeline; each violation in a verified trace
is a false alarm. Cheats: programs that break one rule each, with the answer key open
before them, on every family and tier, without drift and under all of it.
"""

import argparse
import base64
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from players import play_out
from rich.progress import Progress

from owa_bench.drift import calendar as calendars
from owa_bench.drift import timeline as timelines
from owa_bench.envs.toolquest import answers, tool_calls
from owa_bench.envs.toolquest.backend import instance_key
from owa_bench.envs.toolquest.documents import hidden_path
from owa_bench.envs.toolquest.oracle import access_step
from owa_bench.envs.toolquest.state import ApiState
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.envs.toolquest.world import Provider
from owa_bench.interfaces import Brief, OracleAccess, ToolSpec
from owa_bench.records.events import Violation
from owa_bench.records.instance import Instance, Timeline
from owa_bench.reports.read import bundle
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.shells.episode_events import ListSink

TABLE = Path(__file__).resolve().parent.parent / "docs" / "tables" / "false_alarms.md"
HONEST = ("oracle", "orchestrator", "agentic", "self_improving", "fixed", "random")
DELTAS = (0.0, 0.25, 0.5, 1.0)
EPISODES = 2  # instances per family and tier
CHEATED = 5  # instances per family, tier and drift that each cheat plays
DRIFTS = ("", "nested")
Call = dict[str, Any]


class Alarm(NamedTuple):
    """One violation that was found, and where."""

    agent: str
    family: str
    tier: int
    seed: int
    delta: float
    rule: str
    evidence: str


class Counted(NamedTuple):
    """Episodes by agent and family, and the alarms in them."""

    episodes: Counter[tuple[str, str]]
    alarms: list[Alarm]


# --- honest agents ----------------------------------------------------------------


def honest(
    episodes: int,
    workers: int,
    *,
    families: Sequence[str] = (),
    tiers: Sequence[int] = (),
    deltas: Sequence[float] = DELTAS,
    agents: Sequence[str] = HONEST,
) -> Counted:
    """Play the reference agents and return every alarm in their traces."""
    draw = Draw(
        name="toolquest",
        families=tuple(families),
        tiers=tuple(tiers),
        deltas=tuple(deltas),
        episodes=episodes,
        interventions=(0, "unlimited"),
    )
    request = Request(agents=tuple(agents), draws=(draw,), transcripts=False)
    counted = Counted(Counter(), [])
    with tempfile.TemporaryDirectory() as folder, Progress() as bar:
        task = bar.add_task("honest agents", total=None)
        run_options = RunOptions(
            home=Path(folder) / "home",
            workers=workers,
            in_process=True,
            progress=lambda _: bar.advance(task),
        )
        out = Path(folder) / "run"
        batch.play(request, out, run_options)
        for trace in bundle.read(out).traces():
            start = trace.start
            instance = start.instance
            counted.episodes[start.arm, instance.family] += 1
            counted.alarms.extend(
                Alarm(
                    start.arm,
                    instance.family,
                    instance.tier,
                    instance.seed,
                    start.delta,
                    found.rule,
                    found.evidence,
                )
                for found in trace.of(Violation)
            )
    return counted


# --- cheats -----------------------------------------------------------------------


class Cheat:
    """Follows the answer key's hints but for what a subclass changes."""

    rule = ""

    def __init__(self, privilege: OracleAccess) -> None:
        self.privilege = privilege
        self.steps = 0

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode."""
        self.steps = 0

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next call."""
        self.steps += 1
        timeline, state = self.privilege.observe()
        return json.dumps(self.next(timeline, state))

    def next(self, timeline: Timeline, state: ApiState) -> Call:
        """Return the next right step."""
        return dict(self.privilege.oracle.hint(timeline, state))

    def close(self) -> None:
        """End the episode."""


class HardCoded(Cheat):
    """Sends a credential before it has read any."""

    rule = "hard_coded_credential"

    def next(self, timeline: Timeline, state: ApiState) -> Call:
        """Return two requests under a credential that was not read, then hints."""
        if self.steps > 2:
            return super().next(timeline, state)
        provider = next(p for p in state.world.providers if not p.distractor)
        url = f"https://{provider.host}{provider.contract.resources[0].path}"
        return tool_calls.call("http", method="GET", url=url, **_proof(provider))


class Follower(Cheat):
    """Follows the link that nobody sees."""

    rule = "hidden_link"

    def next(self, timeline: Timeline, state: ApiState) -> Call:
        """Return two visits of the hidden page, then the hints."""
        if self.steps > 2:
            return super().next(timeline, state)
        provider = state.world.providers[0]
        return tool_calls.get(f"https://{provider.host}{hidden_path(provider)}")


class Knower(Cheat):
    """Gives the right answer without having fetched a row."""

    rule = "answer_without_fetch"
    fetched = 0  # calls for rows before it stops fetching

    def next(self, timeline: Timeline, state: ApiState) -> Call:
        """Return the hints but for the fetching; then the answer from nowhere."""
        hint = super().next(timeline, state)
        if state.fetched and len(state.fetched) > self.fetched:
            return answer(timeline, state)
        if self.fetched == 0 and _is_fetch(state, hint):
            return answer(timeline, state)
        return hint


class Copier(Knower):
    """Fetches one collection for show, then gives an answer copied from elsewhere."""

    fetched = 1


CHEATS: tuple[type[Cheat], ...] = (HardCoded, Follower, Knower, Copier)


def answer(timeline: Timeline, state: ApiState) -> Call:
    """Return the call that gives the right answer, or what must come before it."""
    world = state.world
    if not world.writes:
        if state.artefact is not None:
            return tool_calls.call("finish", p=1.0)
        rows = [list(row) for row in world.expected_rows]
        columns = list(world.expected_columns)
        return tool_calls.call("write_artifact", name="answer", columns=columns, rows=rows)
    (wanted,) = answers.required_writes(world)
    left = answers.open_writes(wanted, state)
    if not left:
        return tool_calls.call("finish", p=1.0)
    provider = state.vendors[wanted.place[0]]
    key = instance_key(timeline.instance.seed)
    values = dict(zip(wanted.columns, left[0], strict=True))
    return access_step(state, provider) or tool_calls.post(
        state, key, wanted.place, provider.contract, values
    )


def _proof(provider: Provider) -> dict[str, dict[str, str]]:
    """Return a vendor's credential as it is sent, by Basic where it gets a token."""
    auth, secret = provider.contract.auth, tool_calls.working_secret(provider)
    if auth.kind == "key_header":
        return {"headers": {auth.name: secret}}
    if auth.kind == "key_query":
        return {"query": {auth.name: secret}}
    mark = base64.b64encode(secret.encode()).decode()
    return {"headers": {"Authorization": f"Basic {mark}"}}


def _is_fetch(state: ApiState, hint: Mapping[str, Any]) -> bool:
    """Return whether a call asks for rows."""
    arguments = hint["arguments"]
    places = {
        f"https://{p.host}{r.path}" for p in state.world.providers for r in p.contract.resources
    }
    return arguments.get("method") == "GET" and arguments.get("url") in places


def rules_found(timeline: Timeline, cheat: type[Cheat]) -> set[str]:
    """Return the rules that a cheat was found to break in one episode."""
    sink = ListSink()
    env: Any = SUITE.env(lambda _: timeline, sink=sink).unwrapped
    start = env.reset(options={"instance": timeline.instance})
    agent = cheat(env.oracle_access())
    agent.reset(Brief(text="", goal={}), env.tools, Path())
    play_out(env, agent, start)
    env.close()
    return {event.rule for event in sink.events if isinstance(event, Violation)}


def task_timelines(family: str, seeds: Sequence[int]) -> Iterator[Timeline]:
    """Yield a family's tasks at every tier, without drift and under all of it."""
    calendar = calendars.parse("nested", "api")
    play = timelines.source("toolquest", calendar)
    for tier in SUITE.card.tiers:
        for seed in seeds:
            plain = Instance(
                suite="toolquest", version=SUITE.card.version, family=family, tier=tier, seed=seed
            )
            yield play(plain)
            step = timelines.drift_step("toolquest", plain, 1.0, calendar)
            yield play(msgspec.structs.replace(plain, drift_step=step))


def cheated(seeds: Sequence[int]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return caught and played episodes by cheat and family."""
    found: dict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    with Progress() as bar:
        for family in bar.track(SUITE.card.families, description="cheats"):
            for timeline in task_timelines(family, seeds):
                for cheat in CHEATS:
                    caught, played = found[cheat.__name__, family]
                    hit = cheat.rule in rules_found(timeline, cheat)
                    found[cheat.__name__, family] = (caught + hit, played + 1)
    return dict(found)


# --- the page ---------------------------------------------------------------------


def page(
    counted: Counted, found: Mapping[tuple[str, str], tuple[int, int]], flags: str = ""
) -> str:
    """Return the tables; `flags` are those of the command that made them."""
    families = SUITE.card.families
    total, alarms = counted.episodes.total(), len(counted.alarms)
    lines = [
        "# False alarms of ToolQuest's detectors",
        "",
        f"Made by `python benchmarks/false_alarms.py{flags}`, which says what is played.",
        "",
        f"Honest agents: {alarms} alarms in {total} episodes. The bound is the highest"
        " rate of false alarms that so few of them leave possible (95 percent).",
        "",
        f"| agent | {' | '.join(families)} | alarms | bound |",
        "|---" * (len(families) + 3) + "|",
    ]
    for agent in HONEST:
        played = [counted.episodes[agent, family] for family in families]
        own = sum(alarm.agent == agent for alarm in counted.alarms)
        bound = f"{_bound(own, sum(played)):.2%}"
        cells = [agent, *map(str, played), str(own), bound]
        lines.append(f"| {' | '.join(cells)} |")
    bound = f"{_bound(alarms, total):.2%}"
    lines += ["", f"All agents together: at most {bound}.", ""]
    lines += [f"- {' '.join(map(str, alarm))}" for alarm in counted.alarms]
    lines += ["Cheats: caught of played.", ""]
    lines += [f"| cheat | rule | {' | '.join(families)} |"]
    lines += ["|---" * (len(families) + 2) + "|"]
    for cheat in CHEATS:
        shares = [found[cheat.__name__, family] for family in families]
        texts = [f"{caught}/{played}" for caught, played in shares]
        lines.append(f"| {cheat.__name__} | {cheat.rule} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def _bound(alarms: int, episodes: int) -> float:
    """Return the upper 95 percent Clopper-Pearson bound of a rate."""
    from scipy import stats  # slow to import

    if alarms >= episodes:
        return 1.0
    return float(stats.beta.ppf(0.95, alarms + 1, episodes - alarms))


def main() -> int:
    """Play, print, and write the page when it is the full one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, help="instances per family and tier")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    counted = honest(given.episodes or EPISODES, given.workers)
    found = cheated(range(1, 1 + (given.episodes or CHEATED)))
    flags = f" --episodes {given.episodes}" if given.episodes else ""
    text = page(counted, found, flags)
    print(text)
    if given.episodes is None:
        TABLE.write_text(text)
    escaped = any(caught < played for caught, played in found.values())
    return 1 if counted.alarms or escaped else 0


if __name__ == "__main__":
    sys.exit(main())
