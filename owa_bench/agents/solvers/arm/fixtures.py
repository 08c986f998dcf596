"""Skills with fixtures: pulling a drawer or a latch by its handle, putting a peg into a socket.

A skill says at each tick where the tool is to go, how fast at most, and what the gripper does. It
goes on to the next part when the tool has settled, moves slowly where it may touch, and backs off
when what it pushes does not move.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from owa_bench.records.observables import Floats

_OPEN, _SHUT = 1.0, -1.0
_FINGERS = np.array([0.01, 0.0155])  # m, half of the shut fingers along x and y
_HALVES = (0.012, 0.045)  # m, half of a handle and of a latch along their ways
_GAPS = (0.01, 0.02)  # m between the fingers and a handle or a latch, before and after a pull
_ABOVE, _HOVERS = 0.08, 0.065  # m over where the tool works: over a peg, over a handle
_LOW = 0.03  # m below the height for travel, at which the tool first rises
_NEAR, _SETTLES, _STILL = 0.004, 3, 6  # m, ticks
_MEAN = 15.0  # ticks of a mean of what the camera shows
_DOWN, _PULL, _ENTERS = 0.4, 0.4, 0.2  # of the full speed
_BARS = 0.038  # m above where the tool works: the fingers may touch a handle below it
_STALLS, _STALLED = 20, 0.003  # ticks, m
_SHORT = 0.01  # m that is left to the goal: once more
_GRASP, _LONG = 0.022, 0.045  # m above the middle of a peg; half of its length
_HIGH = 0.065  # m that a peg is lifted
_CARRIES, _LOWERS, _CREEPS = 0.5, 0.2, 0.07  # of the full speed
_LOWEST = 0.05  # m, where the fingers are still above the socket
_RIM = 0.045  # m above the bottom: a peg may touch the socket below it
_BESIDE = 0.0025  # m: a peg further aside waits over the rim
_SLIPS = 0.006  # m that a peg has slid up in the fingers: it stands on something
_SHUTS, _LOOKS, _OPENS, _PATIENCE = 10, 8, 6, 100  # ticks
_TRUE = 0.002  # m beside the hole's middle that a peg is lowered with
_BOTTOM, _IN = 0.006, 0.02  # m above the bottom: let go here; a peg that is let go falls in
_LOST = 0.035  # m beside the tool: the peg is no longer held


class Aim(NamedTuple):
    """Where the tool is to go, how fast at most (a share of the full speed), and the gripper."""

    place: Floats
    most: float
    gripper: float


class Skill(ABC):
    """One goal's worth of work."""

    @property
    @abstractmethod
    def grips(self) -> bool:
        """Whether the fingers are to stay shut while the arm rests."""

    @abstractmethod
    def aim(self, tool: Floats, objects: Floats, turns: Floats, goal: Floats) -> Aim:
        """Return what to do now.

        Args:
            tool: (3,) m.
            objects: (n, 3) m.
            turns: (n, 4) their quaternions w, x, y, z.
            goal: (3,) m.
        """


@dataclass(slots=True)
class PlaceMean:
    """Means of a place that the camera shows, and how long the tool has been still somewhere."""

    place: Floats = field(default_factory=lambda: np.zeros(3))
    _count: float = 0.0
    _ticks: int = 0

    def look(self, place: Floats) -> None:
        """Take a place into the mean.

        Args:
            place: (3,) m.
        """
        self._count = min(self._count + 1.0, _MEAN)
        self.place = self.place + (place - self.place) / self._count

    def rests(self, gap: float, near: float = _NEAR, ticks: int = _SETTLES) -> bool:
        """Return whether a gap has been small for some ticks.

        Args:
            gap: m.
            near: How small it must be.
            ticks: For how many.
        """
        self._ticks = self._ticks + 1 if gap < near else 0
        if self._ticks < ticks:
            return False
        self._ticks = 0
        return True


@dataclass(slots=True)
class HandlePull(Skill):
    """Opens what slides: the shut fingers go down behind its handle, move it and go up again.

    Attributes:
        number: Of the object.
    """

    number: int
    _phase: int = 0
    _way: Floats | None = None
    _watcher: PlaceMean = field(default_factory=PlaceMean)
    _past: list[float] = field(default_factory=list)

    @property
    @override
    def grips(self) -> bool:
        return True

    @override
    def aim(self, tool: Floats, objects: Floats, turns: Floats, goal: Floats) -> Aim:
        watcher = self._watcher
        watcher.look(objects[self.number])
        if self._way is None:
            wanted = goal[:2] - objects[self.number][:2]
            axis = int(np.abs(wanted).argmax())
            self._way = np.zeros(3)
            self._way[axis] = math.copysign(1.0, wanted[axis])
        way = self._way
        apart = _HALVES[min(self.number, 1)] + float(_FINGERS @ np.abs(way[:2]))
        handle = np.array([*watcher.place[:2], goal[2]])
        gap = _GAPS[min(self.number, 1)]
        behind = handle - way * (apart + gap)
        if self._phase == 0:
            over = behind + np.array([0.0, 0.0, _HOVERS])
            aside = math.dist(tool[:2].tolist(), over[:2].tolist())
            if tool[2] < over[2] - _LOW and aside > _NEAR:
                return Aim(np.array([*tool[:2], over[2]]), 1.0, _SHUT)
            self._next(when=watcher.rests(math.dist(tool.tolist(), over.tolist()), ticks=_STILL))
            return Aim(over, 1.0, _SHUT)
        if self._phase == 1:
            aside = math.dist(tool[:2].tolist(), behind[:2].tolist())
            self._next(when=watcher.rests(math.dist(tool.tolist(), behind.tolist())))
            waits = tool[2] - goal[2] > _BARS and aside > _NEAR
            return Aim(np.array([*behind[:2], tool[2]]) if waits else behind, _ENTERS, _SHUT)
        # Across the way the tool stays where it came down.
        there = goal - way * apart
        left = float((there - tool) @ way)
        if self._phase == 2:
            self._past.append(left)
            stalls = len(self._past) > _STALLS and self._past[-_STALLS] - left < _STALLED
            self._next(when=watcher.rests(abs(left), ticks=2) or stalls)
            return Aim(there, _PULL, _SHUT)
        away = there - way * gap + np.array([0.0, 0.0, _HOVERS])
        shut = float((goal - watcher.place) @ way)
        waited = watcher.rests(math.dist(tool.tolist(), away.tolist()), ticks=int(_MEAN))
        if waited and shut > _SHORT:
            self._phase, self._past = 0, []
        return Aim(away, 1.0, _SHUT)

    def _next(self, *, when: bool) -> None:
        if when:
            self._phase += 1


@dataclass(slots=True)
class Insertion(Skill):
    """Takes a peg, holds it still over the hole, and lowers it; lifts it again where it sticks."""

    _phase: int = 0
    _ticks: int = 0
    _watcher: PlaceMean = field(default_factory=PlaceMean)
    _held: PlaceMean = field(default_factory=PlaceMean)
    _low: float = 0.0

    @property
    @override
    def grips(self) -> bool:
        return 2 <= self._phase < 6

    @override
    def aim(self, tool: Floats, objects: Floats, turns: Floats, goal: Floats) -> Aim:
        self._ticks += 1
        grasp = goal[2] + _GRASP
        if self._phase < 3:
            self._watcher.look(objects[0])
            return self._take(tool, grasp)
        w, x, y, z = turns[0]
        axis = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
        self._held.look(objects[0] - _LONG * axis - tool)  # the end that goes in
        lowest = max(_LOWEST, 0.5 * _BOTTOM - float(self._held.place[2]))
        over = np.array([*(goal - self._held.place)[:2], lowest])
        if self._phase < 6 and np.abs(self._held.place[:2]).max() < _LOST:
            return self._insert(tool, over)
        if self._phase < 6:
            self._go(6, when=True)
        if self._ticks <= _OPENS:
            return Aim(tool, 1.0, _OPEN)
        return Aim(np.array([*tool[:2], grasp + _ABOVE]), _CARRIES, _OPEN)

    def _take(self, tool: Floats, grasp: float) -> Aim:
        peg, watcher = self._watcher.place, self._watcher
        if self._phase == 0:
            over = np.array([*peg[:2], grasp + _ABOVE])
            self._go(1, when=watcher.rests(math.dist(tool.tolist(), over.tolist())))
            return Aim(over, 1.0, _OPEN)
        down = np.array([*peg[:2], grasp])
        if self._phase == 1:
            self._go(2, when=watcher.rests(math.dist(tool.tolist(), down.tolist())))
            return Aim(down, _DOWN, _OPEN)
        self._go(3, when=self._ticks > _SHUTS)
        return Aim(tool, 0.0, _SHUT)

    def _insert(self, tool: Floats, over: Floats) -> Aim:
        high = over + np.array([0.0, 0.0, _HIGH])
        aside = math.dist(tool[:2].tolist(), over[:2].tolist())
        if self._phase == 3:
            self._go(4, when=tool[2] > high[2] - _LOW / 2)
            return Aim(np.array([*tool[:2], high[2]]), _CARRIES, _SHUT)
        if self._phase == 4:
            self._go(5, when=self._held.rests(aside, _TRUE, _LOOKS))
            self._low = float(self._held.place[2])
            return Aim(high, _CARRIES, _SHUT)
        end = float(tool[2] + self._held.place[2])  # how high the peg's end is
        slips = self._held.place[2] - self._low > _SLIPS
        stands = slips or tool[2] < _LOWEST + _BOTTOM
        if end < _BOTTOM or (stands and end < _IN):
            self._go(6, when=True)
        elif slips:
            self._go(3, when=True)
        if end > _RIM:
            return Aim(over, _LOWERS, _SHUT)
        waits = aside > _BESIDE and end > _IN and self._ticks < _PATIENCE
        return Aim(np.array([*over[:2], tool[2]]) if waits else over, _CREEPS, _SHUT)

    def _go(self, phase: int, *, when: bool) -> None:
        if when:
            self._phase, self._ticks = phase, 0
