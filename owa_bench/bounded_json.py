"""Bounded decoding of JSON that others wrote: its size, its depth, its numbers.

Every text of an agent that the harness or a suite decodes goes through here, and so does every
document of a run directory (`records.bounds`). What is refused is a ValueError that says why, never
a RecursionError.
"""

from typing import Any

import msgspec

MOST_BYTES = 16 << 20
MOST_DEPTH = 64  # lists and objects inside each other
MOST_INTEGER = 1 << 63  # larger ones overflow arrays, clocks and floats
_TOO_DEEP = f"at most {MOST_DEPTH} lists and objects may stand inside each other"


def decode(text: bytes | str, *, most_bytes: int = MOST_BYTES) -> Any:
    """Return what a JSON text says; its numbers are finite.

    Args:
        text: The text.
        most_bytes: Longest text that is read, in bytes (of a `str`: characters).
    Raises: ValueError: The text is too long, nested too deeply, or no JSON.

    >>> decode('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> decode("[" * 60_000)
    Traceback (most recent call last):
    ValueError: at most 64 lists and objects may stand inside each other
    """
    if len(text) > most_bytes:
        raise ValueError(f"at most {most_bytes} bytes are read, got {len(text)}")
    try:
        value = msgspec.json.decode(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    refuse_deep(value)
    return value


def refuse_deep(value: Any) -> None:
    """Refuse a decoded document that is nested too deeply, or holds huge integers.

    Args:
        value: Dictionaries, lists and what they hold.
    Raises: ValueError: It is.
    """
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        inner: list[Any] = []
        for node in level:
            kind = type(node)
            if kind is dict:
                inner += node.values()
            elif kind is list:
                inner += node
            elif kind is int and abs(node) > MOST_INTEGER:
                raise ValueError(f"an integer lies within +-{MOST_INTEGER}")
        if not inner:
            return
        level = inner
    raise ValueError(_TOO_DEEP)
