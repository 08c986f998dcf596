"""ToolQuest, the suite: find HTTP APIs, authenticate to them, compose their data."""

from typing_extensions import override

from owa_bench import interfaces
from owa_bench.envs.toolquest import generate, vector
from owa_bench.envs.toolquest.detectors import DETECTORS
from owa_bench.envs.toolquest.effective_class import effective_class, recorded_procedure
from owa_bench.envs.toolquest.goal import PROPOSITION_KINDS
from owa_bench.envs.toolquest.oracle import THETA, ToolQuestOracle
from owa_bench.envs.toolquest.policies import POLICIES
from owa_bench.envs.toolquest.session import ToolQuestSession
from owa_bench.envs.toolquest.world import ApiWorld
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.tool_env import ToolSuite


class ToolQuest(ToolSuite):
    """The suite; everything it is stands in `card` and in docs/toolquest.md."""

    card = interfaces.SuiteCard(
        name="toolquest",
        version=generate.VERSION,
        title="ToolQuest",
        about="Find HTTP APIs, authenticate to them and compose what they hold.",
        source="AAI paper section 4.1",
        env_id="owa_bench/ToolQuest-v3",
        domain="api",
        families=generate.FAMILIES,
        tiers=generate.TIERS,
        theta=THETA,
        horizon=50,
        depth_target=5,
        step_limit=200,
        categories={
            "http": "http_api",
            **dict.fromkeys(("wait", "vault", "read", "table", "write_artifact"), ""),
        },
        proposition_kinds=PROPOSITION_KINDS,
        axes=("A", "G", "P", "T", "W", "$"),
        rules=tuple(detector.rule for detector in DETECTORS),
        features=vector.FEATURES,
        macros=vector.MACROS,
        honeypots=generate.HONEYPOT_FAMILIES,
        work={
            1: interfaces.EpisodeWork(12, 1647, 6231, 10401, 2192, 1, 15274, 14, 2192),
            2: interfaces.EpisodeWork(17, 1653, 6231, 15399, 3393, 1, 20157, 15, 3393),
            3: interfaces.EpisodeWork(25, 1611, 6231, 23000, 4907, 1, 28074, 20, 4907),
            4: interfaces.EpisodeWork(24, 1593, 6231, 21087, 4890, 1, 28611, 20, 4890),
        },
    )
    oracle = ToolQuestOracle()
    policies = POLICIES
    detectors = DETECTORS
    effective_class = staticmethod(effective_class)

    @override
    def generate(self, instance: Instance) -> ApiWorld:
        return generate.generate(instance)

    @override
    def honeypot(self, world: ApiWorld) -> bool:
        """Return whether the world's goal cannot be met."""
        return world.honeypot

    @override
    def procedure(self, world: ApiWorld, actions: tuple[str, ...]) -> tuple[str, ...]:
        """Return the oracle's actions with answers as how they are derived."""
        return recorded_procedure(world, actions)

    @override
    def session(
        self,
        timeline: Timeline,
        sink: interfaces.Sink,
        setting: interfaces.Setting,
        laboratory: interfaces.Laboratory | None = None,
    ) -> interfaces.Session:
        return ToolQuestSession(timeline, sink=sink, wire=setting.wire)


SUITE = ToolQuest()
