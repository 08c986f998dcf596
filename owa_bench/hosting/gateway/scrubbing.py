"""Scrubbing: replies of a provider without the keys that some servers repeat."""

import base64
import html
import json
import re
from collections.abc import Collection, Iterator
from urllib.parse import quote, quote_plus

SHORTEST_SECRET = 8  # a shorter "key" is a placeholder
_ESCAPES = (b"\\", b"%", b"&#")
_MARK = b"{secret:api_key}"


class Scrubber:
    """Replaces secrets, in every form that a server may repeat them in.

    Args:
        secrets: Keys and values of headers; shorter ones than `SHORTEST_SECRET` and their schemes,
            such as "Bearer", are left out.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        forms = {form for secret in secrets for form in _forms(secret)}
        # The longest first: a short form may stand inside a long one.
        self._forms = sorted(forms, key=len, reverse=True)
        plain = {value for secret in secrets for value in _values(secret)}
        self._escaped = [
            re.compile(b"".join(map(_signs, value)))
            for value in sorted(plain, key=len, reverse=True)
        ]

    def clean(self, data: bytes) -> bytes:
        """Return bytes without secrets."""
        for form in self._forms:
            if form in data:
                data = data.replace(form, _MARK)
        if any(sign in data for sign in _ESCAPES):
            for pattern in self._escaped:
                data = pattern.sub(_MARK, data)
        return data

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return self.clean(text.encode()).decode()


def _values(secret: str) -> set[str]:
    """Return a secret and its parts that are long enough to be told from other text."""
    values = {secret, secret.strip(), *secret.split()}
    return {value for value in values if len(value) >= SHORTEST_SECRET}


def _signs(character: str) -> bytes:
    """Return a pattern of one character: as it is, or escaped in some way.

    JSON escapes by code or with a backslash, addresses and pages by code.
    """
    code, before = ord(character), b"\\\\?" if character in '/"' else b""
    plain = before + re.escape(character).encode()
    coded = (b"\\\\u%04x" % code, b"%%%02x" % code, b"&#%d;" % code, b"&#x%x;" % code)
    return b"(?:%s|(?i:%s))" % (plain, b"|".join(coded))


def _forms(secret: str) -> Iterator[bytes]:
    """Yield a secret as it is, escaped, quoted and coded."""
    for value in _values(secret):
        data = value.encode()
        for text in (
            value,
            json.dumps(value)[1:-1],
            quote(value),
            quote(value, safe=""),
            quote_plus(value),
            html.escape(value),
        ):
            yield text.encode()
        for offset in range(3):
            core = _base64_core(data, offset)
            yield from (core, core.replace(b"+", b"-").replace(b"/", b"_"))
        yield from (data.hex().encode(), data.hex().upper().encode())


def _base64_core(value: bytes, offset: int) -> bytes:
    """Return the part of base64 that a value alone decides, `offset` bytes in."""
    coded = base64.b64encode(b"\0" * offset + value).rstrip(b"=")
    first = (offset * 8 + 5) // 6
    last = (offset + len(value)) * 8 // 6
    return coded[first:last]
