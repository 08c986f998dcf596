"""The episode loop: one entry of a plan, played once and written down.

Who failed decides the status. What the agent's process raised, answered or missed ends the episode
as agent_raised or agent_timeout, which is scored. Anything that the env or the harness raised ends
the attempt as infrastructure, which is never scored; so does a failure of the model's provider,
which the gateway saw.
"""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from owa_bench.errors import (
    AgentFailure,
    AgentRaised,
    AgentTimeout,
    InfrastructureFailure,
    ProviderFailure,
    error_line,
)
from owa_bench.hosting.agent_process import AgentConnection, AgentLauncher
from owa_bench.hosting.gateway.session import GatewayRecord, ProviderBlame
from owa_bench.hosting.protocol import ResetRequest
from owa_bench.hosting.spec import AgentHandle
from owa_bench.hosting.transports import LocalTransport
from owa_bench.interfaces import Ending, Suite
from owa_bench.records.events import (
    AGENT_RECORD,
    EpisodeEnd,
    EpisodeStart,
    Evidence,
    PlainQuestion,
    fixed,
)
from owa_bench.records.instance import Instance
from owa_bench.records.plan import Plan, PlanEntry, supervisor_budget
from owa_bench.records.price_card import PriceCard
from owa_bench.records.trace import Leaf, Status
from owa_bench.runs import assembly
from owa_bench.runs.plan.budget import EpisodeSink, EpisodeTally, RunTally
from owa_bench.runs.play import episode_setup
from owa_bench.runs.play.episode_setup import EnvPool, PlayedEnv
from owa_bench.runs.play.work_items import MAX_WORKER_DEATHS, Attempt
from owa_bench.runs.resolve import ResolvedEntry, Resolver
from owa_bench.runs.store.memory import EpisodeMemory
from owa_bench.runs.store.memory_folder import MemoryFault, carry_over
from owa_bench.runs.store.recorder import EpisodeWriter, Recorder
from owa_bench.shells.episode import EpisodeFacts

# Of the time for one act, after which an open request is its provider's lateness.
_REASON = 2000  # characters of an agent's failure that are the reason of its episode's end [D]
_LATE_SHARE = 0.5


class RunStopped(BaseException):
    """The run is being stopped; the open attempt stays unfinished."""


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that was closed: its leaf, its last event, and what it used.

    `helpless`: the env carried out no act; the agent did not begin, or a model or an address stands
    behind it. So its set-up may be to blame.
    """

    leaf: Leaf
    end: EpisodeEnd
    spent: Mapping[str, float] = {}
    helpless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """What all episodes of one worker share.

    `agents` go by arm; `prices` turn what is used into money.
    """

    plan: Plan
    agents: Mapping[str, AgentHandle]
    launcher: AgentLauncher
    recorder: Recorder
    envs: EnvPool
    resolver: Resolver
    prices: PriceCard | None = None
    stopping: threading.Event = field(default_factory=threading.Event)


def play_episode(
    context: WorkerContext,
    entry: PlanEntry,
    attempt: Attempt,
    memory: EpisodeMemory,
    spent: Mapping[str, float] | None = None,
) -> AttemptResult:
    """Play an entry and return its closed attempt.

    Args:
        context: What the worker's episodes share.
        entry: The plan entry.
        attempt: Which attempt at the entry, its seed, and what those before it leave.
        memory: The agent's folder.
        spent: What the run has used so far, by meter.
    Returns: The closed attempt.
    Raises:
        InfrastructureFailure: The attempt cannot be written.
        RunStopped: The run is being stopped.
    """
    writer = context.recorder.episode(entry.index, attempt.number)
    play = _Episode(context, entry, attempt, writer, memory, spent)
    try:
        end = play.play()
        failed = end.outcome == "infrastructure"
        digest = None if failed else memory.settle()
    except BaseException:
        writer.close("unfinished")
        raise
    status: Status = "complete"
    if failed:
        status = "provider" if play.provider_failed else "infrastructure"
    leaf = writer.close(status, digest)
    return AttemptResult(leaf=leaf, end=end, spent=play.tally.spent, helpless=play.helpless)


class _SeatHost(NamedTuple):
    """The agent of one seat in one sitting."""

    sitting: int
    connection: AgentConnection


class _Episode:
    """One attempt while it is played."""

    def __init__(
        self,
        context: WorkerContext,
        entry: PlanEntry,
        attempt: Attempt,
        writer: EpisodeWriter,
        memory: EpisodeMemory,
        spent: Mapping[str, float] | None,
    ) -> None:
        self._context = context
        self._entry = entry
        self._attempt = attempt
        self._history = attempt.history
        self._writer = writer
        self._memory = memory
        self._agent = context.agents[entry.arm]
        self._began = time.perf_counter()
        budget = context.plan.budget
        run = RunTally(budget, spent)
        self.tally = EpisodeTally(budget, time.monotonic, run, context.prices)
        self._sink = EpisodeSink(writer, self.tally, evaluation=not entry.keeps_memory)
        self._resolved: ResolvedEntry | None = None
        self._opened = False
        self._budget: int | None = 0
        self._hosts: dict[str, _SeatHost] = {}
        self._seat = ""  # that acts
        self._blames: list[ProviderBlame] = []
        self._agent_began = False
        self._steps = 0
        self._asked_model = False
        self.provider_failed = False

    @property
    def helpless(self) -> bool:
        """Whether the agent's set-up may be why the env carried out no act."""
        behind = self._asked_model or self._agent.origin.kind == "http"
        return not self.tally.accepted and (behind or not self._agent_began)

    def play(self) -> EpisodeEnd:
        """Play to the end, whoever fails; the last event has been written."""
        try:
            resolved = self._context.resolver(self._entry, self._attempt.seed, self._attempt.fleet)
            self._resolved = resolved
            with self._context.envs.lend(resolved, self._agent.view) as env:
                end = self._in_env(env, resolved)
        except Exception as error:
            if self._context.stopping.is_set():
                raise RunStopped from error
            self.provider_failed = isinstance(error, ProviderFailure)
            end = self._failure(error)
        self._writer.emit(end)
        return end

    def _in_env(self, env: PlayedEnv, resolved: ResolvedEntry) -> EpisodeEnd:
        env.attach(self._sink)
        observation, info = env.reset(
            options={
                "instance": resolved.instance,
                "interventions": self._allowed,
                "setting": resolved.setting,
                "start": partial(self._start, resolved),
            }
        )
        for event in self._history.help_events():
            self._sink.emit(event)
        if self._memory.change is not None:
            self._sink.emit(self._memory.change)
        timed = False
        if self._history.worker_deaths < MAX_WORKER_DEATHS:
            timed = self._with_agent(env, resolved, observation, info)
        else:
            deaths = self._history.worker_deaths
            env.conclude("agent_raised", f"{deaths} workers died under this entry")
        ending = env.ending
        if ending is None:
            raise InfrastructureFailure("the loop ended before the episode did")
        if not ending.success:  # an agent may go on without its model, and do badly
            self._refuse_provider_failure()
        if fault := self._memory.fault():
            ending = ending._replace(outcome="agent_raised", reason=fault)
        wall_s = time.perf_counter() - self._began
        timed = timed or env.timed
        return episode_setup.episode_end(env, ending, timed=timed, wall_s=wall_s)

    def _with_agent(
        self, env: PlayedEnv, resolved: ResolvedEntry, observation: Any, info: Any
    ) -> bool:
        """Let the agent act until the end; return whether the clock ended it."""
        try:
            timed = self._act(env, resolved, observation, info)
            for host in self._hosts.values():
                host.connection.close(self._context.plan.budget.act_s)
        except AgentFailure as failure:
            if self._context.stopping.is_set():
                raise RunStopped from failure
            late_s = 0.0
            if isinstance(failure, AgentTimeout):
                late_s = _LATE_SHARE * self._context.plan.budget.act_s
            self._blames += self._provider_blames(late_s)
            self._end_agents(env)
            self._refuse_provider_failure(failure)
            self._conclude_failed(env, failure)
            return isinstance(failure, AgentTimeout)
        finally:
            self._end_agents(env)
        return timed

    def _end_agents(self, env: PlayedEnv) -> None:
        """Kill every agent; write down what they had asked for until then."""
        self._blames += self._provider_blames()
        for seat, host in self._hosts.items():
            self._asked_model |= host.connection.asked_model
            host.connection.end()
            self._record_end(host.connection, env.steps, seat)

    def _provider_blames(self, patience_s: float = 0.0) -> list[ProviderBlame]:
        """Return why the providers of the seats failed their last requests."""
        connections = [host.connection for host in self._hosts.values()]
        blames = (each.provider_blame(patience_s) for each in connections)
        return [blame for blame in blames if blame is not None]

    def _refuse_provider_failure(self, failure: AgentFailure | None = None) -> None:
        """Raise where the model's provider failed an agent that then did badly.

        A request that a provider refuses may be the agent's doing, who would so have a bad episode
        played again: a plain request tells. Requests of our own agents are ours. Of each failure
        that takes an attempt away the question is asked too, once for all seats, and recorded: its
        answer tells no outage.
        """
        ours = self._agent.origin.kind == "registry" and not self._agent.package
        for blame in self._blames:
            answered = self._answers_plainly(blame)
            if answered and blame.may_be_request and not ours:
                continue
            raise ProviderFailure(blame.reason) from failure

    def _answers_plainly(self, blame: ProviderBlame) -> bool:
        """Return whether the provider answers a plain question now; write it down."""
        begun = time.monotonic()
        answered = self._context.launcher.model_answers(blame.model)
        question = PlainQuestion(
            step=self._steps,
            model=blame.model,
            failure=blame.reason,
            answered=answered,
            late_s=fixed(begun - blame.failed_at),
            waited_s=fixed(time.monotonic() - begun),
        )
        self._sink.emit(question)
        return answered

    def _act(self, env: PlayedEnv, resolved: ResolvedEntry, observation: Any, info: Any) -> bool:
        numbers = resolved.suite.card.native or self._agent.view == "vector"
        while env.ending is None:
            exhausted = self.tally.exhausted()
            if exhausted is not None:
                env.conclude("truncated", exhausted.reason)
                return exhausted.timed
            if self._agent.screenshots:
                info = episode_setup.with_picture(env, info)
            self._seat = seat = str(info.get("seat", ""))
            sitting = int(info.get("sitting", 0))
            connection = self._connection(env, resolved, seat, sitting)
            move = connection.act(observation, info, self._deadline_s(), numbers=numbers)
            self._steps = step = env.steps + 1
            self._record_requests(connection.take_requests(), step, seat)
            for event in episode_setup.declared_events(
                move, step, self._sink, seat, at_ms=env.simulated_ms
            ):
                self._sink.emit(event)
                env.declare(event)
            observation, _, _, _, info = env.step(move.action)
        return False

    def _record_requests(self, records: Iterable[GatewayRecord], step: int, seat: str) -> None:
        """Write down what an agent asked of the model gateway."""
        for record in records:
            for event in record.events(step, seat, self._sink):
                self._sink.emit(event)

    def _record_end(self, connection: AgentConnection, step: int, seat: str) -> None:
        """Write down what an ended agent asked for last, and its CPU seconds."""
        self._record_requests(connection.end_requests(), step, seat)
        for event in connection.take_cpu(step, seat):
            self._sink.emit(event)

    def _connection(
        self, env: PlayedEnv, resolved: ResolvedEntry, seat: str, sitting: int
    ) -> AgentConnection:
        """Return the connection of a seat in its sitting, a new one where it rose."""
        host = self._hosts.get(seat)
        if host is not None and host.sitting == sitting:
            return host.connection
        if host is not None:
            host.connection.close(self._deadline_s())
            self._record_end(host.connection, env.steps, seat)
            self._carry_over(env, seat)
        connection = self._connect(env, resolved.suite, seat, sitting)
        self._hosts[seat] = _SeatHost(sitting, connection)
        terms = ResetRequest(
            brief=episode_setup.brief_of(
                self._context.plan,
                resolved,
                env,
                seat=seat,
                sitting=sitting,
                interventions_left=self._history.allowed(self._budget),
            ),
            tools=env.offered,
            memory_dir=connection.memory_dir,
            script=self._script(resolved.instance),
            options=self._agent.of(seat).options,
        )
        connection.reset(terms, self._deadline_s())
        self._agent_began = True
        return connection

    def _carry_over(self, env: PlayedEnv, seat: str) -> None:
        """Hold the folder of an ended agent to the quota of its instance."""
        if env.memory_bytes:
            try:
                carry_over(self._folder(seat), env.memory_bytes)
            except MemoryFault as fault:
                raise AgentRaised(f"memory_dir {fault}") from fault

    def _connect(self, env: PlayedEnv, suite: Suite, seat: str, sitting: int) -> AgentConnection:
        """Return a connection to the agent, or to the suite's own policy."""
        origin = self._agent.of(seat).origin
        if origin.kind == "policy":
            policy = suite.policies[origin.target]
            transport = LocalTransport(lambda _config: policy(env.oracle_access()))
            return AgentConnection(transport, str(self._folder(seat)))
        arms = self._context.plan.arms
        [arm] = (arm for arm in arms if arm.name == self._entry.arm)
        entry = self._entry
        place = (self._context.plan.commitment, str(entry.index), seat, str(sitting))
        return self._context.launcher.connect(
            origin,
            self._folder(seat),
            arm.hosting,
            "\n".join(place),
            arm.root,
            hides=suite.card.isolated,
        )

    def _folder(self, seat: str) -> Path:
        """Return the memory folder of a seat: the whole folder where there is one."""
        path = self._memory.path / seat
        path.mkdir(exist_ok=True)
        return path

    def _script(self, instance: Instance) -> tuple[str, ...]:
        if self._agent.needs != "script":
            return ()
        return replay_script(msgspec.structs.replace(instance, drift_step=0))

    def _deadline_s(self) -> float:
        left = self.tally.wall_left()
        act_s = self._context.plan.budget.act_s
        return act_s if left is None else max(min(act_s, left), 0.001)

    def _allowed(self, horizon: int) -> int | None:
        """Return how often the supervisor may still be asked."""
        budget = supervisor_budget(self._context.plan, self._entry, horizon)
        return self._history.allowed(budget)

    def _start(self, resolved: ResolvedEntry, opening: EpisodeFacts) -> EpisodeStart:
        self._opened, plan = True, self._context.plan
        start = episode_setup.episode_start(plan, resolved, self._attempt.number, opening)
        self._budget = start.interventions
        worker_deaths = self._history.worker_deaths
        return msgspec.structs.replace(start, worker_deaths=worker_deaths)

    def _conclude_failed(self, env: PlayedEnv, failure: AgentFailure) -> Ending:
        """Conclude an episode that the agent failed; keep what its process left."""
        if failure.record:
            self._sink.emit(
                Evidence(
                    source="agent",
                    role=self._seat,
                    step=env.steps + 1,
                    name=AGENT_RECORD,
                    media="text/plain",
                    blob=self._sink.blob(failure.record.encode()),
                )
            )
        seat = f"{self._seat}: " if self._seat else ""
        if not isinstance(failure, AgentTimeout):
            return env.conclude("agent_raised", f"{seat}{failure}"[:_REASON])
        exhausted = self.tally.exhausted()
        if exhausted is not None and exhausted.timed:
            return env.conclude("truncated", exhausted.reason)
        return env.conclude("agent_timeout", f"{seat}{failure}")

    def _failure(self, error: Exception) -> EpisodeEnd:
        """Return the end of an attempt that the harness failed, its start written."""
        if not self._opened and self._resolved is not None:
            opening = episode_setup.failed_opening(self._resolved)
            self._writer.emit(self._start(self._resolved, opening))
        wall_s = time.perf_counter() - self._began
        reason = error_line(error)
        if isinstance(error, ProviderFailure):  # the server's words, no place of ours
            reason = f"{ProviderFailure.__name__}: {error}"
        return episode_setup.failure_end(reason, wall_s)


@lru_cache(maxsize=256)
def replay_script(instance: Instance) -> tuple[str, ...]:
    """Return the script of a replay agent for an instance."""
    return assembly.procedure(instance.suite, instance)
