"""Agent protocol: JSON lines between the harness and an agent in another process.

Every line the harness writes is one request; every line the agent writes is its reply.

    {"reset": {"protocol": "owa-agent-1", "brief": {...}, "tools": [...],
               "memory_dir": PATH, "script": [...], "options": {...}}}  -> {}
    {"act": {"observation": {...}, "info": {...}}}                  -> {"action": A}
    {"close": {}}                                                   -> {}

A is the tool call `{"tool": NAME, "arguments": {...}}`, as JSON text or as an object; in a native
suite a number, or a list of numbers, and the observation is a list. A reply to `act` may also
declare `usage` [[METER, AMOUNT], ..], `messages`, `model_calls`, `beliefs` [[ID, P], ..] and
`revision`. `{"error": TEXT}` is the agent saying that it failed; `"traceback"` may stand beside it.
`info` leaves out `tools`, which `reset` gave.

The second half is the agent's side: its code is imported, and answers the requests.
"""

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from owa_bench import bounded_json, discovery
from owa_bench.errors import AgentRaised, bounded_record, error_line, error_record
from owa_bench.hosting.spec import Origin
from owa_bench.interfaces import Agent, AgentCard, AgentConfig, Brief, Move, ToolSpec
from owa_bench.records.event_base import LARGEST_ACTION
from owa_bench.records.events import Message, Meter, ModelCall, Revision

PROTOCOL = "owa-agent-1"
# Meters an agent may declare; minutes of the supervisor are counted by the harness.
DECLARABLE: frozenset[str] = frozenset(
    {"api_calls", "tokens_in", "tokens_out", "cpu_s", "gpu_s", "wall_s", "bytes"}
)
# The most a Move may declare on a meter; a report adds up whole runs of them exactly.
MOST_AMOUNT = 1e7
MOST_BYTES = 1e10
_CALL_NUMBERS = ("tokens_in", "tokens_out", "tokens_cached", "latency_s", "status")
_ARRAYS: Mapping[str, Any] = {"action_mask": np.int8}
AgentFactory = Callable[[AgentConfig], Agent]


class ResetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Beginning of an episode, or of a later session of it."""

    protocol: str = PROTOCOL
    brief: Brief
    tools: tuple[ToolSpec, ...]
    memory_dir: str
    script: tuple[str, ...] = ()
    options: Mapping[str, str] = {}


class ActRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent sees before it acts."""

    observation: Any
    info: Mapping[str, Any]


class AgentRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line to the agent; exactly one of the first three fields is set.

    `episode` is an opaque name for services that play many episodes at once.
    """

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
    traceback: str = ""


def _json_form(value: Any) -> Any:
    """Return the JSON form of what msgspec does not know; numpy becomes lists."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form")


_ENCODER = msgspec.json.Encoder(enc_hook=_json_form)
_REQUEST = msgspec.json.Decoder(AgentRequest)


def write_line(message: AgentRequest | AgentReply) -> bytes:
    """Return the line of a request or reply, newline included."""
    return _ENCODER.encode(message) + b"\n"


def read_reply(line: bytes) -> AgentReply:
    """Return the reply of a line.

    Raises: AgentRaised: The line is no reply, or says that the agent failed.
    """
    try:
        reply = msgspec.convert(bounded_json.decode(line), AgentReply)
    except ValueError as error:
        shown = line[:120].decode(errors="replace").strip()
        raise AgentRaised(f"answered nonsense: {error}; the line began {shown!r}") from error
    if reply.error is not None:
        raise AgentRaised(reply.error, bounded_record(reply.traceback))
    return reply


def act_request(observation: Any, info: Mapping[str, Any]) -> AgentRequest:
    """Return the request to act.

    Args:
        observation: The env's observation.
        info: Its info; `tools` is left out, since `reset` gave them.
    """
    shown = {name: value for name, value in info.items() if name != "tools"}
    return AgentRequest(act=ActRequest(observation=observation, info=shown))


def as_move(reply: AgentReply, *, numbers: bool = False) -> Move:
    """Return the move of a reply, its action as text.

    Args:
        reply: The reply to `act`.
        numbers: Whether a number, or a list of them, is an action too.
    Raises: AgentRaised: The action is neither text nor an object, or a number that is declared with
        it lies outside its bounds.
    """
    _check_declared(reply)
    _check_texts(reply)
    action = reply.action
    if not isinstance(action, str):
        number = type(action) in (int, float) or isinstance(action, list)
        if not isinstance(action, dict) and not (numbers and number):
            kinds = "a number or a list of them" if numbers else "text or an object"
            raise AgentRaised(f"an action is {kinds}, got {repr(action)[:80]}")
        action = _ENCODER.encode(action).decode()
    if (size := len(action.encode())) > LARGEST_ACTION:
        raise AgentRaised(f"an action has at most {LARGEST_ACTION:,} bytes, got {size:,}")
    return Move(
        action=action,
        usage=reply.usage,
        messages=reply.messages,
        model_calls=reply.model_calls,
        beliefs=reply.beliefs,
        revision=reply.revision,
    )


def _check_declared(reply: AgentReply) -> None:
    """Refuse a declared number outside its bounds; AgentRaised names the field."""
    amounts = [(f"usage.{meter}", amount) for meter, amount in reply.usage]
    for meter, _ in reply.usage:
        if meter not in DECLARABLE:
            known = ", ".join(sorted(DECLARABLE))
            raise AgentRaised(f"`usage` holds meters of {known}, got {meter!r}")
    for call in reply.model_calls:
        amounts += [(f"model_calls.{n}", getattr(call, n)) for n in _CALL_NUMBERS]
    amounts += [("messages.tokens", message.tokens) for message in reply.messages]
    for field, amount in amounts:
        most = MOST_BYTES if field == "usage.bytes" else MOST_AMOUNT
        if not 0 <= amount <= most:
            raise AgentRaised(f"`{field}` lies in [0, {most:g}], got {amount!r}")
    shares = [(f"beliefs.{name}", p) for name, p in reply.beliefs]
    for field, share in shares:
        if not 0.0 <= share <= 1.0:
            raise AgentRaised(f"`{field}` lies in [0, 1], got {share!r}")


def _check_texts(reply: AgentReply) -> None:
    """Refuse more declared text than a record of one step may hold.

    AgentRaised names the bound.
    """
    declared = msgspec.structs.replace(reply, action=None)
    # Only a long reply can hold a long text, and most declare nothing.
    if declared == AgentReply():
        return
    if (size := len(_ENCODER.encode(declared))) > LARGEST_ACTION:
        raise AgentRaised(
            f"what a move declares has at most {LARGEST_ACTION:,} bytes, got {size:,}"
        )


# --- the agent's side -----------------------------------------------------------------


class AgentRunner:
    """Answers the requests of one episode with an agent."""

    def __init__(self, make: AgentFactory, environment: Mapping[str, str]) -> None:
        self._make = make
        self._environment = environment
        self._agent: Agent | None = None
        self._tools: tuple[ToolSpec, ...] = ()

    def answer(self, request: AgentRequest) -> AgentReply:
        """Return the agent's reply; what the agent raises passes through."""
        if request.reset is not None:
            terms = request.reset
            config = AgentConfig(
                options=terms.options, script=terms.script, environment=self._environment
            )
            self._agent = self._make(config)
            self._tools = terms.tools
            self._agent.reset(terms.brief, terms.tools, Path(terms.memory_dir))
            return AgentReply()
        if self._agent is None:
            return AgentReply(error="a request came before reset")
        if request.act is None:
            self._agent.close()
            return AgentReply()
        info = {**request.act.info, "tools": self._tools}
        answer = self._agent.act(_with_arrays(request.act.observation), info)
        if isinstance(answer, Move):
            return AgentReply(**answer._asdict())
        return AgentReply(action=answer)


def _with_arrays(observation: Any) -> Any:
    """Return an observation with its arrays back as arrays."""
    if isinstance(observation, list):  # a native suite's, or the vector view's
        return np.asarray(observation, dtype=np.float32)
    if not isinstance(observation, dict):
        return observation
    return {
        name: np.asarray(value, dtype=_ARRAYS[name]) if name in _ARRAYS else value
        for name, value in observation.items()
    }


def serve(make: AgentFactory, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer every request until `close` or the end of the pipe.

    Whatever the agent raises, exits included, goes to the harness as an error; the loop goes on,
    since the harness decides when an episode is over.

    Args:
        make: Makes the agent.
        requests: The pipe to read lines from.
        replies: The pipe to write lines to.
    """
    runner = AgentRunner(make, os.environ)
    for line in requests:
        request = _REQUEST.decode(line)
        try:
            reply = write_line(runner.answer(request))
        except BaseException as error:  # noqa: BLE001  an agent's exit is its failure
            reply = write_line(failed_reply(error_line(error), error))
        with contextlib.suppress(BrokenPipeError):
            replies.write(reply)
            replies.flush()
        if request.close is not None:
            return


def failed_reply(words: str, error: BaseException) -> AgentReply:
    """Return the reply of an agent that raised.

    Args:
        words: The exception in one line.
        error: The exception, for its traceback.
    """
    return AgentReply(error=words, traceback=error_record(error))


class _CallableAgent:
    """A function (observation, info) -> action, played as an agent."""

    def __init__(self, function: Callable[[Any, Mapping[str, Any]], Any]) -> None:
        self._function = function

    def reset(self, *_: Any) -> None:
        """Do nothing: a function has no episode."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return what the function returns."""
        return self._function(observation, info)

    def close(self) -> None:
        """Release nothing."""


def agent_factory(origin: Origin) -> AgentFactory:
    """Return what makes the agent of `origin`; imports its code.

    Raises: AgentRaised: Its module holds nothing playable; what the import itself raises passes
        through.
    """
    for folder in reversed(origin.folders):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    if origin.kind == "registry":
        return _from_export(discovery.get("agents", origin.target), origin)
    if origin.kind == "object":
        name, _, attribute = origin.target.partition(":")
        module = importlib.import_module(name)
        if not hasattr(module, attribute):
            agents = [
                attribute_name
                for attribute_name, value in vars(module).items()
                if isinstance(value, AgentCard) or hasattr(value, "act")
            ]
            held = ", ".join(sorted(agents)) or "none"
            raise AgentRaised(f"module {name} holds no `{attribute}`; agents: {held}")
        return _from_export(getattr(module, attribute), origin)
    if origin.kind == "model":
        from owa_bench.agents.solvers.trained import load_policy

        return load_policy(Path(origin.target))
    return _from_export(_only_agent(module_of_file(Path(origin.target)), origin), origin)


def module_of_file(path: Path) -> Any:
    """Return the module of a file outside any package.

    Raises: AgentRaised: it is no Python file.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise AgentRaised(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _only_agent(module: Any, origin: Origin) -> Any:
    """Return the AGENT card of a file, else its one class with `act`, else `act`."""
    if hasattr(module, "AGENT"):
        return module.AGENT
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and hasattr(value, "act")
    ]
    if len(classes) == 1:
        return classes[0]
    if not classes and callable(getattr(module, "act", None)):
        return module.act
    names = ", ".join(sorted(value.__name__ for value in classes)) or "none"
    raise AgentRaised(
        f"{Path(origin.target).name} must hold an AGENT card, one class with `act`, or "
        f"a function `act`; classes with `act`: {names}"
    )


def _from_export(export: Any, origin: Origin) -> AgentFactory:
    """Return the factory behind a card, a class, an object or a function."""
    if isinstance(export, AgentCard):
        if export.make is None:
            raise AgentRaised(f"the card of `{origin.target}` makes no agent")
        if origin.kind != "registry" and (export.needs != "nothing" or export.required):
            raise AgentRaised(
                f"the card of {export.name} has `needs` or `required`, which only an "
                "agent with an entry point is given: docs/add-an-agent.md"
            )
        return export.make
    if isinstance(export, type):
        return lambda _config: export()
    if hasattr(export, "act"):
        return lambda _config: export
    if callable(export):
        return lambda _config: _CallableAgent(export)
    raise AgentRaised(f"`{origin.target}` is a {type(export).__name__}, not an agent")
