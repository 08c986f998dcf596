"""SelfRev, the suite: an agent revises a subject and must prove the gain."""

from typing_extensions import override

from owa_bench import interfaces
from owa_bench.envs.selfrev import generate
from owa_bench.envs.selfrev.detectors import DETECTORS, RULES
from owa_bench.envs.selfrev.oracle import CampaignOracle
from owa_bench.envs.selfrev.policies import POLICIES
from owa_bench.envs.selfrev.session import EFFECT, THETA, CampaignSession
from owa_bench.envs.selfrev.tools import TOOLS
from owa_bench.envs.selfrev.world import RevisionWorld
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.tool_env import ToolSuite


class RevisionSuite(ToolSuite):
    """The suite; everything it is stands in `card` and in docs/selfrev.md."""

    card = interfaces.SuiteCard(
        name="selfrev",
        version=generate.VERSION,
        title="SelfRev",
        about="Revise a program, and prove the gain on holdouts that nobody has seen.",
        source="AAI paper section 4.5",
        env_id="owa_bench/SelfRev-v2",
        domain="revision",
        families=generate.FAMILIES,
        held_out=generate.BY_NAME,
        tiers=generate.TIERS,
        theta=THETA,
        horizon=6,
        depth_target=0,
        step_limit=400,
        categories=dict.fromkeys((tool.name for tool in TOOLS), ""),
        proposition_kinds=(EFFECT,),
        axes=("A", "G", "R", "W", "$"),
        rules=RULES,
        episode_s=8.0,
        episode_bytes=(120_000, 60_000),
        work={
            1: interfaces.EpisodeWork(12, 1644, 6065, 154, 757, 1, 1736, 6, 757),
            2: interfaces.EpisodeWork(18, 2104, 6065, 201, 1169, 1, 2202, 12, 1169),
            3: interfaces.EpisodeWork(26, 2737, 6065, 245, 1693, 1, 2822, 20, 1693),
            4: interfaces.EpisodeWork(36, 3524, 6065, 294, 2342, 1, 3588, 30, 2342),
        },
    )
    oracle = CampaignOracle()
    policies = POLICIES
    detectors = DETECTORS
    needs_laboratory = True

    @override
    def generate(self, instance: Instance) -> RevisionWorld:
        return generate.generate(instance)

    @override
    def horizon(self, timeline: Timeline) -> int:
        """Return how many actions of the oracle are verified: a test, an adoption."""
        return 2

    @override
    def session(
        self,
        timeline: Timeline,
        sink: interfaces.Sink,
        setting: interfaces.Setting,
        laboratory: interfaces.Laboratory | None = None,
    ) -> interfaces.Session:
        return CampaignSession(timeline, sink, laboratory)


SUITE = RevisionSuite()
