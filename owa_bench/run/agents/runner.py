"""An agent's side of the pipe: reads requests, plays the agent, writes replies."""

import contextlib
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from owa_bench.interfaces import Agent, AgentConfig, ToolSpec
from owa_bench.run.agents.building import AgentFactory
from owa_bench.run.agents.protocol import (
    AgentReply,
    AgentRequest,
    ResetRequest,
    as_reply,
    read_request,
    write_reply,
)

_ARRAYS: Mapping[str, Any] = {"features": np.float32, "action_mask": np.int8}


class AgentRunner:
    """The agent of one episode and the tools it was given."""

    def __init__(self, make: AgentFactory) -> None:
        self._make = make
        self._agent: Agent | None = None
        self._tools: tuple[ToolSpec, ...] = ()

    def answer(self, request: AgentRequest) -> AgentReply:
        """Return the agent's reply; what the agent raises passes through."""
        if request.reset is not None:
            self._reset(request.reset)
            return AgentReply()
        if self._agent is None:
            return AgentReply(error="a request came before reset")
        if request.act is not None:
            info = {**request.act.info, "tools": self._tools}
            move = self._agent.act(restored(request.act.observation), info)
            return as_reply(move)
        self._agent.close()
        return AgentReply()

    def _reset(self, terms: ResetRequest) -> None:
        config = AgentConfig(options=terms.options, script=terms.script)
        self._agent = self._make(config)
        self._tools = terms.tools
        self._agent.reset(terms.brief, terms.tools, Path(terms.memory_dir))


def restored(observation: Any) -> Any:
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

    Whatever the agent raises, exits included, is told to the harness; the loop goes
    on, since it is the harness that decides when an episode is over.
    """
    runner = AgentRunner(make)
    for line in requests:
        request = read_request(line)
        try:
            reply = write_reply(runner.answer(request))
        except BaseException as error:  # noqa: BLE001  an agent's exit is its failure
            reply = write_reply(AgentReply(error=describe(error)))
        with contextlib.suppress(BrokenPipeError):
            replies.write(reply)
            replies.flush()
        if request.close is not None:
            return


def describe(error: BaseException) -> str:
    """Return an agent's exception in one line: class, message, last file and line."""
    text = " ".join(str(error).split())[:300]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {text}{where}"
