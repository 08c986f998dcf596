"""Attempts of a run written anew, edited, with hashes that fit: what an insider can do."""

import shutil

from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store import files
from owa_bench.runs.store.output import ShardFiles
from owa_bench.runs.store.recorder import Recorder
from owa_bench.seeding import redact_key


def recorded_again(layout, traces, change):
    """Write attempts in place of those of a run.

    Args:
        layout: The run, revealed.
        traces: The attempts.
        change: Of each event; None leaves it out.
    """
    shutil.rmtree(layout.shards)
    shutil.rmtree(layout.blobs, ignore_errors=True)
    layout.leaves.unlink()
    plan = read_plan(layout)
    key = redact_key(escrow.revealed_root(layout, plan))
    with Recorder(ShardFiles(layout, 0), files.plan_digest(layout), key, True) as recorder:
        for trace in traces:
            writer = recorder.episode(trace.leaf.index, trace.leaf.attempt)
            for event in trace.events:
                if (kept := change(event)) is not None:
                    writer.emit(kept)
            writer.close("complete", trace.leaf.memory)
