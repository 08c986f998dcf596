"""Suite RoboSim2Real: an arm in simulation and on a guarded surrogate device with hidden units."""

from typing import Any

import gymnasium
from typing_extensions import override

from owa_bench import interfaces
from owa_bench.envs.robosim2real.world import FAMILIES, TIERS, RobotWorld
from owa_bench.records.instance import Instance, Timeline
from owa_bench.seeding import stream


def _oracle(session: Any) -> interfaces.Agent:
    from owa_bench.envs.robosim2real.session import ArmOracle

    return ArmOracle(session)


class RoboSim2Real(interfaces.Suite):
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
    def ready(self, families: tuple[str, ...]) -> None:
        """Refuse a machine without the engine, before anything is played.

        Raises: MissingPartError: it names the line that installs the engine.
        """
        from owa_bench.envs.robosim2real.engine import load_engine

        load_engine()

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


SUITE = RoboSim2Real()
