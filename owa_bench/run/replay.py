"""Replay: after the reveal the recorded actions are played again, for equal lines.

Instance and world come from the revealed master, never from the record; actions are
the recorded ones with their secrets put back, and what the agent declared is written
where it stood. Everything else is measured anew, and every line must be equal. Attempts
that a clock ended are exempt: they differ from machine to machine.
"""

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Literal, NamedTuple, Protocol

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from owa_bench.canonical import seal, sha256
from owa_bench.errors import OwaError, UsageError
from owa_bench.records.events import Action, AnyEvent, Belief, Event, Intervention
from owa_bench.records.layout import RECEIPT_TYPE, RunLayout
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.trace import (
    Leaf,
    Trace,
    counted_leaves,
    evidence_root,
    replay_line,
    replay_root,
)
from owa_bench.records.witness import Receipt
from owa_bench.run.plan.escrow import revealed_root
from owa_bench.run.plan.plan import read_plan, refuse_unready
from owa_bench.run.plan.witness import free_path
from owa_bench.run.play import episode_setup
from owa_bench.run.play.episode_setup import PlayedEnv
from owa_bench.run.play.episode_sink import EpisodeSink
from owa_bench.run.play.history import EntryHistory
from owa_bench.run.store.directory import other_code
from owa_bench.run.store.files import (
    leaves_of_shards,
    plan_digest,
    read_trace,
    write_whole,
)
from owa_bench.run.store.keys import public_hex, short_name
from owa_bench.run.store.redaction import Redactor
from owa_bench.seeding import fresh_bytes, instance_seed, redact_key, stream

ReplayOutcome = Literal["same", "different", "exempt"]
_SHOWN = 200


class Playback(Protocol):
    """Plays the recorded actions in place of `env.step`, and may keep what it sees."""

    def begin(self) -> None:
        """Look at the env, which was reset."""

    def step(self, action: str) -> None:
        """Play a recorded action."""


class AttemptReplay(NamedTuple):
    """What came of one attempt; `detail` says where the first difference is."""

    attempt_id: str
    outcome: ReplayOutcome
    detail: str = ""


class RunReplay(NamedTuple):
    """What came of a run: its attempts, and suites that may not be as planned, why."""

    plan_digest: str
    evidence_root: str
    replay_root: str
    attempts: tuple[AttemptReplay, ...]
    other_code: Mapping[str, str]

    @property
    def passed(self) -> bool:
        """Whether something was replayed, and nothing differently."""
        outcomes = {attempt.outcome for attempt in self.attempts}
        return "same" in outcomes and "different" not in outcomes


class ReplaySink(Redactor):
    """Sink that keeps replay lines and nothing else."""

    active = True
    secret = Redactor.learn

    def __init__(self, key: bytes) -> None:
        super().__init__(key)
        self.lines: list[bytes] = []

    def emit(self, event: Event) -> None:
        """Keep the event's replay line."""
        line = self.encode(event).replay
        if line is not None:
            self.lines.append(line)

    def blob(self, data: bytes) -> str:
        """Return the SHA-256 of redacted `data`."""
        return sha256(self.data(data))


def replay_run(
    layout: RunLayout,
    episodes: int | None = None,
    progress: Callable[[AttemptReplay], None] = lambda _: None,
) -> RunReplay:
    """Replay the counted attempts of a run, or some of them.

    Which ones is drawn afresh each time, so that nobody can know beforehand.

    Args:
        layout: The run directory.
        episodes: How many attempts; None for all.
        progress: Called for every attempt.

    Returns:
        What came of each attempt, and the digests of the run.

    Raises:
        UsageError: The run is not revealed, or `episodes` is below 1.
        CheckFailure: The reveal is not what was committed to.
        TraceError: A shard is broken.
    """
    plan = read_plan(layout)
    root = revealed_root(layout, plan)
    refuse_unready(plan)
    leaves = leaves_of_shards(layout)
    complete = [leaf for leaf in counted_leaves(plan, leaves) if leaf]
    if not complete:
        raise UsageError(
            f"{layout.root} holds no complete episode yet: nothing to replay."
        )
    chosen = _choose(complete, episodes)
    entries = {entry.index: entry for entry in plan.entries}
    attempts: list[AttemptReplay] = []

    def scene(leaf: Leaf) -> tuple[str, str]:
        return entries[leaf.index].suite, entries[leaf.index].calendar

    by_scene = sorted(chosen, key=lambda leaf: (*scene(leaf), leaf.index))
    for (name, calendar), group in itertools.groupby(by_scene, key=scene):
        with closing(episode_setup.env_for(plan, name, calendar=calendar)) as env:
            for leaf in group:
                trace = read_trace(layout, leaf)
                entry = entries[leaf.index]
                attempts.append(replay_attempt(env, plan, entry, trace, root))
                progress(attempts[-1])
    return RunReplay(
        plan_digest=plan_digest(layout),
        evidence_root=evidence_root(plan, leaves),
        replay_root=replay_root(plan, leaves),
        attempts=tuple(sorted(attempts)),
        other_code=other_code(plan.suites),
    )


def sign(layout: RunLayout, replays: RunReplay, key: Ed25519PrivateKey) -> Receipt:
    """Write a signed receipt of a replay into `receipts/`.

    Args:
        layout: The run directory.
        replays: What came of the replay.
        key: Signs the receipt.

    Returns:
        The receipt.
    """

    def ids(outcome: ReplayOutcome) -> tuple[str, ...]:
        return tuple(a.attempt_id for a in replays.attempts if a.outcome == outcome)

    receipt = Receipt(
        plan_digest=replays.plan_digest,
        evidence_root=replays.evidence_root,
        replay_root=replays.replay_root,
        episodes=ids("same"),
        failed=ids("different"),
        exempt=ids("exempt"),
        passed=replays.passed,
        public_key=public_hex(key),
    )
    path = free_path(layout.receipts, f"replay-{short_name(key)}", ".dsse.json")
    write_whole(path, seal(RECEIPT_TYPE, msgspec.json.encode(receipt), key))
    return receipt


def _choose(leaves: Sequence[Leaf], episodes: int | None) -> list[Leaf]:
    """Return so many leaves, drawn without return."""
    if episodes is None or episodes >= len(leaves):
        return list(leaves)
    if episodes < 1:
        raise UsageError(f"`--episodes` must be at least 1, got {episodes}.")
    rng: np.random.Generator = stream(int.from_bytes(fresh_bytes(8), "big"), "replay")
    order = rng.permutation(len(leaves))[:episodes]
    return [leaves[i] for i in sorted(order.tolist())]


def replay_attempt(
    env: PlayedEnv,
    plan: Plan,
    entry: PlanEntry,
    trace: Trace,
    root: bytes,
    playback: Playback | None = None,
) -> AttemptReplay:
    """Play one attempt again and compare its lines.

    Args:
        env: Of the entry's suite and calendar (`episode_setup.env_for`).
        plan: The plan.
        entry: The entry that was played.
        trace: The attempt's.
        root: The revealed secret of the run (`escrow.revealed_root`).
        playback: Plays the actions; None: `env.step` does.

    Returns:
        What came of it.
    """
    name = trace.leaf.attempt_id
    if trace.end.timed:
        return AttemptReplay(name, "exempt", f"a clock ended it: {trace.end.reason}")
    sink = ReplaySink(redact_key(root))
    try:
        _play(env, plan, entry, trace, root, sink, playback)
    except OwaError as error:
        return AttemptReplay(name, "different", f"it cannot be played again: {error}")
    detail = _difference(trace, sink.lines)
    return AttemptReplay(name, "different" if detail else "same", detail)


def _play(
    env: PlayedEnv,
    plan: Plan,
    entry: PlanEntry,
    trace: Trace,
    root: bytes,
    sink: ReplaySink,
    playback: Playback | None,
) -> None:
    """Play the recorded actions into `sink`, as the loop would have."""
    outer = EpisodeSink(sink, evaluation=not entry.kept)
    env.attach(outer)
    env.reset(
        options={
            "instance": episode_setup.instance_of(
                plan, entry, instance_seed(root, entry.pair)
            ),
            "interventions": _allowed(trace),
            "setting": episode_setup.setting_of(entry),
            "start": lambda opening: episode_setup.episode_start(
                plan, entry, trace.leaf.attempt, opening
            ),
        }
    )
    if playback is not None:
        playback.begin()
    for event in trace.events:
        if isinstance(event, Action):
            action = sink.restore(event.action)
            env.step(action) if playback is None else playback.step(action)
        elif _is_declared(event):
            outer.emit(event)
            env.declare(event)
    ending = env.conclude(trace.end.outcome, trace.end.reason)
    if trace.end.outcome == "agent_raised":  # its memory_dir can fail it after the end
        ending = ending._replace(outcome="agent_raised")
    outer.emit(episode_setup.episode_end(env, ending, timed=False, wall_s=0.0))


def _allowed(trace: Trace) -> int | None:
    """Return the supervisor budget that earlier, lost attempts had left."""
    used = [e for e in trace.of(Intervention) if e.source == "harness"]
    return EntryHistory(tuple(used)).allowed(trace.start.interventions)


def _is_declared(event: AnyEvent) -> bool:
    """Return whether the agent said this with a Move: replay cannot measure it."""
    if isinstance(event, Belief):
        return event.kind == episode_setup.INTERIM
    return getattr(event, "source", "env") == "agent"


def _difference(trace: Trace, lines: Sequence[bytes]) -> str:
    """Return where recorded and replayed lines first differ, "" if nowhere."""
    recorded = [line for line in map(replay_line, trace.events) if line is not None]
    for place, (old, new) in enumerate(itertools.zip_longest(recorded, lines)):
        if old != new:
            return (
                f"event {place}: recorded {_cut(old, new)}, replayed {_cut(new, old)}"
            )
    digest = hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()
    if digest != trace.leaf.replay:
        return "its leaf names another replay digest than its events have"
    return ""


def _cut(line: bytes | None, other: bytes | None) -> str:
    """Return a line from shortly before the place where it leaves the other."""
    if line is None:
        return "nothing"
    pairs = itertools.zip_longest(line, other or b"")
    place = next((i for i, (a, b) in enumerate(pairs) if a != b), 0)
    return line[max(0, place - _SHOWN // 2) :][:_SHOWN].decode(errors="replace")
