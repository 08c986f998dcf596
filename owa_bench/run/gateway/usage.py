"""Token usage in the replies of OpenAI-compatible servers, streamed or not."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from owa_bench import bounded_json

MOST_TOKENS = 10**8  # of one reply; a larger count is no usage


class TokenUsage(NamedTuple):
    """Tokens that a provider counted: read, written, and of those read from a cache."""

    tokens_in: int
    tokens_out: int
    tokens_cached: int = 0


def usage_in(reply: Any) -> TokenUsage | None:
    """Return the usage in a decoded reply, None where it holds none.

    Chat completions and embeddings count `prompt_tokens` and `completion_tokens`,
    responses `input_tokens` and `output_tokens`.
    """
    found = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(found, dict):
        return None
    for read, written in (
        ("prompt_tokens", "completion_tokens"),
        ("input_tokens", "output_tokens"),
    ):
        if read in found:
            details = found.get(f"{read}_details") or {}
            counts = (found[read], found.get(written, 0), details.get("cached_tokens"))
            tokens = [count or 0 for count in counts]
            if all(type(n) is int and 0 <= n <= MOST_TOKENS for n in tokens):
                return TokenUsage(*tokens)
    return None


def usage_of(body: bytes) -> TokenUsage | None:
    """Return the usage in the body of a reply, None where it holds none."""
    try:
        return usage_in(bounded_json.decode(body))
    except (ValueError, AttributeError):
        return None


class EventStream:
    """Server-sent events of a reply, with the usage that one of them holds.

    `hide_usage`: a chunk of usage alone is for the gateway, which asked for it.
    """

    def __init__(self, *, hide_usage: bool) -> None:
        self.usage: TokenUsage | None = None
        self._hide_usage = hide_usage
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the events that are whole now and that the agent gets."""
        *events, self._rest = (self._rest + data).split(b"\n\n")
        for event in events:
            if not self._is_hidden(event):
                yield event + b"\n\n"

    def end(self) -> bytes:
        """Return what is left after the last whole event."""
        rest, self._rest = self._rest, b""
        return b"" if self._is_hidden(rest) else rest

    def _is_hidden(self, event: bytes) -> bool:
        if b'"usage"' not in event:
            return False
        lines = [line[5:] for line in event.splitlines() if line.startswith(b"data:")]
        try:
            chunk = bounded_json.decode(b"\n".join(lines))
        except ValueError:
            return False
        if not isinstance(chunk, dict):
            return False
        usage = usage_in(chunk) or usage_in(chunk.get("response"))
        self.usage = usage or self.usage
        return self._hide_usage and usage is not None and chunk.get("choices") == []
