"""Tool calls as text: the charset, the spaces, and the parser.

An action is JSON text, `{"tool": NAME, "arguments": {...}}`. All suites share one charset:
printable ASCII, newline and tab; any other character is JSON-escaped.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import msgspec
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory

from owa_bench import bounded_json
from owa_bench.errors import UsageError
from owa_bench.interfaces import ToolSpec
from owa_bench.shells.schemas import compile_schema, draw, short_json, suggestion

CHARSET = "\t\n" + "".join(chr(code) for code in range(0x20, 0x7F))
TEXT_LIMIT = 16_384  # characters of an observation; no brief of a suite is cut
REPLY_LIMIT = 4096  # characters of a tool's reply
ACTION_LIMIT = 65_536  # characters of an action

_FOREIGN = re.compile(r"[^\t\n\x20-\x7e]")
_SHAPE = 'an action is JSON text like {"tool": "NAME", "arguments": {}}'


class ParsedCall(NamedTuple):
    """One tool call that its schema allows."""

    tool: str
    arguments: dict[str, Any]


def is_plain(text: str) -> bool:
    """Return whether `text` holds characters of the charset only."""
    if not text.isascii():
        return False
    return text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable()


def escape(text: str) -> str:
    r"""Return `text` with every character outside the charset JSON-escaped.

    >>> escape("caf\u00e9")
    'caf\\u00e9'
    """
    if is_plain(text):
        return text
    return _FOREIGN.sub(lambda match: json.dumps(match.group())[1:-1], text)


def shorten(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return `text` escaped, and cut to a limit with a note.

    Args:
        text: Any text.
        limit: Most characters, the note among them; by default those of an observation.
    """
    plain = escape(text)
    if len(plain) <= limit:
        return plain
    note = f"\n[cut: the first {limit} of {len(plain)} characters]"
    return plain[: limit - len(note)] + note


def call_text(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the action text of a tool call.

    Args:
        tool: The tool's name.
        arguments: By name.
    Returns: JSON in the shared charset.
    """
    return escape(msgspec.json.encode({"tool": tool, "arguments": arguments}).decode())


class PlainText(spaces.Text):
    """Text of the shared charset, at most `max_length` characters."""

    def __init__(self, max_length: int, *, seed: int | None = None) -> None:
        super().__init__(max_length, min_length=0, charset=CHARSET, seed=seed)

    def contains(self, x: Any) -> bool:
        """Return whether `x` is plain text of a fitting length."""
        return isinstance(x, str) and len(x) <= self.max_length and is_plain(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.max_length})"


class ToolCalls(PlainText):
    """Action text; `sample` draws calls that the tools' schemas allow.

    Any plain text is contained: a malformed call may be tried and costs a step.
    """

    def __init__(self, tools: Sequence[ToolSpec], *, seed: int | None = None) -> None:
        super().__init__(ACTION_LIMIT, seed=seed)
        self.tools = tuple(tools)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a valid call of a random tool.

        Args:
            mask: (tools,) 0 for a tool that must not be drawn; None allows all.
            probability: (tools,) weights; they replace the mask.
        Returns: Action text.
        Raises: UsageError: no tool is allowed.
        """
        count = len(self.tools)
        weights = np.ones(count) if mask is None else np.asarray(mask, dtype=float)
        if probability is not None:
            weights = np.asarray(probability, dtype=float)
        if weights.shape != (count,) or weights.sum() <= 0:
            raise UsageError(f"`mask` must allow one of {count} tools, got {weights!r}.")
        pick = int(self.np_random.choice(count, p=weights / weights.sum()))
        tool = self.tools[pick]
        return call_text(tool.name, draw(tool.parameters, rng=self.np_random))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolCalls) and self.tools == other.tools

    __hash__ = None  # type: ignore[assignment]  # spaces are mutable: they hold a generator


@create_shared_memory.register(PlainText)
def _refuse_shared_memory(space: PlainText, *_: Any, **__: Any) -> NoReturn:
    """Refuse what Gymnasium offers: its shared memory never updates Text."""
    raise UsageError(
        f"{space!r} cannot live in AsyncVectorEnv's shared memory, which never updates "
        "text: pass `shared_memory=False`."
    )


@lru_cache(maxsize=256)  # tools: envs of one suite share their checks
def _check_of(schema: bytes) -> Callable[[Any, str], str | None]:
    return compile_schema(msgspec.json.decode(schema))


class CallParser:
    """Turns action text into calls, by checks compiled once from the schemas."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._checks = {
            tool.name: _check_of(msgspec.json.encode(tool.parameters)) for tool in tools
        }
        self._names = ", ".join(self._checks)

    def parse(self, text: str) -> ParsedCall | str:
        """Return the call, or a message that names field, value and fix."""
        if len(text) > ACTION_LIMIT:
            rule = f"`action` must have at most {ACTION_LIMIT} characters"
            return f"{rule}, got {len(text)}; send less at once."
        try:
            action = bounded_json.decode(text)
        except ValueError as error:
            return f"`action` does not parse: {error}; {_SHAPE}."
        if type(action) is not dict:
            return f"`action` must be a JSON object, got {short_json(action)}; {_SHAPE}."
        for name in action:
            if name not in ("tool", "arguments"):
                return f"`{escape(name)}` is no field of an action; {_SHAPE}."
        return self._checked(action.get("tool"), action.get("arguments", {}))

    def _checked(self, tool: Any, arguments: Any) -> ParsedCall | str:
        if type(tool) is not str or tool not in self._checks:
            near = suggestion(tool, self._checks) if type(tool) is str else ""
            return f"`tool` must be one of {self._names}, got {short_json(tool)}.{near}"
        if type(arguments) is not dict:
            return f"`arguments` must be a JSON object, got {short_json(arguments)}."
        error = self._checks[tool](arguments, "arguments")
        return ParsedCall(tool, arguments) if error is None else error
