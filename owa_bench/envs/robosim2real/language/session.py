"""One running episode of the language view: its tools over a guarded device."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec.structs import asdict, replace
from typing_extensions import override

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.device import MARKS
from owa_bench.envs.robosim2real.episode import RobotEpisode
from owa_bench.envs.robosim2real.language import beliefs, wording
from owa_bench.envs.robosim2real.language.corrections import MM
from owa_bench.envs.robosim2real.language.motion import (
    ARRIVED,
    TICK_MS,
    ArmMotion,
    MoveEnd,
    over_words,
)
from owa_bench.envs.robosim2real.language.state import ArmToolState, read_state, right_corrections
from owa_bench.envs.robosim2real.language.world import ArmToolWorld
from owa_bench.errors import InfrastructureFailure, UsageError
from owa_bench.interfaces import Session, Task, ToolResult
from owa_bench.records.instance import Timeline
from owa_bench.seeding import derive

_STOPPED_NEXT = "call recover; a second protective stop ends the episode as a failure"
_WHILE_STOPPED = ("recover", "look", "wait")
_OFFSETS = {"camera": "camera_offset_mm", "encoders": "encoder_offset_mm"}
_COUNTS = ("There is 1 goal.", "There are {} goals, one after the other.")


def _mm(place: Any) -> list[int]:
    return [round(value * MM) for value in np.asarray(place).tolist()]


def _marks() -> str:
    return " and ".join(f"({x}, {y}, {z})" for x, y, z in map(_mm, MARKS))


class ArmToolSession(Session):
    """The session of one episode.

    Args:
        timeline: Its worlds; the first is played.
    """

    tools = wording.TOOLS
    state: ArmToolState

    def __init__(self, timeline: Timeline) -> None:
        world: ArmToolWorld = timeline.worlds[0]
        instance = timeline.instance
        seed = derive(instance.seed, "body", "tools", instance.repeat)
        self._world = world
        self._motion = ArmMotion(RobotEpisode(world, world.unit, seed, side="surrogate"))
        self.state = read_state(self._motion, None)

    @property
    @override
    def task(self) -> Task:
        world, first = self._world, self._world.goals[0]
        goals = len(world.goals)
        text = wording.BRIEF.format(
            errand=wording.ERRANDS[world.family],
            count=_COUNTS[goals > 1].format(goals),
            order=wording.ORDER if goals > 1 else "",
            moved="the tool" if self._moved == "tool" else self._moved,
            tolerance=first.tolerance * MM,
            hold=first.hold,
            limit=world.limit,
            marks=_marks(),
        )
        if world.notices:
            text += wording.NOTICES + "\n".join(f"- {notice}" for notice in world.notices)
        goal = {
            "family": world.family,
            "goals": goals,
            "moved": self._moved,
            "within_mm": round(first.tolerance * MM),
            "hold_s": first.hold,
            "limit_s": world.limit,
            "marks_mm": [_mm(mark) for mark in MARKS],
            "notices": list(world.notices),
        }
        return Task(text, goal, beliefs.TEXTS)

    @override
    def enter(self, world: ArmToolWorld, *, now_ms: int) -> None:
        raise UsageError("The arm of the language view changes between episodes alone.")

    @override
    def call(
        self, tool: str, arguments: Mapping[str, Any], *, now_ms: int, step: int
    ) -> ToolResult:
        episode = self._motion.episode
        if tool == "standard":
            return ToolResult(wording.STANDARD.format(marks=_marks()), True)
        if tool == "set_correction":
            return self._set(arguments)
        if over := episode.over:
            ended = {"refused": over_words(over), "next": "call finish"}
            return ToolResult(_dump(ended), False)
        if episode.guard.stopped and tool not in _WHILE_STOPPED:
            refused = f"protective stop: {episode.guard.cause}"
            return ToolResult(_dump({"refused": refused, "next": _STOPPED_NEXT}), False)
        before = episode.ticks
        answer = getattr(self, f"_{tool}")(**arguments)
        if episode.truth.blew_up:
            raise InfrastructureFailure("The engine of the arm lost its state.")
        readings = {**self.state.readings, **answer.pop("readings", {})}
        self.state = replace(read_state(self._motion, self.state), readings=readings)
        ticks = episode.ticks - before
        return ToolResult(_dump(answer | self._footer(ticks)), True, ticks * TICK_MS)

    # --- tools: each plays ticks and returns what it found --------------------------------

    def _look(self) -> dict[str, Any]:
        motion, world = self._motion, self._world
        shown, goal = motion.look(), motion.episode.judge.goal
        person = motion.episode.person_place
        return {
            "tool_mm": _mm(shown.tool),
            "gripper_mm": round(shown.width * MM),
            "goal": {
                "place_mm": _mm(goal.place),
                "what": self._moved,
                "within_mm": round(goal.tolerance * MM),
            },
            "things_mm": {f"thing {n + 1}": _mm(place) for n, place in enumerate(shown.things)},
            "table_marks_mm": [_mm(mark) for mark in shown.marks[:2]],
            "tool_mark_mm": _mm(shown.marks[2]),
            "camera_age_s": round(shown.age, 2),
            "boxes_mm": [
                {"middle": _mm(box.place), "size": [2 * v for v in _mm(box.size)]}
                for box in world.blocks
            ],
            "person_mm": None if person is None else _mm(person),
        }

    def _move_to(self, x: float, y: float, z: float, speed: float = 1.0) -> dict[str, Any]:
        target = np.array([x, y, z]) / MM
        ended = self._motion.move(target, speed)
        return {"ended": ended.reason, "off_by_mm": round(ended.off_mm), **self._place()}

    def _run_path(self, waypoints: list[dict[str, Any]]) -> dict[str, Any]:
        motion, left = self._motion, wording.PATH_S
        ended = MoveEnd(ARRIVED, 0.0)
        reached = 0
        for point in waypoints:
            before = motion.episode.ticks
            target = np.array([point["x"], point["y"], point["z"]]) / MM
            ended = motion.move(target, point.get("speed", 1.0), max(0.0, left))
            if ended.reason != ARRIVED:
                break
            if "grip" in point:
                motion.grip(is_open=point["grip"] == "open")
            reached += 1
            left -= (motion.episode.ticks - before) / arm.HERTZ
        return {
            "ended": ended.reason,
            "off_by_mm": round(ended.off_mm),
            "reached": f"{reached} of {len(waypoints)}",
            **self._place(),
        }

    def _grip(self, what: str) -> dict[str, Any]:
        self._motion.grip(is_open=what == "open")
        return self._place()

    def _wait(self, seconds: float) -> dict[str, Any]:
        self._motion.rest(round(seconds * arm.HERTZ))
        return self._place()

    def _recover(self) -> dict[str, Any]:
        if not self._motion.episode.guard.stopped:
            return {"note": "there is no protective stop", **self._place()}
        self._motion.recover()
        return self._place()

    def _calibrate(self, what: str) -> dict[str, Any]:
        motion = self._motion
        if what == "camera":
            offset, turn = motion.measure_camera()
            found: dict[str, Any] = {"camera_offset_mm": offset, "camera_turn_deg": turn}
        elif what == "encoders":
            found = {"encoder_offset_mm": motion.measure_encoders()}
        else:
            delay = motion.measure_delay()
            if delay is None:
                return {"failed": "the arm did not move freely; look, then try again"}
            found = {"delay_ms": delay}
        return {"measured": found, "readings": found}

    def _set(self, arguments: Mapping[str, Any]) -> ToolResult:
        motion = self._motion
        chosen = {name: _setting(value) for name, value in arguments.items()}
        motion.corrections = replace(motion.corrections, **chosen)
        named = {name for name, offset in _OFFSETS.items() if offset in chosen}
        right = self.state.right | (right_corrections(motion) & named)
        self.state = replace(read_state(motion, self.state), right=right)
        return ToolResult(_dump({"corrections": asdict(motion.corrections)}), True)

    # --- what every reply says ------------------------------------------------------------

    @property
    def _moved(self) -> str:
        return wording.MOVED.get(self._world.family, "thing 1")

    def _place(self) -> dict[str, Any]:
        motion = self._motion
        return {"tool_mm": _mm(motion.tool), "gripper_mm": round(motion.episode.sensed.width * MM)}

    def _footer(self, ticks: int) -> dict[str, Any]:
        """Return what every reply ends with."""
        episode = self._motion.episode
        guard, goals = episode.guard, len(self._world.goals)
        left = max(0.0, self._world.limit - episode.ticks / arm.HERTZ)
        footer: dict[str, Any] = {
            "took_s": round(ticks / arm.HERTZ, 2),
            "time_left_s": round(left, 1),
            "goals_held": f"{episode.judge.done} of {goals}",
            "guard": f"{guard.mode}: {guard.cause}" if guard.cause else guard.mode,
            "incidents": len(guard.incidents),
        }
        if episode.over:
            footer["over"] = over_words(episode.over)
            footer["next"] = "call finish"
        elif guard.stopped:
            footer["next"] = _STOPPED_NEXT
        return footer


def _setting(value: Any) -> Any:
    """Return an argument as the corrections hold it."""
    if isinstance(value, list):
        return tuple(map(float, value))
    return value if isinstance(value, bool) else float(value)


def _dump(answer: Mapping[str, Any]) -> str:
    return json.dumps(answer)
