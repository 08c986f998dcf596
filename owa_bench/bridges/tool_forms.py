"""Forms of tools: the fields a person fills in, and the tool call that they make.

A field's kind follows from its JSON schema. An object is filled in as lines of `name=value` or as
JSON, a list as JSON, everything else as its plain text.
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from owa_bench.errors import FieldError, UsageError
from owa_bench.interfaces import ToolSpec
from owa_bench.shells.calls import call_text
from owa_bench.shells.schemas import compile_schema

_LONG = 200  # characters from which a text has a field of several lines
_BELIEFS = "beliefs"
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


class ToolField(msgspec.Struct, frozen=True):
    """One field: `kind` is text, lines, number, choice, switch, map or json."""

    name: str
    kind: str
    about: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


class ToolForm(msgspec.Struct, frozen=True):
    """The form of one tool."""

    name: str
    about: str
    fields: tuple[ToolField, ...]


def form_of(tool: ToolSpec, propositions: Mapping[str, str]) -> ToolForm:
    """Return the form of a tool.

    Args:
        tool: The tool.
        propositions: Those of the task by id; each gets a field of its own in place of the one
            field `beliefs`.
    """
    required = set(tool.parameters.get("required", ()))
    fields: list[ToolField] = []
    for name, schema in tool.parameters.get("properties", {}).items():
        if name == _BELIEFS:
            fields += [
                ToolField(f"{_BELIEFS}.{key}", "number", text, low=0.0, high=1.0)
                for key, text in propositions.items()
            ]
            continue
        fields.append(
            ToolField(
                name,
                _kind(schema),
                _about(schema),
                name in required,
                tuple(map(str, schema.get("enum", ()))),
                schema.get("minimum"),
                schema.get("maximum"),
            )
        )
    return ToolForm(tool.name, tool.about, tuple(fields))


def _about(schema: Mapping[str, Any]) -> str:
    """Return what a field says of itself; an example where it says nothing."""
    examples = schema.get("examples", ())
    example = f"For example {examples[0]}" if examples else ""
    return str(schema.get("description", example))


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the kind of a field."""
    if "enum" in schema:
        return "choice"
    kind = schema.get("type", "")
    if kind in ("number", "integer"):
        return "number"
    if kind == "boolean":
        return "switch"
    if kind == "string":
        return "lines" if schema.get("maxLength", _LONG) > _LONG else "text"
    return "map" if kind == "object" else "json"


def call_of(tool: ToolSpec, texts: Mapping[str, str]) -> str:
    """Return the action that a filled-in form makes.

    Args:
        tool: The tool.
        texts: What was filled in, by the name of the field; "" is left out.
    Returns: The action as JSON text.
    Raises: UsageError: a field cannot be read, or the tool's schema refuses it.
    """
    arguments: dict[str, Any] = {}
    known = tool.parameters.get("properties", {})
    for name, text in texts.items():
        if not text.strip():
            continue
        top, _, key = name.partition(".")
        if top == _BELIEFS and key:
            arguments.setdefault(_BELIEFS, {})[key] = _number(name, text)
        elif name in known:
            arguments[name] = _value(name, text, known[name])
        else:
            raise FieldError(name, text, f"must be a field of `{tool.name}`")
    return checked_call(tool, arguments)


def checked_call(tool: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Return the action of a tool call that its schema allows.

    Args:
        tool: The tool.
        arguments: By name.
    Returns: The action as JSON text.
    Raises: UsageError: the schema refuses them.
    """
    error = compile_schema(tool.parameters)(dict(arguments), "arguments")
    if error is not None:
        raise UsageError(f"`{tool.name}` cannot be called so: {error}")
    return call_text(tool.name, arguments)


def _value(name: str, text: str, schema: Mapping[str, Any]) -> Any:
    """Return the value of a field's text; FieldError where there is none."""
    kind = _kind(schema)
    if kind == "number":
        return _number(name, text)
    if kind == "switch":
        if text.strip().lower() not in _WORDS:
            raise FieldError(name, text, "must be yes or no")
        return _WORDS[text.strip().lower()]
    if kind == "choice":
        named = {str(option): option for option in schema["enum"]}
        return named.get(text.strip(), text)
    if kind == "map" and not text.lstrip().startswith("{"):
        return _lines(name, text, schema.get("additionalProperties", {}))
    if kind in ("map", "json"):
        return _json(name, text, kind)
    return text


def _number(name: str, text: str) -> float | int:
    try:
        return int(text) if text.strip().lstrip("+-").isdigit() else float(text)
    except ValueError as error:
        raise FieldError(name, text, "must be a number") from error


def _json(name: str, text: str, kind: str) -> Any:
    """Return JSON; a word that is none stands for itself, such as a handle."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if kind == "json" and text.lstrip()[:1] not in "[{":
            return text.strip()
        raise FieldError(name, text, f"must be JSON ({error})") from error


def _lines(name: str, text: str, inner: Any) -> dict[str, Any]:
    """Return the object that lines of `name=value` stand for."""
    found: dict[str, Any] = {}
    plain = isinstance(inner, Mapping) and inner.get("type") == "string"
    for line in filter(str.strip, text.splitlines()):
        key, sign, value = line.partition("=")
        if not sign:
            raise FieldError(name, line, "must be lines of name=value, or JSON")
        given = value.strip()
        found[key.strip()] = given if plain else _json(name, given, "json")
    return found
