"""ToolQuest, third edition: cases in one coherent company."""

from typing_extensions import override

from owa_bench import interfaces
from owa_bench.company.kinds.contract import THETA, CaseWorld
from owa_bench.envs.casework.detectors import DETECTORS
from owa_bench.envs.casework.kinds import FAMILIES, KINDS, TIERS, draw_world
from owa_bench.envs.casework.oracle import CaseOracle
from owa_bench.envs.casework.policies import POLICIES
from owa_bench.envs.casework.session import CaseSession
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.tool_env import ToolSuite

VERSION = 1


class Casework(ToolSuite):
    """The suite: docs/casework.md."""

    card = interfaces.SuiteCard(
        name="casework",
        version=VERSION,
        title="ToolQuest, cases",
        about="Decide cases of a company by its policies, systems, mails and people.",
        source="AAI paper section 4.1",
        env_id="owa_bench/Casework-v1",
        domain="casework",
        families=FAMILIES,
        tiers=TIERS,
        theta=THETA,
        horizon=24,
        depth_target=4,
        step_limit=200,
        categories={
            "http": "http_api",
            "python": "code",
            "mail": "messages",
            "chat": "messages",
            "wait": "",
            "submit": "",
        },
        proposition_kinds=tuple(
            dict.fromkeys(name for kind in KINDS.values() for name in kind.proposition_kinds)
        ),
        axes=("A", "G", "P", "T", "W", "$"),
        rules=tuple(detector.rule for detector in DETECTORS),
        episode_s=2.8,
        episode_bytes=(21_500, 27_000),
        work={
            1: interfaces.EpisodeWork(10, 2985, 5973, 18039, 7874, 1, 48099, 19, 7874),
            2: interfaces.EpisodeWork(13, 3040, 5973, 32209, 26464, 1, 68590, 24, 26464),
            3: interfaces.EpisodeWork(19, 3076, 5973, 54096, 69081, 1, 108993, 31, 69081),
        },
    )
    oracle = CaseOracle()
    policies = POLICIES
    detectors = DETECTORS

    @override
    def generate(self, instance: Instance) -> CaseWorld:
        return draw_world(instance)

    @override
    def session(
        self,
        timeline: Timeline,
        sink: interfaces.Sink,
        setting: interfaces.Setting,
        laboratory: interfaces.Laboratory | None = None,
    ) -> interfaces.Session:
        return CaseSession(timeline, sink)


SUITE = Casework()
