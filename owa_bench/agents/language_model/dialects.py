"""Dialects of chat servers: the forms that one request can be written in.

The first form says everything: replies come back with every field that they had, tools have their
whole schemas, and the defaults of the agent are sent. A server that refuses it is asked in a
plainer form; what the user chose is never taken back.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_Message = Mapping[str, Any]
_CALL_FIELDS = ("id", "type")
_SCHEMA_FIELDS = ("type", "description", "required", "enum")
# Forms by the words of a refusal. The plain ones are tried whatever it says.
_FORMS: Mapping[str, re.Pattern[str]] = {
    "plain schemas": re.compile(
        r"schema|grammar|additional_?properties|\bproperties\b|\bparameters\b|"
        r"function_declarations|tools\[|\btools\.\d|response_schema",
        re.I,
    ),
    "plain roles": re.compile(
        r"\broles?\b|alternat|jinja|chat template|system (message|prompt)|consecutive", re.I
    ),
    "plain echo": re.compile(r"extra|unexpected|unknown|not permitted|null|none|arguments", re.I),
    "nulls": re.compile(r"missing|required", re.I),
    "no blanks": re.compile(r"empty|blank", re.I),
    "names": re.compile(r"\bname\b", re.I),
}
_PLAIN = ("plain schemas", "plain roles", "plain echo")


@dataclass(frozen=True, slots=True)
class Dialect:
    """One form of a request; `dropped` are parameters that are not sent.

    `forms` are names of `_FORMS`. "nulls": a reply's fields that were null come back as nulls. "no
    blanks": no content where it is empty. "names": a result names its tool.
    """

    forms: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()

    def messages(self, messages: Sequence[_Message]) -> list[_Message]:
        """Return messages as this form has them."""
        names = _names(messages) if "names" in self.forms else {}
        sent = [self._message(message, names) for message in messages]
        return _merged(sent) if "plain roles" in self.forms else sent

    def _message(self, message: _Message, names: Mapping[str, str]) -> _Message:
        if message["role"] == "tool" and names:
            return {**message, "name": names.get(message["tool_call_id"], "")}
        if message["role"] != "assistant":
            return message
        if "plain echo" in self.forms:
            message = _plain_message(message)
        elif "nulls" not in self.forms:
            # An absent field says what a null says, and some servers refuse the null.
            message = {
                name: value
                for name, value in message.items()
                if value is not None or name == "content"
            }
        if "no blanks" in self.forms and not message["content"]:
            message = {n: value for n, value in message.items() if n != "content"}
        return message

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return tools as this form has them."""
        plain = "plain schemas" in self.forms
        return [_plain_tool(t) for t in tools] if plain else list(tools)

    def parameters(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that are sent."""
        return {name: value for name, value in given.items() if name not in self.dropped}

    def others(self, words: str, defaults: frozenset[str]) -> Iterator["Dialect"]:
        """Yield the forms to try when a server refuses this one, likeliest first.

        Args:
            words: The server's.
            defaults: Parameters that the user did not choose.
        Yields: Each is plainer than the one before, or lacks one more default.
        """
        left = sorted(defaults - self.dropped)
        named = [name for name in left if re.search(rf"\b{name}\b", words)]
        # "Use max_completion_tokens in place of max_tokens" names both.
        for name in named:
            yield replace(self, dropped=self.dropped | {name})
        if named:
            return
        plain = self
        fitting = [name for name, phrase in _FORMS.items() if phrase.search(words)]
        for name in dict.fromkeys((*fitting, *_PLAIN)):
            if name not in plain.forms:
                plain = replace(plain, forms=plain.forms | {name})
                yield plain
        if left:
            yield replace(plain, dropped=self.dropped | defaults)


def _names(messages: Sequence[_Message]) -> dict[str, str]:
    """Return the name of each call's tool, by the call's id."""
    calls = (call for m in messages for call in m.get("tool_calls") or ())
    return {call["id"]: call["function"]["name"] for call in calls}


def _plain_message(message: _Message) -> _Message:
    """Return a model's message of the fields that every server knows."""
    content = message.get("content")
    plain = {"role": "assistant", "content": content if content is not None else ""}
    calls = [_plain_call(call) for call in message.get("tool_calls") or ()]
    return plain | ({"tool_calls": calls} if calls else {})


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call of the fields that every server knows, its arguments as text."""
    name, arguments = (call["function"][field] for field in ("name", "arguments"))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": name, "arguments": text}
    return {field: call[field] for field in _CALL_FIELDS} | {"function": function}


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
            chosen: Mapping[str, Any] = next((o for o in options if o.get("type") != "null"), {})
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
