"""A driver that starts a worker without the lock, and the worker that outlives it.

`python outliving_worker.py drive RUN HOME` begins a session and waits to be killed;
its worker plays one item, waits for a file `go` beside the run, and plays another.
"""

import subprocess
import sys
import time
from pathlib import Path

import msgspec

from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.play.work_items import WorkItem, pending
from owa_bench.runs.play.worker import Worker, WorkerConfig
from owa_bench.runs.store.directory import locked
from owa_bench.runs.store.resuming import RunLease
from owa_bench.seeding import redact_key


def drive(run, home):
    layout, plan = RunLayout(run), read_plan(RunLayout(run))
    master = escrow.find(home, plan.commitment).master
    with locked(run):
        config = WorkerConfig(
            run=str(run),
            shard=0,
            lease=RunLease(layout).token,
            redact_key=redact_key(master),
            folder=str(Path(__file__).parent),
        )
        items = pending(plan, (), master)[:2]
        order = msgspec.json.encode((config, items)).decode()
        subprocess.Popen([sys.executable, __file__, "work", str(run), order])
        time.sleep(600)


def work(run, order):
    config, items = msgspec.json.decode(order, type=tuple[WorkerConfig, list[WorkItem]])
    with Worker(config) as worker:
        worker.play(items[0], lambda _: None)
        run.with_name("begun").touch()
        while not run.with_name("go").exists():
            time.sleep(0.02)
        worker.play(items[1], lambda _: None)
    run.with_name("ended").touch()


if __name__ == "__main__":
    if sys.argv[1] == "drive":
        drive(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        work(Path(sys.argv[2]), sys.argv[3])
