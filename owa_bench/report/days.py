"""The signed checkpoints of a campaign: the evidence root as it stood each day."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from owa_bench.canonical import unseal
from owa_bench.errors import CheckFailure
from owa_bench.records.checkpoint import DayCheckpoint
from owa_bench.records.layout import CHECKPOINT_TYPE
from owa_bench.records.roots import evidence_root
from owa_bench.records.trace import Leaf
from owa_bench.report.bundle import Bundle
from owa_bench.report.check import Check, settled


def check(bundle: Bundle, leaves: tuple[Leaf, ...], key: bytes) -> Iterator[Check]:
    """Yield whether every day was signed as the shards have it; nothing without days.

    A day's root is over the attempts it lists, and it lists all that count up to it.
    """
    days = {e.index: e.day for e in bundle.plan.entries if e.day is not None}
    if not days or bundle.missing:
        return
    faults = [
        f"day {day}: {fault}"
        for day in sorted(set(days.values()))
        for fault in _faults(bundle, leaves, _upto(days, day), day, key)
    ]
    kind = "simulated" if bundle.plan.simulated_days else "real"
    yield settled("days", faults, f"{len(set(days.values()))} {kind} days, each signed")


def _upto(days: dict[int, int], day: int) -> frozenset[int]:
    """Return the plan entries of all days up to `day`."""
    return frozenset(index for index, played in days.items() if played <= day)


def _faults(
    bundle: Bundle,
    leaves: tuple[Leaf, ...],
    entries: frozenset[int],
    day: int,
    key: bytes,
) -> Iterator[str]:
    """Yield what is wrong with one day's checkpoint."""
    path = bundle.layout.receipts / f"day-{day:04d}.dsse.json"
    try:
        said = _opened(path, key)
    except (OSError, CheckFailure, msgspec.DecodeError) as error:
        yield f"no signed checkpoint: {error}"
        return
    if (said.plan_digest, said.day) != (bundle.plan_digest, day):
        yield "is of another plan or day"
    listed = set(said.attempts)
    then = [leaf for leaf in leaves if leaf.attempt_id in listed]
    complete = {
        leaf.attempt_id
        for leaf in leaves
        if leaf.index in entries and leaf.status == "complete"
    }
    if not complete <= listed:
        yield f"{len(complete - listed)} of its attempts were made after it was signed"
    known = all(leaf.index in entries for leaf in then) and len(then) == len(listed)
    if not known or evidence_root(bundle.plan, then) != said.evidence_root:
        yield "the shards give another root than the one signed that day"


def _opened(path: Path, key: bytes) -> DayCheckpoint:
    """Return a checkpoint signed by `key`."""
    payload = unseal(path.read_bytes(), key, CHECKPOINT_TYPE)
    return msgspec.json.decode(payload, type=DayCheckpoint)
