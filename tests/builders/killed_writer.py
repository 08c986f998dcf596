"""Plays the toy plan of a run directory into a new shard; made to be killed.

After each event that is written it says on stdout how far it is: attempt, events
emitted, frames closed. Usage: killed_writer.py RUN_DIR
"""

import sys
from pathlib import Path

import msgspec

from owa_bench.records.events import Call, EpisodeEnd, EpisodeStart, Event, Subgoal
from owa_bench.records.instance import Instance
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Plan
from owa_bench.runs.store import files
from owa_bench.runs.store.output import ShardFiles
from owa_bench.runs.store.recorder import EpisodeWriter, Recorder

OPEN_AT_ONCE = 4
STEPS = 400


def events(index: int, attempt: int) -> list[Event]:
    """Return the events of an attempt: some short, some long, one very long."""
    start = EpisodeStart(
        index=index,
        attempt=attempt,
        arm="a",
        pair=f"p{index}",
        repeat=0,
        env_id="owa_bench/Toy-v1",
        instance=Instance(suite="toy", version=1, family="f", tier=1, seed=index),
        delta=0.0,
        realised=0.0,
        world="0" * 64,
        agent="noop",
        fingerprint="f" * 64,
        interventions=None,
        horizon=3,
        depth=2,
        theta=0.95,
    )
    end = EpisodeEnd(
        outcome="finished",
        q_state=1.0,
        quality=0.975,
        success=True,
        stated=None,
        failed_attempts=0,
        reason="finished",
        steps=STEPS,
        simulated_s=1.5,
        wall_s=0.25 * attempt,
    )
    return [start, *(_between(index, step) for step in range(1, STEPS + 1)), end]


def _between(index: int, step: int) -> Event:
    if step % 3:
        return Subgoal(step=step, node=f"rows:{index}", depth=1 + step % 5)
    length = 150_000 if step == STEPS // 2 + 1 else 40 * (step % 29)
    return Call(
        step=step,
        method="GET",
        target=f"https://x.example/{index}/{step}?" + "q" * length,
        status=200,
        ok=True,
        request=f"{index * step:064x}",
        response=f"{index + step:064x}",
    )


def main(run_dir: Path) -> None:
    """Play what has no complete attempt yet, some at a time, in turns."""
    layout = RunLayout(run_dir)
    plan = msgspec.json.decode(layout.plan.read_bytes(), type=Plan)
    leaves = files.rebuild_leaves(layout)
    done = {leaf.index for leaf in leaves if leaf.status == "complete"}
    attempts = {leaf.index: leaf.attempt + 1 for leaf in leaves}
    todo = [entry.index for entry in plan.entries if entry.index not in done]
    digest = files.plan_digest(layout)
    with Recorder(ShardFiles(layout, files.next_shard(layout)), digest, b"k", True) as recorder:
        say("ready")
        for first in range(0, len(todo), OPEN_AT_ONCE):
            batch = [(i, attempts.get(i, 0)) for i in todo[first : first + OPEN_AT_ONCE]]
            play(recorder, batch)
    say("done")


def play(recorder: Recorder, batch: list[tuple[int, int]]) -> None:
    """Play attempts in turns and close them."""
    writers = [recorder.episode(*place) for place in batch]
    for turn in zip(*(events(*place) for place in batch), strict=True):
        for writer, event in zip(writers, turn, strict=True):
            writer.emit(event)
            tell(writer)
    for writer in writers:
        leaf = writer.close("complete")
        say(f"closed {leaf.attempt_id} {leaf.head}")


def tell(writer: EpisodeWriter) -> None:
    """Say how far an attempt is."""
    frames = len(writer._frames)
    say(f"written {writer.attempt_id} {writer._count} {frames}")


def say(line: str) -> None:
    """Hand a whole line to the kernel."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
