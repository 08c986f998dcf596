"""Encoding of events as lines, a frame at a time.

A line is the one encoding of what it says: a reader that decodes and encodes it again
gets the same bytes. `Redactor.encode` makes sure of that by doing so. `LineBuffer`
gives the same lines for less: an event whose fields have exactly the declared types is
encoded once, and secrets are looked for in all lines of a frame at once.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, get_args

import msgspec

from owa_bench.records.events import (
    DECODER,
    ENCODER,
    VOLATILE_METERS,
    AnyEvent,
    Event,
    Resource,
)
from owa_bench.records.trace import REPLAY_VARIES, replay_line
from owa_bench.run.store.redaction import Redactor

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

        Raises:
            InfrastructureFailure: A field does not fit the schema.
        """
        kind = type(event)
        fits, varies = _KINDS.get(kind, _UNKNOWN)
        if not fits(event):
            event = self._redactor.checked(event)
        line = _encode(event)
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
        said = [line for line in replayed if line is not None]
        return EncodedFrame(lines, b"\n".join((*said, b"")))


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
