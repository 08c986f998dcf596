"""Redaction: a registered secret becomes {secret:NAME:MARK} before hashing.

MARK is the first 16 hex of HMAC(redact key, text that was found). A secret is known
in every form it may take inside a text: as it is, JSON-escaped once and twice,
URL-quoted, HTML-escaped, and inside any base64 text. Replay learns the same secrets
from the regenerated world and puts them back.

Source: docs/traces.md#events.
"""

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, quote_plus

import msgspec
import numpy as np
import numpy.typing as npt

from owa_bench.canonical import keyed_digest
from owa_bench.errors import FieldError, InfrastructureFailure
from owa_bench.records.events import (
    DECODER,
    ENCODER,
    AnyEvent,
    Event,
)
from owa_bench.records.trace import replay_line

# Shorter values turn up in digests by chance, and replacing those breaks a record.
SHORTEST = 8
_NAME = re.compile(r"[\w./@+-]+(?::[\w./@+-]+)*", re.ASCII)
# No message writes these characters otherwise.
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)
# Texts of as many bytes are found by blocks of 8 bytes, shorter ones by blocks of 4.
_LONG = 15
# Data of as many blocks is filtered by hashes first: the factors.
_MANY = 96
_SHORT_FACTOR, _LONG_FACTOR = 0x9E3779B1, 0x9E3779B97F4A7C15


class EncodedEvent(NamedTuple):
    """An event as written: its line, and its replay line (None: not replayed)."""

    line: bytes
    replay: bytes | None


class _Finder:
    """Texts to be found in long data, however many there are.

    Where a text of 2 w - 1 bytes or more stands in the data, one of the data's aligned
    blocks of w bytes lies inside it, and starts within its first w bytes. So a look at
    every block settles that nothing is there. Long data is filtered by 16 bits of a
    hash of each block first.

    Args:
        block: The type of a block in the letters of `struct`, of w bytes.
        factor: Hashes a block: the highest 16 bits of the product.
    """

    def __init__(self, block: Literal["I", "Q"], factor: int) -> None:
        self._code: Literal["I", "Q"] = block
        self._type = np.dtype(block)
        self._width = self._type.itemsize
        self._factor = self._type.type(factor)
        self._shift = self._type.type(8 * self._width - 16)
        self._texts: set[bytes] = set()
        self._blocks: dict[int, list[bytes]] = {}
        self._hashes: npt.NDArray[np.bool_] | None = None

    def add(self, text: bytes) -> None:
        """Look for `text` from here on."""
        if text not in self._texts:
            self._texts.add(text)
            width = self._width
            starts = b"".join([text[at : at + width] for at in range(width)])
            for block in memoryview(starts).cast(self._code):
                self._blocks.setdefault(block, []).append(text)
            self._hashes = None

    def hits(self, data: bytes) -> list[bytes]:
        """Return the texts that stand in `data`."""
        if not self._blocks:
            return []
        candidates = self._candidates(data)
        if self._blocks.keys().isdisjoint(candidates):
            return []
        known = self._blocks.keys() & set(candidates)
        texts = {text for block in known for text in self._blocks[block]}
        return [text for text in texts if text in data]

    def _candidates(self, data: bytes) -> Iterable[int]:
        """Return the aligned blocks of `data`; of long data those with a known hash."""
        count = len(data) // self._width
        if count < _MANY:
            return memoryview(data)[: count * self._width].cast(self._code)
        if self._hashes is None:
            wanted = np.fromiter(self._blocks, self._type, len(self._blocks))
            self._hashes = np.zeros(1 << 16, dtype=np.bool_)
            self._hashes[wanted * self._factor >> self._shift] = True
        blocks = np.frombuffer(data, self._type, count)
        known = self._hashes[blocks * self._factor >> self._shift]
        found: list[int] = blocks[known].tolist()
        return found


class Redactor:
    """The secrets of one episode and their replacement.

    `known` are secrets from the start, by name.
    """

    def __init__(self, key: bytes, known: Mapping[str, str] | None = None) -> None:
        self._key = key
        self._names: dict[bytes, str] = {}
        self._marks: dict[bytes, bytes] = {}
        self._short = _Finder("I", _SHORT_FACTOR)
        self._long = _Finder("Q", _LONG_FACTOR)
        for name, value in (known or {}).items():
            self.learn(name, value)

    def learn(self, name: str, value: str) -> None:
        """Register a secret; the first name of a value stays.

        Args:
            name: Stands in the records in its place.
            value: The secret.

        Raises:
            FieldError: The value is too short to be told from other text, or the name
                would not survive inside JSON.
        """
        if len(value) < SHORTEST:
            raise FieldError(
                name,
                "*" * len(value),
                f"must have at least {SHORTEST} characters to be a secret",
            )
        if not _NAME.fullmatch(name):
            raise FieldError("secret name", name, "must be letters, digits, and ./@+-:")
        for form in forms(value):
            data = form.encode()
            if data not in self._names:
                self._names[data] = name
                # In a line the form stands inside a JSON string.
                for text in (data, ENCODER.encode(form)[1:-1]):
                    (self._short if len(text) < _LONG else self._long).add(text)

    def data(self, data: bytes) -> bytes:
        """Return `data` with every known secret replaced, the longest first."""
        known = [form for form in self.hits(data) if form in self._names]
        if not known:
            return data
        parts, place = [], 0
        while hits := [
            (at, -len(form), form)
            for form in known
            if (at := data.find(form, place)) >= 0
        ]:
            at, _, form = min(hits)
            parts += [data[place:at], self._mark(form)]
            place = at + len(form)
        return b"".join((*parts, data[place:]))

    def text(self, text: str) -> str:
        """Return `text` with every known secret replaced."""
        return self.data(text.encode()).decode()

    def restore(self, text: str) -> str:
        """Return `text` with every mark of a known secret turned back into it."""
        if "{secret:" not in text:
            return text
        for form in self._names:
            text = text.replace(self._mark(form).decode(), form.decode())
        return text

    def hits(self, data: bytes) -> list[bytes]:
        """Return every form of a known secret that stands in `data`."""
        return self._short.hits(data) + self._long.hits(data)

    def checked(self, event: Event) -> AnyEvent:
        """Return an event as a reader decodes it, secrets and all.

        Raises:
            InfrastructureFailure: A field does not fit the schema.
        """
        return _decoded(event, lambda raw: raw)

    def encode(self, event: Event) -> EncodedEvent:
        """Return the lines of an event, secrets replaced, every field checked.

        The line is decoded once and encoded again, so that it is the one encoding of
        what it says: a reader that does the same gets the same bytes.

        Raises:
            InfrastructureFailure: A field does not fit the schema.
        """
        checked = _decoded(event, self._redacted)
        return EncodedEvent(ENCODER.encode(checked), replay_line(checked))

    def _redacted(self, raw: bytes) -> bytes:
        """Return a line with every known secret replaced."""
        if not self.hits(raw):
            return raw
        return ENCODER.encode(_walk(msgspec.json.decode(raw), self.text))

    def _mark(self, form: bytes) -> bytes:
        """Return what stands in place of a form of a secret."""
        mark = self._marks.get(form)
        if mark is None:
            digest = keyed_digest(self._key, form.decode()).hex()[:16]
            mark = f"{{secret:{self._names[form]}:{digest}}}".encode()
            self._marks[form] = mark
        return mark


def _decoded(event: Event, change: Callable[[bytes], bytes]) -> AnyEvent:
    """Return what a reader decodes from an event's line after `change`."""
    try:
        return DECODER.decode(change(ENCODER.encode(event)))
    except (msgspec.MsgspecError, TypeError, UnicodeError) as error:
        kind = type(event).__name__
        raise InfrastructureFailure(
            f"The event {kind} does not fit its schema: {error}."
        ) from error


def forms(value: str) -> tuple[str, ...]:
    """Return every text that stands for `value` in a message, itself first."""
    escaped = () if _PLAIN.fullmatch(value) else _escaped(value)
    coded: list[str] = []
    for offset in range(3):
        core = _base64_core(value.encode(), offset)
        coded += [core, core.replace("+", "-").replace("/", "_")]
    return tuple(dict.fromkeys((value, *escaped, *coded)))


def _escaped(value: str) -> tuple[str, ...]:
    """Return `value` escaped for JSON, JSON in JSON, addresses and HTML."""
    once = json.dumps(value)[1:-1]
    raw_once = ENCODER.encode(value).decode()[1:-1]
    return (
        once,
        raw_once,
        json.dumps(once)[1:-1],
        ENCODER.encode(raw_once).decode()[1:-1],
        quote(value),
        quote(value, safe=""),
        quote_plus(value),
        html.escape(value),
    )


def _base64_core(value: bytes, offset: int) -> str:
    """Return the part of base64 that `value` alone decides, `offset` bytes in."""
    coded = base64.b64encode(b"\0" * offset + value).decode().rstrip("=")
    first = (offset * 8 + 5) // 6
    last = (offset + len(value)) * 8 // 6
    return coded[first:last]


def _walk(node: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON document with every string value changed, keys kept."""
    if isinstance(node, str):
        return change(node)
    if isinstance(node, list):
        return [_walk(item, change) for item in node]
    if isinstance(node, dict):
        return {key: _walk(item, change) for key, item in node.items()}
    return node
