"""Dialects of chat servers: the forms that one request can be written in.

The first form says everything: replies come back with every field that they had, tools
have their whole schemas, and the defaults of the agent are sent. A server that refuses
it is asked in a plainer form; what the user chose is never taken back.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_Message = Mapping[str, Any]
_CALL_FIELDS = ("id", "type")
_SCHEMA_FIELDS = ("type", "description", "required", "enum")
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "plain_schemas",
        re.compile(
            r"schema|grammar|additional_?properties|\bproperties\b|\bparameters\b|"
            r"function_declarations|tools\[|\btools\.\d|response_schema",
            re.I,
        ),
    ),
    (
        "plain_roles",
        re.compile(
            r"\broles?\b|alternat|jinja|chat template|system (message|prompt)|"
            r"consecutive",
            re.I,
        ),
    ),
    (
        "plain_echo",
        re.compile(r"extra|unexpected|unknown|not permitted|null|none", re.I),
    ),
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One form of a request; `dropped` are parameters that are not sent."""

    plain_echo: bool = False
    plain_schemas: bool = False
    plain_roles: bool = False
    dropped: frozenset[str] = frozenset()

    def messages(self, messages: Sequence[_Message]) -> list[_Message]:
        """Return messages as this form has them."""
        sent = [_plain_message(m) for m in messages] if self.plain_echo else messages
        return _merged(sent) if self.plain_roles else list(sent)

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return tools as this form has them."""
        return [_plain_tool(t) for t in tools] if self.plain_schemas else list(tools)

    def parameters(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that are sent."""
        return {
            name: value for name, value in given.items() if name not in self.dropped
        }

    def others(self, words: str, defaults: frozenset[str]) -> Iterator["Dialect"]:
        """Yield the forms to try when a server refuses this one, likeliest first.

        Args:
            words: The server's.
            defaults: Parameters that the user did not choose.

        Yields:
            Each is plainer than the one before, or lacks one more default.
        """
        left = sorted(defaults - self.dropped)
        named = [name for name in left if re.search(rf"\b{name}\b", words)]
        # "Use max_completion_tokens in place of max_tokens" names both.
        for name in named:
            yield replace(self, dropped=self.dropped | {name})
        if named:
            return
        plain = self
        fitting = [name for name, phrase in _FORMS if phrase.search(words)]
        for name in dict.fromkeys((*fitting, *(name for name, _ in _FORMS))):
            if not getattr(plain, name):
                plain = _plainer(plain, name)
                yield plain
        if left:
            yield replace(plain, dropped=self.dropped | defaults)


def _plainer(dialect: Dialect, form: str) -> Dialect:
    """Return a dialect that is plain in one more form."""
    if form == "plain_echo":
        return replace(dialect, plain_echo=True)
    if form == "plain_schemas":
        return replace(dialect, plain_schemas=True)
    return replace(dialect, plain_roles=True)


def _plain_message(message: _Message) -> _Message:
    """Return a message of the fields that every server knows."""
    if message["role"] != "assistant":
        return message
    content = message.get("content")
    plain = {"role": "assistant", "content": content if content is not None else ""}
    calls = [
        {name: call[name] for name in _CALL_FIELDS}
        | {"function": {k: call["function"][k] for k in ("name", "arguments")}}
        for call in message.get("tool_calls", ())
    ]
    return plain | ({"tool_calls": calls} if calls else {})


def _merged(messages: Sequence[_Message]) -> list[_Message]:
    """Return messages without a system's, and without two of a user in a row."""
    merged: list[_Message] = []
    for message in messages:
        here = message if message["role"] != "system" else {**message, "role": "user"}
        last = merged[-1] if merged else None
        texts = [m.get("content") if m else None for m in (last, here)]
        are_texts = all(isinstance(text, str) for text in texts)
        if last and last["role"] == here["role"] == "user" and are_texts:
            merged[-1] = {**last, "content": "\n\n".join(map(str, texts))}
        else:
            merged.append(here)
    return merged


def _plain_tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tool whose schema has the words that every server knows."""
    function = dict(tool["function"])
    schema = _plain_schema(function.pop("parameters", None) or {})
    # Some servers refuse an object without properties.
    kept = {"parameters": schema} if schema.get("properties") else {}
    return {**tool, "function": function | kept}


def _plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a JSON Schema that every server knows."""
    for group in ("anyOf", "oneOf", "allOf"):
        if options := schema.get(group):
            chosen: Mapping[str, Any] = next(
                (o for o in options if o.get("type") != "null"), {}
            )
            rest = {name: schema[name] for name in schema if name != group}
            return _plain_schema({**chosen, **rest})
    plain = {name: schema[name] for name in _SCHEMA_FIELDS if name in schema}
    kind = plain.get("type")
    if isinstance(kind, list):
        plain["type"] = next((each for each in kind if each != "null"), "string")
    if "const" in schema:
        plain["enum"] = [schema["const"]]
    if not all(isinstance(value, str) for value in plain.get("enum", ())):
        del plain["enum"]
    if properties := schema.get("properties"):
        plain["properties"] = {n: _plain_schema(each) for n, each in properties.items()}
    elif "required" in plain:
        del plain["required"]
    if plain.get("type") == "array":
        plain["items"] = _plain_schema(schema.get("items") or {"type": "string"})
    return plain
