"""Scripted policies of an arm: they read what its brief and its device show, as any agent does.

`Scripted` closes the loop by one gain: the share of the distance left that it asks for a tick.
Dead time sets how large that may be. `Adaptive` measures the unit's dead time and its camera.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from owa_bench.agents.solvers.arm.fixtures import HandlePull, Insertion, Skill
from owa_bench.records.observables import Floats

_ACTION = 6
_SAFE_Z, _OVER = 0.3, 0.13
_PUSH_Z, _GRASP_Z = 0.035, 0.022
_BEHIND = (0.075, 0.1, 0.06)  # m from the middle of a cube to where a push may begin
_TAKEN = 0.05  # m of another thing to where the tool would go down
_REACH_ON = 0.1  # m beyond the middle of a cube that a push aims at
_LOW = 0.05  # m below which a push begins: higher up the tool lies on a thing
# m behind a cube, and beside the line of its push: while one goes on, for the view of the cube is
# older than the tool's place; and to begin one.
_PUSHING, _BEGINS = (0.005, 0.025), (0.03, 0.012)
_OPEN, _SHUT = 1.0, -1.0
_CARRIES = 0.5  # of the full speed
_SHUTTING, _OPENING, _PATIENCE = 10, 5, 60  # ticks
_ALIGNED, _RESTS = 0.004, 8  # m and ticks over a thing before the gripper shuts
_NEAR = 0.95  # m to a person: the arm rests
_QUICKEST, _SLOWEST = 0.6, 0.05
BLIND, SLOW = 0.6, 0.06
_PROBE, _PROBE_TICKS, _PROBE_ENDS = 0.6, 6, 24
_LONG, _SHORT = 2000.0, 40.0  # ticks of a mean
_LEAVES = 5  # the phase of a pick in which the thing is let go
_BRAKE = 0.8  # share of the last command that is taken back
_RESTING = 0.0015  # m a tick


class ArmLayout(NamedTuple):
    """What an arm's brief says of its observations and commands.

    `at` is where each field of an observation lies, `full` the metres that the tool moves a tick at
    full command, `marks` (2, 3) where the table's marks are.
    """

    at: Mapping[str, slice]
    full: float
    marks: Floats

    @classmethod
    def of(cls, goal: Mapping[str, Any]) -> "ArmLayout":
        """Return the layout that a task's goal states.

        Args:
            goal: The JSON form of the goal.
        """
        at = {name: slice(*ends) for name, ends in goal["fields"].items()}
        return cls(at, goal["full_speed"] / goal["hertz"], np.array(goal["marks"]))


@dataclass(frozen=True, slots=True)
class ArmView:
    """What a policy reads of an observation."""

    tool: Floats
    things: Floats
    turns: Floats
    goal: Floats
    left: float
    blocks: Floats
    person: Floats
    stopped: bool
    marks: Floats

    @classmethod
    def of(cls, observation: Floats, layout: ArmLayout) -> "ArmView":
        """Return the view of an observation.

        Args:
            observation: (n,).
            layout: Where its fields lie.
        """
        shown, at = observation.astype(np.float64), layout.at
        objects = shown[at["objects"]].reshape(-1, 9)
        return cls(
            tool=shown[at["tool_position"]],
            things=objects[objects[:, 0] > 0, 1:4],
            turns=objects[objects[:, 0] > 0, 4:8],
            goal=shown[at["goal"]][:3],
            left=float(shown[at["goal"]][5]),
            blocks=shown[at["blocks"]],
            person=shown[at["person"]],
            stopped=bool(shown[at["status"]][2]),
            marks=shown[at["marks"]].reshape(3, 3),
        )


@dataclass(slots=True)
class Scripted:
    """A policy of one gain.

    Attributes:
        layout: Of observations and commands.
        family: Of the task.
        gain: Share of the distance that is asked for a tick.
        cares: Whether it rests while a person is near.
        correct: Replaces what is shown by what is so; None: nobody tells.
    """

    layout: ArmLayout
    family: str
    gain: float = BLIND
    cares: bool = True
    correct: Callable[[ArmView], ArmView] | None = None
    _phase: int = 0
    _waited: int = 0
    _rested: int = 0
    _goal: tuple[float, ...] = ()
    _last: Floats = field(default_factory=lambda: np.zeros(3))
    _skill: Skill | None = None
    _goals: int = 0

    def __call__(self, observation: Floats) -> Floats:
        """Return the next command, (6,)."""
        view = ArmView.of(observation, self.layout)
        if self.correct is not None:
            view = self.correct(view)
        grips = self._skill is not None and self._skill.grips
        if view.stopped:
            if self.family == "drawer":
                self._skill = None  # it begins anew, from above
            return np.array([0.0, 0.0, 0.0, 0.0, _SHUT if grips else _OPEN, 1.0])
        if self.cares and view.person[0] > 0:
            gap = math.dist(view.tool[:2].tolist(), view.person[1:3].tolist()) - 0.15
            if gap < _NEAR:
                return self._rest()
        if tuple(view.goal) != self._goal:
            self._phase, self._goal, self._skill = 0, tuple(view.goal), None
            self._goals += 1
        step = {
            "reach": self._reach,
            "push": self._push,
            "pick_place": self._pick,
            "drawer": self._at_fixture,
            "insert": self._at_fixture,
        }
        velocity, gripper = step[self.family](view)
        self._last = np.clip(velocity, -1.0, 1.0)
        return np.array([*np.clip(velocity, -1.0, 1.0), 0.0, gripper, 0.0])

    def _rest(self) -> Floats:
        """Return the command that waits for a person to leave, and keeps what is held.

        The first one takes back what is on its way, so that the arm stands sooner.
        """
        action = np.zeros(_ACTION)
        action[:3] = -_BRAKE * self._last
        self._last = np.zeros(3)
        holds = self.family == "pick_place" and 1 < self._phase < _LEAVES
        grips = self._skill is not None and self._skill.grips
        action[4] = _SHUT if holds or grips or self.family == "push" else _OPEN
        return action

    def _toward(self, view: ArmView, place: Floats, share: float = 1.0) -> Floats:
        wanted: Floats = (place - view.tool) / self.layout.full * (self.gain * share)
        return wanted

    def _at_fixture(self, view: ArmView) -> tuple[Floats, float]:
        if self._skill is None:
            # The last goal is the first object's, the one before it the second's.
            pulled = len(view.things) - self._goals
            self._skill = Insertion() if self.family == "insert" else HandlePull(pulled)
        aim = self._skill.aim(view.tool, view.things, view.turns, view.goal)
        return np.clip(self._toward(view, aim.place), -aim.most, aim.most), aim.gripper

    def _reach(self, view: ArmView) -> tuple[Floats, float]:
        goal = view.goal
        if view.blocks[3:].any() and self._phase < 2:
            aside = abs(goal[1] - view.tool[1]) > 0.02
            if aside and view.tool[2] < _SAFE_Z - 0.03 and self._phase == 0:
                return self._toward(view, np.array([view.tool[0], view.tool[1], _SAFE_Z])), _OPEN
            self._phase = 1
            if aside:
                return self._toward(view, np.array([goal[0], goal[1], _SAFE_Z])), _OPEN
            self._phase = 2
        return self._toward(view, goal), _OPEN

    def _push(self, view: ArmView) -> tuple[Floats, float]:
        tool, cube = view.tool, view.things[0]
        way = view.goal[:2] - cube[:2]
        left = math.hypot(*way)
        if left < 0.008 or (self._phase == 2 and left < 0.012):
            self._phase = 2
            return np.array([0.0, 0.0, 0.3 if tool[2] < _OVER else 0.0]), _SHUT
        ahead = way / max(left, 1e-6)
        starts = [np.array([*(cube[:2] - ahead * behind), _PUSH_Z]) for behind in _BEHIND]
        start = next((one for one in starts if not _is_taken(view, one[:2])), starts[0])
        rel = tool[:2] - cube[:2]
        across = np.array([-ahead[1], ahead[0]])
        behind, aside = -float(rel @ ahead), float(rel @ across)
        least, most = _PUSHING if self._phase == 1 else _BEGINS
        if behind > least and abs(aside) < most and tool[2] < _LOW:
            self._phase = 1
            on = cube[:2] + ahead * min(_REACH_ON, 0.7 * left)
            return self._toward(view, np.array([*on, _PUSH_Z]), 0.7), _SHUT
        self._phase = 0
        if math.dist(tool[:2].tolist(), start[:2].tolist()) > 0.012:
            if tool[2] < 0.1:
                return np.array([0.0, 0.0, 0.6]), _SHUT
            return self._toward(view, np.array([*start[:2], _OVER])), _SHUT
        if _is_taken(view, tool[:2]):
            start[2] = _OVER  # another thing is below: do not press on it
        return self._toward(view, start), _SHUT

    def _pick(self, view: ArmView) -> tuple[Floats, float]:
        phases = (self._go_over, self._go_down, self._shut, self._carry, self._lower, self._leave)
        return phases[self._phase](view)

    def _next(self, *, when: bool) -> None:
        """Go on to the next phase."""
        if when:
            self._phase, self._waited = self._phase + 1, 0

    def _go_over(self, view: ArmView) -> tuple[Floats, float]:
        over = np.array([*view.things[0][:2], _OVER])
        self._next(when=math.dist(view.tool.tolist(), over.tolist()) < 0.012)
        return self._toward(view, over), _OPEN

    def _go_down(self, view: ArmView) -> tuple[Floats, float]:
        """Go down and rest over the thing: at rest the tool is seen where it is."""
        self._waited += 1
        down = np.array([*view.things[0][:2], _GRASP_Z])
        low = abs(view.tool[2] - _GRASP_Z) < 0.006
        over = math.dist(view.tool[:2].tolist(), down[:2].tolist()) < _ALIGNED
        self._rested = self._rested + 1 if low and over else 0
        self._next(when=self._rested > _RESTS or self._waited > _PATIENCE)
        return self._toward(view, down), _OPEN

    def _shut(self, view: ArmView) -> tuple[Floats, float]:
        self._waited += 1
        self._next(when=self._waited > _SHUTTING)
        return np.zeros(3), _SHUT

    def _carry(self, view: ArmView) -> tuple[Floats, float]:
        tool, goal = view.tool, view.goal
        high, aside = goal[2] + 0.1, math.dist(tool[:2].tolist(), goal[:2].tolist())
        if tool[2] < high - 0.03 and aside > 0.05:
            return self._toward(view, np.array([*tool[:2], high])), _SHUT
        self._next(when=aside < 0.006)
        velocity = self._toward(view, np.array([*goal[:2], high]))
        return np.clip(velocity, -_CARRIES, _CARRIES), _SHUT  # a smooth thing slips else

    def _lower(self, view: ArmView) -> tuple[Floats, float]:
        down = np.array([*view.goal[:2], view.goal[2] - 0.002])
        self._waited += 1
        self._next(when=abs(view.tool[2] - down[2]) < 0.005 or self._waited > _PATIENCE)
        return self._toward(view, down), _SHUT

    def _leave(self, view: ArmView) -> tuple[Floats, float]:
        self._waited += 1
        if self._waited <= _OPENING:
            return np.zeros(3), _OPEN
        return self._toward(view, np.array([*view.goal[:2], view.goal[2] + 0.1])), _OPEN


def _is_taken(view: ArmView, place: Floats) -> bool:
    """Return whether a thing other than the first lies where the tool would go down."""
    others = view.things[1:, :2] - place
    return bool(len(others) and np.linalg.norm(others, axis=1).min() < _TAKEN)


def gain_for(delay: float) -> float:
    """Return the gain that a loop with a delay takes without swinging.

    Args:
        delay: From command to what is seen of it, in ticks.
    """
    return float(np.clip(0.45 / (delay + 0.5), _SLOWEST, _QUICKEST))


@dataclass(slots=True)
class MarkReader:
    """Sets the camera right by the table's marks, and then the encoders by the mark on the tool.

    Attributes:
        marks: (2, 3) where the table's marks are.
        memory: What it found, by name: numbers alone.
    """

    marks: Floats
    memory: dict[str, float]
    _before: Floats | None = None

    def look(self, view: ArmView) -> None:
        """Compare the marks with where they are, and the tool's with what the encoders say."""
        for name, gap in zip(("first", "second"), view.marks[:2] - self.marks, strict=True):
            self._learn(name, gap, _LONG)
        moved = np.inf if self._before is None else np.abs(view.tool - self._before).max()
        self._before = view.tool
        if moved < _RESTING:
            self._learn("tool", self._straight(view.marks[2:])[0] - view.tool, _SHORT)

    def right(self, view: ArmView) -> ArmView:
        """Return a view with what was found set right."""
        things = self._straight(view.things) if len(view.things) else view.things
        return replace(view, tool=view.tool + self._mean("tool"), things=things)

    def _learn(self, name: str, value: Floats, longest: float) -> None:
        """Take a value into a mean over at most `longest` of the last ones."""
        count = self.memory.get(f"{name} count", 0.0) + 1.0
        self.memory[f"{name} count"] = count
        for axis, number in enumerate(value.tolist()):
            key = f"{name} {axis}"
            known = self.memory.get(key, 0.0)
            self.memory[key] = known + (number - known) / min(count, longest)

    def _mean(self, name: str) -> Floats:
        return np.array([self.memory.get(f"{name} {axis}", 0.0) for axis in range(3)])

    def _straight(self, points: Floats) -> Floats:
        """Return where points are that the camera shows, (n, 3)."""
        first, second = self.marks + np.stack([self._mean("first"), self._mean("second")])
        way, known = second - first, self.marks[1] - self.marks[0]
        turn = math.atan2(way[1], way[0]) - math.atan2(known[1], known[0])
        cosine, sine = math.cos(turn), math.sin(turn)
        back = np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]])
        found: Floats = (points - (first + second) / 2) @ back.T + self.marks.mean(axis=0)
        return found


@dataclass(slots=True)
class Adaptive:
    """Measures the unit, keeps what it found, and plays by it.

    The first episode on a unit begins with a probe: a short move up, from which the delay is read.

    Attributes:
        layout: Of observations and commands.
        family: Of the task.
        memory: What it found, by name: numbers alone, kept between episodes.
        cares: Whether it rests while a person is near.
    """

    layout: ArmLayout
    family: str
    memory: dict[str, float]
    cares: bool = True
    _moved: list[float] = field(default_factory=list)
    _inner: Scripted | None = None
    _marks: MarkReader | None = None

    def __call__(self, observation: Floats) -> Floats:
        """Return the next command, (6,)."""
        view = ArmView.of(observation, self.layout)
        self._marks = self._marks or MarkReader(self.layout.marks, self.memory)
        self._marks.look(view)
        if "delay" not in self.memory:
            return self._probe(view)
        if self._inner is None:
            gain = gain_for(self.memory["delay"])
            right = self._marks.right
            self._inner = Scripted(self.layout, self.family, gain, cares=self.cares, correct=right)
        return self._inner(observation)

    def _probe(self, view: ArmView) -> Floats:
        """Move up for some ticks, then rest; read the delay from the area between the two."""
        self._moved.append(float(view.tool[2]))
        ticks = len(self._moved)
        asks = _PROBE if ticks <= _PROBE_TICKS else 0.0
        if ticks >= _PROBE_ENDS:
            rise = np.array(self._moved[1:]) - self._moved[0]
            asked = np.minimum(np.arange(1, ticks), _PROBE_TICKS) / _PROBE_TICKS
            self.memory["delay"] = float(np.clip((asked - rise / rise[-1]).sum(), 0.0, 12.0))
        return np.array([0.0, 0.0, asks, 0.0, _OPEN, 0.0])
