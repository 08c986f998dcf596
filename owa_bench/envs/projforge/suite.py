"""ProjForge, two suites over one world, calendar and scores: runnable code, or a graph.

Their scores are never mixed.
"""

import dataclasses

from typing_extensions import override

from owa_bench import interfaces
from owa_bench.drift.calendar import Calendar
from owa_bench.envs.projforge import generate, graph_session, workshop
from owa_bench.envs.projforge.forge_session import ForgeSession
from owa_bench.envs.projforge.forge_state import KINDS_OF_TOOL, RULES, ForgeDetector
from owa_bench.envs.projforge.graph_session import GraphSession
from owa_bench.envs.projforge.oracle import FORGE_POLICIES, GRAPH_POLICIES, ForgeOracle, GraphOracle
from owa_bench.envs.projforge.scores import KINDS, THETA, WEEK
from owa_bench.envs.projforge.world import DAY_MS, DAYS, Library, ProjectWorld
from owa_bench.records.instance import Announcement, Instance, Timeline
from owa_bench.repositories.commit_runner import require_programs
from owa_bench.seeding import derive
from owa_bench.shells.tool_env import ToolSuite

_FIRST, _LAST = 2, 3  # no change before this day, or so many days before the end


def _drift_ms(instance: Instance, world: ProjectWorld, event: interfaces.DriftEvent) -> int:
    """Return the morning on which a change comes, at any magnitude the same."""
    span = max(world.days - _FIRST - _LAST, 1)
    key = derive(instance.seed, "drift", "day", event.operator, event.target)
    return (_FIRST + key % span) * DAY_MS


class ProjForgeFastSuite(ToolSuite):
    """The fast twin; everything it is stands in `card` and in docs/projforge.md."""

    card = interfaces.SuiteCard(
        name="projforge_fast",
        version=generate.VERSION,
        title="ProjForgeFast",
        about="Keep a project working for thirty days, as a graph of contracts.",
        source="AAI paper section 4",
        env_id="owa_bench/ProjForgeFast-v2",
        domain="project",
        families=generate.DOMAINS,
        tiers=generate.TIERS,
        theta=THETA,
        horizon=30,
        depth_target=generate.DEEPEST,
        step_limit=DAYS * max(graph_session.STEPS_A_DAY) + DAYS + 1,
        categories=dict.fromkeys((tool.name for tool in graph_session.TOOLS), ""),
        proposition_kinds=KINDS,
        axes=("A", "G", "P", "W", "$"),
        rules=(),
        features=graph_session.FEATURES,
        macros=graph_session.MACROS,
        sittings=True,
        work={
            1: interfaces.EpisodeWork(54, 1412, 5055, 9474, 2219, 5, 7580, 17, 566),
            2: interfaces.EpisodeWork(72, 1412, 5055, 12276, 2932, 5, 12202, 25, 600),
            3: interfaces.EpisodeWork(94, 1438, 5055, 15973, 3838, 5, 17859, 37, 600),
            4: interfaces.EpisodeWork(112, 1439, 5055, 21600, 4659, 5, 26716, 54, 600),
        },
    )
    oracle: interfaces.Oracle = GraphOracle()
    policies = GRAPH_POLICIES
    schedule = Calendar(domain="project", times=_drift_ms)

    @override
    def generate(self, instance: Instance) -> ProjectWorld:
        return generate.generate(instance)

    @override
    def terms(self, instance: Instance) -> interfaces.Terms:
        """Return the terms of an instance: the steps of its tier."""
        daily = graph_session.STEPS_A_DAY[instance.tier - 1]
        return interfaces.Terms(THETA, DAYS * (daily + 1) + 1)

    @override
    def horizon(self, timeline: Timeline) -> int:
        """Return the oracle's verified actions: days with new features, releases."""
        return _horizon(timeline)

    @override
    def effective_class(
        self, before: ProjectWorld, after: ProjectWorld, met: ProjectWorld
    ) -> Announcement:
        """Return what a change shows of itself.

        Returns: D0 compatible, D1 told, D2 an error shows it, D3 silent: a changelog may say
            nothing.
        """
        for old, new in zip(before.libraries, after.libraries, strict=True):
            if old != new:
                return _library_class(old, new)
        revoked = before.secret != after.secret
        if revoked or (before.image, before.index) != (after.image, after.index):
            return "D2"
        changed = (before.lock, before.protocol) != (after.lock, after.protocol)
        return "D1" if changed else "D0"

    @override
    def session(
        self,
        timeline: Timeline,
        sink: interfaces.Sink,
        setting: interfaces.Setting,
        laboratory: interfaces.Laboratory | None = None,
    ) -> interfaces.Session:
        return GraphSession(timeline)


def _library_class(old: Library, new: Library) -> Announcement:
    names = [{e.name for e in library.exports} for library in (old, new)]
    told = new.changelog[-1:] != old.changelog[-1:] and "- " in new.changelog[-1]
    if old.exports == new.exports:
        return "D2"
    if names[0] < names[1]:
        return "D0"
    if names[0] != names[1]:
        return "D1" if told else "D2"
    return "D1" if told else "D3"


def _horizon(timeline: Timeline) -> int:
    world: ProjectWorld = timeline.worlds[0]
    weeks = range(WEEK - 1, world.days, WEEK)
    days = {feature.day for feature in world.features}
    last = -1
    releases = 0
    for week in weeks:
        releases += any(last < day <= week for day in days)
        last = week
    return len(days) + releases


class ProjForgeSuite(ProjForgeFastSuite):
    """The real suite; everything it is stands in `card` and in docs/projforge.md."""

    card = dataclasses.replace(
        ProjForgeFastSuite.card,
        name="projforge",
        title="ProjForge",
        about="Run a software project for thirty days: git, packages, tests, releases.",
        env_id="owa_bench/ProjForge-v2",
        step_limit=DAYS * (max(generate.STEPS_A_DAY) + 1) + 1,
        categories=KINDS_OF_TOOL,
        axes=("A", "G", "P", "T", "W", "$"),
        rules=RULES,
        features=0,
        macros=(),
        episode_s=30.0,
        work={
            1: interfaces.EpisodeWork(63, 2179, 10016, 11122, 23685, 5, 6954, 17, 4054),
            2: interfaces.EpisodeWork(87, 2197, 10016, 12279, 76310, 5, 9651, 25, 6510),
            3: interfaces.EpisodeWork(118, 2223, 10016, 13794, 203998, 5, 13292, 37, 9673),
            4: interfaces.EpisodeWork(119, 2260, 10016, 13971, 309164, 5, 17176, 54, 13382),
        },
    )
    oracle = ForgeOracle()
    policies = FORGE_POLICIES
    detectors = tuple(map(ForgeDetector, RULES))

    @override
    def ready(self, families: tuple[str, ...]) -> None:
        """Raise MissingPartError where git, bubblewrap, pip or pytest is missing."""
        require_programs()
        workshop.tools()

    @override
    def terms(self, instance: Instance) -> interfaces.Terms:
        """Return the terms of an instance: the steps of its tier."""
        daily = generate.STEPS_A_DAY[instance.tier - 1]
        return interfaces.Terms(THETA, DAYS * (daily + 1) + 1)

    @override
    def session(
        self,
        timeline: Timeline,
        sink: interfaces.Sink,
        setting: interfaces.Setting,
        laboratory: interfaces.Laboratory | None = None,
    ) -> interfaces.Session:
        return ForgeSession(timeline, sink)


SUITES = (ProjForgeSuite(), ProjForgeFastSuite())
