"""A running project of the fast twin: its tools, days, features and macros.

Source: docs/projforge.md#the-fast-twin
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace
from typing_extensions import override

from owa_bench.envs.projforge import graph
from owa_bench.envs.projforge.graph import GraphState
from owa_bench.envs.projforge.scores import (
    FORECAST,
    THETA,
    WEEK,
    belief_events,
    day_closed,
    day_event,
    filed,
    open_incident,
    proposition_texts,
    release_score,
)
from owa_bench.envs.projforge.world import DAY_MS, ProjectWorld
from owa_bench.envs.projforge.world_rules import feature_prose
from owa_bench.interfaces import Seated, Task, ToolResult
from owa_bench.records.instance import Timeline
from owa_bench.shells.standard_tools import tool_of

SEAT = "developer"
STEPS_A_DAY = (40, 30, 24, 24)
_SLOTS = 12  # libraries that the vector view has room for
_FAULTS = ("terms", "install", "names", "answers")
FEATURES = 10 + graph.READINGS + _SLOTS * 4
_READINGS = range(graph.READINGS)
MACROS = (
    *("pins", "pipeline", "ci", "deploy", "release", "postmortem", "next_day"),
    *(f"build_{reading}" for reading in _READINGS),
    *(f"rework_{reading}" for reading in _READINGS),
    *(f"changelog_{slot}" for slot in range(_SLOTS)),
    *(f"study_{slot}" for slot in range(_SLOTS)),
)


_READING = {"type": "integer", "minimum": 0, "maximum": graph.READINGS - 1}
_LIBRARY = {"type": "string", "maxLength": 40}
TOOLS = (
    tool_of("build", "Build the feature that comes next, by a reading.", reading=_READING),
    tool_of("rework", "Read the first feature that fails otherwise.", reading=_READING),
    tool_of("pins", "Pin every library to what the index has."),
    tool_of("pipeline", "Fit the pipeline's configuration to its terms."),
    tool_of("changelog", "Fit calls to a library's changelog.", library=_LIBRARY),
    tool_of("study", "Fit calls to what a library answers.", library=_LIBRARY),
    tool_of("ci", "Run integration: the parts that fail, and how."),
    tool_of("deploy", "Deploy the product."),
    tool_of("release", "Release the week's new features."),
    tool_of("postmortem", "File the postmortem of the last incident."),
    FORECAST,
    tool_of("next_day", "End the day."),
)


class GraphSession(Seated):
    """One project as a graph of contracts, day by day."""

    tools = TOOLS
    seats = (SEAT,)
    seat = SEAT
    state: GraphState

    def __init__(self, timeline: Timeline) -> None:
        world: ProjectWorld = timeline.worlds[0]
        self.state = GraphState(world=world, product=graph.first_product(world))

    @override
    def task_of(self, seat: str) -> Task:
        world = self.state.world
        text = (
            f"Run a {world.domain} project of {world.days} days over "
            f"{len(world.libraries)} libraries. Build features as they are issued, by "
            f"one of {graph.READINGS} readings of each, keep what is built working as "
            f"libraries and the pipeline change, deploy, and release every {WEEK} "
            f"days. At most {self._daily} steps a day. It is delivered from a quality "
            f"of {THETA} on."
        )
        goal = {
            "domain": world.domain,
            "days": world.days,
            "libraries": [library.name for library in world.libraries],
        }
        return Task(text, goal, proposition_texts(world))

    @property
    @override
    def sitting(self) -> int:
        """The number of the week."""
        return min(self.state.day, self.state.world.days - 1) // WEEK

    @override
    def look(self) -> str:
        """Return the day, what is issued, and the bulletins."""
        state = self.state
        if state.over:
            return "The project is over: call finish with p."
        lines = [f"Day {state.day}, {self._daily - state.spent} steps left."]
        incident = open_incident(state.world, state.scores, state.day)
        if incident is not None:
            lines.append(f"incident {incident.name}: production stopped")
        lines += [f"issue {f.name}, due {f.due}" for f in state.unbuilt]
        lines += [f"bulletin: {text}" for text in state.world.bulletins[-3:]]
        lines += [f"fails: {part} ({how})" for part, how in state.failing.items()]
        return "\n".join(lines)

    @override
    def enter(self, world: ProjectWorld, *, now_ms: int) -> None:
        """Go on in the world of a further day."""
        self.state = replace(self.state, world=world)

    @override
    def call(
        self, tool: str, arguments: Mapping[str, Any], *, now_ms: int, step: int
    ) -> ToolResult:
        state = self.state
        if state.over:
            return ToolResult("The project is over: call finish with p.", False)
        if tool == "next_day":
            return self._end_day(step)
        if state.spent >= self._daily:
            return ToolResult("No steps are left today: call next_day.", False)
        if tool == "forecast":
            result = self._forecast(arguments["beliefs"], now_ms, step)
        else:
            result = self._worked(tool, arguments)
        self.state = replace(self.state, spent=state.spent + 1)
        return result

    @override
    def features(self) -> npt.NDArray[np.float32]:
        state, world = self.state, self.state.world
        row = np.zeros(FEATURES, dtype=np.float32)
        row[0] = min(state.day / world.days, 1.0)
        row[1] = state.spent / self._daily
        row[2] = min(len(state.unbuilt) / 8, 1.0)
        row[3] = state.deployed == state.product
        row[4] = state.ran is not None and state.ran[0] == state.product
        row[5] = state.minutes < world.ci_minutes
        row[6] = (state.day + 1) % WEEK == 0
        row[7] = "pipeline" in state.failing
        wrong = _first_misread(state)
        row[8] = bool(wrong)
        row[-1] = open_incident(world, state.scores, state.day) is not None
        if wrong:
            row[9 + state.product.built[wrong]] = 1.0
        for slot, library in enumerate(world.libraries[:_SLOTS]):
            fault = state.failing.get(library.name)
            if fault is not None:
                row[9 + graph.READINGS + 4 * slot + _FAULTS.index(fault)] = 1.0
        return row

    @override
    def macros(self) -> tuple[Mapping[str, Any] | None, ...]:
        state = self.state
        names = [library.name for library in state.world.libraries]
        calls: list[Mapping[str, Any] | None] = [
            {"tool": name, "arguments": {}} for name in MACROS[:7]
        ]
        for tool, there in (("build", state.unbuilt), ("rework", state.failing)):
            calls += [
                {"tool": tool, "arguments": {"reading": r}} if there else None for r in _READINGS
            ]
        for tool in ("changelog", "study"):
            named = [{"tool": tool, "arguments": {"library": name}} for name in names]
            calls += [*named[:_SLOTS], *[None] * (_SLOTS - len(names))]
        return tuple(None if state.over else call for call in calls)

    @property
    def _daily(self) -> int:
        return STEPS_A_DAY[self.state.world.tier - 1]

    def _worked(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        match tool:
            case "build" | "rework":
                return self._build(tool, arguments["reading"])
            case "ci":
                return self._integrate()
            case "deploy":
                self.state = replace(self.state, deployed=self.state.product)
                return ToolResult("Deployed.", True)
            case "release":
                return self._release()
            case "postmortem":
                return self._postmortem()
        return self._fit(tool, arguments)

    def _build(self, tool: str, reading: int) -> ToolResult:
        state, product = self.state, self.state.product
        wrong = _first_misread(state)
        if tool == "rework" and not wrong:
            return ToolResult("The last run showed no feature that fails.", False)
        if tool == "build" and not state.unbuilt:
            return ToolResult("Nothing is left to build today.", False)
        name = wrong if tool == "rework" else state.unbuilt[0].name
        product = replace(product, built={**product.built, name: reading})
        failing = {part: how for part, how in state.failing.items() if part != wrong}
        if tool == "build":
            failing = dict(state.failing)
        self.state = replace(state, product=product, failing=failing)
        prose = feature_prose(state.world, state.world.feature(name))
        return ToolResult(f"Built {name}: {prose}", True)

    def _postmortem(self) -> ToolResult:
        state = self.state
        incident = open_incident(state.world, state.scores, state.day)
        if incident is None:
            return ToolResult("No incident waits for a postmortem.", False)
        scores = filed(state.scores, incident, incident.cause)
        self.state = replace(state, scores=scores)
        return ToolResult(f"Filed for {incident.name}.", True)

    def _forecast(self, beliefs: Mapping[str, float], now_ms: int, step: int) -> ToolResult:
        found = belief_events(self.state.world, beliefs, step=step, now_ms=now_ms)
        if isinstance(found, str):
            return ToolResult(found, False)
        self.state = replace(self.state, forecast=True)
        return ToolResult("Noted.", True, events=found)

    def _integrate(self) -> ToolResult:
        state = self.state
        if state.minutes >= state.world.ci_minutes:
            return ToolResult("No minutes of integration are left today.", False)
        failing = graph.faults(state.world, state.product, state.day)
        for name in graph.misread(state.world, state.product, dict(failing)):
            failing[name] = "feature"
        green = not failing and bool(state.product.built)
        self.state = replace(
            state, minutes=state.minutes + 1, failing=failing, ran=(state.product, green)
        )
        lines = [f"{part} fails: {how}" for part, how in failing.items()]
        return ToolResult("\n".join(lines) or "green", True)

    def _release(self) -> ToolResult:
        state = self.state
        if len(state.scores.releases) > state.day // WEEK:
            return ToolResult("This week has its release.", False)
        right = graph.working(state.world, state.product, state.day)
        new = right - state.released
        missed = (0.0,) * (state.day // WEEK - len(state.scores.releases))
        scores = replace(
            state.scores, releases=(*state.scores.releases, *missed, release_score(new, new))
        )
        self.state = replace(state, scores=scores, released=state.released | new)
        return ToolResult(f"Released {len(new)} features.", True)

    def _fit(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Make the product assume what a tool finds."""
        state, product = self.state, self.state.product
        world, held = state.world, dict(state.product.contracts)
        now = graph.contracts_of(world, state.day)
        if tool == "pipeline":
            product = replace(product, terms=graph.terms_of(world))
        elif tool == "pins":
            held = {n: c._replace(version=now[n].version) for n, c in held.items()}
        else:
            name = arguments["library"]
            if name not in now:
                return ToolResult(f"`library` must be one of {', '.join(now)}.", False)
            held[name] = now[name]._replace(version=held[name].version)
            if tool == "changelog":
                held[name] = held[name]._replace(
                    order=graph.told_order(world.library(name)),
                    results=product.contracts[name].results,
                )
        product = replace(product, contracts=held)
        changed = product != state.product
        self.state = replace(state, product=product)
        return ToolResult("Fitted." if changed else "Nothing to fit.", True)

    def _end_day(self, step: int) -> ToolResult:
        state = self.state
        world, day = state.world, state.day
        accepted = graph.working(world, state.product, day)
        served = accepted if state.deployed else frozenset[str]()
        if state.deployed not in (None, state.product):
            served = graph.working(world, state.deployed, day)
        scores = day_closed(
            state.scores,
            world,
            day,
            accepted=accepted,
            served=served,
            green=state.ran == (state.product, True),
        )
        self.state = replace(state, scores=scores, day=day + 1, spent=0, minutes=0, failing={})
        if any(incident.day == day + 1 for incident in world.incidents):
            self.state = replace(self.state, deployed=None)
        event = day_event(world, state.scores, scores, step=step, minutes=state.minutes)
        return ToolResult(f"Day {day} is over.", True, DAY_MS, events=(event,))


def _first_misread(state: GraphState) -> str:
    """Return the first feature that the last run showed to fail, "" for none."""
    return next((name for name, how in state.failing.items() if how == "feature"), "")
