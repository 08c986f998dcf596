"""Sketches of messages: 64 bits that near-duplicates share, without their words.

A trace keeps a digest of what roles say to each other, and equal digests say only
that two messages are the same to the letter. A sketch lies close where texts do.
"""

import hashlib

BITS = 64
_WIDTH = 4  # characters of a shingle


def sketch(text: str) -> str:
    """Return the SimHash of a text as 16 hexadecimal digits.

    Each run of four characters votes on every bit with its own hash; case and white
    space do not count. Source: M. Charikar, STOC 2002.

    >>> distance(sketch("table 3 is ready"), sketch("Table 3 is  ready"))
    0
    """
    plain = " ".join(text.lower().split())
    votes = [0] * BITS
    for i in range(max(1, len(plain) - _WIDTH + 1)):
        part = plain[i : i + _WIDTH].encode()
        bits = int.from_bytes(hashlib.blake2b(part, digest_size=8).digest(), "big")
        for place in range(BITS):
            votes[place] += 1 if bits >> place & 1 else -1
    whole = sum(1 << place for place, vote in enumerate(votes) if vote > 0)
    return f"{whole:016x}"


def distance(one: str, other: str) -> int:
    """Return in how many bits two sketches differ; all of them if one is missing.

    >>> distance("", sketch("x")), distance("0f", "0e")
    (64, 1)
    """
    if not one or not other:
        return BITS
    return (int(one, 16) ^ int(other, 16)).bit_count()
