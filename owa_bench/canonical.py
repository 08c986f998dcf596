"""Canonical bytes, digests, the event chain, the Merkle tree and the signed envelope.

Beside the records this is the only module that the recorder and the verifier share.

Source: docs/traces.md#hash-chain; RFC 6962 section 2.1 (tree), RFC 8785
(canonical JSON), DSSE v1 (envelope), Ed25519 (RFC 8032).
"""

import base64
import functools
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from owa_bench.errors import CheckFailure

_CHAIN_START = b"owa/ep/v1"
_CHAIN_STEP = b"\x02"
_LEAF = b"\x00"
_NODE = b"\x01"
MOST_SIGNATURES = 16  # of an envelope [D]
# Public keys of small order, sign bit off: under one of them anybody makes signatures that hold.
# The eight points of order 1, 2, 4 and 8, and the two of them that have a second encoding.
_SMALL_ORDER = frozenset(
    bytes.fromhex(text)
    for text in (
        *("00" * 32, "01" + "00" * 31, "ec" + "ff" * 30 + "7f"),
        *("ed" + "ff" * 30 + "7f", "ee" + "ff" * 30 + "7f"),
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    )
)
# Errors of parsing a hostile document; RecursionError for deep nesting.
_MALFORMED = (ValueError, msgspec.MsgspecError, RecursionError)


class _Signature(msgspec.Struct, frozen=True):
    """One signature of an envelope, in base64."""

    sig: str


class _Envelope(msgspec.Struct, frozen=True):
    """A DSSE envelope; fields that are not named here are passed over."""

    payload: str
    payload_type: str = msgspec.field(name="payloadType", default="")
    signatures: tuple[_Signature, ...] = ()


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` in lower-case hex."""
    return hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in lower-case hex, read a part at a time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def canonical_json(document: Any) -> bytes:
    """Return the RFC 8785 bytes of a small document (structs are taken apart).

    A NumPy number is written as the Python number that it is.

    Raises: CheckFailure: it has none, for example for an integer above 2^53.
    """
    try:
        return rfc8785.dumps(msgspec.to_builtins(document, enc_hook=_number))
    except rfc8785.CanonicalizationError as error:
        raise CheckFailure(
            f"A document must have canonical JSON (RFC 8785), got: {error}."
        ) from error


def _number(value: Any) -> Any:
    """Return a NumPy scalar as a Python number."""
    if type(value).__module__ == "numpy" and getattr(value, "size", 0) == 1:
        return value.item()
    raise TypeError(
        f"A document holds records and numbers, got {type(value)} of shape "
        f"{getattr(value, 'shape', ())}: make it a list."
    )


def document_digest(document: Any) -> str:
    """Return the SHA-256 of a small document's canonical JSON."""
    return sha256(canonical_json(document))


def text_digest(text: bytes) -> str:
    """Return the `document_digest` of what a JSON text says, in a third of the time if it is plain.

    Args:
        text: JSON that was decoded before, so that it is known to be whole.
    Raises: CheckFailure: As of `canonical_json`.
    """
    form = _plain_form(text)
    return document_digest(msgspec.json.decode(text)) if form is None else sha256(form)


# Characters whose canonical form differs between writers, and integers that may have none.
_ESCAPED = re.compile(rb"[\\\x7f-\xff]")
_LONG_INTEGER = re.compile(rb"(?:^|[:\[,])-?[0-9]{16}")


def _plain_form(text: bytes) -> bytes | None:
    """Return the RFC 8785 bytes of a JSON text; None where it takes more than sorting keys."""
    if _ESCAPED.search(text):
        return None
    try:
        form = msgspec.json.encode(_FORMS.decode(text), order="sorted")
    except (rfc8785.CanonicalizationError, msgspec.MsgspecError):
        return None
    return None if _LONG_INTEGER.search(form) else form


@functools.lru_cache(1 << 12)
def _float_form(text: str) -> msgspec.Raw:
    return msgspec.Raw(rfc8785.dumps(float(text)))


_FORMS = msgspec.json.Decoder(float_hook=_float_form)


def record_digest(record: Any) -> str:
    """Return the SHA-256 of a frozen record's own encoding (field order is fixed).

    Fast form for worlds: msgspec writes fields in declaration order, so equal records have equal
    bytes on every machine. Worlds hold no floats.
    """
    return sha256(msgspec.json.encode(record))


def chain_start(plan_digest: str, attempt_id: str) -> bytes:
    """Return the first head of an episode's chain.

    Args:
        plan_digest: the plan's digest in hex.
        attempt_id: the attempt's name.
    Returns: h0 = SHA-256("owa/ep/v1" | plan digest | attempt id), 32 bytes.
    """
    return hashlib.sha256(
        b"|".join((_CHAIN_START, plan_digest.encode(), attempt_id.encode()))
    ).digest()


def chain_step(head: bytes, line: bytes) -> bytes:
    """Return the head of a chain after one more event.

    Args:
        head: h_(t-1), 32 bytes.
        line: the exact bytes of the event's line, without its newline.
    Returns: h_t = SHA-256(0x02 | h_(t-1) | line), 32 bytes.
    """
    return hashlib.sha256(_CHAIN_STEP + head + line).digest()


def chain_lines(head: bytes, lines: Iterable[bytes]) -> bytes:
    """Return the head of a chain after some more events.

    Args:
        head: the head before them, 32 bytes.
        lines: the exact bytes of each event's line, without its newline.
    Returns: `chain_step` applied once a line.
    """
    digest = hashlib.sha256
    for line in lines:
        head = digest(_CHAIN_STEP + head + line).digest()
    return head


def tree_root(leaves: Sequence[bytes]) -> str:
    """Return the RFC 6962 Merkle tree hash of `leaves`, in hex.

    >>> tree_root([]) == sha256(b"")
    True
    """
    if not leaves:
        return sha256(b"")
    return _subtree([hashlib.sha256(_LEAF + leaf).digest() for leaf in leaves]).hex()


def _subtree(nodes: list[bytes]) -> bytes:
    """Return the root over `nodes`: pair neighbours, an odd last one moves up.

    Promoting the odd node level by level gives RFC 6962's split at the largest power of two.
    """
    while len(nodes) > 1:
        pairs = [
            hashlib.sha256(_NODE + nodes[i] + nodes[i + 1]).digest()
            for i in range(0, len(nodes) - 1, 2)
        ]
        nodes = pairs + nodes[len(pairs) * 2 :]
    return nodes[0]


def keyed_digest(key: bytes, *parts: str) -> bytes:
    """Return HMAC-SHA-256(key, parts joined by "|")."""
    return hmac.new(key, "|".join(parts).encode(), hashlib.sha256).digest()


def pre_authentication(payload_type: str, payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding.

    Args:
        payload_type: the type that is signed with the payload.
        payload: any bytes.
    Returns: The bytes that are signed.
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def public_bytes(key: Ed25519PublicKey) -> bytes:
    """Return the 32 raw bytes of a public key."""
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def key_id(public: bytes) -> str:
    """Return the short name of a public key: the first 16 hex of its SHA-256."""
    return sha256(public)[:16]


def is_small_order(public: bytes) -> bool:
    """Return whether a public key is one under which anybody can sign."""
    return public[:-1] + bytes([public[-1] & 0x7F]) in _SMALL_ORDER if public else False


def seal(payload_type: str, payload: bytes, key: Ed25519PrivateKey | None) -> bytes:
    """Return a DSSE envelope.

    Args:
        payload_type: the payload's type.
        payload: any bytes.
        key: the signer's; None: the envelope carries no signature.
    Returns: JSON bytes.
    """
    signatures = []
    if key is not None:
        signature = key.sign(pre_authentication(payload_type, payload))
        signatures.append(
            {
                "keyid": key_id(public_bytes(key.public_key())),
                "sig": base64.b64encode(signature).decode(),
            }
        )
    envelope = {
        "payloadType": payload_type,
        "payload": base64.b64encode(payload).decode(),
        "signatures": signatures,
    }
    return json.dumps(envelope, indent=1).encode() + b"\n"


def unseal(envelope: bytes, public: bytes, payload_type: str) -> bytes:
    """Return the payload of a DSSE envelope after checking its signature.

    Args:
        envelope: JSON bytes.
        public: the 32 raw bytes of the key that must have signed.
        payload_type: the type that must have been signed.
    Raises: CheckFailure: the envelope is malformed, unsigned, signed by another key or of another
        type.
    """
    try:
        document = msgspec.json.decode(envelope, type=_Envelope)
        payload = base64.b64decode(document.payload, validate=True)
        signed = pre_authentication(document.payload_type, payload)
        if len(document.signatures) > MOST_SIGNATURES:
            raise ValueError(f"at most {MOST_SIGNATURES} signatures are checked")
        if is_small_order(public):
            raise CheckFailure(
                f"Key {key_id(public)} is of small order: anybody can sign under it."
            )
        candidates = [base64.b64decode(one.sig) for one in document.signatures]
        verifier = Ed25519PublicKey.from_public_bytes(public)
    except _MALFORMED as error:
        raise CheckFailure(f"The envelope is not DSSE JSON: {error!r}.") from error
    for signature in candidates:
        try:
            verifier.verify(signature, signed)
        except InvalidSignature:
            continue
        if document.payload_type != payload_type:
            raise CheckFailure(
                f"The envelope must be of {payload_type}, and what was signed is of "
                f"{document.payload_type}."
            )
        return payload
    raise CheckFailure(f"No signature of the envelope is by key {key_id(public)}.")


def has_signature(envelope: bytes) -> bool:
    """Return whether an envelope carries any signature, whoever's.

    Raises: CheckFailure: it is no envelope.
    """
    try:
        return bool(msgspec.json.decode(envelope, type=_Envelope).signatures)
    except _MALFORMED as error:
        raise CheckFailure(f"The envelope is not DSSE JSON: {error!r}.") from error


def peek(envelope: bytes) -> bytes:
    """Return an envelope's payload without checking any signature.

    Raises: CheckFailure: it is no envelope.
    """
    try:
        document = msgspec.json.decode(envelope, type=_Envelope)
        return base64.b64decode(document.payload, validate=True)
    except _MALFORMED as error:
        raise CheckFailure(f"The envelope is not DSSE JSON: {error!r}.") from error
