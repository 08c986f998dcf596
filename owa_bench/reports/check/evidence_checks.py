"""Checks of the raw evidence of a run: plan, shards, blobs, seeds and checkpoints."""

import math
from collections.abc import Iterator, Set

import msgspec

from owa_bench.canonical import key_id, sha256, text_digest, unseal
from owa_bench.errors import CheckFailure, TraceError
from owa_bench.records.bounds import decode_document
from owa_bench.records.layout import CHECKPOINT_TYPE, PLAN_TYPE
from owa_bench.records.packs import read_packs, read_pruned
from owa_bench.records.trace import Leaf, evidence_root
from owa_bench.records.witness import DayCheckpoint
from owa_bench.reports.check.integrity_checks import (
    AttemptFaults,
    CheckResult,
    check_attempts,
    check_result,
    skipped_check,
)
from owa_bench.reports.read.bundle import Bundle

_PARTS = ("plan_envelope", "shards", "leaves", "protocol", "price_card")


def check_evidence(bundle: Bundle, public: bytes | None = None) -> tuple[CheckResult, ...]:
    """Return every check of the evidence.

    Args:
        bundle: the run directory.
        public: the public key that must have signed; None takes the plan's own.
    Returns: The checks in the order in which they are printed.
    """
    return tuple(_checks(bundle, check_attempts(bundle), public))


def _checks(
    bundle: Bundle, attempt_faults: AttemptFaults, public: bytes | None
) -> Iterator[CheckResult]:
    faults, attempts = attempt_faults.faults, f"{len(attempt_faults.leaves)} attempts"
    events = f"{sum(leaf.count for leaf in attempt_faults.leaves)} events"
    torn = f"; open frames cut off in {', '.join(bundle.torn)}" if bundle.torn else ""
    good = {
        "frames": f"every frame in its place{torn}",
        "chain": f"{events} hash to their heads",
        "count": f"{attempts}, {events}",
        "episode id": f"{attempts} are what was planned",
        "leaf": "leaves.jsonl says what the shards say",
    }
    yield _layout(bundle)
    yield from _plan(bundle, public)
    yield from (check_result(name, faults[name], good[name]) for name in good)
    untried = [f"entry {index} was never tried" for index in bundle.missing]
    yield check_result("plan coverage", untried, "every planned episode was tried")
    yield _seeds(attempt_faults)
    yield _blobs(bundle, attempt_faults)
    if inner := attempt_faults.inner_attempts:
        counted = f"{inner} make the answers and sets of their episodes"
        yield check_result("inner attempts", faults["inner attempts"], counted)
    yield from _terms(bundle)
    yield _cost(bundle, faults["cost"])
    key = bytes.fromhex(bundle.plan.public_key) if public is None else public
    yield from _days(bundle, attempt_faults.leaves, key)


def _layout(bundle: Bundle) -> CheckResult:
    """Return whether every part of a run exists, and none is half written."""
    layout = bundle.layout
    parts = [getattr(layout, part) for part in _PARTS]
    faults = [f"{part.name} is missing" for part in parts if not part.exists()]
    folders = (layout.root, layout.shards, layout.blobs)
    partial = (p for folder in folders if folder.is_dir() for p in folder.glob(".*"))
    faults += [f"{p.name} was left half written" for p in partial if p.is_file()]
    return check_result("layout", faults, str(layout.root))


def _plan(bundle: Bundle, public: bytes | None) -> Iterator[CheckResult]:
    """Yield whether the plan is signed, and is the plan that was signed."""
    own = bytes.fromhex(bundle.plan.public_key)
    key = own if public is None else public
    if not key:
        reason = "the plan names no key and none was given"
        yield CheckResult("plan signature", False, reason)
        return
    origin = " (named by the plan itself)" if public is None else ""
    try:
        payload = unseal(bundle.layout.plan_envelope.read_bytes(), key, PLAN_TYPE)
        decode_document(payload)
    except (CheckFailure, OSError, ValueError) as error:
        yield CheckResult("plan signature", False, str(error))
        return
    yield CheckResult("plan signature", True, f"by key {key_id(key)}{origin}")
    same = text_digest(payload) == bundle.plan_digest
    faults = [] if same else ["plan.json is not the plan that was signed"]
    if own != key:
        faults.append(f"the plan names key {key_id(own) if own else 'none'} as its own")
    yield check_result("plan", faults, f"digest {bundle.plan_digest[:16]}")


def _seeds(attempt_faults: AttemptFaults) -> CheckResult:
    """Return whether seeds are those of the reveal; before it, one a pair."""
    if attempt_faults.faults["seed"]:
        return check_result("seed", attempt_faults.faults["seed"], "")
    if not attempt_faults.revealed:
        reason = "not revealed yet; paired arms do share their seeds"
        return skipped_check("seed", reason)
    return CheckResult("seed", True, "the commitment opens, every seed is the master's")


def _blobs(bundle: Bundle, attempt_faults: AttemptFaults) -> CheckResult:
    """Return whether every blob that an event names is in a pack, or was pruned.

    A blob that was edited is not there under its name.
    """
    pruned = read_pruned(bundle.layout)
    stored: set[str] = set()
    faults: list[str] = []
    try:
        for pack in read_packs(bundle.layout):
            stored.update(pack.places)
            faults += [f"{pack.path.name}: {pack.fault}"] if pack.fault else []
    except TraceError as error:
        faults.append(str(error))
    missing = sorted(attempt_faults.digests - stored)
    if bundle.plan.transcripts and not pruned:
        faults += [f"blob {name[:16]} is in no pack" for name in missing]
    good = f"{len(stored)} blobs hash to their names"
    if missing:
        why = "transcripts pruned" if pruned else "transcripts off"
        good += f"; of {len(missing)} the digest is kept alone ({why})"
    return check_result("blobs", faults, good)


def _terms(bundle: Bundle) -> Iterator[CheckResult]:
    """Yield whether price card and protocol are those the plan fixed."""
    terms = (
        ("price card", bundle.price_bytes, bundle.plan.price_digest, "card"),
        ("protocol", bundle.protocol_bytes, bundle.plan.protocol_digest, "protocol"),
    )
    for name, data, digest, noun in terms:
        file = f"{name.replace(' ', '_')}.toml"
        fault = f"{file} is not the {noun} that the plan fixed"
        faults = [] if sha256(data) == digest else [fault]
        yield check_result(name, faults, f"digest {digest[:16]}")


def _cost(bundle: Bundle, faults: list[str]) -> CheckResult:
    """Return whether usage is what the events make, priced by the plan's card."""
    messages = list(faults)
    if sha256(bundle.price_bytes) != bundle.plan.price_digest:
        messages.append("priced with a card that the plan did not fix")
    return check_result("cost", messages, "meters agree with the events they meter")


def _days(bundle: Bundle, leaves: tuple[Leaf, ...], key: bytes) -> Iterator[CheckResult]:
    """Yield whether every day was signed as the shards have it; nothing without days.

    A day's root is over the attempts it lists, and it lists all that count up to it. A placement
    has the days whose every episode it announced.
    """
    due = {entry.index for entry in bundle.due}
    days = {e.index: e.day for e in bundle.plan.entries if e.day is not None}
    first_open = min((day for index, day in days.items() if index not in due), default=math.inf)
    days = {index: day for index, day in days.items() if day < first_open}
    if not days or bundle.missing:
        return
    faults = []
    for day in sorted(set(days.values())):
        entries = {index for index, planned in days.items() if planned <= day}
        day_faults = _day_faults(bundle, leaves, entries, day, key)
        faults += [f"day {day}: {fault}" for fault in day_faults]
    kind = "simulated" if bundle.plan.simulated_days else "real"
    good = f"{len(set(days.values()))} {kind} days, each signed"
    yield check_result("days", faults, good)


def _day_faults(
    bundle: Bundle, leaves: tuple[Leaf, ...], entries: Set[int], day: int, key: bytes
) -> Iterator[str]:
    """Yield what is wrong with one day's checkpoint; `entries` are those up to it."""
    path = bundle.layout.receipts / f"day-{day:04d}.dsse.json"
    try:
        payload = unseal(path.read_bytes(), key, CHECKPOINT_TYPE)
        signed = msgspec.json.decode(payload, type=DayCheckpoint)
    except (OSError, CheckFailure, msgspec.DecodeError) as error:
        yield f"no signed checkpoint: {error}"
        return
    if (signed.plan_digest, signed.day) != (bundle.plan_digest, day):
        yield "is of another plan or day"
    attempts = set(signed.attempts)
    included = [leaf for leaf in leaves if leaf.attempt_id in attempts]
    complete = {
        leaf.attempt_id for leaf in leaves if leaf.index in entries and leaf.status == "complete"
    }
    if late := complete - attempts:
        yield f"{len(late)} of its attempts were made after it was signed"
    known = all(leaf.index in entries for leaf in included)
    whole = known and len(included) == len(attempts)
    if not whole or evidence_root(bundle.plan, included) != signed.evidence_root:
        yield "the shards give another root than the one signed that day"
