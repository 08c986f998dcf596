"""What an episode is made of, from a plan entry: instance, env, first and last event.

The loop plays with these and replay plays again with the very same. Besides what the
env emits, an attempt holds EpisodeStart, what the agent declares with a Move (before
the step of that move), and EpisodeEnd.
"""

import base64
import dataclasses
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import msgspec

from owa_bench import calendars, discovery
from owa_bench.calendars import Calendar
from owa_bench.interfaces import (
    Ending,
    EnumerableSchedule,
    Move,
    OracleAccess,
    Sink,
    Suite,
    Task,
    ToolSpec,
    View,
)
from owa_bench.records.events import (
    Belief,
    EpisodeEnd,
    EpisodeStart,
    Event,
    Outcome,
    Resource,
    fixed,
)
from owa_bench.records.instance import Instance, Timeline
from owa_bench.records.plan import Arm, Plan, PlanEntry
from owa_bench.records.trace import sketch
from owa_bench.run import assembly
from owa_bench.seeding import instance_seed
from owa_bench.shells.episode import EpisodeFacts
from owa_bench.shells.native_env import NativeEnv
from owa_bench.shells.tool_env import ToolEnv

# Beliefs stated before the end are kept and enter no axis.
INTERIM = "interim"


class PlayedEnv(Protocol):
    """What loop and replay ask of an env: a tool suite's, or a native suite's."""

    tools: tuple[ToolSpec, ...]

    @property
    def steps(self) -> int:
        """Actions so far."""

    @property
    def failed_attempts(self) -> int:
        """Actions that were malformed, refused or in vain."""

    @property
    def ending(self) -> Ending | None:
        """How the episode ended; None while it goes on."""

    def attach(self, sink: Sink) -> None:
        """Send the events of the next episode to `sink`."""

    def reset(self, *, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Begin the episode of the options' instance."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one action."""

    def conclude(self, outcome: Outcome, reason: str) -> Ending:
        """End the episode from outside."""

    def oracle_access(self) -> OracleAccess:
        """Return what a suite's own control policy may see."""

    def close(self) -> None:
        """Release what the env holds."""

    @property
    def task(self) -> Task:
        """What the agent is told."""

    @property
    def timeline(self) -> Timeline:
        """The worlds of this episode."""

    @property
    def simulated_ms(self) -> int:
        """Simulated milliseconds since reset."""


@runtime_checkable
class Pictured(Protocol):
    """An env whose window can be looked at."""

    def picture(self) -> bytes:
        """Return a JPEG of the window."""


def with_picture(env: PlayedEnv, info: dict[str, Any]) -> dict[str, Any]:
    """Return an info with the env's window as a data address, where it has one."""
    if not isinstance(env, Pictured) or env.ending is not None:
        return info
    data = base64.b64encode(env.picture()).decode()
    return {**info, "picture": f"data:image/jpeg;base64,{data}"}


def instance_of(plan: Plan, entry: PlanEntry, root: bytes) -> Instance:
    """Return the instance of an entry; `root` is the master, any nonce mixed in."""
    plain = Instance(
        suite=entry.suite,
        version=entry.version,
        family=entry.family,
        tier=entry.tier,
        seed=instance_seed(root, entry.pair),
        repeat=entry.repeat,
    )
    step = entry.day or 0
    if entry.delta is not None:
        calendar = calendar_of(plan, entry.suite, entry.calendar)
        step = assembly.drift_step(entry.suite, plain, entry.delta, calendar)
    return msgspec.structs.replace(plain, drift_step=step)


def env_for(
    plan: Plan,
    suite_name: str,
    *,
    view: View = "language",
    wire: bool = False,
    calendar: str = "",
) -> PlayedEnv:
    """Return an env that plays any entry of this suite and calendar of the plan.

    A native suite has one view. In the others `view` is what the agent sees; the
    actions on record are the same calls in each.
    """
    suite: Suite = discovery.get("suites", suite_name)
    source = assembly.source(suite_name, calendar_of(plan, suite_name, calendar))
    if suite.card.native:
        return NativeEnv(suite, source, step_limit=plan.budget.steps)
    env = suite.env(source, view=view, wire=wire, step_limit=plan.budget.steps)
    shell = env.unwrapped
    if not isinstance(shell, ToolEnv):
        raise TypeError(
            f"`{suite_name}` is not a tool suite: its env is {type(shell).__name__}"
        )
    return shell


def calendar_of(plan: Plan, suite_name: str, calendar: str = "") -> EnumerableSchedule:
    """Return the drift calendar of a plan for one of its suites, or an entry's own.

    "nested" is the suite's own schedule where it has one, its onset as the plan says.
    """
    suite: Suite = discovery.get("suites", suite_name)
    text = calendar or plan.calendar
    parsed = calendars.parse(text, suite.card.domain)
    own: Any = assembly.own_schedule(suite)
    if text.partition("^")[0] != "nested" or isinstance(own, Calendar):
        return parsed
    if not parsed.onset_ms:
        return own  # type: ignore[no-any-return]
    chosen: EnumerableSchedule = dataclasses.replace(own, onset_ms=parsed.onset_ms)
    return chosen


def episode_start(
    plan: Plan, entry: PlanEntry, attempt: int, opening: EpisodeFacts
) -> EpisodeStart:
    """Return the first event of an attempt."""
    arm = arm_of(plan, entry)
    suite: Suite = discovery.get("suites", entry.suite)
    return EpisodeStart(
        index=entry.index,
        attempt=attempt,
        arm=arm.name,
        pair=entry.pair,
        repeat=entry.repeat,
        lane=entry.lane,
        day=entry.day,
        session=entry.session,
        env_id=suite.card.env_id,
        instance=opening.instance,
        delta=entry.delta,
        realised=opening.realised,
        world=opening.world,
        agent=arm.agent,
        fingerprint=arm.fingerprint,
        interventions=entry.interventions,
        role_cap=entry.role_cap,
        muted=entry.muted,
        calendar=entry.calendar,
        phase=entry.phase,
        horizon=opening.horizon,
        depth=opening.depth,
        theta=opening.theta,
        categories=opening.categories,
        needs_tools=opening.needs_tools,
        honeypot=opening.honeypot,
    )


def unopened(instance: Instance, theta: float) -> EpisodeFacts:
    """Return the opening of an attempt whose world could not be brought to life."""
    return EpisodeFacts(
        instance=instance,
        world="",
        realised=0.0,
        horizon=0,
        depth=0,
        theta=theta,
        categories=(),
        needs_tools=False,
        honeypot=False,
    )


def episode_end(
    env: PlayedEnv, ending: Ending, *, timed: bool, wall_s: float
) -> EpisodeEnd:
    """Return the last event of an attempt that the env has concluded."""
    return EpisodeEnd(
        outcome=ending.outcome,
        q_state=ending.q_state,
        quality=ending.quality,
        success=ending.success,
        stated=ending.stated,
        failed_attempts=env.failed_attempts,
        reason=ending.reason,
        timed=timed,
        steps=env.steps,
        simulated_s=env.simulated_ms / 1000.0,
        wall_s=fixed(wall_s),
    )


def broken_end(reason: str, wall_s: float) -> EpisodeEnd:
    """Return the last event of an attempt that the harness failed; never scored."""
    return EpisodeEnd(
        outcome="infrastructure",
        q_state=0.0,
        quality=0.0,
        success=False,
        stated=None,
        failed_attempts=0,
        reason=reason,
        steps=0,
        simulated_s=0.0,
        wall_s=fixed(wall_s),
    )


def declared(move: Move, step: int, sink: Sink) -> Iterator[Event]:
    """Yield the events of what an agent declares; words go into blobs.

    The harness sets step, source and stream, whatever the agent wrote there.
    """
    for meter, amount in move.usage:
        yield Resource(step=step, source="agent", meter=meter, amount=amount)
    for call in move.model_calls:
        prompt = sink.blob(getattr(call, "prompt", "").encode())
        reply = sink.blob(getattr(call, "reply", "").encode())
        yield _stamped(call, step, prompt=prompt, reply=reply)
    for message in move.messages:
        words = getattr(message, "digest", "")
        digest = sink.blob(words.encode())
        yield _stamped(message, step, digest=digest, sketch=sketch(words))
    if move.revision is not None:
        yield _stamped(move.revision, step)
    for name, p in move.beliefs:
        yield Belief(step=step, proposition=name, kind=INTERIM, p=fixed(p))


def arm_of(plan: Plan, entry: PlanEntry) -> Arm:
    """Return the arm that plays an entry."""
    return next(arm for arm in plan.arms if arm.name == entry.arm)


def _stamped(event: Event, step: int, **changes: str) -> Event:
    return msgspec.structs.replace(event, step=step, source="agent", **changes)
