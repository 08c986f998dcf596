"""Suite CartPole3D: seventeen levels of a cart-pole among flying balls."""

from collections.abc import Mapping
from typing import Any

import gymnasium
from typing_extensions import override

from owa_bench import interfaces
from owa_bench.envs.cartpole3d import levels
from owa_bench.envs.cartpole3d.levels import SUITE as NAME
from owa_bench.envs.cartpole3d.world import PhysicsWorld, base
from owa_bench.records.instance import Instance


class CartPole3D(interfaces.Suite):
    """The suite.

    It is native: Box in, Discrete(5) out, no tools, no finish, no stated p, no oracle. It stands
    outside every battery that gives a level.
    """

    card = interfaces.SuiteCard(
        name=NAME,
        version=levels.VERSION,
        title="CartPole3D",
        about="Keep a pole upright on a cart among balls, in a world that drifts.",
        source="AIQ paper sections 2.6.3 and 3.4",
        env_id="owa_bench/CartPole3D-v2",
        domain=levels.DOMAIN,
        families=levels.FAMILIES,
        tiers=levels.TIERS,
        theta=0.9,
        horizon=0,
        depth_target=0,
        step_limit=200,
        categories={},
        proposition_kinds=(),
        axes=(),
        rules=(),
        native=True,
        hints=levels.HINTS,
        episode_s=0.35,
        episode_bytes=(8_300, 4_600),
    )
    schedule = levels.LevelSchedule()
    # No control policies: such an agent is handed the oracle, and here there is none.
    # The references need no privilege: the agents `nothing`, `random` and `pd`.

    @override
    def ready(self, families: tuple[str, ...]) -> None:
        """Refuse a machine without the engine, before anything is played.

        Raises: MissingPartError: it names the line that installs the engine.
        """
        from owa_bench.envs.cartpole3d.bodies import load_engine

        load_engine()

    @override
    def generate(self, instance: Instance) -> PhysicsWorld:
        """Return the instance's world before its novelty: level 0 of its variant."""
        levels.tier_magnitude(instance.tier)  # refuses a tier that there is not
        return base(levels.parse_family(instance.family).spec)

    @override
    def schedule_for(self, options: Mapping[str, Any]) -> interfaces.EnumerableSchedule:
        given = options.get("magnitude", options.get("difficulty"))
        return levels.LevelSchedule(magnitude=None if given is None else levels.magnitude_of(given))

    @override
    def env(
        self, source: interfaces.TimelineSource, *, view: interfaces.View = "vector", **options: Any
    ) -> gymnasium.Env[Any, Any]:
        from owa_bench.envs.cartpole3d.env import CartPole3DEnv

        return CartPole3DEnv(source, **options)


SUITE = CartPole3D()
