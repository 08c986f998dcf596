"""Contents of model replies: what may come back, and work of the provider's own.

Source: docs/model-gateway.md#fields.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from owa_bench.canonical import sha256
from owa_bench.records.model_replies import decoded, sse_events

# What a model writes freely: its names and values are no fields of the server's.
FREE = frozenset({"input", "arguments", "parsed", "partial_json", "json"})
_ENCODER = msgspec.json.Encoder(order="sorted")
_MOST = 100_000  # fields of a session's replies that are remembered
_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
_ITEMS = frozenset({"message", "function_call", "custom_tool_call", "reasoning"})
# Fields of replies that tell of a tool that the provider ran.
_WORK = (
    *("annotations", "citations", "search_results", "executed_tools"),
    *("server_tool_use", "web_search_requests", "num_search_queries"),
    *("tool_usage", "server_side_tool_usage", "num_sources_used"),
)


class ReplyEchoes:
    """Fields that the replies of one session held, by digests of name and value."""

    def __init__(self) -> None:
        self._digests: set[str] = set()

    def add(self, body: bytes) -> None:
        """Remember the fields of a reply, whole or streamed."""
        for value in values_of(body):
            for name, inner in fields_of(value):
                if len(self._digests) < _MOST:
                    self._digests.add(_digest(name, inner))

    def holds(self, name: str, value: Any) -> bool:
        """Return whether a reply held a field.

        Args:
            name: Of the field.
            value: As it was decoded.
        Returns: True where name and value are the same.
        """
        return _digest(name, value) in self._digests


def _digest(name: str, value: Any) -> str:
    return sha256(_ENCODER.encode([name, value]))


def values_of(body: bytes) -> Iterator[Any]:
    """Yield the JSON values of a reply: one, or one for each event."""
    value = decoded(body)
    if value is not None:
        yield value
    else:
        yield from sse_events(body)


def fields_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and values at every depth, none inside what a model writes."""
    level = [value]
    while level:
        node = level.pop()
        if isinstance(node, list):
            level += node
        elif isinstance(node, dict):
            yield from node.items()
            level += [inner for name, inner in node.items() if name not in FREE]


def hosted_work(body: bytes) -> tuple[str, ...]:
    """Return what in a reply tells of a tool that the provider ran, by its names."""
    names: dict[str, None] = {}
    for value in values_of(body):
        if isinstance(value, dict) and value.get("type") == "message":
            names |= dict.fromkeys(_kinds(value.get("content"), _BLOCKS))
        for name, inner in fields_of(value):
            if name in _WORK and _counts(inner):
                names[name] = None
            elif name in _LISTS:
                names |= dict.fromkeys(_kinds(inner, _LISTS[name]))
    return tuple(names)


_LISTS = {"content_block": _BLOCKS, "output": _ITEMS, "item": _ITEMS}


def _kinds(value: Any, known: frozenset[str]) -> Iterator[str]:
    """Yield the types of objects that no function of the agent's own makes."""
    for each in value if isinstance(value, list) else [value]:
        kind = each.get("type") if isinstance(each, dict) else None
        if isinstance(kind, str) and kind not in known:
            yield kind[:80]


def _counts(value: Any) -> bool:
    """Return whether a value says that something was done."""
    if isinstance(value, dict):
        return any(map(_counts, value.values()))
    return bool(value) and value != "0"
