"""MultiCrew, the suite: a crew with private facts makes one deliverable in time."""

from typing_extensions import override

from owa_bench import interfaces
from owa_bench.drift.calendar import Calendar
from owa_bench.envs.multicrew import generate
from owa_bench.envs.multicrew.claims import KINDS
from owa_bench.envs.multicrew.detectors import DETECTORS, RULES
from owa_bench.envs.multicrew.draws import ROLES
from owa_bench.envs.multicrew.oracle import CrewOracle
from owa_bench.envs.multicrew.policies import POLICIES
from owa_bench.envs.multicrew.session import THETA, CrewSession
from owa_bench.envs.multicrew.state import TICK_MS
from owa_bench.envs.multicrew.world import CrewWorld
from owa_bench.records.instance import Instance, Timeline
from owa_bench.repositories.commit_runner import require_programs
from owa_bench.seeding import stream
from owa_bench.shells.tool_env import ToolSuite

_FIRST, _LAST = 0.15, 0.4  # of T: all drift comes between


def _drift_ms(instance: Instance, world: CrewWorld, event: interfaces.DriftEvent) -> int:
    """Return when a drift event comes, at any magnitude at the same time."""
    rng = stream(instance.seed, "strike", event.operator, event.target)
    first, last = round(_FIRST * world.deadline), round(_LAST * world.deadline)
    return int(rng.integers(first, last + 1)) * TICK_MS


class CrewSuite(ToolSuite):
    """The suite; everything it is stands in `card` and in docs/multicrew.md."""

    card = interfaces.SuiteCard(
        name="multicrew",
        version=generate.VERSION,
        title="MultiCrew",
        about="Work as a crew: private facts, one channel, one deliverable in time.",
        source="AAI paper section 4.3",
        env_id="owa_bench/MultiCrew-v2",
        domain="crew",
        families=generate.FAMILIES,
        tiers=generate.TIERS,
        theta=THETA,
        horizon=60,
        depth_target=4,
        step_limit=1500,
        categories={
            "read": "files",
            **dict.fromkeys(("hand_off", "ask", "tell", "propose", "accept"), "messages"),
            **dict.fromkeys(("claim", "work", "review", "merge", "arbitrate"), ""),
            **dict.fromkeys(("board", "pass_turn"), ""),
        },
        proposition_kinds=KINDS,
        axes=("A", "G", "P", "W", "S", "$"),
        rules=RULES,
        seats=len(ROLES),
        roles=ROLES,
        held_out=(*generate.HELD_OUT, *generate.REAL),
        work={
            1: interfaces.EpisodeWork(21, 2901, 6482, 5193, 2602, 2, 9169, 11, 2527),
            2: interfaces.EpisodeWork(41, 3600, 6482, 12908, 4749, 3, 14235, 20, 4475),
            3: interfaces.EpisodeWork(71, 4689, 6482, 26622, 8150, 4, 21424, 35, 7590),
            4: interfaces.EpisodeWork(113, 6193, 6482, 60268, 13346, 6, 31486, 56, 12731),
        },
    )
    oracle = CrewOracle()
    policies = POLICIES
    detectors = DETECTORS
    schedule = Calendar(domain="crew", times=_drift_ms)

    @override
    def ready(self, families: tuple[str, ...]) -> None:
        """Raise MissingPartError where a family runs code and git or bwrap is missing."""
        if set(families) & set(generate.REAL):
            require_programs()

    @override
    def generate(self, instance: Instance) -> CrewWorld:
        return generate.generate(instance)

    @override
    def session(
        self,
        timeline: Timeline,
        sink: interfaces.Sink,
        setting: interfaces.Setting,
        laboratory: interfaces.Laboratory | None = None,
    ) -> interfaces.Session:
        return CrewSession(timeline, sink, setting)


SUITE = CrewSuite()
