"""Setup of an episode from a plan entry: instance, env, first and last event.

The loop and replay use the same functions. Besides what the env emits, an attempt holds
EpisodeStart, what the agent declares with a Move (before the step of that move), and EpisodeEnd.
"""

import base64
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import msgspec

from owa_bench import seeding
from owa_bench.interfaces import Brief, Ending, Move, Sink, SuiteCard, View
from owa_bench.records.events import (
    SCHEMA,
    Belief,
    EpisodeEnd,
    EpisodeStart,
    Event,
    Resource,
    fixed,
)
from owa_bench.records.plan import Plan, PlanEntry, supervisor_budget
from owa_bench.records.trace import sketch
from owa_bench.runs import assembly
from owa_bench.runs.resolve import DriftedSuite, ResolvedEntry
from owa_bench.shells.embodied_env import EmbodiedEnv
from owa_bench.shells.episode import EpisodeFacts
from owa_bench.shells.native_env import NativeEnv
from owa_bench.shells.tool_env import LaboratoryFactory, ToolEnv

# Beliefs stated before the end are recorded and enter no axis.
INTERIM = "interim"
# The env of a tool suite, of an embodied suite, or of a native one.
PlayedEnv = ToolEnv | EmbodiedEnv | NativeEnv
_SCENES = 4  # of suite, view and calendar, whose idle envs stay open


# --- instances and envs ---------------------------------------------------------------


def env_for(
    plan: Plan,
    drifted: DriftedSuite,
    *,
    view: View = "language",
    wire: bool = False,
    laboratories: LaboratoryFactory | None = None,
) -> PlayedEnv:
    """Return an env that plays any entry of a suite under one calendar.

    Args:
        plan: The plan.
        drifted: A suite under one calendar of the plan (`Resolver.drifted_suite`).
        view: What the agent sees; the actions on record are the same calls in each. A native suite
            has one view.
        wire: Whether calls go over HTTP.
        laboratories: In place of the suite's own, where it needs one.
    """
    suite, source = drifted
    if suite.card.embodied:
        return EmbodiedEnv(suite, source, step_limit=plan.budget.steps)
    if suite.card.native:
        return NativeEnv(suite, source, step_limit=plan.budget.steps)
    own = assembly.laboratory_options(suite)
    if own and laboratories is not None:
        own["laboratories"] = laboratories
    options = {"step_limit": plan.budget.steps, **own}
    env = suite.env(source, view=view, wire=wire, **options)
    shell = env.unwrapped
    if not isinstance(shell, ToolEnv):
        raise TypeError(
            f"`{suite.card.name}` is not a tool suite: its env is {type(shell).__name__}"
        )
    return shell


class EnvPool:
    """Envs of a plan's suites, lent to one episode at a time."""

    def __init__(self, plan: Plan, *, wire: bool = False) -> None:
        self._plan = plan
        self._wire = wire
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, View, str], list[PlayedEnv]] = {}

    @contextmanager
    def lend(self, resolved: ResolvedEntry, view: View) -> Iterator[PlayedEnv]:
        """Lend an env; one in which an exception was raised is closed.

        Calendars have envs of their own, for an env knows one.

        Args:
            resolved: What is to be played.
            view: What the agent sees.
        Yields: The env.
        """
        entry, suite, _, _, source = resolved
        scene = (entry.suite, view, entry.calendar)
        with self._lock:
            idle = self._idle.get(scene)
            env = idle.pop() if idle else None
        env = env or env_for(self._plan, DriftedSuite(suite, source), view=view, wire=self._wire)
        try:
            yield env
        except BaseException:
            env.close()
            raise
        with self._lock:
            self._idle[scene] = [*self._idle.pop(scene, ()), env]
            for old in [*self._idle][:-_SCENES]:  # they hold pages of browsers
                for unused in self._idle.pop(old):
                    unused.close()

    def close(self) -> None:
        """Close every idle env."""
        with self._lock:
            for envs in self._idle.values():
                for env in envs:
                    env.close()
            self._idle.clear()


@runtime_checkable
class Pictured(Protocol):
    """An env whose window can be looked at."""

    def picture(self) -> bytes:
        """Return a JPEG of the window."""


def with_picture(env: PlayedEnv, info: dict[str, Any]) -> dict[str, Any]:
    """Return an info with a picture of the env's window, where it has one.

    Args:
        env: The env.
        info: Its info.
    Returns: The info; `picture` is a data URL of a JPEG.
    """
    if not isinstance(env, Pictured) or env.ending is not None:
        return info
    data = base64.b64encode(env.picture()).decode()
    return {**info, "picture": f"data:image/jpeg;base64,{data}"}


# --- events ---------------------------------------------------------------------------


def episode_start(
    plan: Plan, resolved: ResolvedEntry, attempt: int, opening: EpisodeFacts
) -> EpisodeStart:
    """Return the first event of an attempt.

    Args:
        plan: The plan.
        resolved: The entry that is played.
        attempt: Which attempt at it, from 0.
        opening: What the env knows of the episode.
    """
    arm = next(arm for arm in plan.arms if arm.name == resolved.entry.arm)
    entry = resolved.entry
    return EpisodeStart(
        schema=SCHEMA,
        index=entry.index,
        attempt=attempt,
        arm=arm.name,
        pair=entry.pair,
        repeat=entry.repeat,
        lane=entry.lane,
        day=entry.day,
        session=entry.session,
        env_id=resolved.suite.card.env_id,
        delta=entry.delta,
        agent=arm.agent,
        fingerprint=arm.fingerprint,
        interventions=supervisor_budget(plan, entry, opening.horizon),
        priced=entry.interventions == "protocol",
        role_cap=entry.role_cap,
        muted=entry.muted,
        control=entry.control,
        tools_off=entry.tools_off,
        side=entry.side,
        unit=None if isinstance(entry.unit, msgspec.UnsetType) else entry.unit,
        calendar=entry.calendar,
        phase=entry.phase,
        condition=entry.condition,
        window=entry.window,
        world_day=entry.world_day,
        hosting=arm.hosting,
        root=arm.root,
        **opening._asdict(),
    )


def failed_opening(resolved: ResolvedEntry) -> EpisodeFacts:
    """Return the opening of an attempt whose world could not be made."""
    return EpisodeFacts(
        instance=resolved.instance,
        world="",
        realised=0.0,
        horizon=0,
        depth=0,
        theta=resolved.suite.terms(resolved.instance).theta,
    )


def episode_end(env: PlayedEnv, ending: Ending, *, timed: bool, wall_s: float) -> EpisodeEnd:
    """Return the last event of an attempt that the env has concluded.

    Args:
        env: The env.
        ending: How the episode ended in it.
        timed: Whether a clock ended it.
        wall_s: Seconds it took.
    """
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


def failure_end(reason: str, wall_s: float) -> EpisodeEnd:
    """Return the last event of an attempt that the harness failed; never scored.

    Args:
        reason: What failed.
        wall_s: Seconds the attempt took.
    """
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


def declared_events(
    move: Move, step: int, sink: Sink, seat: str = "", *, at_ms: int = 0
) -> Iterator[Event]:
    """Yield the events of what an agent declares; texts are stored as blobs.

    Step, source, role and stream are set here, whatever the agent wrote there.

    Args:
        move: The agent's move.
        step: The step it makes, from 1.
        sink: Stores the blobs.
        seat: The agent's seat.
        at_ms: Simulated milliseconds since reset.
    """
    for meter, amount in move.usage:
        yield Resource(step=step, source="agent", role=seat, meter=meter, amount=amount)
    for call in move.model_calls:
        prompt = sink.blob(getattr(call, "prompt", "").encode())
        reply = sink.blob(getattr(call, "reply", "").encode())
        yield _stamped(call, step, role=seat, prompt=prompt, reply=reply)
    for message in move.messages:
        words = getattr(message, "digest", "")
        digest = sink.blob(words.encode())
        yield _stamped(message, step, role=seat, digest=digest, sketch=sketch(words))
    if move.revision is not None:
        yield _stamped(move.revision, step, role=seat)
    for name, p in move.beliefs:
        yield Belief(step=step, role=seat, at_ms=at_ms, proposition=name, kind=INTERIM, p=fixed(p))


def _stamped(event: Event, step: int, **changes: str) -> Event:
    return msgspec.structs.replace(event, step=step, source="agent", **changes)


# --- briefs ---------------------------------------------------------------------------


def brief_of(
    plan: Plan,
    resolved: ResolvedEntry,
    env: PlayedEnv,
    *,
    seat: str = "",
    sitting: int = 0,
    interventions_left: int | None = 0,
) -> Brief:
    """Return what an agent is told when it begins.

    Args:
        plan: The plan.
        resolved: The entry that is played.
        env: After its reset.
        seat: The agent's seat, "" where there is one.
        sitting: Of the seat, from 0.
        interventions_left: How often the supervisor may still be asked; None: always.
    """
    entry = resolved.entry
    task = env.task_of(seat)
    return Brief(
        text=task.text,
        goal={**task.goal, **told_goal(resolved.suite.card, entry)},
        propositions=task.propositions,
        budgets={
            "steps": float(env.step_limit),
            "act_s": plan.budget.act_s,
            **dict(plan.budget.episode_meters),
            **({"memory_bytes": env.memory_bytes} if env.memory_bytes else {}),
        },
        interventions_left=interventions_left,
        role=seat or "agent",
        session=entry.session + sitting,
        seed=seeding.agent_seed(env.timeline.instance.seed, entry.repeat, seat),
    )


def told_goal(card: SuiteCard, entry: PlanEntry) -> Mapping[str, Any]:
    """Return what a trial of Given Detection adds to an episode's goal.

    Args:
        card: The suite's; its `hints` go by family.
        entry: The entry that is played.
    Returns: Whether the novelty is there, and what of it is told; nothing elsewhere.
    """
    if isinstance(entry.told, msgspec.UnsetType):
        return {}
    there = bool(entry.delta)
    hints = card.hints.get(entry.family, ())[: entry.told + 1] if there else ()
    return {"novelty": there, "hints": list(hints)}
