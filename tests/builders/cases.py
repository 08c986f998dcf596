"""Cases for tests: timelines, plays of a parser, states that are built by hand."""

from collections.abc import Iterable
from functools import lru_cache

from msgspec.structs import replace

from owa_bench.agents.solvers.cases.player import case_plan
from owa_bench.agents.solvers.planning import Runner
from owa_bench.company.kinds.contract import CaseState, CaseTruth, CaseWorld
from owa_bench.discovery import get
from owa_bench.drift.timeline import drift_step, source
from owa_bench.envs.casework.kinds import KINDS, draw_world
from owa_bench.interfaces import Brief
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import NullSink

SUITE = get("suites", "casework")
FIRST = 10_000  # seeds from here on are for tests


def instance(family="credits", tier=1, seed=FIRST, delta=0.0):
    """Return an instance under a drift."""
    plain = Instance(suite="casework", version=1, family=family, tier=tier, seed=seed)
    return replace(plain, drift_step=drift_step("casework", plain, delta)) if delta else plain


def timeline(*args, **options) -> Timeline:
    """Return the timeline of an instance."""
    return source("casework")(instance(*args, **options))


@lru_cache(maxsize=24)
def world(family="credits", tier=1, seed=FIRST) -> CaseWorld:
    """Return the base world of an instance, drawn once."""
    return draw_world(instance(family, tier, seed))


def all_events(drawn: CaseWorld) -> frozenset[str]:
    """Return the names of all events of a world."""
    return frozenset(event.name for event in drawn.events)


def final_truth(drawn: CaseWorld, blind: Iterable[str] = ()) -> CaseTruth:
    """Return what is right after all events."""
    return KINDS[drawn.kind].truth(drawn, all_events(drawn), frozenset(blind))


def state_of(drawn: CaseWorld, truth: CaseTruth) -> CaseState:
    """Return the state of somebody who answers so, after all events."""
    return KINDS[drawn.kind].state_of(drawn, truth, all_events(drawn))


def play(timeline: Timeline, miss: Iterable[str] = (), texts: list[str] | None = None) -> Episode:
    """Play a parser to the end; return the episode, closed. `texts` gets what it was shown."""
    episode = Episode(SUITE, timeline, sink=NullSink(), terms=EpisodeTerms())
    episode.begin()
    task = episode.task
    brief = Brief(text=task.text, goal=task.goal, propositions=task.propositions)
    runner, text = Runner(case_plan(brief, miss)), ""
    try:
        while episode.ending is None:
            text = episode.step(runner.advance(text).text()).text
            if texts is not None:
                texts.append(text)
    finally:
        episode.close()
    return episode
