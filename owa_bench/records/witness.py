"""Evidence of time for a plan, and signed receipts of replays: what the files hold.

A witness shows that a plan existed when somebody else could see it; that is what stops
rewriting a plan after the run. Files: `witness/*.json`, `receipts/*.dsse.json`.
"""

import base64
import hashlib
from typing import Any, Literal

import msgspec

from owa_bench.canonical import canonical_json, unseal
from owa_bench.errors import CheckFailure
from owa_bench.records import timestamp
from owa_bench.records.layout import RECEIPT_TYPE

WitnessKind = Literal["git", "rfc3161", "nonce"]


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of evidence that the plan of `plan_digest` existed.

    `attempts` were on record when it was made: 0 means before episode 0. `evidence`
    is the raw git commit object, or the base64 of the RFC 3161 reply, or a DSSE
    envelope over (plan digest, nonce). `place` is the commit, the service's address, or
    the public key that signed. `claimed` is what the evidence says of its own time.
    """

    kind: WitnessKind
    plan_digest: str
    attempts: int
    place: str
    evidence: str
    claimed: str = ""
    nonce: str = ""


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody signs who replayed a run: what of it, and what came of it."""

    kind: Literal["replay"] = "replay"
    plan_digest: str
    evidence_root: str
    replay_root: str
    episodes: tuple[str, ...]
    passed: bool
    failed: tuple[str, ...] = ()
    exempt: tuple[str, ...] = ()
    public_key: str


def fault(witness: Witness, plan_digest: str) -> str:
    """Return what is wrong with a witness for the plan, "" when it is sound."""
    if witness.plan_digest != plan_digest:
        return f"it is for the plan {witness.plan_digest[:16]}, not this one"
    try:
        return _FAULTS[witness.kind](witness)
    except (CheckFailure, ValueError) as error:
        return str(error)


def nonce_document(plan_digest: str, nonce: str) -> bytes:
    """Return the bytes that are signed when a nonce is returned with a plan."""
    document: dict[str, Any] = {"nonce": nonce, "plan_digest": plan_digest}
    return canonical_json(document)


def commit_digest(commit: bytes) -> str:
    """Return the name git gives to a raw commit object (SHA-1)."""
    head = b"commit %d\0" % len(commit)
    return hashlib.sha1(head + commit, usedforsecurity=False).hexdigest()


def _git_fault(witness: Witness) -> str:
    raw = witness.evidence.encode()
    if commit_digest(raw) != witness.place:
        return f"the commit object does not hash to {witness.place}"
    _, _, message = witness.evidence.partition("\n\n")
    if witness.plan_digest not in message:
        return "the commit's message does not name the plan"
    return ""


def _stamp_fault(witness: Witness) -> str:
    stamp = timestamp.read(base64.b64decode(witness.evidence, validate=True))
    if stamp.digest != witness.plan_digest:
        return f"the token stamps {stamp.digest[:16]}, not this plan"
    if stamp.time != witness.claimed:
        return f"the token says {stamp.time}, the file {witness.claimed}"
    return ""


def _nonce_fault(witness: Witness) -> str:
    key = bytes.fromhex(witness.place)
    signed = unseal(witness.evidence.encode(), key, RECEIPT_TYPE)
    if signed != nonce_document(witness.plan_digest, witness.nonce):
        return "what was signed is not this nonce with this plan"
    return ""


_FAULTS = {"git": _git_fault, "rfc3161": _stamp_fault, "nonce": _nonce_fault}
