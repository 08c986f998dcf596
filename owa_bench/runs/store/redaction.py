"""Redaction: a registered secret becomes {secret:NAME:MARK} before hashing.

MARK is the first 16 hex of HMAC(redact key, text that was found). A secret is known in every form
it may take inside a text: as it is, JSON-escaped once and twice, URL-quoted, HTML-escaped, and
inside any base64 text. Replay learns the same secrets from the regenerated world and puts them
back.

Source: docs/traces.md#events.
"""

import base64
import html
import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, get_args
from urllib.parse import quote, quote_plus

import msgspec
from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from owa_bench.canonical import keyed_digest
from owa_bench.errors import FieldError, InfrastructureFailure
from owa_bench.records.event_base import LARGEST_LINE
from owa_bench.records.events import DECODER, ENCODER, VOLATILE_METERS, AnyEvent, Event, Resource
from owa_bench.records.trace import REPLAY_VARIES, replay_line

# Shorter values turn up in digests by chance, and replacing those breaks a record.
SHORTEST = 8
_NAME = re.compile(r"[\w./@+-]+(?::[\w./@+-]+)*", re.ASCII)
# No message writes these characters otherwise.
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)


class EncodedEvent(NamedTuple):
    """An event as written: its line, and its replay line (None: not replayed)."""

    line: bytes
    replay: bytes | None


class Redactor:
    """The secrets of one episode and their replacement.

    `known` are secrets from the start, by name.
    """

    def __init__(self, key: bytes, known: Mapping[str, str] | None = None) -> None:
        self._key = key
        self._names: dict[bytes, str] = {}
        self._marks: dict[bytes, bytes] = {}
        self._finder: tuple[list[bytes], BytesAhoCorasick] | None = None
        for name, value in (known or {}).items():
            self.learn(name, value)

    def learn(self, name: str, value: str) -> None:
        """Register a secret; the first name of a value stays.

        Args:
            name: Stands in the records in its place.
            value: The secret.
        Raises: FieldError: The value is too short to be told from other text, or the name would not
            survive inside JSON.
        """
        if len(value) < SHORTEST:
            raise FieldError(
                name, "*" * len(value), f"must have at least {SHORTEST} characters to be a secret"
            )
        if not _NAME.fullmatch(name):
            raise FieldError("secret name", name, "must be letters, digits, and ./@+-:")
        for form in forms(value):
            # In a line the form stands inside a JSON string.
            for text in (form.encode(), ENCODER.encode(form)[1:-1]):
                self._names.setdefault(text, name)

    def data(self, data: bytes) -> bytes:
        """Return `data` with every known secret replaced, the longest first."""
        parts, place = [], 0
        for form, start, end in self._secrets_in(data):
            parts += [data[place:start], self._mark(form)]
            place = end
        return b"".join((*parts, data[place:])) if parts else data

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

    def places(self, data: bytes) -> list[int]:
        """Return where forms of known secrets begin in `data`."""
        return [start for _, start, _ in self._secrets_in(data)]

    def _secrets_in(self, data: bytes) -> list[tuple[bytes, int, int]]:
        """Return (form, start, end) of the forms of secrets that stand in `data`.

        They do not overlap: of those that begin first the longest is given.
        """
        if not self._names:
            return []
        finder = self._finder
        if finder is None or len(finder[0]) < len(self._names):
            known = list(self._names)
            finder = self._finder = (
                known,
                BytesAhoCorasick(
                    known,
                    matchkind=MatchKind.LeftmostLongest,
                    # The quickest to build.
                    implementation=Implementation.NoncontiguousNFA,
                ),
            )
        known, search = finder
        hits = search.find_matches_as_indexes(data)
        return [(known[place], start, end) for place, start, end in hits]

    def checked(self, event: Event) -> AnyEvent:
        """Return an event as a reader decodes it, secrets and all.

        Raises: InfrastructureFailure: A field does not fit the schema.
        """
        return _decoded(event, lambda raw: raw)

    def encode(self, event: Event) -> EncodedEvent:
        """Return the lines of an event, secrets replaced, every field checked.

        The line is decoded once and encoded again, so that it is the one encoding of what it says:
        a reader that does the same gets the same bytes.

        Raises: InfrastructureFailure: A field does not fit the schema.
        """
        checked = _decoded(event, self._redacted)
        return EncodedEvent(ENCODER.encode(checked), replay_line(checked))

    def _redacted(self, raw: bytes) -> bytes:
        """Return a line with every known secret replaced."""
        if not self._secrets_in(raw):
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


# --- encoding of events as lines, a frame at a time -----------------------------------
# A line is the one encoding of what it says: a reader that decodes and encodes it again
# gets the same bytes. `Redactor.encode` makes sure of that by doing so. `LineBuffer`
# gives the same lines for less: an event whose fields have exactly the declared types
# is encoded once, and secrets are looked for in all lines of a frame at once.


_encode = ENCODER.encode
_SCALARS: Mapping[type, str] = {
    msgspec.inspect.IntType: "int",
    msgspec.inspect.StrType: "str",
    msgspec.inspect.BoolType: "bool",
}


class EncodedFrame(NamedTuple):
    """Lines of a frame, and the bytes that the replay digest takes of them."""

    lines: Sequence[bytes]
    replay: bytes


class LineBuffer:
    """Lines of an open frame: checked and encoded as they come, redacted at its end.

    Attributes:
        lines: Those so far, without newlines.
        size: Bytes of the lines, newlines included.
    """

    __slots__ = ("_redactor", "_varying", "lines", "size")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._varying: list[tuple[int, Event]] = []
        self.lines: list[bytes] = []
        self.size = 0

    def add(self, event: Event) -> None:
        """Take an event.

        Raises: InfrastructureFailure: A field does not fit the schema.
        """
        kind = type(event)
        fits, varies = _KINDS.get(kind, _UNKNOWN)
        if not fits(event):
            event = self._redactor.checked(event)
        line = _encode(event)
        if len(line) > LARGEST_LINE:
            raise InfrastructureFailure(
                f"The event {kind.__name__} has {len(line):,} bytes, a line of a trace "
                f"at most {LARGEST_LINE:,}: no reader takes more."
            )
        lines = self.lines
        if varies:
            self._varying.append((len(lines), event))
        lines.append(line)
        self.size += len(line) + 1

    def take(self) -> EncodedFrame:
        """Return the lines, every known secret replaced, and begin anew."""
        lines, varying = self.lines, self._varying
        self.lines, self._varying, self.size = [], [], 0
        replayed: list[bytes | None] = [*lines]
        for place, event in varying:
            replayed[place] = _replayed(event, lines[place])
        if starts := self._redactor.places(b"\n".join(lines)):
            ends = [*accumulate(len(line) + 1 for line in lines)]
            for place in {bisect_right(ends, start) for start in starts}:
                event = DECODER.decode(lines[place])
                lines[place], replayed[place] = self._redactor.encode(event)
        replay_lines = [line for line in replayed if line is not None]
        return EncodedFrame(lines, b"\n".join((*replay_lines, b"")))


def _replayed(event: Event, line: bytes) -> bytes | None:
    """Return the replay line of an event of a varying kind that has `line`."""
    if isinstance(event, Resource) and event.source != "harness":
        return None if event.meter in VOLATILE_METERS else line
    return replay_line(event)


def _condition(value: str, kind: msgspec.inspect.Type) -> str:
    """Return the expression that `value` has exactly the type `kind`.

    What it does not know is "False": such an event is decoded to be checked.
    """
    if type(kind) in _SCALARS:
        return f"type({value}) is {_SCALARS[type(kind)]}"
    if isinstance(kind, msgspec.inspect.FloatType):
        return f"type({value}) is float and isfinite({value})"
    if isinstance(kind, msgspec.inspect.NoneType):
        return f"{value} is None"
    if isinstance(kind, msgspec.inspect.LiteralType):
        return f"type({value}) is str and {value} in {set(kind.values)}"
    if isinstance(kind, msgspec.inspect.UnionType):
        return " or ".join(f"({_condition(value, one)})" for one in kind.types)
    if isinstance(kind, msgspec.inspect.VarTupleType):
        item = _condition("item", kind.item_type)
        each = f"all([{item} for item in {value}])"  # a list: quicker for a few
        return f"type({value}) is tuple and (not {value} or {each})"
    return "False"


def _fitting(kind: type[Event]) -> Callable[[Event], bool]:
    """Return the function that says whether an event's fields have their types."""
    info = msgspec.inspect.type_info(kind)
    if not isinstance(info, msgspec.inspect.StructType):
        raise TypeError(f"{kind} must be a struct")
    fields = info.fields
    parts = [f"({_condition(f'event.{field.name}', field.type)})" for field in fields]
    source = f"lambda event: {' and '.join(parts)}"
    check: Callable[[Event], bool] = eval(  # noqa: S307 - made of our schema alone
        source, {"isfinite": math.isfinite}
    )
    return check


_FITS = {kind: _fitting(kind) for kind in get_args(AnyEvent)}
_KINDS = {kind: (fits, kind in REPLAY_VARIES) for kind, fits in _FITS.items()}
_UNKNOWN: tuple[Callable[[Event], bool], bool] = (lambda _: False, False)
