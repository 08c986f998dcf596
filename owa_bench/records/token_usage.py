"""Tokens that a model's server counts, in the forms that servers write them.

Source: docs/model-gateway.md#tokens-and-their-price.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from owa_bench.records.model_replies import decoded, sse_events

_DIGITS = re.compile(r"\s*[0-9]{1,20}\s*")
MOST_TOKENS = 10**8  # of one reply; a larger count is no usage


class TokenUsage(NamedTuple):
    """Tokens that a provider counted: read, written, and of those read from a cache."""

    tokens_in: int
    tokens_out: int
    tokens_cached: int = 0


def usage_in(reply: Any) -> TokenUsage | None:
    """Return the usage in a decoded reply, None where it holds none that can be read.

    Chat completions and embeddings count `prompt_tokens` and `completion_tokens`, responses and
    messages `input_tokens` and `output_tokens`; messages count what a cache held or took beside the
    input. What a total says beyond both was written: some servers count reasoning beside the
    completion.
    """
    usage = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(usage, dict):
        return None
    for read, written in (
        ("prompt_tokens", "completion_tokens"),
        ("input_tokens", "output_tokens"),
    ):
        if _count(usage.get(read)) is None:
            continue
        null = usage.get(written) is None  # of embeddings, or nothing was written
        tokens_in, tokens_out = (_count(usage[read]), 0 if null else _count(usage[written]))
        if tokens_in is None or tokens_out is None:
            return None
        cached = _cached(usage, read)
        beside = _count(usage.get("cache_read_input_tokens")) or 0
        beside += _count(usage.get("cache_creation_input_tokens")) or 0
        total = _count(usage.get("total_tokens")) or 0
        # Some servers count a prompt without what a cache held, under both names.
        apart = beside > tokens_in or total == tokens_in + tokens_out + beside
        if read == "input_tokens" or apart:
            tokens_in += beside
        details = usage.get(f"{written}_details")
        reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else 0
        thought = _count(reasoning) or 0
        if total > tokens_in + tokens_out:
            tokens_out = total - tokens_in
        elif thought > tokens_out:
            tokens_out += thought
        if 0 < max(tokens_in, tokens_out) <= MOST_TOKENS:  # zeros count nothing
            return TokenUsage(tokens_in, tokens_out, min(cached, tokens_in))
    return None


def usage_of(body: bytes) -> TokenUsage | None:
    """Return the usage in the body of a reply, None where it holds none.

    Of a stream that came where a whole reply was asked for, the last event counts.
    """
    value = decoded(body)
    if value is not None:
        return usage_in(value)
    counts: dict[str, Any] = {}
    for event in sse_events(body):
        add_usage(counts, event)
    return usage_in({"usage": counts})


def add_usage(counts: dict[str, Any], event: Any) -> bool:
    """Add the counts in one event of a stream; later ones replace earlier ones.

    The stream of messages counts what was read in its first event and what was written in a later
    one, which may hold a zero for the first count.

    Args:
        counts: Of the stream so far.
        event: The event, decoded.
    Returns: Whether it holds counts.
    """
    if not isinstance(event, dict):
        return False
    choices = event.get("choices")
    last = choices[0] if isinstance(choices, list) and choices else None
    for part in (event, *(event.get(name) for name in _USAGE_HOLDERS), last):
        usage = part.get("usage") if isinstance(part, dict) else None
        if isinstance(usage, dict):
            counts |= {n: c for n, c in usage.items() if c or n not in counts}
            return bool(usage)
    return False


_USAGE_HOLDERS = ("response", "message", "x_groq")


def _cached(usage: Mapping[str, Any], read: str) -> int:
    """Return how many of the tokens read came from the provider's cache."""
    details = usage.get(f"{read}_details")
    inner = details.get("cached_tokens") if isinstance(details, dict) else None
    named = (
        usage.get(name)
        for name in ("prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens")
    )
    return next((count for count in map(_count, (inner, *named)) if count), 0)


def _count(value: Any) -> int | None:
    """Return a count as a whole number, None where it is none."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # NaN lies between no two numbers.
    return int(value) if 0 <= value <= MOST_TOKENS and value % 1 == 0 else None
