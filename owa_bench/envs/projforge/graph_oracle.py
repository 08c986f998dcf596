"""The fast twin's answer key and its control policies."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from owa_bench.envs.projforge import graph
from owa_bench.envs.projforge.graph import GraphState
from owa_bench.envs.projforge.marks import WEEK, open_incident
from owa_bench.envs.projforge.oracle import ProjectKey
from owa_bench.interfaces import (
    Agent,
    Brief,
    OracleAccess,
    ToolSpec,
)
from owa_bench.records.instance import Timeline

_Call = Mapping[str, Any]


class GraphOracle(ProjectKey):
    """Knows every contract of the fast twin."""

    def hint(self, timeline: Timeline, state: GraphState) -> _Call:
        """Return the next right action.

        Args:
            timeline: Plays no part: the state holds the world.
            state: The session's.
        Returns: "tool" and "arguments".
        """
        if state.over:
            return {"tool": "finish", "arguments": {"p": 1.0}}
        if not state.forecast:
            return self.forecast(timeline)
        tool, _, library = _next(state).partition("/")
        arguments: dict[str, Any] = {"library": library} if library else {}
        if tool == "build":
            arguments["reading"] = graph.right_reading(state.unbuilt[0])
        return {"tool": tool, "arguments": arguments}


def _next(state: GraphState) -> str:
    """Return the oracle's next tool, with a library after a slash."""
    product, day, world = state.product, state.day, state.world
    if product.terms != graph.terms_of(world):
        return "pipeline"
    present = graph.contracts_of(world, day)
    for library in world.libraries:
        held, now = product.contracts[library.name], present[library.name]
        if held.version != now.version:
            return "pins"
        if held != now:
            return f"study/{library.name}"
    if state.unbuilt:
        return "build"
    if open_incident(world, state.marks, day) is not None:
        return "postmortem"
    if state.deployed != product:
        return "deploy"
    if (day + 1) % WEEK == 0 and len(state.marks.releases) <= day // WEEK:
        return "release"
    if day == world.days - 1 and state.ran != (product, True):
        return "ci"
    return "next_day"


class _Control:
    """A policy that looks at the state and keeps nothing."""

    def __init__(self, access: OracleAccess) -> None:
        self._access = access
        self._steps = 0

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin a sitting."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next action as JSON text."""
        self._steps += 1
        timeline, state = self._access.observe()
        return json.dumps(self._next(self._access.oracle.hint(timeline, state), state))

    def close(self) -> None:
        """End a sitting."""

    def _next(self, hint: _Call, state: GraphState) -> _Call:
        """Return the next call; `hint` is the right one."""
        return hint


class _NoOp(_Control):
    """Lets the days pass."""

    def _next(self, hint: _Call, state: GraphState) -> _Call:
        return hint if state.over else {"tool": "next_day", "arguments": {}}


class _Random(_Control):
    """Calls the tools in turn."""

    def _next(self, hint: _Call, state: GraphState) -> _Call:
        if state.over:
            return hint
        names = ("build", "ci", "pins", "deploy", "next_day", "pipeline", "next_day")
        name = names[self._steps * 3 % len(names)]
        return _plain(name, self._steps)


class _PlausibleWrong(_Control):
    """Builds all by the first reading, on the first day's contracts, and fits none."""

    def _next(self, hint: _Call, state: GraphState) -> _Call:
        if hint["tool"] in ("study", "pins", "pipeline"):
            return _plain("build" if state.unbuilt else "next_day", 0)
        return _plain("build", 0) if hint["tool"] == "build" else hint


def _plain(tool: str, number: int) -> _Call:
    """Return a call of a tool, with a reading where it takes one."""
    reading = {"reading": number % graph.READINGS}
    return {"tool": tool, "arguments": reading if tool == "build" else {}}


GRAPH_POLICIES: Mapping[str, Callable[[OracleAccess], Agent]] = {
    "noop": _NoOp,
    "random": _Random,
    "plausible_wrong": _PlausibleWrong,
    "oracle": _Control,
}
