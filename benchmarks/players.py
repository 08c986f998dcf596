"""How the benchmarks play one episode by hand."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from owa_bench.interfaces import Brief

Start = tuple[Any, Mapping[str, Any]]


def play_out(env: Any, agent: Any, start: Start) -> Mapping[str, Any]:
    """Play an episode from what `reset` gave to its end; return the last info."""
    observation, info = start
    over = False
    while not over:
        move = agent.act(observation, info)
        action = getattr(move, "action", move)  # a policy gives the bare action
        observation, _, ended, cut, info = env.step(action)
        over = ended or cut
    return info


def brief_agent(env: Any, agent: Any, memory: Path | None = None, **told: Any) -> None:
    """Tell an agent of the task that an env is at; without a folder it gets one."""
    task = env.task
    brief = Brief(text=task.text, goal=task.goal, propositions=task.propositions)
    folder = memory or Path(tempfile.mkdtemp(prefix="owa-benchmark-"))
    agent.reset(msgspec.structs.replace(brief, **told), env.tools, folder)
