"""The words between the harness and an agent in another process: JSON lines.

Every line the harness writes is one request; every line the agent writes is its reply.

    {"reset": {"protocol": "owa-agent-1", "brief": {...}, "tools": [...],
               "memory_dir": PATH, "script": [...], "options": {...}}}  -> {}
    {"act": {"observation": {...}, "info": {...}}}                  -> {"action": A}
    {"close": {}}                                                   -> {}

A is the tool call `{"tool": NAME, "arguments": {...}}`, as JSON text or as an object;
in a native suite a number, or a list of numbers, and the observation is a list.
A reply to `act` may also declare `usage` [[METER, AMOUNT], ..], `messages`,
`model_calls`, `beliefs` [[ID, P], ..] and `revision`. `{"error": TEXT}` is the agent
saying that it failed. `info` leaves out `tools`, which `reset` gave.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from owa_bench.errors import AgentRaised
from owa_bench.interfaces import Brief, Move, ToolSpec
from owa_bench.records.events import Message, Meter, ModelCall, Revision

PROTOCOL = "owa-agent-1"
# What an agent may say it used; minutes of the supervisor are the harness' to count.
DECLARABLE: frozenset[str] = frozenset(
    {"api_calls", "tokens_in", "tokens_out", "cpu_s", "gpu_s", "wall_s", "bytes"}
)


class ResetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of an episode (or of a later session of it)."""

    protocol: str = PROTOCOL
    brief: Brief
    tools: tuple[ToolSpec, ...]
    memory_dir: str
    script: tuple[str, ...] = ()
    options: Mapping[str, str] = {}


class ActRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent sees before it moves."""

    observation: Any
    info: Mapping[str, Any]


class AgentRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line to the agent; exactly one of the first three fields is set."""

    reset: ResetRequest | None = None
    act: ActRequest | None = None
    close: dict[str, str] | None = None
    episode: str = ""


class AgentReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line from the agent."""

    action: Any = None
    usage: tuple[tuple[Meter, float], ...] = ()
    messages: tuple[Message, ...] = ()
    model_calls: tuple[ModelCall, ...] = ()
    beliefs: tuple[tuple[str, float], ...] = ()
    revision: Revision | None = None
    error: str | None = None


def plain(value: Any) -> Any:
    """Return the JSON form of what msgspec does not know; numpy becomes lists."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form")


_ENCODER = msgspec.json.Encoder(enc_hook=plain)
_REPLY = msgspec.json.Decoder(AgentReply)
_REQUEST = msgspec.json.Decoder(AgentRequest)


def write_request(request: AgentRequest, *, episode: str = "") -> bytes:
    """Return the line of a request, newline included."""
    named = msgspec.structs.replace(request, episode=episode)
    return _ENCODER.encode(named) + b"\n"


def read_request(line: bytes) -> AgentRequest:
    """Return the request of a line; msgspec's errors pass through."""
    return _REQUEST.decode(line)


def write_reply(reply: AgentReply) -> bytes:
    """Return the line of a reply, newline included."""
    return _ENCODER.encode(reply) + b"\n"


def read_reply(line: bytes) -> AgentReply:
    """Return the reply of a line.

    Errors: AgentRaised if the line is no reply, or if it says that the agent failed.
    """
    try:
        reply = _REPLY.decode(line)
    except msgspec.MsgspecError as error:
        shown = line[:120].decode(errors="replace").strip()
        raise AgentRaised(
            f"answered nonsense: {error}; the line began {shown!r}"
        ) from error
    if reply.error is not None:
        raise AgentRaised(reply.error)
    return reply


def act_request(observation: Any, info: Mapping[str, Any]) -> AgentRequest:
    """Return the request to act, without the tools that `reset` gave."""
    kept = {name: value for name, value in info.items() if name != "tools"}
    return AgentRequest(act=ActRequest(observation=observation, info=kept))


def as_reply(answer: Any) -> AgentReply:
    """Return what an agent's `act` returned as a reply; a bare action is allowed."""
    if isinstance(answer, Move):
        return AgentReply(**answer._asdict())
    return AgentReply(action=answer)


def as_move(reply: AgentReply, *, numbers: bool = False) -> Move:
    """Return the move of a reply, its action as text; `numbers` may be actions too.

    Errors: AgentRaised if the action is neither text nor an object, or if what is
    declared beside it is no meter, amount or probability.
    """
    for meter, amount in reply.usage:
        if meter not in DECLARABLE or not math.isfinite(amount) or amount < 0:
            raise AgentRaised(
                f"usage is a known meter and an amount >= 0, got {meter!r}, {amount!r}"
            )
    for name, p in reply.beliefs:
        if not 0.0 <= p <= 1.0:
            raise AgentRaised(
                f"a belief is an id and a p in [0, 1], got {name!r}, {p!r}"
            )
    return Move(
        action=_action_text(reply.action, numbers=numbers),
        usage=reply.usage,
        messages=reply.messages,
        model_calls=reply.model_calls,
        beliefs=reply.beliefs,
        revision=reply.revision,
    )


def _action_text(action: Any, *, numbers: bool) -> str:
    if isinstance(action, str):
        return action
    number = type(action) in (int, float) or isinstance(action, list)
    if isinstance(action, dict) or (numbers and number):
        return _ENCODER.encode(action).decode()
    kinds = "a number or a list of them" if numbers else "text or an object"
    raise AgentRaised(f"an action is {kinds}, got {repr(action)[:80]}")
