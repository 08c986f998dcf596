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
from owa_bench.run import agent_spec
from owa_bench.run.forking import Nursery
from owa_bench.run.hosting import Hosting, Line
from owa_bench.run.jobs import Done, Job, Turn
from owa_bench.run.loop import EnvPool, Played, Stage, play_episode
from owa_bench.run.memory import CopiedMemory, FreshMemory, Lane
from owa_bench.run.plan import read_plan
from owa_bench.run.recorder import Recorder
from owa_bench.run.store import plan_digest
from owa_bench.seeding import redact_key

Report = Callable[[Done], None]


class Bench(msgspec.Struct, frozen=True, kw_only=True):
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


class Workbench:
    """Plays jobs, from one thread or several; a context manager."""

    def __init__(self, bench: Bench, client: Callable[[], Line] | None = None) -> None:
        self._layout = RunLayout(Path(bench.run))
        self._root = bytes.fromhex(bench.root)
        self._open = ExitStack()
        plan = read_plan(self._layout)
        folder = Path(bench.folder)
        self._nursery = self._open.enter_context(Nursery())
        recorder = self._open.enter_context(
            Recorder(
                self._layout,
                bench.shard,
                plan_digest(self._layout),
                redact_key(self._root),
                plan.transcripts,
            )
        )
        envs = EnvPool(plan, wire=bench.wire)
        self._open.callback(envs.close)
        self._frozen = {arm.name for arm in plan.arms if arm.frozen}
        self.stage = Stage(
            plan=plan,
            root=self._root,
            agents={
                arm.name: agent_spec.load(arm.agent, folder=folder) for arm in plan.arms
            },
            hosting=Hosting(self._nursery, in_process=bench.in_process, client=client),
            recorder=recorder,
            envs=envs,
            stopping=threading.Event(),
        )

    def play(self, job: Job, report: Report) -> None:
        """Play a job's turns in order, each again while the harness fails it."""
        if job.lane is None:
            for turn in job.turns:
                self._play_turn(job, turn, None, report)
            return
        lane = Lane(self._layout, job.lane, self._root, job.memory)
        try:
            for turn in job.turns:
                self._play_turn(job, turn, lane, report)
        finally:
            lane.close()

    def stop(self) -> None:
        """Stop from another thread: open attempts stay unfinished."""
        self.stage.stopping.set()
        self._nursery.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def _play_turn(
        self, job: Job, turn: Turn, lane: Lane | None, report: Report
    ) -> None:
        waiting: Turn | None = turn
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
        self, turn: Turn, lane: Lane | None, spent: Mapping[str, float]
    ) -> Played:
        entry = self.stage.plan.entries[turn.index]
        with self._memory(entry, lane) as memory:
            return play_episode(self.stage, entry, turn.attempt, memory, spent)

    def _memory(self, entry: PlanEntry, lane: Lane | None) -> FreshMemory | Lane:
        """Return the memory an entry is played with."""
        if lane is None or entry.arm in self._frozen:
            return FreshMemory()
        return CopiedMemory(lane) if entry.phase == "checkpoint" else lane


def bench_for(
    run: Path,
    shard: int,
    root: bytes,
    folder: Path | None,
    *,
    concurrency: int = 1,
    in_process: bool = False,
    wire: bool = False,
) -> Bench:
    """Return the bench of a run's first worker."""
    return Bench(
        run=os.fspath(run.resolve()),
        shard=shard,
        root=root.hex(),
        folder=os.fspath((folder or Path.cwd()).resolve()),
        concurrency=concurrency,
        in_process=in_process,
        wire=wire,
    )
