"""Evidence of time for a plan, made before episode 0 (`run --plan-only`, then this).

    rfc3161   a token of a time-stamping service over the plan digest
    nonce     a verifier's nonce, signed together with the plan digest and the time;
              that of the plan's challenger enters the seeds

Each adds one file to `witness/`. It weighs something where the reader's registry names who signed.
Dates of commits prove nothing: whoever commits sets them.
"""

import base64
import datetime
import itertools
from pathlib import Path

import httpx
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from owa_bench.canonical import canonical_json, keyed_digest, public_bytes, seal
from owa_bench.errors import CheckFailure, FieldError
from owa_bench.records.layout import RECEIPT_TYPE, RunLayout
from owa_bench.records.shards import scan
from owa_bench.records.witness import (
    REPLY_TYPE,
    REQUEST_TYPE,
    Witness,
    fault,
    nonce_document,
    read_time_stamp,
    time_stamp_query,
)
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store.challenge_log import ChallengeLog
from owa_bench.runs.store.files import plan_digest, shard_paths, write_whole

_TIMEOUT_S = 30.0


def by_rfc3161(layout: RunLayout, url: str, *, client: httpx.Client | None = None) -> Witness:
    """Have a time-stamping service stamp the plan digest.

    Args:
        layout: The run directory.
        url: Address of the service.
        client: Sends the request; None for a fresh client.
    Returns: The witness, written to `witness/`.
    Raises:
        FieldError: `url` is no address.
        CheckFailure: The service does not answer, refuses, or stamps something else.
    """
    if not url.startswith(("http://", "https://")):
        raise FieldError("--rfc3161", url, "must be an http:// or https:// address")
    plan = canonical_json(msgspec.json.decode(layout.plan.read_bytes()))
    query = time_stamp_query(plan)
    reply = _post(url, query.der, client)
    stamp = read_time_stamp(reply)
    if (stamp.digest, stamp.nonce) != (plan_digest(layout), query.nonce):
        raise CheckFailure(
            f"{url} must stamp what it was asked to, got a token for another request."
        )
    evidence = base64.b64encode(reply).decode()
    made = Witness(
        kind="rfc3161",
        plan_digest=plan_digest(layout),
        attempts=0,
        place=url,
        evidence=evidence,
        claimed=stamp.time,
    )
    return keep(layout, made)


def by_nonce(layout: RunLayout, nonce: str, key: Ed25519PrivateKey) -> Witness:
    """Sign a verifier's nonce together with the plan digest and the time.

    Args:
        layout: The run directory.
        nonce: What the verifier chose, 8 characters or more.
        key: Signs it.
    Returns: The witness, written to `witness/`.
    Raises: FieldError: The nonce is too short.
    """
    if len(nonce) < 8:
        raise FieldError("nonce", nonce, "must have at least 8 characters")
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return keep(layout, sign_nonce(key, plan_digest(layout), nonce, now))


def sign_nonce(
    key: Ed25519PrivateKey, digest: str, nonce: str, time: str, submitter: str = "", number: int = 0
) -> Witness:
    """Return the witness of a plan by a nonce, signed.

    Args:
        key: The verifier's.
        digest: Of the plan, in hex.
        nonce: The verifier's.
        time: When the verifier saw the plan (ISO 8601, UTC).
        submitter: Name of who signed the plan on the verifier's list, "" for none.
        number: How many plans of theirs were challenged, with this one.
    Returns: The witness, made before any attempt.
    """
    witness = Witness(
        kind="nonce",
        plan_digest=digest,
        attempts=0,
        place=public_bytes(key.public_key()).hex(),
        evidence="",
        claimed=time,
        nonce=nonce,
        submitter=submitter,
        number=number,
    )
    evidence = seal(RECEIPT_TYPE, nonce_document(witness), key).decode()
    return msgspec.structs.replace(witness, evidence=evidence)


def challenge(
    layout: RunLayout, key: Ed25519PrivateKey, log: ChallengeLog | None = None
) -> Witness:
    """Sign the challenge of a plan: the nonce that its seeds wait for.

    It follows from key and plan, so asking again gives the same one, and nobody without the key
    knows it before.

    Args:
        layout: The run directory.
        key: The challenger's.
        log: The challenger's, which counts the plan; None: the plan has no number.
    Returns: The witness, written to `witness/`.
    Raises: FieldError: The plan names another challenger, or none.
    """
    plan = read_plan(layout)
    mine = public_bytes(key.public_key()).hex()
    if plan.challenger != mine:
        named = plan.challenger or "none (run --plan-only --challenger KEY)"
        rule = f"must be the challenger that the plan names: {named}"
        raise FieldError("--key", mine, rule)
    digest = plan_digest(layout)
    nonce = challenge_nonce(key, digest)
    if log is None:
        return by_nonce(layout, nonce, key)
    line = log.note(plan, digest)
    made = sign_nonce(key, digest, nonce, line.time, line.name, line.number)
    return keep(layout, made)


def challenge_nonce(key: Ed25519PrivateKey, digest: str) -> str:
    """Return the nonce with which a verifier challenges a plan.

    Args:
        key: The verifier's.
        digest: Of the plan, in hex.
    Returns: 64 hex digits, HMAC(private key, "challenge" | digest).
    """
    return keyed_digest(key.private_bytes_raw(), "challenge", digest).hex()


def ask_challenge(layout: RunLayout, url: str, *, client: httpx.Client | None = None) -> Witness:
    """Ask a verifier's service (`owa-bench verifier serve`) for the challenge.

    Args:
        layout: The run directory, whose signed plan is sent.
        url: Address of the service.
        client: Sends the request; None for a fresh client.
    Returns: The witness, written to `witness/`.
    Raises:
        FieldError: `url` is no address.
        CheckFailure: The service does not answer, refuses, or signs something else.
    """
    reply = ask_verifier(url, "challenge", layout.plan_envelope.read_bytes(), client)
    try:
        told = msgspec.json.decode(reply, type=Witness)
    except msgspec.DecodeError as error:
        raise CheckFailure(f"The verifier {url} sends no challenge: {error}.") from error
    wrong = fault(told, plan_digest(layout))
    if wrong or told.place != read_plan(layout).challenger:
        wrong = wrong or "it is of another key than the plan's challenger"
        raise CheckFailure(f"The challenge of {url} does not hold: {wrong}.")
    return keep(layout, told)


def ask_verifier(
    url: str, path: str, body: bytes | None, client: httpx.Client | None = None
) -> bytes:
    """Return what a verifier's service answers.

    Args:
        url: Address of the service.
        path: What is asked for.
        body: What is sent; None: nothing, by GET.
        client: Sends the request; None for a fresh client.
    Raises:
        FieldError: `url` is no address.
        CheckFailure: The service does not answer, or refuses.
    """
    if not url.startswith(("http://", "https://")):
        raise FieldError("--url", url, "must be an http:// or https:// address")
    sends, address = client or httpx, f"{url.rstrip('/')}/{path}"
    try:
        if body is None:
            reply = sends.get(address, timeout=_TIMEOUT_S)
        else:
            reply = sends.post(address, content=body, timeout=_TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        why = str(error).rstrip(".")
        raise CheckFailure(f"The verifier {url} does not answer: {why}.") from error
    if reply.status_code != httpx.codes.OK:
        raise CheckFailure(f"The verifier {url} refuses: {reply.text.strip()}")
    return reply.content


def keep(layout: RunLayout, witness: Witness) -> Witness:
    """Write a witness of the plan to its file.

    Args:
        layout: The run directory.
        witness: The witness.
    Returns: It, with the attempts that are in the shards now: 0 before episode 0.
    """
    frames = itertools.chain.from_iterable(map(scan, shard_paths(layout)))
    attempts = len({frame.segment.attempt_id for frame in frames})
    witness = msgspec.structs.replace(witness, attempts=attempts)
    path = free_path(layout.witness, witness.kind, ".json")
    write_whole(path, msgspec.json.format(msgspec.json.encode(witness)) + b"\n")
    return witness


def free_path(folder: Path, stem: str, suffix: str) -> Path:
    """Return the first name of `stem`, `stem-2`, ... that is not taken.

    Args:
        folder: The folder, made where it is missing.
        stem: The name.
        suffix: Its end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, number = folder / f"{stem}{suffix}", 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}{suffix}"
    return path


def _post(url: str, body: bytes, client: httpx.Client | None) -> bytes:
    """Return the body of a service's reply."""
    headers = {"Content-Type": REQUEST_TYPE, "Accept": REPLY_TYPE}
    post = httpx.post if client is None else client.post
    try:
        reply = post(url, content=body, headers=headers, timeout=_TIMEOUT_S)
        reply.raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        why = str(error).rstrip(".")
        raise CheckFailure(f"The time-stamping service {url} gave no token: {why}.") from error
    return reply.content
