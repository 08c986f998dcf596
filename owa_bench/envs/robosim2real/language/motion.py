"""Moves of the arm by tool calls: each plays ticks of a guarded device, by what the device shows.

Nothing here reads the truth: positions come from encoders and camera, through the corrections that
the agent set.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.agents.solvers.arm.policies import gain_for
from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.device import MARKS
from owa_bench.envs.robosim2real.episode import RobotEpisode
from owa_bench.envs.robosim2real.guard import PERSON
from owa_bench.envs.robosim2real.language.corrections import MM, Corrections, camera_error
from owa_bench.envs.robosim2real.world import Vector
from owa_bench.records.observables import Floats

LONGEST_S = 5.0  # of one move
ARRIVED_MM = 3.0  # of the target, for so many ticks:
_ARRIVED_TICKS = 4
PERSON_NEAR = 0.95  # m: moves end
_REST_TICKS, _RESTING = 24, 0.002  # the tool moves no further, m, in so many ticks
SETTLED_MM = 6.0  # of the target, where a tool that comes no nearer has arrived
ARRIVED, _SETTLED = "arrived", "it comes no nearer"
_BRAKED = ("a person is near", "went astray: the tool moved away from the target")
ASTRAY_MM = 60.0  # further from the target than before: the move ends
LOOK_TICKS, _CALIBRATION_TICKS, GRIP_TICKS = 10, 20, 14
_BRAKE, _BRAKE_TICKS = 0.8, 6
_FULL = arm.SPEED / arm.HERTZ  # m a tick at full command
_LAG = 1.5  # ticks of drives and camera beyond the delay
_PROBE, _PROBE_TICKS, _PROBE_ENDS, _PROBE_UP_TO = 0.6, 6, 24, 0.45
# What the probe reads beyond dead time and smoothing: the drives' part, as on units of practice.
DRIVES_MS = 105.0
_RECOVERY_TICKS = 40
TICK_MS = round(1000 / arm.HERTZ)


def over_words(over: str) -> str:
    """Return why nothing can be done any more.

    Args:
        over: The episode's.
    """
    if over.startswith("stopped"):
        return f"the guard ended it: {over.partition(': ')[2]}"
    return {"done": "the task is done", "too late": "the arm's time is up"}.get(over, over)


class MoveEnd(NamedTuple):
    """How a move ended, and where the arm says it is, mm from the target."""

    reason: str
    off_mm: float


class LookMeans(NamedTuple):
    """Means of what the device shows over a while; lengths m."""

    tool: Floats
    things: Floats
    marks: Floats
    width: float
    age: float


class ArmMotion:
    """Plays moves on an episode.

    Args:
        episode: A fresh one.
    """

    def __init__(self, episode: RobotEpisode) -> None:
        self.episode = episode
        self.corrections = Corrections()
        self.is_open = True

    @property
    def tool(self) -> Floats:
        """Where the arm says that its tool is, corrected, (3,) m."""
        return self.corrections.tool_place(self.episode.sensed.tool)

    @property
    def ended(self) -> bool:
        """Whether no further tick may be played or moves the arm."""
        return bool(self.episode.over) or self.episode.guard.stopped

    def person_is_near(self) -> bool:
        """Return whether a person stands or walks so near that moves end."""
        person = self.episode.person_place
        if person is None:
            return False
        return math.dist(self.tool[:2].tolist(), person) - PERSON < PERSON_NEAR

    def move(self, target: Floats, speed: float, seconds: float = LONGEST_S) -> MoveEnd:
        """Move the tool straight to a place.

        Args:
            target: (3,) m.
            speed: Share of the full speed.
            seconds: The most that the move may take.
        Returns: Why it ended, and how far from the target.
        """
        gain = gain_for(self.corrections.delay_ms / TICK_MS + _LAG)
        nearest, last = math.inf, np.zeros(3)
        near = 0
        trail: deque[Floats] = deque(maxlen=_REST_TICKS)
        reason = ""
        for _ in range(round(seconds * arm.HERTZ)):
            error = target - self.tool
            off = arm.length(error)
            nearest = min(nearest, off)
            near = near + 1 if off * MM < ARRIVED_MM else 0
            if reason := self._end(near, off - nearest, trail):
                break
            trail.append(self.tool)
            asked = error / _FULL * gain
            last = asked * min(1.0, speed / max(arm.length(asked), 1e-9))
            self._tick(last)
        if reason in _BRAKED:
            self._brake(last)
        off_mm = arm.length(target - self.tool) * MM
        if reason == _SETTLED:
            reason = ARRIVED if off_mm < SETTLED_MM else f"{_SETTLED} than {round(off_mm)} mm"
        return MoveEnd(self._stop or reason or f"{seconds:g} s of this move are over", off_mm)

    def _end(self, near: int, farther: float, trail: Sequence[Floats]) -> str:
        """Return why a move ends now, "" while it goes on.

        Args:
            near: Ticks for which the tool has been at the target.
            farther: How much further from the target the tool is than it was, m.
            trail: Where the tool was, as far back as is kept.
        """
        if self._stop:
            return self._stop
        if near >= _ARRIVED_TICKS:
            return ARRIVED
        if self.person_is_near():
            return _BRAKED[0]
        if farther * MM > ASTRAY_MM:
            return _BRAKED[1]
        rests = len(trail) == _REST_TICKS and arm.length(self.tool - trail[0]) < _RESTING
        return _SETTLED if rests else ""

    @property
    def _stop(self) -> str:
        """Why the arm may not move, "" if it may."""
        guard = self.episode.guard
        if self.episode.over:
            return over_words(self.episode.over)
        return f"protective stop: {guard.cause}" if guard.stopped else ""

    def _brake(self, last: Floats) -> None:
        """Take back what is on its way, so that the arm rests sooner."""
        self._tick(-_BRAKE * last)
        self.rest(_BRAKE_TICKS)

    def rest(self, ticks: int) -> None:
        """Hold still for some ticks; fewer if the episode ends."""
        for _ in range(ticks):
            if self.episode.over:
                return
            self._tick(np.zeros(3))

    def grip(self, *, is_open: bool) -> None:
        """Open or shut the gripper and wait for it."""
        self.is_open = is_open
        self.rest(GRIP_TICKS)

    def recover(self) -> None:
        """Rest and ask to go on, until the guard lets the arm go on."""
        for _ in range(_RECOVERY_TICKS):
            if self.episode.over or not self.episode.guard.stopped:
                return
            self._tick(np.zeros(3), recover=True)

    def look(self) -> LookMeans:
        """Hold still and return the means of what is shown, corrected."""
        raw, right = self._means(LOOK_TICKS), self.corrections
        return raw._replace(
            tool=right.tool_place(raw.tool),
            things=right.places(raw.things),
            marks=right.places(raw.marks),
        )

    def _means(self, ticks: int) -> LookMeans:
        """Hold still for some ticks and return the means of what is shown, as it is shown."""
        tools, things, marks = [], [], []
        for _ in range(ticks):
            self.rest(1)
            sensed = self.episode.sensed
            tools.append(sensed.tool)
            things.append(sensed.things)
            marks.append(sensed.marks)
        sensed = self.episode.sensed
        return LookMeans(
            tool=np.mean(tools, axis=0),
            things=np.mean(things, axis=0),
            marks=np.mean(marks, axis=0),
            width=sensed.width,
            age=sensed.age,
        )

    # --- calibrations: each returns absolute numbers, whatever is set now ------------------

    def measure_camera(self) -> tuple[Vector, float]:
        """Return offset, mm, and turn, degrees, of the camera."""
        return camera_error(self._means(_CALIBRATION_TICKS).marks[:2], MARKS)

    def measure_encoders(self) -> Vector:
        """Return what the encoders say of the tool less what the camera says, corrected, mm."""
        shown = self._means(_CALIBRATION_TICKS)
        mark = self.corrections.places(shown.marks[2:])[0]
        x, y, z = (round(value, 1) for value in ((shown.tool - mark) * MM).tolist())
        return x, y, z

    def measure_delay(self) -> float | None:
        """Return the way of a command, ms, from a short move up or down; None: it was broken off.

        The area between the command and what the encoders show is the delay times the way.
        """
        first = self.episode.sensed.tool[2]
        sign = 1.0 if self.tool[2] < _PROBE_UP_TO else -1.0
        moved = []
        for number in range(_PROBE_ENDS):
            if self.ended or self.person_is_near():
                return None
            speed = sign * _PROBE if number < _PROBE_TICKS else 0.0
            self._tick(np.array([0.0, 0.0, speed]))
            moved.append(float(self.episode.sensed.tool[2]) - first)
        asked = np.minimum(np.arange(1, _PROBE_ENDS + 1), _PROBE_TICKS) / _PROBE_TICKS
        if abs(moved[-1]) * MM < ARRIVED_MM:
            return None
        ticks = float((asked - np.array(moved) / moved[-1]).sum())
        return round(max(0.0, ticks * TICK_MS - DRIVES_MS))

    def _tick(self, velocity: Floats, *, recover: bool = False) -> None:
        command = self.corrections.command(velocity, is_open=self.is_open, recover=recover)
        self.episode.tick(command)
