"""One walk over every attempt of a run: what is wrong with each, by check."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from owa_bench.errors import RunDirectoryError
from owa_bench.records.events import (
    AnyEvent,
    Artifact,
    Call,
    EpisodeEnd,
    EpisodeStart,
    Evidence,
    Intervention,
    ModelCall,
    Observation,
    Resource,
)
from owa_bench.records.plan import PlanEntry
from owa_bench.records.trace import Leaf
from owa_bench.report.attempts import Attempt
from owa_bench.report.bundle import Bundle
from owa_bench.seeding import commitment, instance_seed, mixed_master

_DIGEST = 64  # hex digits of a SHA-256
# What an episode's start must repeat of its plan entry.
_TERMS = (
    "arm",
    "pair",
    "repeat",
    "lane",
    "day",
    "session",
    "delta",
    "interventions",
    "role_cap",
    "muted",
    "calendar",
    "phase",
)
# Meters of the harness that stand in the trace a second time, as events.
_METERED = ("api_calls", "supervisor_min")
# A call by one of these goes over the network; others, such as VAULT, are local tools.
_HTTP = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_PLAYED = ("suite", "version", "family", "tier", "repeat")


class Survey(NamedTuple):
    """Faults by check; the leaves and blob digests met on the way."""

    faults: Mapping[str, list[str]]
    leaves: tuple[Leaf, ...]
    digests: frozenset[str]
    revealed: bool


def survey(bundle: Bundle) -> Survey:
    """Return what a walk over all attempts finds, each attempt read once."""
    faults: dict[str, list[str]] = defaultdict(list)
    listed = {leaf.attempt_id: leaf for leaf in bundle.listed}
    entries = {entry.index: entry for entry in bundle.plan.entries}
    agents = {arm.name: arm.fingerprint for arm in bundle.plan.arms}
    root = _root(bundle, faults["seed"])
    seeds: dict[str, int] = {}
    leaves: list[Leaf] = []
    digests: set[str] = set()
    faults["frames"] += bundle.faults
    for attempt in bundle.attempts():
        name = attempt.attempt_id
        faults["frames"] += attempt.faults
        faults["chain"] += _chain(attempt, listed.get(name))
        faults["count"] += _count(attempt, listed.get(name))
        faults["episode id"] += _identity(attempt, entries, agents)
        faults["seed"] += _seed(attempt, seeds, root)
        faults["cost"] += _usage(attempt)
        digests.update(_digests(attempt.events))
        leaves.append(attempt.leaf)
    _compare(listed, leaves, faults)
    faults["count"] += _attempts(bundle, leaves)
    faults["leaf"] += bundle.unlisted
    return Survey(faults, tuple(leaves), frozenset(digests), root is not None)


def _root(bundle: Bundle, faults: list[str]) -> bytes | None:
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
    return mixed_master(master, bundle.plan.verifier_nonce)


def _chain(attempt: Attempt, listed: Leaf | None) -> Iterator[str]:
    """Yield where the head computed from the lines is not the head on record."""
    name = attempt.attempt_id
    if attempt.closing is not None and attempt.closing.head != attempt.head:
        yield f"{name}: its lines do not hash to the head in its closing line"
    if listed is not None and listed.head != attempt.head:
        yield f"{name}: its lines do not hash to the head in leaves.jsonl"


def _count(attempt: Attempt, listed: Leaf | None) -> Iterator[str]:
    """Yield where the number of events is not the number on record."""
    name, count = attempt.attempt_id, attempt.count
    if attempt.closing is not None and attempt.closing.count != count:
        yield f"{name}: {count} events, its closing line says {attempt.closing.count}"
    if listed is not None and listed.count != count:
        yield f"{name}: {count} events, leaves.jsonl says {listed.count}"


def _compare(
    listed: Mapping[str, Leaf], leaves: list[Leaf], faults: dict[str, list[str]]
) -> None:
    """Note attempts that only one of shards and leaves.jsonl holds, or that differ."""
    found = {leaf.attempt_id: leaf for leaf in leaves}
    for name, leaf in listed.items():
        if name not in found:
            faults["count"].append(f"{name}: in leaves.jsonl, not in the shards")
            faults["chain"].append(f"{name}: there are no lines to hash")
        elif found[name] != leaf:
            faults["leaf"].append(f"{name}: leaves.jsonl differs from the shards")
    for name, leaf in found.items():
        if name not in listed and leaf.status != "unfinished":
            faults["count"].append(f"{name}: in the shards, not in leaves.jsonl")


def _attempts(bundle: Bundle, leaves: list[Leaf]) -> Iterator[str]:
    """Yield where attempts of one plan entry are missing, or too many.

    Attempts are numbered from 0, and a complete one ends the row: playing on until an
    episode goes well would choose which attempt counts.
    """
    tried: dict[int, list[Leaf]] = defaultdict(list)
    for leaf in leaves:
        tried[leaf.index].append(leaf)
    for index, row in tried.items():
        numbers = [leaf.attempt for leaf in row]
        if numbers != list(range(len(row))):
            yield f"entry {index} has attempts {numbers}, not all from 0"
        if any(leaf.status == "complete" for leaf in row[:-1]):
            yield f"entry {index} was played again after a complete attempt"
    if bundle.missing:
        yield f"{len(bundle.missing)} planned episodes have no attempt"


def _identity(
    attempt: Attempt, entries: Mapping[int, PlanEntry], agents: Mapping[str, str]
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
    yield from _ends(attempt)
    start = attempt.events[0] if attempt.events else None
    if isinstance(start, EpisodeStart):
        yield from (f"{name}: {fault}" for fault in _terms(start, leaf, entry, agents))


def _ends(attempt: Attempt) -> Iterator[str]:
    """Yield where an attempt lacks its one start or its one end."""
    name, events = attempt.attempt_id, attempt.events
    starts = [i for i, e in enumerate(events) if isinstance(e, EpisodeStart)]
    ends = [i for i, e in enumerate(events) if isinstance(e, EpisodeEnd)]
    complete = attempt.leaf.status == "complete"
    if starts != [0] and (events or complete):
        yield f"{name}: must begin with its one episode_start"
    if complete and ends != [len(events) - 1]:
        yield f"{name}: must close with its one episode_end"


def _terms(
    start: EpisodeStart, leaf: Leaf, entry: PlanEntry, agents: Mapping[str, str]
) -> Iterator[str]:
    """Yield where an episode was not played under the terms of its plan entry."""
    if (start.index, start.attempt) != (leaf.index, leaf.attempt):
        yield f"holds the episode {start.index:06d}.{start.attempt}"
    for term in _TERMS:
        if getattr(start, term) != getattr(entry, term):
            got, planned = getattr(start, term), getattr(entry, term)
            yield f"{term} is {got!r}, planned {planned!r}"
    for part in _PLAYED:
        if getattr(start.instance, part) != getattr(entry, part):
            yield f"its instance's {part} is not the planned {getattr(entry, part)!r}"
    if start.fingerprint != agents.get(entry.arm):
        yield f"fingerprint of the agent is not the one planned for {entry.arm}"


def _seed(attempt: Attempt, seeds: dict[str, int], root: bytes | None) -> Iterator[str]:
    """Yield where a pair's seed is not its own: among arms, or by the reveal."""
    start = attempt.events[0] if attempt.events else None
    if not isinstance(start, EpisodeStart):
        return
    seed = start.instance.seed
    if seeds.setdefault(start.pair, seed) != seed:
        yield f"{attempt.attempt_id}: the pair {start.pair} has two seeds"
    if root is not None and instance_seed(root, start.pair) != seed:
        yield f"{attempt.attempt_id}: not the seed that the master gives {start.pair}"


def _usage(attempt: Attempt) -> Iterator[str]:
    """Yield where a meter does not agree with the events it meters.

    Calls and supervisor minutes stand in the trace twice, as themselves and as
    resources that the harness metered. What an agent declares has no second witness.
    """
    if attempt.leaf.status != "complete":
        return
    held: dict[str, float] = dict.fromkeys(_METERED, 0.0)
    metered = dict(held)
    for event in attempt.events:
        if isinstance(event, Resource):
            if event.source == "env" and event.meter in metered:
                metered[event.meter] += event.amount
        elif isinstance(event, Call):
            held["api_calls"] += event.method in _HTTP
        elif isinstance(event, Intervention):
            held["supervisor_min"] += event.minutes
    for meter in _METERED:
        if not math.isclose(held[meter], metered[meter], abs_tol=1e-6):
            yield (
                f"{attempt.attempt_id}: {meter} is metered as {metered[meter]:g}, "
                f"its events make {held[meter]:g}"
            )


def _digests(events: tuple[AnyEvent, ...]) -> Iterator[str]:
    """Yield the blobs that the harness wrote for these events."""
    for event in events:
        found: tuple[str, ...] = ()
        if isinstance(event, Observation | Artifact | Evidence):
            found = (event.blob,)
        elif isinstance(event, Call):
            found = (event.request, event.response)
        elif isinstance(event, ModelCall):
            found = (event.prompt, event.reply)
        yield from (digest for digest in found if len(digest) == _DIGEST)
