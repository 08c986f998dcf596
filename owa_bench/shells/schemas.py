"""JSON Schema, the part that tool arguments need: compiled checks, and random values.

A schema is compiled once into closures, so that a check costs microseconds. A keyword
outside the part is refused when compiled, never ignored.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from owa_bench.errors import UsageError

Schema = Mapping[str, Any]
Check = Callable[[Any, str], str | None]
Drawer = Callable[[Schema, np.random.Generator], Any]

_ANNOTATIONS = frozenset({"description", "title", "examples", "default", "format"})
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORD = 12  # letters of a drawn string, unless the schema wants more
_WIDTH = 100  # a number without bounds is drawn from this range
_ITEMS = 3


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


_TYPES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "string": (lambda v: type(v) is str, "text"),
    "integer": (lambda v: type(v) is int, "a whole number"),
    "number": (_is_number, "a number"),
    "boolean": (lambda v: type(v) is bool, "true or false"),
    "object": (lambda v: type(v) is dict, "a JSON object"),
    "array": (lambda v: type(v) is list, "a JSON array"),
    "null": (lambda v: v is None, "null"),
}


def shown(value: Any) -> str:
    """Return a value as short JSON, for messages."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."


def nearest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean `x`?" for the nearest known name, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f" Did you mean `{near[0]}`?" if near else ""


def compile_schema(schema: Schema) -> Check:
    """Return the check of `schema`: (value, path) to an error message or None.

    Errors: UsageError for a keyword or type that this part of JSON Schema lacks.
    """
    unknown = set(schema) - _KEYWORDS
    if unknown:
        raise UsageError(
            f"A tool schema may use {', '.join(sorted(_KEYWORDS))}, "
            f"got {', '.join(sorted(unknown))}."
        )
    checks = [
        build(schema)
        for keywords, build in _BUILDERS
        if any(keyword in schema for keyword in keywords)
    ]
    return checks[0] if len(checks) == 1 else _all_of(checks)


def _all_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, path: str) -> str | None:
        for one in checks:
            error = one(value, path)
            if error is not None:
                return error
        return None

    return check


def _kinds(schema: Schema) -> list[str]:
    kinds = schema.get("type", [])
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    for name in names:
        if name not in _TYPES:
            raise UsageError(
                f"`type` must be one of {', '.join(_TYPES)}, got {name!r}."
            )
    return names


def _type(schema: Schema) -> Check:
    entries = [_TYPES[name] for name in _kinds(schema)]
    rule = " or ".join(words for _, words in entries)
    if len(entries) == 1:
        only = entries[0][0]

        def check_one(value: Any, path: str) -> str | None:
            return (
                None if only(value) else f"`{path}` must be {rule}, got {shown(value)}."
            )

        return check_one

    def check(value: Any, path: str) -> str | None:
        if any(test(value) for test, _ in entries):
            return None
        return f"`{path}` must be {rule}, got {shown(value)}."

    return check


def _enum(schema: Schema) -> Check:
    options = [schema["const"]] if "const" in schema else list(schema["enum"])
    rule = ", ".join(shown(option) for option in options)

    def check(value: Any, path: str) -> str | None:
        for option in options:
            if type(option) is type(value) and option == value:
                return None
        near = nearest(value, map(str, options)) if type(value) is str else ""
        return f"`{path}` must be one of {rule}, got {shown(value)}.{near}"

    return check


def _range(schema: Schema) -> Check:
    low = schema.get("minimum", float("-inf"))
    high = schema.get("maximum", float("inf"))

    def check(value: Any, path: str) -> str | None:
        if not _is_number(value):
            return None
        if value < low:
            return f"`{path}` must be at least {low}, got {shown(value)}."
        if value > high:
            return f"`{path}` must be at most {high}, got {shown(value)}."
        return None

    return check


def _length(schema: Schema) -> Check:
    low = schema.get("minLength", 0)
    high = schema.get("maxLength", float("inf"))

    def check(value: Any, path: str) -> str | None:
        if type(value) is not str or low <= len(value) <= high:
            return None
        bound = f"at least {low}" if len(value) < low else f"at most {high}"
        return f"`{path}` must have {bound} characters, got {len(value)}."

    return check


def _pattern(schema: Schema) -> Check:
    pattern = re.compile(schema["pattern"])
    if not schema.get("examples"):
        raise UsageError(
            f"A schema with `pattern` needs `examples`, got none: {pattern.pattern}."
        )
    example = shown(schema["examples"][0])

    def check(value: Any, path: str) -> str | None:
        if type(value) is not str or pattern.search(value):
            return None
        return (
            f"`{path}` must match {pattern.pattern}, got {shown(value)}; "
            f"for example {example}."
        )

    return check


def _object(schema: Schema) -> Check:
    fields = {
        name: compile_schema(child)
        for name, child in schema.get("properties", {}).items()
    }
    required = tuple(schema.get("required", ()))
    rest = schema.get("additionalProperties", True)
    other = compile_schema(rest) if isinstance(rest, Mapping) else None
    known = ", ".join(fields) or "none"

    def check_field(name: str, value: Any, path: str) -> str | None:
        field = fields.get(name, other)
        if field is not None:
            return field(value, f"{path}.{name}")
        if rest:
            return None
        hint = nearest(name, fields)
        return f"`{path}.{name}` is unknown, got {shown(value)}; known: {known}.{hint}"

    def check(value: Any, path: str) -> str | None:
        if type(value) is not dict:
            return None
        for name in required:
            if name not in value:
                return f"`{path}.{name}` is required, got nothing; add it."
        for name, item in value.items():
            error = check_field(name, item, path)
            if error is not None:
                return error
        return None

    return check


def _array(schema: Schema) -> Check:
    low = schema.get("minItems", 0)
    high = schema.get("maxItems", float("inf"))
    item = compile_schema(schema.get("items", {}))

    def check(value: Any, path: str) -> str | None:
        if type(value) is not list:
            return None
        if not low <= len(value) <= high:
            bound = f"at least {low}" if len(value) < low else f"at most {high}"
            return f"`{path}` must have {bound} items, got {len(value)}."
        for index, entry in enumerate(value):
            error = item(entry, f"{path}[{index}]")
            if error is not None:
                return error
        return None

    return check


def _any_of(schema: Schema) -> Check:
    options = [compile_schema(option) for option in schema["anyOf"]]

    def check(value: Any, path: str) -> str | None:
        errors = [option(value, path) for option in options]
        if None in errors:
            return None
        return " Or: ".join(str(error) for error in errors)

    return check


_BUILDERS: tuple[tuple[tuple[str, ...], Callable[[Schema], Check]], ...] = (
    (("type",), _type),
    (("enum", "const"), _enum),
    (("minimum", "maximum"), _range),
    (("minLength", "maxLength"), _length),
    (("pattern",), _pattern),
    (("properties", "required", "additionalProperties"), _object),
    (("items", "minItems", "maxItems"), _array),
    (("anyOf",), _any_of),
)
_KEYWORDS = _ANNOTATIONS.union(*(keywords for keywords, _ in _BUILDERS))


# --- drawing ----------------------------------------------------------------------


def draw(schema: Schema, *, rng: np.random.Generator) -> Any:
    """Return a random value that `schema` allows."""
    for keyword in ("enum", "examples"):
        if schema.get(keyword):
            options = schema[keyword]
            return options[int(rng.integers(len(options)))]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return draw(schema["anyOf"][int(rng.integers(len(schema["anyOf"])))], rng=rng)
    kinds = _kinds(schema) or ["string"]
    return _DRAWERS[kinds[int(rng.integers(len(kinds)))]](schema, rng)


def _draw_string(schema: Schema, rng: np.random.Generator) -> str:
    low = schema.get("minLength", 0)
    high = min(schema.get("maxLength", _WORD), max(low, _WORD))
    letters = rng.integers(len(_LETTERS), size=int(rng.integers(low, high + 1)))
    return "".join(_LETTERS[int(letter)] for letter in letters)


def _bounds(schema: Schema) -> tuple[Any, Any]:
    low = schema.get("minimum", min(0, schema.get("maximum", 0)))
    return low, schema.get("maximum", low + _WIDTH)


def _draw_integer(schema: Schema, rng: np.random.Generator) -> int:
    low, high = _bounds(schema)
    return int(rng.integers(low, high + 1))


def _draw_number(schema: Schema, rng: np.random.Generator) -> float:
    low, high = _bounds(schema)
    return float(min(max(round(low + rng.random() * (high - low), 6), low), high))


def _draw_object(schema: Schema, rng: np.random.Generator) -> dict[str, Any]:
    required = schema.get("required", ())
    return {
        name: draw(child, rng=rng)
        for name, child in schema.get("properties", {}).items()
        if name in required or rng.random() < 0.5
    }


def _draw_array(schema: Schema, rng: np.random.Generator) -> list[Any]:
    low = schema.get("minItems", 0)
    high = min(schema.get("maxItems", _ITEMS), max(low, _ITEMS))
    count = int(rng.integers(low, high + 1))
    return [draw(schema.get("items", {}), rng=rng) for _ in range(count)]


_DRAWERS: dict[str, Drawer] = {
    "string": _draw_string,
    "integer": _draw_integer,
    "number": _draw_number,
    "boolean": lambda _, rng: bool(rng.integers(2)),
    "object": _draw_object,
    "array": _draw_array,
    "null": lambda *_: None,
}
