"""Wire format of canonical values, pages and cursors."""

import base64
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal, DecimalException
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from owa_bench.canonical import keyed_digest
from owa_bench.envs.toolquest.world import ApiResource, Field, Pager, Value

PAGER_PARAMETERS = {
    "none": (),
    "offset": ("offset", "limit"),
    "page": ("page", "per_page"),
    "cursor": ("cursor", "limit"),
    "link": ("after", "limit"),
}
WireValue = Value | float
_MOST_DIGITS = 40  # before the point, of an amount


class Slice(NamedTuple):
    """Which rows of a list a request asked for."""

    start: int
    size: int


class BadRequest(NamedTuple):
    """A request that cannot be served: machine word and sentence."""

    code: str
    message: str


def to_wire(field: Field, value: Value) -> WireValue:
    """Return a canonical value as the field shows it.

    Args:
        field: The field.
        value: Its canonical value.
    Returns: The value as it is served.
    """
    convert = _converter(field)
    return value if convert is None else convert(value)


@lru_cache(maxsize=4096)
def _converter(field: Field) -> Callable[[Any], WireValue] | None:
    """Return what makes a wire value of a canonical one, None for nothing."""
    if field.kind == "money":
        return _MONEY[field.unit, field.decimal]
    if any(choice.value != choice.name for choice in field.choices):
        return {c.value: c.name for c in field.choices}.__getitem__
    if field.style != "plain":
        return _STYLED[field.style]
    if field.shift:
        away = timedelta(days=field.shift)
        return lambda day: (date.fromisoformat(day) + away).isoformat()
    return None


def _dollars(cents: int) -> WireValue:
    return cents // 100 if cents % 100 == 0 else cents / 100


def _decimal_dollars(cents: int) -> str:
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"


_MONEY: Mapping[tuple[str, bool], Callable[[Any], WireValue] | None] = {
    ("", False): None,
    ("cents", False): None,
    ("cents", True): str,
    ("dollars", False): _dollars,
    ("dollars", True): _decimal_dollars,
}
_STYLED: Mapping[str, Callable[[Any], WireValue]] = {
    "upper": lambda text: text.upper(),
    "urn": lambda text: f"urn:id:{text}",
    "joined": lambda text: text.replace("-", ""),
}


def from_wire(field: Field, value: object) -> Value | None:
    """Return the canonical value of what a client sent, None if it cannot be it.

    Args:
        field: The field.
        value: The JSON value that was sent.
    Returns: The canonical value, None where type or unit do not allow it.
    """
    if field.kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if field.kind == "money":
        return _cents(field, value)
    if field.kind == "integer":
        return value if isinstance(value, int) else None
    if not isinstance(value, str):
        return None
    return next((c.value for c in field.choices if c.name == value), value)


def _cents(field: Field, value: object) -> int | None:
    """Return an amount in cents, None for one of another type or a broken cent."""
    if isinstance(value, str) != field.decimal or not isinstance(value, str | int | float):
        return None
    try:
        amount = Decimal(str(value)) * (100 if field.unit == "dollars" else 1)
        if amount.adjusted() > _MOST_DIGITS:
            return None
        return int(amount) if amount == amount.to_integral_value() else None
    except (DecimalException, ValueError, OverflowError):
        return None


@lru_cache(maxsize=1024)
def _layout(
    resource: ApiResource, columns: tuple[str, ...]
) -> tuple[tuple[str, int, Callable[[Any], WireValue] | None], ...]:
    """Return wire name, place in the row and converter of each field, as served."""
    fields = {field.key: field for field in resource.fields}
    order = [key for key in resource.order or columns if key in columns]
    order += [key for key in columns if key not in order]
    return tuple((fields[key].name, columns.index(key), _converter(fields[key])) for key in order)


def render_rows(
    resource: ApiResource, columns: tuple[str, ...], rows: list[tuple[Value, ...]]
) -> list[dict[str, WireValue]]:
    """Return rows as objects with the names, values and order that are served.

    Args:
        resource: The collection.
        columns: Field keys of the rows' cells.
        rows: Canonical rows.
    Returns: Objects by wire name.
    """
    layout = _layout(resource, columns)
    return [
        {name: row[i] if convert is None else convert(row[i]) for name, i, convert in layout}
        for row in rows
    ]


def wrap(wrapper: str, items: object, extras: dict[str, object]) -> object:
    """Return the reply body: `items` at the dotted path, extras at the top.

    Args:
        wrapper: Dotted path, "" for a bare list.
        items: The list.
        extras: What stands beside the path's first step.
    """
    if not wrapper:
        return items
    body: object = items
    for step in reversed(wrapper.split(".")):
        body = {step: body}
    return {**extras, **body} if isinstance(body, dict) else body


def cut(pager: Pager, query: dict[str, str], place: str, key: bytes) -> Slice | BadRequest:
    """Return the rows a list request asks for, or why it cannot be served.

    Args:
        pager: The pager of the collection.
        query: Query parameters of the request.
        place: Name of the collection, for cursors.
        key: The instance's key.
    Returns: First row and number of rows, or the refusal.
    """
    if pager.kind == "none":
        return Slice(0, 1 << 30)
    first, second = PAGER_PARAMETERS[pager.kind]
    size = _integer(query.get(second, str(pager.size)), least=1)
    if size is None:
        return BadRequest("invalid_parameter", f"`{second}` must be an integer >= 1.")
    size = min(size, pager.size)
    if pager.kind in ("cursor", "link"):
        start = read_cursor(query.get(first, ""), place, key)
        if start is None:
            return BadRequest("invalid_cursor", f"`{first}` is not one that we issued.")
        return Slice(start, size)
    least = 1 if pager.kind == "page" else 0
    number = _integer(query.get(first, str(least)), least=least)
    if number is None:
        rule = f"`{first}` must be an integer >= {least}."
        return BadRequest("invalid_parameter", rule)
    return Slice((number - 1) * size if pager.kind == "page" else number, size)


def _integer(text: str, *, least: int) -> int | None:
    """Return a decimal integer of at most nine digits, None if it is not one."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        return None
    return int(text) if int(text) >= least else None


def make_cursor(start: int, place: str, key: bytes) -> str:
    """Return the opaque cursor of the page that begins at row `start`.

    Args:
        start: First row of the page.
        place: Name of the collection.
        key: The instance's key.
    """
    signature = keyed_digest(key, "cursor", place, str(start)).hex()[:10]
    return base64.urlsafe_b64encode(f"{start}.{signature}".encode()).decode().rstrip("=")


def read_cursor(cursor: str, place: str, key: bytes) -> int | None:
    """Return where a cursor points, 0 for none given, None for a forged one.

    Args:
        cursor: The cursor that was sent.
        place: Name of the collection.
        key: The instance's key.
    Returns: First row of the page, None for a cursor that was not issued.
    """
    if not cursor:
        return 0
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        text = base64.urlsafe_b64decode(padded.encode()).decode()
    except ValueError:
        return None
    start = _integer(text.partition(".")[0], least=0)
    if start is None or make_cursor(start, place, key) != cursor:
        return None
    return start


def encode(document: object) -> bytes:
    """Return a reply body as compact JSON."""
    return msgspec.json.encode(document)
