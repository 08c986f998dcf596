"""Assembly of envs: the entry point of every Gymnasium id, and the oracle's scripts."""

import contextlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import gymnasium
import msgspec

from owa_bench.discovery import get
from owa_bench.drift.timeline import base_world, drift_step, source
from owa_bench.errors import UnknownNameError, UsageError
from owa_bench.interfaces import EnumerableSchedule, Setting, Suite, TimelineSource, View
from owa_bench.records.instance import Instance, Timeline
from owa_bench.runs.laboratory_process import LaboratoryProcess
from owa_bench.shells.episode_events import NullSink
from owa_bench.shells.instances import Instances, plain_instances
from owa_bench.shells.seat_policy import ONE_READER, SeatEnv, SeatPolicy, check_seat_policy
from owa_bench.shells.solution import OracleSolution, solve
from owa_bench.shells.standard_tools import tools_of
from owa_bench.shells.tool_env import ToolEnv, ToolSuite

# Parameters of the makers that are no options of `gymnasium.make`.
_NOT_OPTIONS = frozenset(
    {"self", "suite", "source", "options", "instances", "laboratories", "sink"}
)


def tool_names(suite: str, families: Iterable[str]) -> set[str]:
    """Return the names of the tools that a suite offers in some families.

    Args:
        suite: Name of a suite with tools.
        families: Whose first instance of the lowest tier is asked.
    Returns: Names, the standard ones among them; none for a suite that needs a laboratory.
    """
    plugin: Suite = get("suites", suite)
    card, names = plugin.card, set[str]()
    if plugin.needs_laboratory:
        return names
    for family in families:
        instance = Instance(
            suite=suite, version=card.version, family=family, tier=card.tiers[0], seed=0
        )
        session = plugin.session(source(suite)(instance), NullSink(), Setting())
        names |= {tool.name for tool in tools_of(session.tools)}
        session.close()
    return names


def make_env(suite: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Return an env of a suite: the entry point of its Gymnasium id.

    Args:
        suite: Name of the suite.
        **options: As for `env_factory`.
    """
    return env_factory(suite, **options)()


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvFactory:
    """Makes envs of a suite, by a call; all of them share the worlds of one source."""

    suite: Suite
    source: TimelineSource
    instances: Instances
    view: View
    seat_policy: SeatPolicy | None
    options: Mapping[str, Any]

    def __call__(self) -> gymnasium.Env[Any, Any]:
        """Return a new env."""
        options = {**self.options, **laboratory_options(self.suite)}
        env = self.suite.env(self.source, view=self.view, instances=self.instances, **options)
        return env if self.seat_policy is None else SeatEnv(env, self.seat_policy)

    def of(self, instance: Instance) -> "EnvFactory":
        """Return a factory of envs that play one instance, whatever the seed."""
        return replace(self, instances=partial(_same, instance))


def env_factory(
    suite: str,
    tier: int = 1,
    family: str | None = None,
    drift_step: int = 0,
    delta: float | None = None,
    view: View = "language",
    schedule: EnumerableSchedule | None = None,
    site: str | None = None,
    seat_policy: SeatPolicy | None = None,
    **options: Any,
) -> EnvFactory:
    """Return the factory of a suite's envs.

    Args:
        suite: Name of the suite.
        tier: Tier of the instances.
        family: Family of the instances; None for all.
        drift_step: Drift step of the instances.
        delta: The drift as a magnitude in [0, 1], in place of `drift_step`.
        view: What is observed.
        schedule: The drift; None is the suite's own.
        site: Picks among the families that are called `site/...`.
        seat_policy: Who plays the seats of a crew; None where there is one seat.
        **options: For the suite's env.
    Raises: UsageError: Both `delta` and `drift_step` are given, nobody says who plays the seats of
        a crew, or an option has an unknown name.
    """
    if delta is not None and drift_step:
        raise UsageError(f"Give `delta` or `drift_step`, got {delta} and {drift_step}.")
    plugin: Suite = get("suites", suite)
    check_seat_policy(plugin.card, seat_policy)
    instances = plain_instances(
        plugin.card, tier=tier, family=family, site=site, drift_step=drift_step
    )
    if delta is not None:
        instances = partial(_at_magnitude, suite, instances, delta, schedule)
    if seat_policy == ONE_READER:
        options["one_reader"] = True
    known = (*inspect.signature(env_factory).parameters, *inspect.signature(ToolEnv).parameters)
    for name in options if isinstance(plugin, ToolSuite) else ():
        if name not in known:
            raise UnknownNameError("option of this env", name, set(known) - _NOT_OPTIONS)
    return EnvFactory(
        suite=plugin,
        source=source(suite, schedule),
        instances=instances,
        view=view,
        seat_policy=seat_policy,
        options=options,
    )


def laboratory_options(suite: Suite) -> dict[str, Any]:
    """Return the env option that gives a suite its laboratory, if it needs one."""
    return {"laboratories": LaboratoryProcess()} if suite.needs_laboratory else {}


def make_native_env(suite: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Return the env of a native suite: the entry point of its Gymnasium id.

    Args:
        suite: Name of the suite.
        **options: For its env; the suite says which schedule they name.
    """
    plugin: Suite = get("suites", suite)
    return plugin.env(source(suite, plugin.schedule_for(options)), **options)


def make_suite_env(suite: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Return the env of a suite of another package, native or not.

    Args:
        suite: Its name.
        options: As for `make_env` or `make_native_env`.
    """
    native = get("suites", suite).card.native
    return (make_native_env if native else make_env)(suite, **options)


def script(suite: str, instance: Instance) -> tuple[str, ...]:
    """Return the oracle's actions in an instance's world without any drift.

    Args:
        suite: Name of the suite.
        instance: The instance.
    Returns: The actions, as text.
    """
    still = msgspec.structs.replace(instance, drift_step=0)
    return solution(suite, source(suite)(still)).actions


def solution(suite: str, timeline: Timeline) -> OracleSolution:
    """Return the oracle's own solution, with a laboratory for a suite that needs one.

    Args:
        suite: Name of the suite.
        timeline: The episode's.
    Returns: The actions and their result.
    """
    plugin: Suite = get("suites", suite)
    process = laboratory_options(plugin).get("laboratories")
    if process is None:
        return solve(plugin, timeline)
    with contextlib.closing(process):
        return solve(plugin, timeline, laboratory=process.of(timeline.instance))


def procedure(suite: str, instance: Instance) -> tuple[str, ...]:
    """Return the script that a replay agent gets.

    Args:
        suite: Name of the suite.
        instance: The instance.
    Returns: The oracle's actions in the undrifted world; where the suite can tell, answers are
        replaced by how they are derived.
    """
    plugin: Suite = get("suites", suite)
    return plugin.procedure(base_world(instance), script(suite, instance))


def _at_magnitude(
    suite: str, instances: Instances, delta: float, schedule: EnumerableSchedule | None, seed: int
) -> Instance:
    """Return the instance of a seed with the drift step that `delta` is for it."""
    plain = instances(seed)
    step = drift_step(suite, plain, delta, schedule)
    return msgspec.structs.replace(plain, drift_step=step)


def _same(instance: Instance, _seed: int) -> Instance:
    """Return the instance, whatever the seed."""
    return instance
