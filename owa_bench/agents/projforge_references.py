"""Reference agents of both suites of ProjForge: four extents of repair each.

Source: docs/projforge.md#agents.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from owa_bench.agents.solvers.project.developer import ProjectDeveloper
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec

_WEEK = 7
_READINGS = 4
_FAILS = re.compile(r"^fails: (\S+) \((\w+)\)$", re.M)


class ProjectRoutine:
    """Builds, runs integration, repairs what it can, deploys, releases, ends the day.

    `extent` 0 repairs readings of features alone, 1 also pins and the pipeline, 2 also calls by
    changelogs, 3 also calls by what libraries answer.
    """

    def __init__(self, extent: int) -> None:
        self._extent = extent
        self._readings: dict[str, int] = {}
        self._day = -1
        self._last = ""
        self._done: set[str] = set()

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin a sitting.

        Args:
            brief: Plays no part.
            tools: Play no part.
            memory_dir: Is not written to.
        """

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next action.

        Args:
            observation: Its text tells day, issues and failures.
            info: Plays no part.
        Returns: JSON text.
        """
        text = observation["text"] if isinstance(observation, Mapping) else observation
        day = re.search(r"^Day (\d+), (\d+) steps left\.$", text, re.M)
        if day is None:
            return _call("finish", p=0.5)
        if int(day[1]) != self._day:
            self._day, self._done = int(day[1]), set()
        if day[2] == "0":
            return _call("next_day")
        action = self._next(text)
        self._last = json.loads(action)["tool"]
        return action

    def close(self) -> None:
        """Keep nothing."""

    def _next(self, text: str) -> str:
        if "issue " in text.partition("steps left.")[2]:
            self._done.discard("ci")
            return _call("build", reading=0)
        if self._last == "ci":
            self._done.add("ci")
        if "ci" not in self._done and "No minutes" not in text:
            return _call("ci")
        return self._repair(text) or self._closing(text)

    def _repair(self, text: str) -> str:
        """Return the next repair of what the last run showed, "" for none."""
        for part, how in _FAILS.findall(text):
            for action in self._repairs(part, how):
                if action not in self._done:
                    self._done.add(action)
                    self._done.discard("ci")
                    return action
        return ""

    def _repairs(self, part: str, how: str) -> tuple[str, ...]:
        """Return the repairs of a failure that are within the extent, in order."""
        if how == "feature":
            reading = self._readings.get(part, 0) + 1
            if reading >= _READINGS:
                return ()
            self._readings[part] = reading
            return (_call("rework", reading=reading),)
        by_extent = {"terms": ((1, _call("pipeline")),), "install": ((1, _call("pins")),)}.get(
            how
        ) or ((2, _call("changelog", library=part)), (3, _call("study", library=part)))
        return tuple(action for extent, action in by_extent if extent <= self._extent)

    def _closing(self, text: str) -> str:
        """Return what is left of a day."""
        steps = ["deploy"] + ["release"] * ((self._day + 1) % _WEEK == 0)
        steps += ["postmortem"] * ("\nincident " in text)
        for tool in steps:
            if tool not in self._done:
                self._done.add(tool)
                return _call(tool)
        return _call("next_day")


def _call(tool: str, **arguments: Any) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})


class ProjectAgent:
    """Writes code where there is a tool to write files, else plays the fast twin."""

    def __init__(self, extent: int) -> None:
        self._extent = extent
        self._player: ProjectDeveloper | ProjectRoutine = ProjectRoutine(extent)

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin a sitting.

        Args:
            brief: Its goal names days and libraries.
            tools: Decide who plays.
            memory_dir: Of the developer's notes.
        """
        real = any(tool.name == "write" for tool in tools)
        if real and isinstance(self._player, ProjectRoutine):
            self._player = ProjectDeveloper(self._extent)
        self._player.reset(brief, tools, memory_dir)

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next action.

        Args:
            observation: Its text.
            info: Plays no part.
        Returns: JSON text.
        """
        return self._player.act(observation, info)

    def close(self) -> None:
        """End a sitting."""
        self._player.close()


def _maker(extent: int) -> Callable[[AgentConfig], ProjectAgent]:
    return lambda config: ProjectAgent(extent)


_SUITES = ("projforge", "projforge_fast")


_EXTENTS = (
    ("project_template", "Builds features and repairs nothing that changes."),
    ("pin_bumper", "Repairs pins and the pipeline."),
    ("codemod", "Repairs pins, the pipeline and, by changelogs, calls."),
    ("property_tester", "Repairs all that, and calls by what libraries answer."),
)
AGENTS = tuple(
    AgentCard(name=name, about=about, make=_maker(extent), suites=_SUITES)
    for extent, (name, about) in enumerate(_EXTENTS)
)
