"""Context length of a chat server: as it tells, and as a growing prompt reaches it."""

from typing import Any

from owa_bench.hosting.gateway.probe_client import ServerReply, dig
from owa_bench.hosting.gateway.probe_requests import ProbeState

_FIRST_LINES = 120  # some 1,500 tokens: enough for caches of prompts
_MOST_TOKENS = 70_000  # of one prompt, so that a hosted server stays cheap
_GROWTH = 1.5  # a doubled prompt that counts less than this was cut
_CAP = 16
_FIELDS = (
    ("max_model_len",),
    ("context_length",),
    ("context_window",),
    ("max_context_length",),
    ("max_input_tokens",),
    ("meta", "n_ctx"),
)
_PROPS = (("default_generation_settings", "n_ctx"), ("n_ctx",))
_OLLAMA = "OLLAMA_CONTEXT_LENGTH=32768 ollama serve, or num_ctx in a Modelfile"


async def probe_told_context(state: ProbeState) -> None:
    """Record the context length that the server tells of."""
    listing = dig(await state.client.models(), "data")
    entries = listing if isinstance(listing, list) else []
    named = [entry for entry in entries if dig(entry, "id") == state.model]
    for entry in named or (entries if len(entries) == 1 else []):
        if _say_told(state, _number(entry, _FIELDS), "/models"):
            return
    props = await state.client.at_root("/props")
    if _say_told(state, _number(props, _PROPS), "/props"):
        return
    shown = await state.client.at_root("/api/show", {"model": state.model})
    if (model_info := dig(shown, "model_info")) is not None:
        _say_ollama(state, model_info, dig(shown, "parameters"))
        return
    fix = "context=N, from the server's documents"
    state.put("context told", "no", "no address tells it", fix)


def _number(entry: Any, paths: tuple[tuple[str, ...], ...]) -> int | None:
    counts = (dig(entry, *path) for path in paths)
    return next((count for count in counts if type(count) is int and count > 0), None)


def _say_told(state: ProbeState, tokens: int | None, place: str) -> bool:
    if tokens is None:
        return False
    state.context_told = tokens
    state.put("context told", "yes", f"{tokens:,} tokens, by {place}")
    return True


def _say_ollama(state: ProbeState, model_info: Any, parameters: Any) -> None:
    """Record what Ollama tells: the model's length, and the one that it serves."""
    for line in str(parameters or "").splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "num_ctx" and value.strip().isdigit():
            _say_told(state, int(value), "num_ctx of /api/show")
            return
    lengths = [
        length
        for name, length in (model_info if isinstance(model_info, dict) else {}).items()
        if str(name).endswith(".context_length")
    ]
    detail = f"the model has {lengths[0] if lengths else '?'}, Ollama serves less"
    state.put("context told", "no", detail, _OLLAMA)


async def probe_context(state: ProbeState) -> None:
    """Record cached counts and the longest prompt that the server reads whole."""
    lines, before = _FIRST_LINES, 0
    reply = await _long(state, lines)
    if not reply.is_completion:
        state.put_refusal("context reached", reply)
        state.put("cached counts", "not tried", "a prompt of some 1,500 tokens failed")
        return
    _say_cached(state, await _long(state, lines))
    while True:
        if reply.usage is None:
            detail = "it accepts the prompt, but counts no tokens: cannot be told"
            state.put("context reached", "not tried", detail)
            return
        tokens = reply.usage.tokens_in
        if before and tokens < _GROWTH * before:
            _say_cut(state, before, tokens)
            return
        before = state.context_reached = tokens
        state.put("context reached", "yes", f"at least {tokens:,} tokens")
        if 2 * tokens > _MOST_TOKENS:
            return
        lines *= 2
        reply = await _long(state, lines)
        if not reply.is_completion:
            state.context_limit = 2 * tokens if state.context_told is None else None
            detail = f"at least {tokens:,} tokens; {2 * tokens:,} give {reply.words}"
            state.put("context reached", "yes", detail)
            return


async def _long(state: ProbeState, lines: int) -> ServerReply:
    """Ask with a prompt of so many lines."""
    text = "\n".join(f"Line {n}: the lamp in room {n} is green." for n in range(lines))
    content = f"{text}\nSay yes."
    return await state.ask([{"role": "user", "content": content}], cap=_CAP)


def _say_cached(state: ProbeState, second: ServerReply) -> None:
    """Record whether an equal second request counts what was cached."""
    if not second.is_completion:
        state.put("cached counts", "not tried", second.words)
    elif second.usage and second.usage.tokens_cached:
        sent, _, cached = second.usage
        detail = f"{cached:,} of {sent:,} tokens in an equal second request"
        state.put("cached counts", "yes", detail)
    else:
        detail = "usage counts no cached tokens in an equal second request"
        state.put("cached counts", "no", detail)


def _say_cut(state: ProbeState, before: int, tokens: int) -> None:
    """Record a server that cuts prompts without a word."""
    state.context_limit = max(before, tokens)
    detail = (
        f"prompts are cut without a word: twice the prompt of {before:,} tokens counts {tokens:,}"
    )
    fix = f"context={state.context_limit}, or start the server with more: {_OLLAMA}"
    state.put("context reached", "no", detail, fix)
