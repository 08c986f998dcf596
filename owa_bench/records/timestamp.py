"""RFC 3161 time stamps: the request's bytes, and what a token says.

Only what a witness needs of DER: the imprint that was stamped, the nonce and the time.
The service's signature is checked with `openssl ts -verify`, not here.
"""

from collections.abc import Iterator
from typing import NamedTuple

from owa_bench.errors import CheckFailure

REQUEST_TYPE = "application/timestamp-query"
REPLY_TYPE = "application/timestamp-reply"

_INTEGER, _OCTETS, _OID, _SEQUENCE, _TIME = 0x02, 0x04, 0x06, 0x30, 0x18
_TRUE = b"\x01\x01\xff"
_NULL = b"\x05\x00"
_EXPLICIT = 0xA0
_SHA256_OID = bytes.fromhex("608648016503040201")
_SIGNED_DATA_OID = bytes.fromhex("2a864886f70d010702")
_TST_INFO_OID = bytes.fromhex("2a864886f70d0109100104")


class Stamp(NamedTuple):
    """What a token says: SHA-256 that was stamped (hex), its time (UTC), its nonce."""

    digest: str
    time: str
    nonce: int | None


def request(digest: str, nonce: int) -> bytes:
    """Return the DER of a TimeStampReq for a SHA-256 in hex, certificate asked for."""
    algorithm = _der(_SEQUENCE, _der(_OID, _SHA256_OID) + _NULL)
    imprint = _der(_SEQUENCE, algorithm + _der(_OCTETS, bytes.fromhex(digest)))
    return _der(_SEQUENCE, _integer(1) + imprint + _integer(nonce) + _TRUE)


def read(reply: bytes) -> Stamp:
    """Return what the token of a TimeStampResp says.

    Errors: CheckFailure if the service refused, or the bytes are not such a reply.
    """
    try:
        return _read(reply)
    except (ValueError, IndexError, StopIteration) as error:
        raise CheckFailure(
            f"The bytes are not an RFC 3161 reply: {error or type(error).__name__}."
        ) from error


def _read(reply: bytes) -> Stamp:
    """Return the stamp; ValueError, IndexError, StopIteration for other bytes."""
    outer = list(_items(_only(reply, _SEQUENCE)))
    status = int.from_bytes(next(_items(outer[0].body)).body, "big")
    if status not in (0, 1):
        raise CheckFailure(f"The time-stamping service refused, PKI status {status}.")
    kind, content = list(_items(outer[1].body))[:2]
    if kind.body != _SIGNED_DATA_OID:
        raise ValueError("the token is not signed data")
    signed = list(_items(_only(content.body, _SEQUENCE)))
    kind, content = list(_items(signed[2].body))[:2]
    if kind.body != _TST_INFO_OID:
        raise ValueError("the token holds no TSTInfo")
    return _stamp(_only(_only(content.body, _OCTETS), _SEQUENCE))


def _stamp(info: bytes) -> Stamp:
    """Return what a TSTInfo says."""
    parts = list(_items(info))
    algorithm, digest = list(_items(parts[2].body))[:2]
    if next(_items(algorithm.body)).body != _SHA256_OID:
        raise ValueError("the imprint is not a SHA-256")
    if parts[4].tag != _TIME:
        raise ValueError("there is no time where it belongs")
    # Behind the time only the nonce is a bare INTEGER.
    nonces = [part.body for part in parts[5:] if part.tag == _INTEGER]
    nonce = int.from_bytes(nonces[0], "big") if nonces else None
    return Stamp(digest.body.hex(), parts[4].body.decode("ascii"), nonce)


class _Item(NamedTuple):
    tag: int
    body: bytes


def _items(data: bytes) -> Iterator[_Item]:
    """Yield the DER items that lie side by side in `data`."""
    place = 0
    while place < len(data):
        tag, length, place = data[place], data[place + 1], place + 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[place : place + size], "big")
            place += size
        if place + length > len(data):
            raise ValueError(f"an item of {length} bytes does not fit")
        yield _Item(tag, data[place : place + length])
        place += length


def _only(data: bytes, tag: int) -> bytes:
    """Return the body of the first item, which must have `tag`."""
    item = next(_items(data))
    if item.tag != tag:
        msg = f"an item has tag {item.tag:#x}, not {tag:#x}"
        raise ValueError(msg)
    return item.body


def _der(tag: int, body: bytes) -> bytes:
    """Return a DER item."""
    size = len(body)
    if size < 0x80:
        return bytes((tag, size)) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + body


def _integer(value: int) -> bytes:
    """Return the DER of an INTEGER >= 0."""
    return _der(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))
