"""Integrity checks of attempts: hash chain, counts, identity, seeds and usage.

Each attempt is read once; the faults are collected by the name of the check.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

import msgspec

from owa_bench.errors import CheckFailure, RunDirectoryError
from owa_bench.records import events
from owa_bench.records.dated import seed_names
from owa_bench.records.event_base import VOLATILE_METERS
from owa_bench.records.plan import MAX_FAILURES, Budget, Plan, PlanEntry, supervisor_budget
from owa_bench.records.trace import PLAYED, Leaf
from owa_bench.records.witness import seed_nonce
from owa_bench.reports.read.attempts import INSTANCE_TERMS, TERMS, RecordedAttempt
from owa_bench.reports.read.bundle import Bundle
from owa_bench.scoring.observe.inner_attempts import inner_faults
from owa_bench.seeding import commitment, instance_seed, mixed_master

_DIGEST = 64  # hex digits of a SHA-256
# Meters of the harness whose amounts also follow from events of the trace.
_METERED = ("api_calls", "supervisor_min")
# A call by one of these goes over the network; others, such as VAULT, are local tools.
_HTTP = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


_CLOCK_SLACK = 0.01  # share by which two clocks of one machine may differ
_SHOWN = 3  # faults named in one line; the rest is counted


class CheckResult(NamedTuple):
    """One line of `verify`; `skipped` marks one that had nothing to check, or lifts nothing.

    Such a line does not fail a run and proves nothing; its detail says why.
    """

    name: str
    ok: bool
    detail: str
    skipped: bool = False


def check_result(name: str, faults: Iterable[str], good: str) -> CheckResult:
    """Return a check that holds if there are no faults.

    Args:
        name: name of the check.
        faults: what is wrong; the first three are printed.
        good: the detail of a check that holds.
    """
    messages = list(faults)
    if not messages:
        return CheckResult(name, True, good)
    more = f"; and {len(messages) - _SHOWN} more" if len(messages) > _SHOWN else ""
    return CheckResult(name, False, "; ".join(messages[:_SHOWN]) + more)


def skipped_check(name: str, reason: str) -> CheckResult:
    """Return a check that had nothing to check.

    Args:
        name: name of the check.
        reason: why there was nothing to check.
    Returns: The result, which holds and is marked as skipped.
    """
    return CheckResult(name, True, f"not checked: {reason}", skipped=True)


def unreadable_line(attempt: RecordedAttempt) -> str:
    """Return what is said of an attempt that does not read."""
    return (
        f"attempt {attempt.attempt_id} does not read and counts as a failure of "
        f"quality 0 ({attempt.faults[0]})"
    )


class AttemptFaults(NamedTuple):
    """Faults of all attempts by check, with their leaves and the digests of blobs."""

    faults: Mapping[str, list[str]]
    leaves: tuple[Leaf, ...]
    digests: Set[str]
    revealed: bool
    inner_attempts: int


def check_attempts(bundle: Bundle) -> AttemptFaults:
    """Return the faults of all attempts of a run, each attempt read once."""
    faults: dict[str, list[str]] = defaultdict(list)
    recorded = {leaf.attempt_id: leaf for leaf in bundle.recorded_leaves}
    entries = {entry.index: entry for entry in bundle.plan.entries}
    root = _seed_root(bundle, faults["seed"])
    names = seed_names(bundle.layout, bundle.plan, bundle.plan_digest)
    seeds: dict[str, int] = {}
    leaves: list[Leaf] = []
    digests: set[str] = set()
    inner = 0
    faults["frames"] += bundle.faults
    for attempt in bundle.attempts():
        name = attempt.attempt_id
        known = recorded.get(name)
        leaves.append(known if known == attempt.leaf else attempt.leaf)  # the same is kept once
        if attempt.faults:
            faults["frames"].insert(0, unreadable_line(attempt))
            recorded.pop(name, None)
            continue
        faults["chain"] += _chain_faults(attempt, recorded.get(name))
        faults["count"] += _count_faults(attempt, recorded.get(name))
        faults["count"] += _clock_faults(attempt, bundle.plan.budget)
        faults["episode id"] += _identity_faults(attempt, bundle.plan, entries)
        faults["seed"] += _seed_faults(attempt, seeds, root, names)
        faults["cost"] += _usage_faults(attempt)
        faults["inner attempts"] += _inner_faults(attempt)
        inner += sum(type(event) is events.InnerAttempt for event in attempt.events)
        digests.update(_digests(attempt.events))
    _compare(recorded, leaves, faults)
    faults["count"] += _numbering_faults(bundle, leaves)
    faults["leaf"] += bundle.leaf_faults
    revealed = root is not None
    return AttemptFaults(faults, tuple(leaves), digests, revealed, inner)


def _seed_root(bundle: Bundle, faults: list[str]) -> bytes | None:
    """Return what the revealed seeds derive from, None before the reveal."""
    reveal = bundle.reveal()
    if reveal is None:
        return None
    try:
        master, nonce = bytes.fromhex(reveal.master), bytes.fromhex(reveal.nonce)
    except ValueError as error:
        raise RunDirectoryError(
            f"{bundle.layout.reveal} must hold hex strings: {error}."
        ) from error
    if commitment(nonce, master) != bundle.plan.commitment:
        faults.append("what was revealed does not open the plan's commitment")
    try:
        given = seed_nonce(bundle.layout, bundle.plan, bundle.plan_digest)
    except CheckFailure as error:
        faults.append(str(error))
        return None
    return mixed_master(master, given)


def _chain_faults(attempt: RecordedAttempt, recorded: Leaf | None) -> Iterator[str]:
    """Yield where the head computed from the lines is not the head on record."""
    name = attempt.attempt_id
    if attempt.closing is not None and attempt.closing.head != attempt.head:
        yield f"{name}: its lines do not hash to the head in its closing line"
    if recorded is not None and recorded.head != attempt.head:
        yield f"{name}: its lines do not hash to the head in leaves.jsonl"


def _count_faults(attempt: RecordedAttempt, recorded: Leaf | None) -> Iterator[str]:
    """Yield where the number of events is not the number on record."""
    name, count = attempt.attempt_id, attempt.count
    if attempt.closing is not None and attempt.closing.count != count:
        yield f"{name}: {count} events, its closing line says {attempt.closing.count}"
    if recorded is not None and recorded.count != count:
        yield f"{name}: {count} events, leaves.jsonl says {recorded.count}"


def _clock_faults(attempt: RecordedAttempt, budget: Budget) -> Iterator[str]:
    """Yield where the end of an attempt that a clock ended does not fit the budget.

    What a clock of a suite's own decided ends in any other way: replay bounds it.
    """
    end = attempt.events[-1] if attempt.events else None
    if not isinstance(end, events.EpisodeEnd) or not end.timed:
        return
    least = min(budget.act_s, budget.episode_wall_s or budget.act_s)
    kind, _, meter = end.reason.partition(":")
    name = attempt.attempt_id
    if end.outcome == "truncated" and kind == "budget":
        limits = dict(budget.run_meters)
        own = ((m, v) for m, v in budget.episode_meters if m in VOLATILE_METERS)
        limits.update(own)
        if meter == "wall_s" and budget.episode_wall_s is not None:
            limits[meter], least = budget.episode_wall_s, budget.episode_wall_s
        if meter not in limits:
            yield f"{name}: a clock of {meter} ended it, the plan has none"
        least = least if meter == "wall_s" else 0.0
    elif end.outcome != "agent_timeout":
        return
    if end.wall_s < least * (1 - _CLOCK_SLACK):
        yield (
            f"{name}: a clock ended it after {end.wall_s:g} s, the least that the plan "
            f"gives is {least:g} s"
        )


def _compare(
    recorded: Mapping[str, Leaf], leaves: list[Leaf], faults: dict[str, list[str]]
) -> None:
    """Add the attempts on which shards and leaves.jsonl differ to the faults."""
    by_name = {leaf.attempt_id: leaf for leaf in leaves}
    for name, leaf in recorded.items():
        if name not in by_name:
            faults["count"].append(f"{name}: in leaves.jsonl, not in the shards")
            faults["chain"].append(f"{name}: there are no lines to hash")
        elif by_name[name] != leaf:
            faults["leaf"].append(f"{name}: leaves.jsonl differs from the shards")
    for name, leaf in by_name.items():
        if name not in recorded and leaf.status not in ("unfinished", "unreadable"):
            faults["count"].append(f"{name}: in the shards, not in leaves.jsonl")


def _numbering_faults(bundle: Bundle, leaves: list[Leaf]) -> Iterator[str]:
    """Yield where attempts of one plan entry are missing, or too many.

    Attempts are numbered from 0, and a complete one is the last: playing an episode again until it
    goes well would choose which attempt counts.
    """
    by_entry: dict[int, list[Leaf]] = defaultdict(list)
    for leaf in leaves:
        by_entry[leaf.index].append(leaf)
    for index, attempts in by_entry.items():
        numbers = [leaf.attempt for leaf in attempts]
        if numbers != list(range(len(attempts))):
            yield f"entry {index} has attempts {numbers}, not all from 0"
        if any(leaf.status in PLAYED for leaf in attempts[:-1]):
            yield f"entry {index} was played again after a complete attempt"
        failed = [leaf.status for leaf in attempts[:-1]].count("infrastructure")
        if failed >= MAX_FAILURES:
            yield (
                f"entry {index} was played again after {failed} attempts that the "
                f"harness failed, the plan's rule allows {MAX_FAILURES}"
            )
    if bundle.missing:
        yield f"{len(bundle.missing)} planned episodes have no attempt"


def _identity_faults(
    attempt: RecordedAttempt, plan: Plan, entries: Mapping[int, PlanEntry]
) -> Iterator[str]:
    """Yield where an attempt is not the episode its name says."""
    name, leaf = attempt.attempt_id, attempt.leaf
    if attempt.closing is not None and attempt.closing.closing != name:
        yield f"{name}: its closing line is that of {attempt.closing.closing}"
    if attempt.closing is None and leaf.status == "complete":
        yield f"{name}: complete without a closing line"
    entry = entries.get(leaf.index)
    if entry is None:
        yield f"{name}: the plan has no entry {leaf.index}"
        return
    yield from _boundary_faults(attempt)
    yield from _provider_faults(attempt)
    start = attempt.events[0] if attempt.events else None
    if isinstance(start, events.EpisodeStart):
        faults = _term_faults(start, leaf, entry, plan)
        yield from (f"{name}: {fault}" for fault in faults)


def _provider_faults(attempt: RecordedAttempt) -> Iterator[str]:
    """Yield where an attempt is laid to a model's provider that no call shows failing.

    Else an attempt that went badly could be played again under that name.
    """
    if attempt.status != "provider":
        return
    calls = [
        event
        for event in attempt.events
        if isinstance(event, events.ModelCall) and event.source == "harness"
    ]
    # One that the agent's deadline cut off has no verdict.
    if not any(call.verdict in ("", "failure") for call in calls):
        yield (
            f"{attempt.attempt_id}: it is laid to the model's provider, and no call of "
            "a model failed in it"
        )


def _boundary_faults(attempt: RecordedAttempt) -> Iterator[str]:
    """Yield where an attempt lacks its one start or its one end."""
    name, sequence = attempt.attempt_id, attempt.events
    starts = [i for i, e in enumerate(sequence) if type(e) is events.EpisodeStart]
    ends = [i for i, e in enumerate(sequence) if type(e) is events.EpisodeEnd]
    complete = attempt.status == "complete"
    if starts != [0] and (sequence or complete):
        yield f"{name}: must begin with its one episode_start"
    if complete and ends != [len(sequence) - 1]:
        yield f"{name}: must close with its one episode_end"


def _term_faults(
    start: events.EpisodeStart, leaf: Leaf, entry: PlanEntry, plan: Plan
) -> Iterator[str]:
    """Yield where an episode was not played under the terms of its plan entry."""
    if (start.index, start.attempt) != (leaf.index, leaf.attempt):
        yield f"holds the episode {start.index:06d}.{start.attempt}"
    for term in TERMS:
        got, planned = getattr(start, term), getattr(entry, term)
        if got != planned:
            yield f"{term} is {got!r}, planned {planned!r}"
    unit = None if isinstance(entry.unit, msgspec.UnsetType) else entry.unit
    if start.unit != unit:
        yield f"unit is {start.unit!r}, planned {unit!r}"
    budget = supervisor_budget(plan, entry, start.horizon)
    if start.interventions != budget:
        yield f"interventions is {start.interventions!r}, planned {budget!r}"
    if start.priced != (entry.interventions == "protocol"):
        yield f"priced is {start.priced}, planned {entry.interventions!r}"
    for part in INSTANCE_TERMS:
        if getattr(start.instance, part) != getattr(entry, part):
            yield f"its instance's {part} is not the planned {getattr(entry, part)!r}"
    agents = {arm.name: arm.fingerprint for arm in plan.arms}
    if start.fingerprint != agents.get(entry.arm):
        yield f"fingerprint of the agent is not the one planned for {entry.arm}"


def _seed_faults(
    attempt: RecordedAttempt, seeds: dict[str, int], root: bytes | None, names: Mapping[str, str]
) -> Iterator[str]:
    """Yield where a pair's seed is not its own: among arms, or by the reveal."""
    start = attempt.events[0] if attempt.events else None
    if not isinstance(start, events.EpisodeStart):
        return
    seed = start.instance.seed
    if seeds.setdefault(start.pair, seed) != seed:
        yield f"{attempt.attempt_id}: the pair {start.pair} has two seeds"
    name = names.get(start.pair, start.pair)
    if root is not None and instance_seed(root, name) != seed:
        yield f"{attempt.attempt_id}: not the seed that the master gives {start.pair}"


_METERING = frozenset({events.Resource, events.Call, events.Intervention, events.ColleagueLook})


def _metering(sequence: Iterable[events.AnyEvent]) -> list[events.AnyEvent]:
    """Return the events that the harness' own meters or their counts are made of."""
    return [event for event in sequence if type(event) in _METERING]


def _usage_faults(attempt: RecordedAttempt) -> Iterator[str]:
    """Yield where a meter does not agree with the events it meters.

    Calls, supervisor minutes and what a suite's own meters count are in the trace twice, as events
    of their own and as resources that the world metered. What an agent declares cannot be compared.
    """
    if attempt.status != "complete":
        return
    start = attempt.events[0] if attempt.events else None
    own = start.meters if isinstance(start, events.EpisodeStart) else ()
    counted: dict[str, float] = dict.fromkeys(_METERED, 0.0)
    counted |= dict.fromkeys((item.meter for item in own), 0.0)
    metered = dict(counted)
    for event in attempt.events if own else _metering(attempt.events):
        if isinstance(event, events.Resource):
            if event.source != "agent" and event.meter in metered:
                metered[event.meter] += event.amount
        elif isinstance(event, events.Call):
            counted["api_calls"] += event.method in _HTTP
        elif isinstance(event, events.Intervention | events.ColleagueLook):
            counted["supervisor_min"] += event.minutes
        for item in own:
            counted[item.meter] += _witnessed(event, item)
    for meter in counted:
        if not math.isclose(counted[meter], metered[meter], abs_tol=1e-6):
            yield (
                f"{attempt.attempt_id}: {meter} is metered as {metered[meter]:g}, "
                f"its events make {counted[meter]:g}"
            )


def _inner_faults(attempt: RecordedAttempt) -> Iterator[str]:
    """Yield where the attempts that a laboratory played do not fit their episode."""
    if attempt.status == "complete":
        for fault in inner_faults(attempt.events):
            yield f"{attempt.attempt_id}: {fault}"


def _witnessed(event: events.AnyEvent, item: events.WitnessedMeter) -> float:
    """Return how much of a suite's meter an event shows."""
    if event.source == "agent" or event.__struct_config__.tag != item.witness:
        return 0.0
    return float(getattr(event, item.field, 0.0)) if item.field else 1.0


# Fields of an event that hold the digests of blobs.
_BLOB_FIELDS: Mapping[type[events.AnyEvent], tuple[str, ...]] = {
    **dict.fromkeys((events.Observation, events.Artifact, events.Evidence), ("blob",)),
    events.Call: ("request", "response"),
    events.ModelCall: ("prompt", "reply"),
    events.Intervention: ("question", "answer"),
    events.Message: ("digest",),
    events.InnerAttempt: ("replay",),
}


def _digests(sequence: tuple[events.AnyEvent, ...]) -> Iterator[str]:
    """Yield the blobs that the harness wrote for these events."""
    for event in sequence:
        fields = _BLOB_FIELDS.get(type(event))
        if fields is None or (isinstance(event, events.InnerAttempt) and not event.full):
            continue
        for name in fields:
            digest = getattr(event, name)
            if len(digest) == _DIGEST:
                yield digest
