"""One worker's tools, in whatever process it lives: recorder, envs, agent processes."""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import PlanEntry
from owa_bench.run.agents import agent_spec
from owa_bench.run.agents.agent_process import AgentLauncher, Transport
from owa_bench.run.agents.fork_server import ForkServer
from owa_bench.run.plan.plan import read_plan
from owa_bench.run.play.attempts import Attempt, Done, WorkItem
from owa_bench.run.play.loop import AttemptResult, EnvPool, WorkerContext, play_episode
from owa_bench.run.store.files import plan_digest
from owa_bench.run.store.memory import CopiedMemory, FreshMemory, LaneMemory
from owa_bench.run.store.recorder import Recorder
from owa_bench.seeding import redact_key

Report = Callable[[Done], None]


class WorkerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker must be told once; crosses the pipe to a worker process.

    `root` is the master in hex, any verifier's nonce mixed in. `folder` is where
    relative agents are found.
    """

    run: str
    shard: int
    root: str
    folder: str
    concurrency: int = 1
    in_process: bool = False
    wire: bool = False


class Worker:
    """Plays jobs, from one thread or several; a context manager."""

    def __init__(
        self, config: WorkerConfig, client: Callable[[], Transport] | None = None
    ) -> None:
        self._layout = RunLayout(Path(config.run))
        self._root = bytes.fromhex(config.root)
        self._open = ExitStack()
        plan = read_plan(self._layout)
        folder = Path(config.folder)
        self._fork_server = self._open.enter_context(ForkServer())
        recorder = self._open.enter_context(
            Recorder(
                self._layout,
                config.shard,
                plan_digest(self._layout),
                redact_key(self._root),
                plan.transcripts,
            )
        )
        envs = EnvPool(plan, wire=config.wire)
        self._open.callback(envs.close)
        self._frozen = {arm.name for arm in plan.arms if arm.frozen}
        self.context = WorkerContext(
            plan=plan,
            root=self._root,
            agents={
                arm.name: agent_spec.load(arm.agent, folder=folder) for arm in plan.arms
            },
            launcher=AgentLauncher(
                self._fork_server, in_process=config.in_process, client=client
            ),
            recorder=recorder,
            envs=envs,
            stopping=threading.Event(),
        )

    def play(self, job: WorkItem, report: Report) -> None:
        """Play a job's turns in order, each again while the harness fails it."""
        if job.lane is None:
            for attempt in job.attempts:
                self._play_attempts(job, attempt, None, report)
            return
        lane = LaneMemory(self._layout, job.lane, self._root, job.memory)
        try:
            for attempt in job.attempts:
                self._play_attempts(job, attempt, lane, report)
        finally:
            lane.close()

    def stop(self) -> None:
        """Stop from another thread: open attempts stay unfinished."""
        self.context.stopping.set()
        self._fork_server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def _play_attempts(
        self, job: WorkItem, attempt: Attempt, lane: LaneMemory | None, report: Report
    ) -> None:
        waiting: Attempt | None = attempt
        while waiting is not None:
            played = self._attempt(waiting, lane, job.spent)
            report(
                Done(
                    job=job.number, leaf=played.leaf, end=played.end, spent=played.spent
                )
            )
            if played.leaf.status == "complete":
                return
            if lane is not None:
                lane.rewind()
            waiting = waiting.again()

    def _attempt(
        self, attempt: Attempt, lane: LaneMemory | None, spent: Mapping[str, float]
    ) -> AttemptResult:
        entry = self.context.plan.entries[attempt.index]
        with self._memory(entry, lane) as memory:
            return play_episode(self.context, entry, attempt.attempt, memory, spent)

    def _memory(
        self, entry: PlanEntry, lane: LaneMemory | None
    ) -> FreshMemory | LaneMemory:
        """Return the memory an entry is played with."""
        if lane is None or entry.arm in self._frozen:
            return FreshMemory()
        return CopiedMemory(lane) if entry.phase == "checkpoint" else lane


def config_for(
    run: Path,
    shard: int,
    root: bytes,
    folder: Path | None,
    *,
    concurrency: int = 1,
    in_process: bool = False,
    wire: bool = False,
) -> WorkerConfig:
    """Return the bench of a run's first worker."""
    return WorkerConfig(
        run=os.fspath(run.resolve()),
        shard=shard,
        root=root.hex(),
        folder=os.fspath((folder or Path.cwd()).resolve()),
        concurrency=concurrency,
        in_process=in_process,
        wire=wire,
    )
