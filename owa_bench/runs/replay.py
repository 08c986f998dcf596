"""Replay: after the reveal the recorded actions are played again, for equal lines.

Instance and world come from the revealed master, never from the record; actions are the recorded
ones with their secrets put back, and what the agent declared is written where it stood. Everything
else is measured anew, and every line must be equal.

An attempt that a clock ended is played up to there, and ends with what the state is worth then.
Where a clock of the suite's own decided something on the way (a job that took too long), the lines
may differ, and the attempt is exempt if it was given no more than the replay reaches. An attempt
that the harness failed is played to its last action: one whose actions end the episode was
complete.
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
from owa_bench.records.control_blocks import block_commands
from owa_bench.records.dated import NO_NAMES, seed_names
from owa_bench.records.events import (
    Action,
    AnyEvent,
    Belief,
    ControlBlock,
    EpisodeEnd,
    Event,
    Execution,
    InnerAttempt,
    Intervention,
)
from owa_bench.records.layout import RECEIPT_TYPE, RunLayout
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.trace import (
    FAILED,
    Leaf,
    Trace,
    counted_leaves,
    evidence_root,
    replay_line,
    replay_root,
)
from owa_bench.records.witness import Receipt
from owa_bench.runs.laboratory.sampled import SampledLaboratories
from owa_bench.runs.plan.budget import EpisodeSink
from owa_bench.runs.plan.escrow import revealed_root
from owa_bench.runs.plan.plan import read_plan, refuse_unready
from owa_bench.runs.plan.witness import free_path
from owa_bench.runs.play import episode_setup
from owa_bench.runs.play.episode_setup import PlayedEnv
from owa_bench.runs.play.work_items import EntryHistory
from owa_bench.runs.resolve import ResolvedEntry, Resolver
from owa_bench.runs.store.challenge_log import ChallengeLog
from owa_bench.runs.store.directory import other_code
from owa_bench.runs.store.files import leaves_of_shards, plan_digest, read_trace, write_whole
from owa_bench.runs.store.keys import public_hex, short_name
from owa_bench.runs.store.redaction import Redactor
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
    *,
    inner: int | None = None,
) -> RunReplay:
    """Replay the attempts of a run that count or that the harness failed, or some.

    Which ones is drawn afresh each time, so that nobody can know beforehand.

    Args:
        layout: The run directory.
        episodes: How many attempts; None for all.
        progress: Called for every attempt.
        inner: How many inner attempts of each campaign are played, drawn afresh; the others are
            taken from the record. None: all are played.
    Returns: What came of each attempt, and the digests of the run.
    Raises:
        UsageError: The run is not revealed, or `episodes` or `inner` is below 1.
        CheckFailure: The reveal is not what was committed to.
        TraceError: A shard is broken.
    """
    plan = read_plan(layout)
    root = revealed_root(layout, plan)
    names = seed_names(layout, plan, plan_digest(layout))
    refuse_unready(plan)
    leaves = leaves_of_shards(layout)
    complete = [leaf for leaf in counted_leaves(plan, leaves) if leaf]
    if not complete:
        raise UsageError(f"{layout.root} holds no complete episode yet: nothing to replay.")
    failed = [leaf for leaf in leaves if leaf.status in FAILED]
    chosen = _choose([*complete, *failed], episodes)
    entries = {entry.index: entry for entry in plan.entries}
    sampled = None
    if inner is not None:
        if inner < 1:
            raise UsageError(f"`--inner` must be at least 1, got {inner}.")
        sampled = SampledLaboratories(inner, _own_rng())
    attempts: list[AttemptReplay] = []
    resolver = Resolver(plan)

    def scene(leaf: Leaf) -> tuple[str, str]:
        return entries[leaf.index].suite, entries[leaf.index].calendar

    by_scene = sorted(chosen, key=lambda leaf: (*scene(leaf), leaf.index))
    for (name, calendar), group in itertools.groupby(by_scene, key=scene):
        drifted = resolver.drifted_suite(name, calendar)
        made = episode_setup.env_for(plan, drifted, laboratories=sampled)
        with closing(made) as env:
            for leaf in group:
                if leaf.status == "unreadable":
                    lost = "its evidence is damaged: it cannot be played again"
                    attempts.append(AttemptReplay(leaf.attempt_id, "different", lost))
                    continue
                trace = read_trace(layout, leaf)
                if sampled is not None:
                    sampled.expect(tuple(trace.of(InnerAttempt)))
                entry = entries[leaf.index]
                attempts.append(replay_attempt(env, resolver, entry, trace, root, names=names))
                progress(attempts[-1])
    return RunReplay(
        plan_digest=plan_digest(layout),
        evidence_root=evidence_root(plan, leaves),
        replay_root=replay_root(plan, leaves),
        attempts=tuple(sorted(attempts)),
        other_code=other_code(plan.suites),
    )


def sign(
    layout: RunLayout, replays: RunReplay, key: Ed25519PrivateKey, log: ChallengeLog | None = None
) -> Receipt:
    """Write a signed receipt of a replay into `receipts/`.

    Args:
        layout: The run directory.
        replays: What came of the replay.
        key: Signs the receipt.
        log: The signer's log of challenged plans: the receipt then says how many plans of the
            submitter there were by now.
    Returns: The receipt.
    """

    def ids(outcome: ReplayOutcome) -> tuple[str, ...]:
        return tuple(a.attempt_id for a in replays.attempts if a.outcome == outcome)

    signer = read_plan(layout).public_key
    receipt = Receipt(
        submitter="" if log is None else log.submitters.name_of(signer),
        plans=0 if log is None else log.count(signer),
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
    order = _own_rng().permutation(len(leaves))[:episodes]
    return [leaves[i] for i in sorted(order.tolist())]


def _own_rng() -> np.random.Generator:
    """Return draws that nobody can know beforehand."""
    return stream(int.from_bytes(fresh_bytes(8), "big"), "replay")


def replay_attempt(
    env: PlayedEnv,
    resolver: Resolver,
    entry: PlanEntry,
    trace: Trace,
    root: bytes,
    playback: Playback | None = None,
    names: Mapping[str, str] = NO_NAMES,
) -> AttemptReplay:
    """Play one attempt again and compare its lines.

    Args:
        env: Of the entry's suite and calendar (`episode_setup.env_for`).
        resolver: Of the plan.
        entry: The entry that was played.
        trace: The attempt's.
        root: The revealed secret of the run (`escrow.revealed_root`).
        playback: Plays the actions; None: `env.step` does.
        names: Under which seeds of pairs are drawn (`records.dated.seed_names`).
    Returns: What came of it.
    """
    name, recorded = trace.leaf.attempt_id, trace.end
    sink = ReplaySink(redact_key(root))
    try:
        fleet = instance_seed(root, entry.fleet) if entry.fleet else 0
        seed = instance_seed(root, names.get(entry.pair, entry.pair))
        resolved = resolver(entry, seed, fleet)
        _play_actions(env, resolver.plan, resolved, trace, sink, playback)
        if recorded.outcome == "infrastructure":
            detail = _false_failure(env, trace, sink.lines)
            return AttemptReplay(name, "different" if detail else "same", detail)
        again = _end(env, trace, sink)
    except OwaError as error:
        return AttemptReplay(name, "different", f"it cannot be played again: {error}")
    detail = _difference(trace, sink.lines)
    if not detail or not _own_clock(trace):
        return AttemptReplay(name, "different" if detail else "same", detail)
    if recorded.q_state > again.q_state or recorded.quality > again.quality:
        detail = f"a clock, and q_state {recorded.q_state:g} against {again.q_state:g}"
        return AttemptReplay(name, "different", f"{detail} of its actions")
    return AttemptReplay(name, "exempt", "a clock of the suite decided: " + detail)


def _play_actions(
    env: PlayedEnv,
    plan: Plan,
    resolved: ResolvedEntry,
    trace: Trace,
    sink: ReplaySink,
    playback: Playback | None,
) -> None:
    """Play the recorded actions into `sink`, as the loop would have; end nothing."""
    outer = EpisodeSink(sink, evaluation=not resolved.entry.keeps_memory)
    env.attach(outer)
    env.reset(
        options={
            "instance": resolved.instance,
            "interventions": _allowed(trace),
            "setting": resolved.setting,
            "start": lambda opening: episode_setup.episode_start(
                plan, resolved, trace.leaf.attempt, opening
            ),
        }
    )
    if playback is not None:
        playback.begin()
    for event in trace.events:
        if isinstance(event, Action):
            action = sink.restore(event.action)
            env.step(action) if playback is None else playback.step(action)
        elif isinstance(event, ControlBlock):
            for command in block_commands(event):
                env.step(command)
        elif _is_declared(event):
            outer.emit(event)
            env.declare(event)


def _end(env: PlayedEnv, trace: Trace, sink: ReplaySink) -> EpisodeEnd:
    """End a played episode as it was ended, and return the last event."""
    ending = env.conclude(trace.end.outcome, trace.end.reason)
    if trace.end.outcome == "agent_raised":  # its memory_dir can fail it after the end
        ending = ending._replace(outcome="agent_raised")
    timed = trace.end.timed
    end = episode_setup.episode_end(env, ending, timed=timed, wall_s=0.0)
    sink.emit(end)
    return end


def _own_clock(trace: Trace) -> bool:
    """Return whether a clock of the suite's own may have decided something.

    Where a deadline or a ceiling of the plan ended an attempt in which no command ran, a replay
    ends just there.
    """
    end = trace.end
    by_plan = end.outcome == "agent_timeout" or end.reason.startswith("budget:")
    return end.timed and (not by_plan or any(trace.of(Execution)))


def _false_failure(env: PlayedEnv, trace: Trace, lines: Sequence[bytes]) -> str:
    """Return why an attempt is not one that the harness failed, "" where it may be."""
    if env.ending is not None:
        if trace.leaf.status == "provider" and not env.ending.success:
            return ""  # an agent may go on without its model, and end the episode
        return (
            "it is said to have failed through the harness, and its actions end the "
            f"episode ({env.ending.outcome}): it was complete"
        )
    if not trace.start.horizon:  # the world was not opened: nothing was played
        return ""
    recorded = [line for line in map(replay_line, trace.events[:-1]) if line]
    for place, (old, new) in enumerate(itertools.zip_longest(recorded, lines)):
        if old is not None and old != new:
            return f"event {place}: recorded {_cut(old, new)}"
    return ""


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
            return f"event {place}: recorded {_cut(old, new)}, replayed {_cut(new, old)}"
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
