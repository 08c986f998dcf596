"""TOML bytes to a frozen record, with errors that name field, value and rule."""

import contextlib
import copy
import re
import tomllib
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from owa_bench import bounded_json
from owa_bench.errors import FieldError, ProtocolError

RecordT = TypeVar("RecordT")
LARGEST = 1 << 18  # bytes of a file [D]
_MOST_DOTS = 60  # in a line: keys with more parts than that are nobody's [D]
_PLACE = re.compile(r"^(?P<rule>.*) - at `(?P<path>.*)`$")
_NAMED = re.compile(r"(missing required|contains unknown) field `(?P<name>[^`]*)`")
_KEY = re.compile(r"[^.\[\]]+")


class TomlRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what a TOML file holds: frozen, by keyword, no unknown field."""


def decode(data: bytes, record: type[RecordT], error: type[FieldError] = ProtocolError) -> RecordT:
    """Return the record that TOML bytes hold.

    Args:
        data: TOML in UTF-8.
        record: A msgspec.Struct class.
        error: Raised for the first field that breaks a rule.
    Raises: `error`: with field, value and rule.
    """
    try:
        document = _document(data)
    except (ValueError, RecursionError) as fault:
        raise error("file", str(fault), "must be TOML in UTF-8") from fault
    try:
        return msgspec.convert(document, record)
    except msgspec.ValidationError as fault:
        raise _named(str(fault), document, record, error) from fault


@contextlib.contextmanager
def in_file(name: str) -> Iterator[None]:
    """Put the file's name before the field of every FieldError raised inside."""
    try:
        yield
    except FieldError as fault:
        raise type(fault)(f"{name}: {fault.field}", fault.value, fault.rule) from fault


def _document(data: bytes) -> dict[str, Any]:
    """Return what TOML bytes say; ValueError for what would exhaust the parser.

    It takes memory with the square of a dotted key's parts.
    """
    if len(data) > LARGEST:
        raise ValueError(f"at most {LARGEST:,} bytes are read, got {len(data):,}")
    if any(line.count(b".") > _MOST_DOTS for line in data.splitlines()):
        raise ValueError(f"a line may have at most {_MOST_DOTS} dots")
    document = tomllib.loads(data.decode())
    bounded_json.refuse_deep(document)
    return document


def _named(
    message: str, document: dict[str, Any], record: type[Any], error: type[FieldError]
) -> FieldError:
    """Return msgspec's complaint as field, value and rule."""
    place = _PLACE.match(message)
    rule, path = (place["rule"], place["path"]) if place else (message, "$")
    keys = _KEY.findall(path.removeprefix("$"))
    value: Any = document
    for key in keys:
        value = _step(value, key)
    if path.endswith("[...]") and isinstance(value, dict):
        culprit = next((key for key in value if _breaks(document, keys, key, record)), "")
        keys, value = [*keys, culprit], value.get(culprit)
    named = _NAMED.search(rule)
    field = ".".join([*keys, named["name"]] if named else keys) or "file"
    if named and rule.startswith("Object missing"):
        return error(field, None, "must be given")
    if named:
        return error(field, _step(value, named["name"]), "is not a field of this file")
    if rule.startswith("Invalid enum value"):
        return error(field, value, "must be a value that this file may hold here")
    rule = rule[:1].lower() + rule[1:]
    return error(field, value, f"must obey its rule ({rule})")


def _breaks(document: dict[str, Any], keys: list[str], key: str, record: type[Any]) -> bool:
    """Return whether the table at `keys` breaks its rule with `key` alone in it."""
    alone = copy.deepcopy(document)
    table: Any = alone
    for step in keys:
        table = _step(table, step)
    for other in [name for name in table if name != key]:
        del table[other]
    try:
        msgspec.convert(alone, record)
    except msgspec.ValidationError as fault:
        return "[...]" in str(fault)
    return False


def _step(value: Any, key: str) -> Any:
    """Return the part of a decoded document under `key`, None when there is none."""
    if isinstance(value, dict):
        return value.get(key)
    if isinstance(value, list) and key.isdigit() and int(key) < len(value):
        return value[int(key)]
    return None
