"""Recall, the suite: memory, retrieval, reasoning and literacy over virtual days."""

from typing_extensions import override

from owa_bench import interfaces
from owa_bench.envs.recall import generate
from owa_bench.envs.recall.oracle import RecallOracle
from owa_bench.envs.recall.policies import POLICIES
from owa_bench.envs.recall.session import THETA, RecallSession
from owa_bench.envs.recall.state import FEATURES, MACROS
from owa_bench.envs.recall.world import RecallWorld
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.tool_env import ToolSuite


class RecallSuite(ToolSuite):
    """The suite; everything it is stands in `card` and in docs/recall.md."""

    card = interfaces.SuiteCard(
        name="recall",
        version=generate.VERSION,
        title="Recall",
        about="Remember, retrieve and reason across days and restarts.",
        source="AAI paper section 3.12",
        env_id="owa_bench/Recall-v2",
        domain="recall",
        families=generate.FAMILIES,
        tiers=generate.TIERS,
        theta=THETA,
        horizon=150,
        depth_target=0,
        step_limit=1200,
        categories={"search": "files", "open": "files", "answer": "", "go_on": ""},
        proposition_kinds=("supersession", "contradiction"),
        axes=("A", "G", "P", "M", "W", "$"),
        rules=(),
        features=FEATURES,
        macros=MACROS,
        sittings=True,
        work={
            1: interfaces.EpisodeWork(63, 1656, 3598, 12763, 3768, 4, 9288, 44, 1784),
            2: interfaces.EpisodeWork(81, 1844, 3598, 17103, 4873, 4, 13526, 50, 2392),
            3: interfaces.EpisodeWork(107, 1919, 3598, 23908, 7155, 4, 19596, 55, 4041),
            4: interfaces.EpisodeWork(150, 1994, 3598, 37808, 12116, 4, 31506, 63, 7775),
        },
    )
    oracle = RecallOracle()
    policies = POLICIES

    @override
    def generate(self, instance: Instance) -> RecallWorld:
        return generate.generate(instance)

    @override
    def terms(self, instance: Instance) -> interfaces.Terms:
        """Return the terms of an instance: the quota of its tier."""
        return interfaces.Terms(
            THETA, self.card.step_limit, memory_bytes=generate.QUOTAS[instance.tier - 1]
        )

    @override
    def horizon(self, timeline: Timeline) -> int:
        """Return the number of items: the oracle answers each in one action."""
        world: RecallWorld = timeline.worlds[-1]
        return world.items

    @override
    def session(
        self,
        timeline: Timeline,
        sink: interfaces.Sink,
        setting: interfaces.Setting,
        laboratory: interfaces.Laboratory | None = None,
    ) -> interfaces.Session:
        return RecallSession(timeline)


SUITE = RecallSuite()
