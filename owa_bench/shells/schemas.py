"""The part of JSON Schema that tool arguments need: compiled checks, random values.

A schema is compiled once into closures, so that a check costs microseconds. A keyword outside the
part is refused when compiled, never ignored.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from owa_bench.errors import UsageError

Schema = Mapping[str, Any]
ArgumentCheck = Callable[[Any, str], str | None]

_ANNOTATIONS = frozenset({"description", "title", "examples", "default", "format"})
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORD = 12  # letters of a drawn string, unless the schema wants more
_WIDTH = 100  # a number without bounds is drawn from this range
_ITEMS = 3

# Python types of a JSON type, and its words in a message.
_TYPES: dict[str, tuple[frozenset[type], str]] = {
    "string": (frozenset({str}), "text"),
    "integer": (frozenset({int}), "a whole number"),
    "number": (frozenset({int, float}), "a number"),
    "boolean": (frozenset({bool}), "true or false"),
    "object": (frozenset({dict}), "a JSON object"),
    "array": (frozenset({list}), "a JSON array"),
    "null": (frozenset({type(None)}), "null"),
}


def short_json(value: Any) -> str:
    """Return a value as JSON of at most 60 characters, for messages."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean `x`?" for the nearest known name.

    Args:
        name: The unknown name.
        known: The names that exist.
    Returns: "" where no name is near.
    """
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f" Did you mean `{near[0]}`?" if near else ""


def compile_schema(schema: Schema) -> ArgumentCheck:
    """Return the check of a schema: (value, path) to an error message or None.

    Raises: UsageError: a keyword or type is not in this part of JSON Schema.
    """
    if unknown := set(schema) - _KEYWORDS:
        raise UsageError(
            f"A tool schema may use {', '.join(sorted(_KEYWORDS))}, "
            f"got {', '.join(sorted(unknown))}."
        )
    checks = [make(schema) for keywords, make in _CHECKS if not keywords.isdisjoint(schema)]
    return checks[0] if len(checks) == 1 else _all_of(checks)


def _all_of(checks: Sequence[ArgumentCheck]) -> ArgumentCheck:
    def check(value: Any, path: str) -> str | None:
        for one in checks:
            if (error := one(value, path)) is not None:
                return error
        return None

    return check


def _type_names(schema: Schema) -> list[str]:
    kinds = schema.get("type", [])
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    for name in names:
        if name not in _TYPES:
            raise UsageError(f"`type` must be one of {', '.join(_TYPES)}, got {name!r}.")
    return names


def _type(schema: Schema) -> ArgumentCheck:
    entries = [_TYPES[name] for name in _type_names(schema)]
    types = frozenset[type]().union(*(types for types, _ in entries))
    rule = " or ".join(words for _, words in entries)

    def check(value: Any, path: str) -> str | None:
        if type(value) in types:
            return None
        return f"`{path}` must be {rule}, got {short_json(value)}."

    return check


def _enum(schema: Schema) -> ArgumentCheck:
    options = [schema["const"]] if "const" in schema else list(schema["enum"])
    words = {option for option in options if type(option) is str}
    rule = ", ".join(short_json(option) for option in options)

    def check(value: Any, path: str) -> str | None:
        if type(value) is str and value in words:
            return None
        for option in options:
            if type(option) is type(value) and option == value:
                return None
        near = suggestion(value, map(str, options)) if type(value) is str else ""
        return f"`{path}` must be one of {rule}, got {short_json(value)}.{near}"

    return check


def _limits(
    keywords: tuple[str, str],
    types: frozenset[type],
    size: Callable[[Any], Any],
    rule: str,
    schema: Schema,
) -> ArgumentCheck:
    """Return the check of two keywords that bound a size from below and above."""
    low = schema.get(keywords[0], float("-inf"))
    high = schema.get(keywords[1], float("inf"))

    def check(value: Any, path: str) -> str | None:
        if type(value) not in types or low <= size(value) <= high:
            return None
        bound = f"at least {low}" if size(value) < low else f"at most {high}"
        return f"`{path}` must {rule.format(bound)}, got {short_json(size(value))}."

    return check


_value_limits = partial(
    _limits, ("minimum", "maximum"), _TYPES["number"][0], lambda value: value, "be {}"
)
_text_limits = partial(
    _limits, ("minLength", "maxLength"), _TYPES["string"][0], len, "have {} characters"
)
_item_limits = partial(_limits, ("minItems", "maxItems"), _TYPES["array"][0], len, "have {} items")


def _pattern(schema: Schema) -> ArgumentCheck:
    pattern = re.compile(schema["pattern"])
    if not schema.get("examples"):
        raise UsageError(f"A schema with `pattern` needs `examples`, got none: {pattern.pattern}.")
    example = short_json(schema["examples"][0])

    def check(value: Any, path: str) -> str | None:
        if type(value) is not str or pattern.search(value):
            return None
        return (
            f"`{path}` must match {pattern.pattern}, got {short_json(value)}; "
            f"for example {example}."
        )

    return check


def _object(schema: Schema) -> ArgumentCheck:
    properties = schema.get("properties", {})
    fields = {name: compile_schema(child) for name, child in properties.items()}
    required = tuple(schema.get("required", ()))
    rest = schema.get("additionalProperties", True)
    other = compile_schema(rest) if isinstance(rest, Mapping) else None
    known = ", ".join(fields) or "none"

    def check_field(name: str, value: Any, path: str) -> str | None:
        if (field := fields.get(name, other)) is not None:
            return field(value, f"{path}.{name}")
        if rest:
            return None
        hint = f"known: {known}.{suggestion(name, fields)}"
        return f"`{path}.{name}` is unknown, got {short_json(value)}; {hint}"

    def check(value: Any, path: str) -> str | None:
        if type(value) is not dict:
            return None
        for name in required:
            if name not in value:
                return f"`{path}.{name}` is required, got nothing; add it."
        for name, item in value.items():
            if (error := check_field(name, item, path)) is not None:
                return error
        return None

    return check


def _items(schema: Schema) -> ArgumentCheck:
    item = compile_schema(schema["items"])

    def check(value: Any, path: str) -> str | None:
        if type(value) is not list:
            return None
        for index, entry in enumerate(value):
            if item(entry, path) is not None:  # the path is written for errors alone
                return item(entry, f"{path}[{index}]")
        return None

    return check


def _any_of(schema: Schema) -> ArgumentCheck:
    options = [compile_schema(option) for option in schema["anyOf"]]

    def check(value: Any, path: str) -> str | None:
        errors = [option(value, path) for option in options]
        return None if None in errors else " Or: ".join(map(str, errors))

    return check


_CHECKS: tuple[tuple[frozenset[str], Callable[[Schema], ArgumentCheck]], ...] = (
    (frozenset({"type"}), _type),
    (frozenset({"enum", "const"}), _enum),
    (frozenset({"minimum", "maximum"}), _value_limits),
    (frozenset({"minLength", "maxLength"}), _text_limits),
    (frozenset({"pattern"}), _pattern),
    (frozenset({"properties", "required", "additionalProperties"}), _object),
    (frozenset({"minItems", "maxItems"}), _item_limits),
    (frozenset({"items"}), _items),
    (frozenset({"anyOf"}), _any_of),
)
_KEYWORDS = _ANNOTATIONS.union(*(keywords for keywords, _ in _CHECKS))


# --- random values --------------------------------------------------------------------


def draw(schema: Schema, *, rng: np.random.Generator) -> Any:
    """Return a random value that a schema allows.

    Args:
        schema: Of the part that `compile_schema` takes.
        rng: Source of the draws.
    """
    for keyword in ("enum", "examples"):
        if schema.get(keyword):
            options = schema[keyword]
            return options[int(rng.integers(len(options)))]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return draw(schema["anyOf"][int(rng.integers(len(schema["anyOf"])))], rng=rng)
    kinds = _type_names(schema) or ["string"]
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


_DRAWERS: dict[str, Callable[[Schema, np.random.Generator], Any]] = {
    "string": _draw_string,
    "integer": _draw_integer,
    "number": _draw_number,
    "boolean": lambda _, rng: bool(rng.integers(2)),
    "object": _draw_object,
    "array": _draw_array,
    "null": lambda *_: None,
}
