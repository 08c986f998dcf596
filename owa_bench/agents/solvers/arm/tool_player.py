"""A player of the arm's language view: reads its brief and the tools' replies, and nothing else.

It reads the notices, measures camera, encoders and delay, sets what it found, and then looks before
each move. The tool's mark, as the corrected camera sees it, is where it takes the tool to be.
"""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.agents.solvers.arm.tool_plans import (
    MM,
    PLANS,
    ArmCall,
    ArmPicture,
    ArmPlace,
    next_call,
    tool_call,
)
from owa_bench.interfaces import Brief, ToolSpec

SETTINGS = "set_correction"  # the tool by which the view is known
_MEASURED = ("camera", "encoders", "delay")
_STEPS = 70  # then it gives up
_THRESHOLD = re.compile(r"more than ([\d.]+) m[ms]\b")
_SHARE = re.compile(r"full command is ([\d.]+) of the speed")
_SPREAD = {"camera": 1.0, "encoders": 1.5, "delay": 10.0}  # of what is measured, mm or ms
_PERSON_S = 2.0


def _place(millimetres: list[float]) -> ArmPlace:
    x, y, z = (value / MM for value in millimetres)
    return x, y, z


def _firmware(notices: list[str]) -> dict[str, Any]:
    """Return the settings that undo what release notes say of commands."""
    settings: dict[str, Any] = {}
    share = 1.0
    for notice in notices:
        if "is now y, the second x" in notice:
            settings["swap_xy"] = not settings.get("swap_xy", False)
        elif "opens below 0" in notice:
            settings["reverse_gripper"] = not settings.get("reverse_gripper", False)
        elif match := _SHARE.search(notice):
            share *= float(match[1])
            settings["speed_share"] = share
    return settings


class ArmToolPlayer:
    """Plays one episode after the other; it remembers nothing between them."""

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode.

        Args:
            brief: The task.
            tools: Not read.
            memory_dir: Not used: every arm is another unit.
        """
        self._brief = brief
        self._family = str(brief.goal["family"])
        self._settings: dict[str, Any] = _firmware(brief.goal["notices"])
        self._to_measure = list(_MEASURED)
        self._found: dict[str, Any] = {}
        self._is_open = True
        self._steps = 0
        self._last = ""
        self._held = False

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next call.

        Args:
            observation: `text` is the reply to the last call.
            info: Not read.
        """
        self._steps += 1
        reply = _reply(str(observation["text"])) if self._last else {}
        call = self._next(reply)
        self._last = call["tool"]
        return json.dumps(call)

    def close(self) -> None:
        """End the episode."""

    def _next(self, reply: Mapping[str, Any]) -> ArmCall:
        held, _, goals = str(reply.get("goals_held", "")).partition(" of ")
        self._held = self._held or (bool(goals) and held == goals)
        advice = str(reply.get("next", ""))
        if self._steps > _STEPS or self._family not in PLANS or self._held or "finish" in advice:
            return self._finish()
        if "recover" in advice:
            return tool_call("recover")
        if "measured" in reply:
            self._settings |= reply["measured"]
            self._found |= reply["measured"]
            self._to_measure.pop(0)
        if self._settings:
            settings, self._settings = self._settings, {}
            return tool_call(SETTINGS, **settings)
        if self._to_measure:
            return tool_call("calibrate", what=self._to_measure[0])
        if self._last != "look":
            return tool_call("look")
        if reply["person_mm"] is not None:
            return tool_call("wait", seconds=_PERSON_S)
        call = next_call(self._picture(reply))
        if call["tool"] == "grip":
            self._is_open = call["arguments"]["what"] == "open"
        return call

    def _picture(self, shown: Mapping[str, Any]) -> ArmPicture:
        tool, said = _place(shown["tool_mark_mm"]), _place(shown["tool_mm"])
        x, y, z = (s - t for s, t in zip(said, tool, strict=True))
        return ArmPicture(
            family=self._family,
            tool=tool,
            things=tuple(map(_place, shown["things_mm"].values())),
            goal=_place(shown["goal"]["place_mm"]),
            boxes=bool(shown["boxes_mm"]),
            is_open=self._is_open,
            shift=(x, y, z),
        )

    def _finish(self) -> ArmCall:
        beliefs = {}
        for name, text in self._brief.propositions.items():
            match, value = _THRESHOLD.search(text), self._value(name)
            if match is not None and value is not None:
                odds = (value - float(match[1])) / _SPREAD[name]
                beliefs[name] = round(1.0 / (1.0 + math.exp(-max(-4.0, min(4.0, odds)))), 3)
        return tool_call("finish", p=1.0 if self._held else 0.02, beliefs=beliefs)

    def _value(self, name: str) -> float | None:
        """Return what was measured of a proposition's number; None: nothing was."""
        if name == "delay":
            return self._found.get("delay_ms")
        offset = self._found.get({"camera": "camera_offset_mm"}.get(name, "encoder_offset_mm"))
        return None if offset is None else math.hypot(*offset)


def _reply(text: str) -> dict[str, Any]:
    """Return a reply as JSON; {} where it is none, as an error."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
