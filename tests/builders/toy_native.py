"""A native suite without physics of ours: Gymnasium's CartPole, its force drifting."""

from typing import Any

import gymnasium
import msgspec

from owa_bench.canonical import record_digest
from owa_bench.discovery import PluginEntry
from owa_bench.drift.operator import operator
from owa_bench.interfaces import DriftEvent, Suite, SuiteCard
from owa_bench.records.instance import Instance

NAME = "toy_native"
LIMIT = 40


class World(msgspec.Struct, frozen=True, kw_only=True):
    """How hard a push is."""

    force: float = 10.0

    def digest(self) -> str:
        return record_digest(self)


@operator(announcement="D3", weight=1.0, targets="force")
def stronger(world: World) -> World:
    """Doubles the push."""
    return msgspec.structs.replace(world, force=2.0 * world.force)


class Always:
    """One drift event wherever there is drift at all."""

    def __call__(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        return self.possible(instance, world) if instance.drift_step else ()

    def possible(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        return (DriftEvent(0, "toy/stronger", "force", 1.0),)

    def steps_for(self, instance: Instance, world: World, delta: float) -> int:
        return int(delta > 0)


class Played(gymnasium.Wrapper):
    """CartPole played by instances; rewards of 1 / LIMIT."""

    metadata = {"render_fps": 50}

    def __init__(self, source: Any) -> None:
        super().__init__(gymnasium.make("CartPole-v1", max_episode_steps=LIMIT))
        self._source = source

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        timeline = self._source(options["instance"])
        self.env.unwrapped.force_mag = timeline.worlds[0].force
        return self.env.reset(seed=timeline.instance.seed % (1 << 31))

    def step(self, action: Any) -> Any:
        seen, reward, ended, cut, info = self.env.step(action)
        return seen, reward / LIMIT, ended, cut, {**info, "secret": "level"}


class ToyNative(Suite):
    """The suite."""

    card = SuiteCard(
        name=NAME,
        version=1,
        title="Toy",
        about="Balance.",
        source="tests",
        env_id="owa_bench_test/Toy-v1",
        domain="toy",
        families=("one",),
        tiers=(1,),
        theta=0.9,
        horizon=0,
        depth_target=0,
        step_limit=LIMIT,
        categories={},
        proposition_kinds=(),
        axes=(),
        rules=(),
        native=True,
    )
    schedule = Always()

    def generate(self, instance: Instance) -> World:
        return World()

    def env(self, source: Any, *, view: str = "vector", **options: Any) -> Any:
        return Played(source)


def register(monkeypatch: Any, discovery: Any) -> None:
    """Let discovery find the suite and its operator."""
    suite = PluginEntry(NAME, ToyNative(), "")
    monkeypatch.setitem(discovery.find("suites"), NAME, suite)
    entry = PluginEntry("toy/stronger", stronger, "")
    monkeypatch.setitem(discovery.find("operators"), "toy/stronger", entry)


class Leaning:
    """Pushes where the pole leans, and says how sure it is that all is new."""

    def reset(self, brief: Any, tools: Any, memory_dir: Any) -> None:
        assert tools == ()
        assert brief.goal["actions"] == 2

    def act(self, observation: Any, info: Any) -> Any:
        from owa_bench.interfaces import Move

        assert set(info) <= {"step", "tools", "error"}  # nothing hidden is told
        action = int(observation[2] + 0.3 * observation[3] > 0)
        return Move(action, beliefs=(("novelty", 0.25),))

    def close(self) -> None:
        pass


class Stray:
    """Answers what is no action of the suite, then leaves it to the pole."""

    def reset(self, brief: Any, tools: Any, memory_dir: Any) -> None:
        self._answers = iter([7, -1, [1, 0], 1.5])

    def act(self, observation: Any, info: Any) -> Any:
        return next(self._answers, 0)

    def close(self) -> None:
        pass
