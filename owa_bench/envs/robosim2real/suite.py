"""Two suites of one arm: RoboSim2Real, command by command, and its language view, by tools."""

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
from typing_extensions import override

from owa_bench import interfaces
from owa_bench.envs.robosim2real.language.wording import ERRANDS, TOOLS
from owa_bench.envs.robosim2real.world import FAMILIES, TIERS, RobotWorld
from owa_bench.records.instance import Instance, Timeline
from owa_bench.seeding import stream
from owa_bench.shells.tool_env import ToolSuite


def _oracle(session: Any) -> interfaces.Agent:
    from owa_bench.envs.robosim2real.session import ArmOracle

    return ArmOracle(session)


class _ArmSuite(interfaces.Suite):
    """A suite that needs the engine."""

    @override
    def ready(self, families: tuple[str, ...]) -> None:
        """Refuse a machine without the engine, before anything is played.

        Raises: MissingPartError: it names the line that installs the engine.
        """
        from owa_bench.envs.robosim2real.engine import load_engine

        load_engine()


class RoboSim2Real(_ArmSuite):
    """The suite. Axis E alone reads its episodes."""

    card = interfaces.SuiteCard(
        name="robosim2real",
        version=1,
        title="RoboSim2Real",
        about="Move an arm in simulation and on a guarded surrogate device whose unit is hidden.",
        source="AAI paper section 4.1",
        env_id="owa_bench/RoboSim2Real-v1",
        domain="robosim2real",
        families=FAMILIES,
        tiers=TIERS,
        theta=1.0,
        horizon=0,
        depth_target=0,
        step_limit=600,
        categories={},
        proposition_kinds=(),
        axes=("E",),
        rules=(),
        native=True,
        embodied=True,
        episode_s=0.25,
        episode_bytes=(6_000, 0),
    )
    policies = {"oracle": _oracle}

    @override
    def generate(self, instance: Instance) -> RobotWorld:
        from owa_bench.envs.robosim2real import tasks

        return tasks.draw(instance.family, instance.tier, stream(instance.seed, "base"))

    @override
    def body(self, timeline: Timeline, setting: interfaces.Setting) -> interfaces.BodySession:
        from owa_bench.envs.robosim2real.session import ArmSession

        return ArmSession(timeline, setting)

    @override
    def env(
        self, source: interfaces.TimelineSource, *, view: interfaces.View = "vector", **options: Any
    ) -> gymnasium.Env[Any, Any]:
        from owa_bench.envs.robosim2real.env import RobotEnv

        return RobotEnv(source=source, **options)


def _control(name: str) -> Callable[[Any], interfaces.Agent]:
    """Return what makes a control policy of the language view; its engine is imported then."""

    def make(access: interfaces.OracleAccess) -> interfaces.Agent:
        from owa_bench.envs.robosim2real.language.policies import POLICIES

        return POLICIES[name](access)

    return make


class ArmTools(_ArmSuite, ToolSuite):
    """The language view: docs/armtools.md."""

    card = interfaces.SuiteCard(
        name="armtools",
        version=1,
        title="RoboSim2Real, language view",
        about="Measure and move an arm of a hidden unit by tool calls, under a guard.",
        source="AAI paper section 4.1",
        env_id="owa_bench/ArmTools-v1",
        domain="robosim2real",
        families=tuple(family for family in FAMILIES if family in ERRANDS),
        tiers=TIERS,
        theta=1.0,
        horizon=12,
        depth_target=4,
        step_limit=80,
        categories=dict.fromkeys((tool.name for tool in TOOLS), ""),
        proposition_kinds=("delay", "camera", "encoders"),
        axes=("A", "G", "P", "W", "$"),
        rules=(),
        episode_s=0.5,
        episode_bytes=(5_800, 650),
        work={
            1: interfaces.EpisodeWork(12, 1943, 7231, 2000, 903, 1, 6001, 6, 903),
            2: interfaces.EpisodeWork(13, 1963, 7231, 2199, 992, 1, 6506, 7, 992),
            3: interfaces.EpisodeWork(15, 1963, 7231, 2569, 1207, 1, 8603, 7, 1207),
        },
    )
    policies: Mapping[str, Callable[[Any], interfaces.Agent]] = {
        name: _control(name)
        for name in ("noop", "random", "plausible_wrong", "over_doer", "leak_probe", "oracle")
    }

    @property
    @override
    def oracle(self) -> interfaces.Oracle:
        from owa_bench.envs.robosim2real.language.oracle import ArmToolOracle

        return ArmToolOracle()

    @override
    def generate(self, instance: Instance) -> RobotWorld:
        from owa_bench.envs.robosim2real.language.world import draw_world

        return draw_world(instance)

    @override
    def session(
        self,
        timeline: Timeline,
        sink: interfaces.Sink,
        setting: interfaces.Setting,
        laboratory: interfaces.Laboratory | None = None,
    ) -> interfaces.Session:
        from owa_bench.envs.robosim2real.language.session import ArmToolSession

        return ArmToolSession(timeline)


SUITES = (RoboSim2Real(), ArmTools())
