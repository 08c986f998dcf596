"""Checks of the raw evidence: plan, shards, blobs and seeds, without any report."""

import json
from collections.abc import Iterator

from owa_bench.canonical import document_digest, key_id, sha256, unseal
from owa_bench.errors import CheckFailure
from owa_bench.records.layout import PLAN_TYPE
from owa_bench.report import days
from owa_bench.report.bundle import Bundle
from owa_bench.report.check import Check, settled, skipped
from owa_bench.report.survey import Survey, survey

_PARTS = ("plan_envelope", "shards", "leaves", "protocol", "price_card")


def checks(bundle: Bundle, public: bytes | None = None) -> tuple[Check, ...]:
    """Return every check of the evidence; `public` None takes the plan's own key."""
    return tuple(_checks(bundle, survey(bundle), public))


def _checks(bundle: Bundle, found: Survey, public: bytes | None) -> Iterator[Check]:
    """Yield the checks in the order in which a reader asks."""
    faults = found.faults
    total = f"{len(found.leaves)} attempts"
    events = sum(leaf.count for leaf in found.leaves)
    yield _layout(bundle)
    yield from _plan(bundle, public)
    torn = f"; open frames cut off in {', '.join(bundle.torn)}" if bundle.torn else ""
    yield settled("frames", faults["frames"], f"every frame in its place{torn}")
    yield settled("chain", faults["chain"], f"{events} events hash to their heads")
    yield settled("count", faults["count"], f"{total}, {events} events")
    yield settled("episode id", faults["episode id"], f"{total} are what was planned")
    yield settled("leaf", faults["leaf"], "leaves.jsonl says what the shards say")
    yield settled("plan coverage", _coverage(bundle), "every planned episode was tried")
    yield _seeds(found)
    yield _blobs(bundle, found)
    yield from _terms(bundle)
    yield _cost(bundle, faults["cost"])
    key = bytes.fromhex(bundle.plan.public_key) if public is None else public
    yield from days.check(bundle, found.leaves, key)


def _layout(bundle: Bundle) -> Check:
    """Return whether every part of a run is there, and nothing half written."""
    layout = bundle.layout
    faults = [
        f"{getattr(layout, part).name} is missing"
        for part in _PARTS
        if not getattr(layout, part).exists()
    ]
    folders = (layout.root, layout.shards, layout.blobs)
    half = (p for folder in folders if folder.is_dir() for p in folder.glob(".*"))
    faults += [f"{path.name} was left half written" for path in half if path.is_file()]
    return settled("layout", faults, str(layout.root))


def _plan(bundle: Bundle, public: bytes | None) -> Iterator[Check]:
    """Yield whether the plan is signed, and is the plan that was signed."""
    own = bytes.fromhex(bundle.plan.public_key)
    key = own if public is None else public
    if not key:
        yield Check("plan signature", False, "the plan names no key and none was given")
        return
    origin = " (named by the plan itself)" if public is None else ""
    try:
        payload = unseal(bundle.layout.plan_envelope.read_bytes(), key, PLAN_TYPE)
    except (CheckFailure, OSError) as error:
        yield Check("plan signature", False, str(error))
        return
    yield Check("plan signature", True, f"by key {key_id(key)}{origin}")
    same = document_digest(json.loads(payload)) == bundle.plan_digest
    faults = [] if same else ["plan.json is not the plan that was signed"]
    if own != key:
        faults.append(f"the plan names key {key_id(own) if own else 'none'} as its own")
    yield settled("plan", faults, f"digest {bundle.plan_digest[:16]}")


def _coverage(bundle: Bundle) -> list[str]:
    """Return the plan entries that were never attempted."""
    return [f"entry {index} was never tried" for index in bundle.missing]


def _seeds(found: Survey) -> Check:
    """Return whether seeds are those of the reveal; before it, one a pair."""
    if found.faults["seed"]:
        return settled("seed", found.faults["seed"], "")
    if not found.revealed:
        return skipped("seed", "not revealed yet; paired arms do share their seeds")
    return Check("seed", True, "the commitment opens, every seed is the master's")


def _blobs(bundle: Bundle, found: Survey) -> Check:
    """Return whether stored blobs hash to their names, and none is missing."""
    folder = bundle.layout.blobs
    stored = [p for p in folder.glob("*") if p.is_file() and p.name[0] != "."]
    faults = [
        f"blob {path.name[:16]} does not hash to its name"
        for path in stored
        if sha256(path.read_bytes()) != path.name
    ]
    missing = sorted(found.digests - {path.name for path in stored})
    if bundle.plan.transcripts:
        faults += [f"blob {name[:16]} is missing" for name in missing]
    good = f"{len(stored)} blobs hash to their names"
    more = f"; {len(missing)} not kept (transcripts off)" if missing else ""
    return settled("blobs", faults, good + more)


def _terms(bundle: Bundle) -> Iterator[Check]:
    """Yield whether price card and protocol are those the plan fixed."""
    plan = bundle.plan
    card = sha256(bundle.price_bytes) == plan.price_digest
    yield settled(
        "price card",
        [] if card else ["price_card.toml is not the card that the plan fixed"],
        f"digest {plan.price_digest[:16]}",
    )
    same = sha256(bundle.protocol_bytes) == plan.protocol_digest
    yield settled(
        "protocol",
        [] if same else ["protocol.toml is not the protocol that the plan fixed"],
        f"digest {plan.protocol_digest[:16]}",
    )


def _cost(bundle: Bundle, faults: list[str]) -> Check:
    """Return whether usage is what the events make, priced by the plan's card."""
    found = list(faults)
    if sha256(bundle.price_bytes) != bundle.plan.price_digest:
        found.append("priced with a card that the plan did not fix")
    return settled("cost", found, "meters agree with the events they meter")
