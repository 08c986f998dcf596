"""Check of a model request against the list of fields, at every depth.

Source: docs/model-gateway.md#fields.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from owa_bench.hosting.gateway.request_fields import (
    TABLES,
    FieldChoice,
    FieldKinds,
    FieldRule,
    FieldSet,
    FieldTable,
    FieldValue,
)

# Names by which a router is asked for a stored prompt, or for a search of its own.
_SERVER_SIDE = re.compile(r"@preset/|:online\b")
_BASE64 = re.compile(r"[A-Za-z0-9+/=_\s-]+")
_DATA = "data:"
_MODEL = "assistant"
_MODEL_ITEMS = frozenset({"function_call", "custom_tool_call", "reasoning"})


class UnlistedField(NamedTuple):
    """Something in a request that is not on the list: its name, its path, a fix."""

    name: str
    path: str
    fix: str

    @property
    def text(self) -> str:
        """The refusal, in a line."""
        return (
            f"`{self.path}` is refused: {self.fix}. Or the run lets it pass by "
            f"--model-field {self.name}, and axes M and S are missing "
            "(docs/model-gateway.md#fields)."
        )


def unlisted_fields(
    path: str, terms: Mapping[str, Any], is_echo: Callable[[str, Any], bool]
) -> Iterator[UnlistedField]:
    """Yield what of a request is not on the list.

    Args:
        path: Endpoint, below /v1.
        terms: The request's body.
        is_echo: Whether a reply of this session held a field with this value. Such a field may come
            back in a message of the model's: servers need some of them.
    Yields: Each field, outermost first. A null is a field that was left out.
    """
    yield from _of_object(TABLES.get(path, {}), terms, "", is_echo, echoed=False)


def refusal(
    path: str,
    terms: Mapping[str, Any],
    is_echo: Callable[[str, Any], bool],
    passed: Collection[str],
) -> tuple[str, tuple[str, ...]]:
    """Return why a request is refused, "" if it is not, and what a user let pass.

    Args:
        path: Endpoint, below /v1.
        terms: The request's body.
        is_echo: As `unlisted_fields` has it.
        passed: Names that the run lets pass.
    Returns: The words, and the names.
    """
    let_pass = []
    for field in unlisted_fields(path, terms, is_echo):
        if field.name not in passed:
            return field.text, ()
        let_pass.append(field.name)
    return "", tuple(dict.fromkeys(let_pass))


_IsEcho = Callable[[str, Any], bool]


def _of_object(
    table: FieldTable, value: Mapping[str, Any], at: str, is_echo: _IsEcho, *, echoed: bool
) -> Iterator[UnlistedField]:
    """Yield what is not on the list in one object."""
    echoed |= value.get("role") == _MODEL
    for name, inner in value.items():
        if inner is None or (echoed and is_echo(name, inner)):
            continue
        here = f"{at}.{name}" if at else name
        rule = table.get(name)
        if rule is None:
            yield UnlistedField(name, here, "leave it out; it is not on the list")
        else:
            yield from _of_value(rule, inner, here, is_echo, echoed=echoed)


def _of_value(
    rule: FieldRule, value: Any, at: str, is_echo: _IsEcho, *, echoed: bool
) -> Iterator[UnlistedField]:
    """Yield what a rule does not let pass of a value, or of each in a list."""
    if value is None:
        return
    if rule is FieldValue.ANY:
        yield from _of_json(value, at)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _of_value(rule, inner, f"{at}[{place}]", is_echo, echoed=echoed)
    elif isinstance(rule, FieldChoice):
        yield from _of_choice(rule, value, at)
    elif isinstance(rule, FieldValue):
        if not (rule is FieldValue.ECHO and is_echo(_name(at), value)):
            yield from _of_leaf(rule, value, at)
    elif isinstance(value, dict):
        yield from _of_form(rule, value, at, is_echo, echoed=echoed)
    elif rule.text is not None:
        yield from _of_leaf(rule.text, value, at)
    else:
        yield UnlistedField(_name(at), at, "it must be an object")


def _of_choice(rule: FieldChoice, value: Any, at: str) -> Iterator[UnlistedField]:
    """Yield a value that is none of a few; 0 is not false."""
    if not any(value is known or value == known != 0 for known in rule.values):
        known = " or ".join(map(repr, rule.values)) or "an empty list"
        yield UnlistedField(_name(at), at, f"it may be {known} alone")


def _of_form(
    rule: FieldSet | FieldKinds, value: dict[str, Any], at: str, is_echo: _IsEcho, *, echoed: bool
) -> Iterator[UnlistedField]:
    """Yield what is not on the list in an object of known fields, or of a kind."""
    if isinstance(rule, FieldSet):
        yield from _of_object(rule.fields, value, at, is_echo, echoed=echoed)
        return
    kind = value.get("type")
    if kind is None and rule.mark in value:
        kind = rule.usual
    fields = rule.kinds.get(kind) if isinstance(kind, str) else None
    if fields is None:
        known = ", ".join(rule.kinds)
        name = kind if isinstance(kind, str) and kind else "type"
        fix = f"its `type` must be one of {known}, got {str(kind)[:80]!r}"
        yield UnlistedField(name[:80], at, fix)
        return
    echoed |= kind in _MODEL_ITEMS
    rest = {name: inner for name, inner in value.items() if name != "type"}
    yield from _of_object(fields, rest, at, is_echo, echoed=echoed)


def _of_leaf(rule: FieldValue, value: Any, at: str) -> Iterator[UnlistedField]:
    """Yield a value that a leaf does not let pass."""
    fix, text = "", value if isinstance(value, str) else ""
    if isinstance(value, dict):
        fix = "it must hold no object"
    elif rule is FieldValue.DATA and text[: len(_DATA)].lower() != _DATA:
        fix = "send the bytes in an address that begins with data:"
    elif rule is FieldValue.PAYLOAD and not _is_payload(text):
        fix = "send the bytes as base64, and no address"
    elif rule is FieldValue.MODEL and _SERVER_SIDE.search(text):
        fix = "name a model without @preset/ or :online"
    elif rule is FieldValue.ECHO:
        fix = "leave it out: no reply of this session held it"
    if fix:
        yield UnlistedField(_name(at), at, fix)


def _is_payload(text: str) -> bool:
    is_data = text[: len(_DATA)].lower() == _DATA
    return is_data or _BASE64.fullmatch(text) is not None


def _of_json(value: Any, at: str) -> Iterator[UnlistedField]:
    """Yield what a schema, or another free value, refers to outside itself."""
    level = [value]
    while level:
        node = level.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and not reference.startswith("#"):
                yield UnlistedField("$ref", f"{at}.$ref", "refer inside the schema (#)")
            level += node.values()
        elif isinstance(node, list):
            level += node


def _name(at: str) -> str:
    """Return the last name of a path."""
    return re.sub(r"\[[0-9]+\]", "", at).rpartition(".")[2]
