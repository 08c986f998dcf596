"""Evidence of time for a plan, RFC 3161 time stamps, signed receipts and checkpoints.

A witness shows that a plan existed when somebody else could see it, so that a plan cannot be
rewritten after the run. Of a time stamp only the imprint, the nonce and the time are read here;
`registry` holds its signature to a root that the reader names.

    witness/*.json                 Witness
    receipts/*.dsse.json           DSSE envelope of RECEIPT_TYPE over a Receipt
    receipts/day-NNNN.dsse.json    DSSE envelope of CHECKPOINT_TYPE over a DayCheckpoint

The payloads are RFC 8785 JSON, signed by the key that signed the plan.
"""

import base64
import datetime
from typing import Any, Literal, NamedTuple

import msgspec

from owa_bench.canonical import canonical_json, unseal
from owa_bench.errors import CheckFailure
from owa_bench.records.layout import RECEIPT_TYPE, RunLayout
from owa_bench.records.plan import Plan

REQUEST_TYPE = "application/timestamp-query"
REPLY_TYPE = "application/timestamp-reply"
_SHA256_OID = "2.16.840.1.101.3.4.2.1"
_GRANTED = (0, 1)  # PKI statuses: granted, granted with modifications
WitnessKind = Literal["rfc3161", "nonce"]


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of evidence that the plan of `plan_digest` existed.

    `attempts` were on record when it was made: 0 means before episode 0. `evidence` is the base64
    of the RFC 3161 reply, or a DSSE envelope over (plan digest, nonce, time, and the submitter
    where one is registered). `submitter` is the name on the verifier's own list of who signed the
    plan, "" for a key that is not on it, and `number` says how many plans of theirs had been
    challenged then, with this one. `place` is the service's address, or the public key that signed.
    `claimed` is the time that was signed.
    """

    kind: WitnessKind
    plan_digest: str
    attempts: int
    place: str
    evidence: str
    claimed: str = ""
    nonce: str = ""
    submitter: str = ""
    number: int = 0


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """A signed replay: which episodes were replayed, and which failed.

    `submitter` and `plans` are what the verifier's own log said at that time: who signed the plan,
    and how many plans of theirs had been challenged.
    """

    kind: Literal["replay"] = "replay"
    plan_digest: str
    evidence_root: str
    replay_root: str
    episodes: tuple[str, ...]
    passed: bool
    failed: tuple[str, ...] = ()
    exempt: tuple[str, ...] = ()
    public_key: str
    submitter: str = ""
    plans: int = 0


class DayCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence root over the attempts on record when a campaign's day was over.

    `attempts` are the ids of those attempts, of this day and all before it, in plan order; the root
    over their leaves must be `evidence_root`.
    """

    kind: Literal["checkpoint"] = "checkpoint"
    plan_digest: str
    day: int
    evidence_root: str
    attempts: tuple[str, ...]
    simulated: bool
    public_key: str


class TimeStamp(NamedTuple):
    """The content of a token: SHA-256 in hex, time (YYYYMMDDhhmmss[.f]Z), nonce."""

    digest: str
    time: str
    nonce: int | None


class TimeStampQuery(NamedTuple):
    """A time-stamp request: its DER bytes and the nonce that the token must repeat."""

    der: bytes
    nonce: int | None


def time_stamp_query(data: bytes) -> TimeStampQuery:
    """Return the request for a stamp of the SHA-256 of `data`, certificate included."""
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

    request = TimestampRequestBuilder(data, HashAlgorithm.SHA256).build()
    return TimeStampQuery(request.as_bytes(), request.nonce)


def read_time_stamp(reply: bytes) -> TimeStamp:
    """Return the content of the token of a TimeStampResp.

    Raises: CheckFailure: the service refused, or the bytes are not such a reply.
    """
    from rfc3161_client import decode_timestamp_response

    try:
        response = decode_timestamp_response(reply)
        if response.status not in _GRANTED:
            raise CheckFailure(f"The time-stamping service refused, PKI status {response.status}.")
        token = response.tst_info
    except ValueError as error:
        raise CheckFailure(f"The bytes are not an RFC 3161 reply: {error}.") from error
    imprint = token.message_imprint
    if imprint.hash_algorithm.dotted_string != _SHA256_OID:
        raise CheckFailure("The bytes are not an RFC 3161 reply over a SHA-256.")
    return TimeStamp(imprint.message.hex(), _generalized(token.gen_time), token.nonce)


def _generalized(moment: datetime.datetime) -> str:
    """Return a time as DER's GeneralizedTime writes it."""
    fraction = f".{moment.microsecond:06d}".rstrip("0").rstrip(".")
    return f"{moment:%Y%m%d%H%M%S}{fraction}Z"


def fault(witness: Witness, plan_digest: str) -> str:
    """Return the first fault of a witness.

    Args:
        witness: One piece of evidence.
        plan_digest: Of the plan that it must be evidence for.
    Returns: One line, "" for a sound witness.
    """
    if witness.plan_digest != plan_digest:
        return f"it is for the plan {witness.plan_digest[:16]}, not this one"
    try:
        return _FAULTS[witness.kind](witness)
    except (CheckFailure, ValueError) as error:
        return str(error)


def nonce_document(witness: Witness) -> bytes:
    """Return the bytes that are signed when a nonce is returned with a plan.

    Args:
        witness: Of kind "nonce"; its evidence is not read.
    Returns: RFC 8785 JSON of plan digest, nonce, time and, where the verifier has registered who
        signed the plan, their name and the number of their plan.
    """
    document: dict[str, Any] = {
        "nonce": witness.nonce,
        "plan_digest": witness.plan_digest,
        "time": witness.claimed,
    }
    if witness.submitter:
        document |= {"submitter": witness.submitter, "number": witness.number}
    return canonical_json(document)


def _stamp_fault(witness: Witness) -> str:
    stamp = read_time_stamp(base64.b64decode(witness.evidence, validate=True))
    if stamp.digest != witness.plan_digest:
        return f"the token stamps {stamp.digest[:16]}, not this plan"
    if stamp.time != witness.claimed:
        return f"the token says {stamp.time}, the file {witness.claimed}"
    return ""


def _nonce_fault(witness: Witness) -> str:
    key = bytes.fromhex(witness.place)
    signed = unseal(witness.evidence.encode(), key, RECEIPT_TYPE)
    if signed != nonce_document(witness):
        return "what was signed is not this nonce, time and submitter with this plan"
    if witness.submitter and witness.number < 1:
        return "a registered submitter's plan has a number from 1 up"
    return ""


_FAULTS = {"rfc3161": _stamp_fault, "nonce": _nonce_fault}


# --- challenges -----------------------------------------------------------------------
# A plan that names a `challenger` commits to a master first; its seeds derive from the
# master and from what that verifier then signs with the plan's digest, so nobody can
# pick a master by the worlds that it draws. The signed nonce lies among the witnesses.
# See docs/check-a-report.md#challenge.


def seed_nonce(layout: RunLayout, plan: Plan, plan_digest: str) -> str | None:
    """Return what is mixed into a run's master before seeds derive from it.

    Args:
        layout: The run directory.
        plan: Its plan.
        plan_digest: Of the plan, in hex.
    Returns: The challenger's nonce, without one that of the plan, None: nothing.
    Raises: CheckFailure: The plan waits for a challenge, or holds two.
    """
    if not plan.challenger:
        return plan.verifier_nonce
    nonces = {witness.nonce for witness in _challenges(layout, plan, plan_digest)}
    if len(nonces) > 1:
        raise CheckFailure(
            f"{layout.witness} must hold one challenge of key {plan.challenger[:16]}, "
            f"got {len(nonces)}: remove those that the verifier did not send."
        )
    if not nonces:
        raise CheckFailure(
            f"{layout.root} waits for the challenge of key {plan.challenger[:16]}: its "
            "seeds do not exist before. Ask the verifier's service (`owa-bench "
            f"challenge {layout.root} --url URL`), or have the verifier run `owa-bench "
            f"challenge {layout.root} --key NAME`."
        )
    return nonces.pop()


def challenge_of(layout: RunLayout, plan: Plan, plan_digest: str) -> Witness | None:
    """Return the challenge of a plan, None for a plan that has none.

    Args:
        layout: The run directory.
        plan: Its plan.
        plan_digest: Of the plan, in hex.
    Returns: Of several, one that names no submitter before one that does: whoever puts two there
        gains nothing.
    """
    found = _challenges(layout, plan, plan_digest)
    return max(found, key=lambda one: (not one.submitter, one.number), default=None)


def _challenges(layout: RunLayout, plan: Plan, plan_digest: str) -> list[Witness]:
    """Return the sound witnesses of a plan's challenger."""
    return [
        witness
        for witness in _witnesses(layout)
        if plan.challenger
        and (witness.kind, witness.place) == ("nonce", plan.challenger)
        and not fault(witness, plan_digest)
    ]


def _witnesses(layout: RunLayout) -> list[Witness]:
    """Return the witnesses that read; `verify` names the others."""
    found = []
    for path in sorted(layout.witness.glob("*.json")):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Witness))
        except (OSError, msgspec.DecodeError):
            continue
    return found
