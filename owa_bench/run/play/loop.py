"""The episode loop: one entry of a plan, played once and written down.

Who failed decides the status. What the agent's process raised, answered or missed ends
the episode as agent_raised or agent_timeout, which is scored. Anything that the env or
the harness raised ends the attempt as infrastructure, which is never scored.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from owa_bench import discovery, seeding
from owa_bench.errors import AgentFailure, AgentTimeout, InfrastructureFailure
from owa_bench.interfaces import Brief, Ending, Sink, Suite, View
from owa_bench.records.events import EpisodeEnd, EpisodeStart, Event, Resource
from owa_bench.records.instance import Instance
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.trace import Leaf
from owa_bench.run import assembly
from owa_bench.run.agents.agent_process import (
    AgentConnection,
    AgentLauncher,
    LocalTransport,
    NoTransport,
)
from owa_bench.run.agents.agent_spec import AgentHandle
from owa_bench.run.agents.protocol import ResetRequest
from owa_bench.run.agents.runner import describe
from owa_bench.run.plan.budget import EpisodeTally, MeteredSink, RunTally
from owa_bench.run.play import episode_setup
from owa_bench.run.play.episode_setup import PlayedEnv
from owa_bench.run.store.memory import EpisodeMemory
from owa_bench.run.store.recorder import EpisodeWriter, Recorder
from owa_bench.shells.episode import EpisodeFacts


class RunStopped(BaseException):
    """The run is being stopped; the open attempt stays unfinished."""


class AttemptResult(NamedTuple):
    """An attempt that was closed: its leaf and its last event."""

    leaf: Leaf
    end: EpisodeEnd
    spent: Mapping[str, float]


_SCENES = 4  # of suite, view and calendar, whose idle envs are kept


class EnvPool:
    """Envs of a plan's suites, lent to one episode at a time."""

    def __init__(self, plan: Plan, *, wire: bool = False) -> None:
        self._plan = plan
        self._wire = wire
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, View, str], list[PlayedEnv]] = {}

    @contextmanager
    def lend(self, entry: PlanEntry, view: View) -> Iterator[PlayedEnv]:
        """Yield an env for an entry; one that something was raised with is thrown away.

        Calendars have envs of their own, for an env knows one.
        """
        scene = (entry.suite, view, entry.calendar)
        with self._lock:
            idle = self._idle.get(scene)
            env = idle.pop() if idle else None
        env = env or episode_setup.env_for(
            self._plan, entry.suite, view=view, wire=self._wire, calendar=entry.calendar
        )
        try:
            yield env
        except BaseException:
            env.close()
            raise
        with self._lock:
            self._idle[scene] = [*self._idle.pop(scene, ()), env]
            self._tidy()

    def _tidy(self) -> None:
        """Close idle envs of scenes that were not played of late; they hold pages."""
        for scene in [*self._idle][:-_SCENES]:
            for env in self._idle.pop(scene):
                env.close()

    def close(self) -> None:
        """Close every idle env."""
        with self._lock:
            for envs in self._idle.values():
                for env in envs:
                    env.close()
            self._idle.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """What all episodes of one worker share.

    `root` is the master secret with any verifier's nonce mixed in; `agents` go by arm.
    """

    plan: Plan
    root: bytes
    agents: Mapping[str, AgentHandle]
    launcher: AgentLauncher
    recorder: Recorder
    envs: EnvPool
    stopping: threading.Event = field(default_factory=threading.Event)


class EvaluationSink:
    """A sink that puts every cost on the evaluation: a checkpoint is no practice."""

    active = True

    def __init__(self, inner: Sink) -> None:
        self._inner = inner

    def emit(self, event: Event) -> None:
        """Hand an event on, a cost in the evaluation stream."""
        if isinstance(event, Resource):
            event = msgspec.structs.replace(event, stream="evaluation")
        self._inner.emit(event)

    def blob(self, data: bytes) -> str:
        """Hand a blob on and return its digest."""
        return self._inner.blob(data)

    def secret(self, name: str, value: str) -> None:
        """Hand a secret on."""
        self._inner.secret(name, value)


def play_episode(
    context: WorkerContext,
    entry: PlanEntry,
    attempt: int,
    memory: EpisodeMemory,
    spent: Mapping[str, float] | None = None,
) -> AttemptResult:
    """Play an entry and return its closed attempt.

    `spent` is what the run has used so far. Errors: InfrastructureFailure if the
    attempt cannot be written; Stopped, and whatever stops the process.
    """
    writer = context.recorder.episode(entry.index, attempt)
    play = _Play(context, entry, attempt, writer, memory, spent)
    try:
        end = play.play()
        settled = None
        if end.outcome != "infrastructure":
            settled = memory.settle()
    except BaseException:
        writer.close("unfinished")
        raise
    broken = end.outcome == "infrastructure"
    leaf = writer.close("infrastructure" if broken else "complete", settled)
    return AttemptResult(leaf, end, play.tally.spent)


class _Play:
    """One attempt while it is played."""

    def __init__(
        self,
        context: WorkerContext,
        entry: PlanEntry,
        attempt: int,
        writer: EpisodeWriter,
        memory: EpisodeMemory,
        spent: Mapping[str, float] | None,
    ) -> None:
        self._context = context
        self._entry = entry
        self._attempt = attempt
        self._writer = writer
        self._memory = memory
        self._suite: Suite = discovery.get("suites", entry.suite)
        self._agent = context.agents[entry.arm]
        self._began = time.perf_counter()
        budget = context.plan.budget
        run = RunTally(budget, spent)
        self.tally = EpisodeTally(budget, time.monotonic, run)
        checkpoint = entry.phase == "checkpoint"
        inner: Sink = EvaluationSink(writer) if checkpoint else writer
        self._sink: Sink = MeteredSink(inner, self.tally)
        self._instance: Instance | None = None
        self._opened = False
        self._agent_connection = AgentConnection(NoTransport())

    def play(self) -> EpisodeEnd:
        """Play to the end, whoever fails; the last event has been written."""
        try:
            self._instance = episode_setup.instance_of(
                self._context.plan, self._entry, self._context.root
            )
            with self._context.envs.lend(self._entry, self._agent.view) as env:
                end = self._in_env(env)
        except Exception as error:
            if self._context.stopping.is_set():
                raise RunStopped from error
            end = self._broken(error)
        self._writer.emit(end)
        return end

    def _in_env(self, env: PlayedEnv) -> EpisodeEnd:
        env.attach(self._sink)
        observation, info = env.reset(
            options={
                "instance": self._instance,
                "interventions": self._entry.interventions,
                "start": self._start,
            }
        )
        timed = self._with_agent(env, observation, info)
        ending = env.ending
        if ending is None:
            raise InfrastructureFailure("the loop ended before the episode did")
        wall_s = time.perf_counter() - self._began
        return episode_setup.episode_end(env, ending, timed=timed, wall_s=wall_s)

    def _with_agent(self, env: PlayedEnv, observation: Any, info: Any) -> bool:
        """Let the agent act until the end; return whether the clock ended it."""
        try:
            self._start_agent(env, self._entry.session)
            timed = self._act(env, observation, info)
            self._agent_connection.close(self._context.plan.budget.act_s)
        except AgentFailure as failure:
            if self._context.stopping.is_set():
                raise RunStopped from failure
            self._conclude_failed(env, failure)
            return isinstance(failure, AgentTimeout)
        finally:
            self._agent_connection.end()
        return timed

    def _act(self, env: PlayedEnv, observation: Any, info: Any) -> bool:
        session = int(info.get("session", self._entry.session))
        numbers = self._suite.card.native or self._agent.view == "vector"
        while env.ending is None:
            exhausted = self.tally.exhausted()
            if exhausted is not None:
                env.conclude("truncated", exhausted.reason)
                return exhausted.timed
            if self._agent.screenshots:
                info = episode_setup.with_picture(env, info)
            move = self._agent_connection.act(
                observation, info, self._deadline_s(), numbers=numbers
            )
            for event in episode_setup.declared(move, env.steps + 1, self._sink):
                self._sink.emit(event)
            observation, _, _, _, info = env.step(move.action)
            if int(info.get("session", session)) > session:
                session = int(info["session"])
                self._agent_connection.end()
                self._start_agent(env, session)
        return False

    def _start_agent(self, env: PlayedEnv, session: int) -> None:
        """Start an agent in a process of its own and tell it what it is to do."""
        self._agent_connection = self._connect(env)
        terms = ResetRequest(
            brief=self._brief(env, session),
            tools=env.tools,
            memory_dir=str(self._memory.path),
            script=self._script(),
            options=self._agent.options,
        )
        self._agent_connection.reset(terms, self._deadline_s())

    def _connect(self, env: PlayedEnv) -> AgentConnection:
        """Return a host with the agent, or the suite's own policy, in it."""
        origin = self._agent.origin
        if origin.kind == "policy":
            make = self._suite.policies[origin.target]
            return AgentConnection(
                LocalTransport(lambda _config: make(env.oracle_access()))
            )
        return self._context.launcher.connect(origin)

    def _brief(self, env: PlayedEnv, session: int) -> Brief:
        budget = self._context.plan.budget
        limit = budget.steps or self._suite.card.step_limit
        task = env.task
        return Brief(
            text=task.text,
            goal=task.goal,
            propositions=task.propositions,
            budgets={
                "steps": float(limit),
                "act_s": budget.act_s,
                **dict(budget.episode_meters),
            },
            interventions_left=self._entry.interventions,
            role_cap=self._entry.role_cap,
            muted=self._entry.muted,
            session=session,
            day=self._entry.day,
            seed=seeding.agent_seed(env.timeline.instance.seed, self._entry.repeat),
        )

    def _script(self) -> tuple[str, ...]:
        if self._agent.needs != "script" or self._instance is None:
            return ()
        return drift_free_script(msgspec.structs.replace(self._instance, drift_step=0))

    def _deadline_s(self) -> float:
        left = self.tally.wall_left()
        act_s = self._context.plan.budget.act_s
        return act_s if left is None else max(min(act_s, left), 0.001)

    def _start(self, opening: EpisodeFacts) -> EpisodeStart:
        self._opened = True
        return episode_setup.episode_start(
            self._context.plan, self._entry, self._attempt, opening
        )

    def _conclude_failed(self, env: PlayedEnv, failure: AgentFailure) -> Ending:
        """Conclude an episode that the agent failed."""
        if not isinstance(failure, AgentTimeout):
            return env.conclude("agent_raised", str(failure))
        exhausted = self.tally.exhausted()
        if exhausted is not None and exhausted.timed:
            return env.conclude("truncated", exhausted.reason)
        return env.conclude("agent_timeout", str(failure))

    def _broken(self, error: Exception) -> EpisodeEnd:
        """Return the end of an attempt that the harness failed, its start written."""
        if not self._opened and self._instance is not None:
            theta = self._suite.card.theta
            self._writer.emit(
                self._start(episode_setup.unopened(self._instance, theta))
            )
        return episode_setup.broken_end(
            describe(error), time.perf_counter() - self._began
        )


@lru_cache(maxsize=256)
def drift_free_script(instance: Instance) -> tuple[str, ...]:
    """Return the oracle's actions in the undrifted world of an instance."""
    return assembly.script(instance.suite, instance)
