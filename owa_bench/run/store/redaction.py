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
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

import msgspec

from owa_bench.canonical import keyed_digest
from owa_bench.errors import FieldError, InfrastructureFailure
from owa_bench.records.events import (
    DECODER,
    ENCODER,
    AnyEvent,
    EpisodeEnd,
    EpisodeStart,
    Event,
    Evidence,
    Execution,
    Resource,
)
from owa_bench.records.trace import replay_line

# Shorter values turn up in digests by chance, and replacing those breaks a record.
SHORTEST = 8
_NAME = re.compile(r"[\w./@+-]+(?::[\w./@+-]+)*", re.ASCII)
# No message writes these characters otherwise.
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)
_BLOCK = 8
# The kinds whose replay line may differ from their own line.
_VARYING = (EpisodeStart, EpisodeEnd, Evidence, Execution, Resource)


class EncodedEvent(NamedTuple):
    """An event as written: its line, and its replay line (None: not replayed)."""

    line: bytes
    replay: bytes | None


class _Finder:
    """Texts to be found in long data, however many there are.

    Where a text of 15 bytes or more stands in the data, one of the data's aligned
    blocks of 8 lies inside it, and starts within its first 8 bytes. So a look at every
    block settles that nothing is there; only shorter texts are searched one by one.
    """

    def __init__(self) -> None:
        self._blocks: set[int] = set()
        self._long: dict[bytes, None] = {}
        self._short: dict[bytes, None] = {}

    def add(self, text: bytes) -> None:
        """Look for `text` from here on."""
        if text in self._long or text in self._short:
            return
        if len(text) < 2 * _BLOCK - 1:
            self._short[text] = None
            return
        self._long[text] = None
        starts = b"".join([text[at : at + _BLOCK] for at in range(_BLOCK)])
        self._blocks.update(memoryview(starts).cast("Q"))

    def hits(self, data: bytes) -> list[bytes]:
        """Return the texts that stand in `data`."""
        hits = [text for text in self._short if text in data] if self._short else []
        whole = len(data) - len(data) % _BLOCK
        blocks = memoryview(data)[:whole].cast("Q")
        if not self._blocks.isdisjoint(blocks):
            hits += [text for text in self._long if text in data]
        return hits


class Redactor:
    """The secrets of one episode and their replacement."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._names: dict[bytes, str] = {}
        self._finder = _Finder()

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
                self._finder.add(data)
                # In a line the form stands inside a JSON string.
                self._finder.add(ENCODER.encode(form)[1:-1])

    def data(self, data: bytes) -> bytes:
        """Return `data` with every known secret replaced, the longest first."""
        known = [form for form in self._finder.hits(data) if form in self._names]
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

    def encode(self, event: Event) -> EncodedEvent:
        """Return the lines of an event, secrets replaced, every field checked.

        The line is decoded once and encoded again, so that it is the one encoding of
        what it says: a reader that does the same gets the same bytes.

        Raises:
            InfrastructureFailure: A field does not fit the schema.
        """
        try:
            raw = ENCODER.encode(event)
            if self._finder.hits(raw):
                raw = ENCODER.encode(_walk(msgspec.json.decode(raw), self.text))
            checked: AnyEvent = DECODER.decode(raw)
        except (msgspec.MsgspecError, TypeError, UnicodeError) as error:
            kind = type(event).__name__
            raise InfrastructureFailure(
                f"The event {kind} does not fit its schema: {error}."
            ) from error
        line = ENCODER.encode(checked)
        varying = isinstance(checked, _VARYING)
        return EncodedEvent(line, replay_line(checked) if varying else line)

    def _mark(self, form: bytes) -> bytes:
        """Return what stands in place of a form of a secret."""
        mark = keyed_digest(self._key, form.decode()).hex()[:16]
        return f"{{secret:{self._names[form]}:{mark}}}".encode()


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
