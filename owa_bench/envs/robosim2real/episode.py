"""One episode of a body: command in, what the device shows out, judged and guarded."""

import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.device import MARKS, Controller, Sensed, Sensors, UniformStream
from owa_bench.envs.robosim2real.engine import Cell, Truth
from owa_bench.envs.robosim2real.faults import (
    GRIPPER_STUCK,
    LINK_LOST,
    OCCLUDED,
    InjectedFault,
    schedule,
)
from owa_bench.envs.robosim2real.guard import MODES, Guard
from owa_bench.envs.robosim2real.tasks import Judge, reference_seconds
from owa_bench.envs.robosim2real.world import Body, Obstacle, RobotWorld, joined
from owa_bench.records.observables import Floats
from owa_bench.seeding import stream

BodySide = Literal["sim", "surrogate", "second"]
Shown = npt.NDArray[np.float32]
ACTION = 6
MOST = 100.0  # of any number that is shown
MOST_THINGS = 6
FIELDS: dict[str, int] = {
    "joint_position": 7,
    "joint_velocity": 7,
    "tool_position": 3,
    "tool_rotation": 4,
    "gripper_width": 1,
    "objects": 9 * MOST_THINGS,
    "marks": 9,
    "blocks": 6,
    "person": 4,
    "goal": 6,
    "status": 7,
    "last_action": ACTION,
}
SIZE = sum(FIELDS.values())
_HUMAN = 1.2  # m/s
_FAR = 1.6  # m along x, where a person comes from


def columns() -> dict[str, slice]:
    """Return where each field of an observation lies."""
    ends = np.cumsum([*FIELDS.values()]).tolist()
    starts = (0, *ends)
    return {name: slice(a, b) for name, a, b in zip(FIELDS, starts, ends, strict=False)}


def layout_goal() -> dict[str, Any]:
    """Return what a task's goal says of observations and commands, the same for every task."""
    return {
        "fields": {name: [at.start, at.stop] for name, at in columns().items()},
        "hertz": arm.HERTZ,
        "full_speed": arm.SPEED,
        "full_turn": arm.TURN,
        "marks": MARKS.tolist(),
    }


class Person:
    """Somebody who comes to the table now and then, stays for some seconds and leaves."""

    def __init__(self, visits: float, draws: UniformStream) -> None:
        self._chance = visits / 3600.0 / arm.HERTZ
        self._draws = draws
        self._spot = (0.0, 0.0)
        self._wait = 0.0
        self.place: tuple[float, float] | None = None
        self._leaves = False

    def tick(self) -> tuple[float, float] | None:
        """Return where the person is after a tick; None: nobody is there."""
        step = _HUMAN / arm.HERTZ
        if self.place is None:
            if self._draws.share() < self._chance:
                self._spot = (0.85 + 0.15 * self._draws.share(), 0.3 * self._draws.either())
                self.place, self._leaves = (_FAR, self._spot[1]), False
                self._wait = 3.0 + 5.0 * self._draws.share()
            return self.place
        x, y = self.place
        if self._leaves:
            self.place = (x + step, y) if x + step < _FAR else None
        elif x - step > self._spot[0]:
            self.place = (x - step, y)
        else:
            self._wait -= 1.0 / arm.HERTZ
            self._leaves = self._wait <= 0
        return self.place


class CommandResult(NamedTuple):
    """What came of a command: the quality that it added, and whether the episode is over and why.

    `incidents` are those of the episode so far, by severity.
    """

    reward: float = 0.0
    success: bool = False
    over: str = ""
    incidents: Mapping[str, int] = {}


class RobotEpisode:
    """One episode, tick by tick; `truth`, `unit` and the guard's log are never shown.

    Args:
        world: The task, and the published body.
        unit: The hidden numbers of the body.
        seed: Of all that is drawn while the episode runs.
        side: "sim"; "surrogate": the engine is set up as the device's; "second": another engine.
        clock: Time of the device when the episode begins, s.
        faulty: Whether faults are injected, by the law of `faults`.
    """

    def __init__(
        self,
        world: RobotWorld,
        unit: Body,
        seed: int,
        *,
        side: BodySide = "sim",
        clock: float = 0.0,
        faulty: bool = False,
    ) -> None:
        self.world, self.unit = world, unit
        self._terms = (seed, side, clock, faulty)
        self._faults = schedule(world, seed) if faulty else ()
        self._width = arm.OPEN
        self._played: list[Floats | None] = []
        self.body = body = joined(world.body, unit)
        self._cell = _cell_of(world, body, side)
        draws = UniformStream(stream(seed, "device"))
        self._person = Person(world.visits, UniformStream(stream(seed, "person")))
        self.truth: Truth = self._cell.truth()
        self._sensors = Sensors(body, draws)
        self._controller = Controller(body, self.truth.joints, draws, clock)
        self.guard, self.judge = Guard(fixed=len(world.sliders)), Judge(world, self.truth)
        self.ticks = 0
        self.over = ""
        self._last = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
        self.sensed: Sensed = self._sensors.read(self.truth)
        self._somebody: tuple[float, float] | None = None

    @property
    def person_place(self) -> tuple[float, float] | None:
        """Where somebody stands, m; None: nobody does."""
        return self._somebody

    @property
    def injected(self) -> tuple[InjectedFault, ...]:
        """The faults that have begun; all, if the guard ended the episode before they could."""
        begun = tuple(fault for fault in self._faults if fault.first < self.ticks)
        return self._faults if self.guard.ended else begun

    @property
    def most_s(self) -> float:
        """The most seconds of motion that count as exposure."""
        return 1.5 * reference_seconds(self.world)

    @property
    def success(self) -> bool:
        """Whether the task is done, by an engine and under a guard that let it be done."""
        return self.judge.success and not self.guard.ended and not self.truth.blew_up

    def tick(self, action: Floats | None) -> CommandResult:
        """Play one command.

        Args:
            action: (6,) in [-1, 1]: velocities of the tool x, y, z, its turn, the gripper (above 0:
                open), and above 0 the wish to go on after a stop; None: none could be read.
        Returns: What came of it.
        """
        self._played.append(action)
        before = self.judge.quality
        active = {fault.kind for fault in self._faults if fault.first <= self.ticks < fault.end}
        self._controller.link_lost = LINK_LOST in active
        self._sensors.occluded = OCCLUDED in active
        share = self.guard.admit(action, recover=action is not None and action[5] > 0)
        sent = sent_command(action, share, self._last)
        if self.guard.stopped:
            targets, width = self._controller.hold(self._sensors.encoders(self.truth))
        else:
            targets, width = self._controller.drive(sent, self.sensed.joints)
        self._width = self._width if GRIPPER_STUCK in active else width
        self.truth = self._cell.tick(targets, self._width)
        self.ticks += 1
        self._last = sent
        self._somebody = self._person.tick()
        self.guard.watch(self.truth, self._somebody)
        self.judge.tick(self.truth)
        self.sensed = self._sensors.read(self.truth)
        self.over = ending(
            self.world, self.judge, self.guard, self.ticks, broken=self.truth.blew_up
        )
        incidents = self.guard.incidents
        counts = dict(Counter(str(one.severity) for one in incidents)) if incidents else {}
        return CommandResult(self.judge.quality - before, self.success, self.over, counts)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made from: it plays the commands again."""
        made = (self.world, self.unit, *self._terms)
        return {"made": made, "played": self._played}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        world, unit, seed, side, clock, faulty = state["made"]
        self.__init__(  # type: ignore[misc]
            world, unit, seed, side=side, clock=clock, faulty=faulty
        )
        for action in state["played"]:
            self.tick(action)

    def observation(self) -> Shown:
        """Return what the agent is shown, (SIZE,) in the order of FIELDS, within +-MOST."""
        return show(
            self.world, self.sensed, self.judge, self.guard, self._somebody, self.ticks, self._last
        )


def ending(world: RobotWorld, judge: Judge, guard: Guard, ticks: int, *, broken: bool) -> str:
    """Return why an episode is over, "" while it goes on.

    Args:
        world: The task.
        judge: It knows what is done.
        guard: It may have ended the episode.
        ticks: Since the episode began.
        broken: Whether the body failed, by no fault of the agent's.
    """
    if broken:
        return "infrastructure"
    if guard.ended:
        return f"stopped: {guard.ended}"
    if judge.success:
        return "done"
    return "too late" if ticks >= world.limit * arm.HERTZ else ""


def sent_command(action: Floats | None, share: float, last: Floats) -> Floats:
    """Return what is sent for a command.

    Args:
        action: (6,) as the agent gave it; None: it gave none that can be read.
        share: Of the speed that the guard allows.
        last: (6,) what was sent before: where there is no command the gripper stays as it was.
    Returns: (6,).
    """
    if action is None:
        return np.array([0.0, 0.0, 0.0, 0.0, last[4], 0.0])
    sent = action.copy()
    sent[:4] *= share
    return sent


class BodyCell(Protocol):
    """The raw body in an engine."""

    def tick(self, targets: Floats, width: float) -> Truth:
        """Drive the hinges to targets for one tick.

        Args:
            targets: (7,) rad, true angles.
            width: Between the fingers, m.
        Returns: What is so at the end of the tick.
        """

    def truth(self) -> Truth:
        """Return what is so now."""


def _cell_of(world: RobotWorld, body: Body, side: BodySide) -> BodyCell:
    """Return the cell of a side."""
    if side == "second":
        from owa_bench.envs.robosim2real.second import SecondCell

        return SecondCell(world, body)
    return Cell(world, body, coarse=side == "surrogate")


_COLUMNS = columns()


def show(
    world: RobotWorld,
    sensed: Sensed,
    judge: Judge,
    guard: Guard,
    person: tuple[float, float] | None,
    ticks: int,
    last: Floats,
) -> Shown:
    """Return an observation.

    Args:
        world: The task.
        sensed: What the body shows.
        judge: It knows the goal that is next.
        guard: It knows the mode.
        person: Where somebody stands.
        ticks: Since the episode began.
        last: (6,) the command as it was sent.
    Returns: (SIZE,) in the order of FIELDS, within +-MOST.
    """
    goal = judge.goal
    found = np.zeros(SIZE, dtype=np.float32)
    found[_COLUMNS["joint_position"]] = sensed.joints
    found[_COLUMNS["joint_velocity"]] = sensed.speeds
    found[_COLUMNS["tool_position"]] = sensed.tool
    found[_COLUMNS["tool_rotation"]] = _quaternion(sensed.rotation)
    found[_COLUMNS["gripper_width"]] = sensed.width
    objects = found[_COLUMNS["objects"]].reshape(MOST_THINGS, 9)
    count = len(sensed.things)
    objects[:count, 0] = 1.0
    objects[:count, 1:4] = sensed.things
    objects[:count, 4:8] = sensed.turns
    objects[:count, 8] = sensed.age
    found[_COLUMNS["marks"]] = sensed.marks.ravel()
    if world.blocks:
        found[_COLUMNS["blocks"]] = _box_around(world.blocks)
    if person is not None:
        found[_COLUMNS["person"]] = (1.0, *person, 0.0)
    left = world.limit - ticks / arm.HERTZ
    found[_COLUMNS["goal"]] = (*goal.place, goal.tolerance, goal.hold, left)
    status = found[_COLUMNS["status"]]
    status[MODES.index(guard.mode)] = 1.0
    status[4:7] = (float(len(guard.incidents)), float(judge.done), guard.moved_s)
    found[_COLUMNS["last_action"]] = last
    return np.minimum(np.maximum(found, -MOST), MOST)


@lru_cache(maxsize=64)
def _box_around(blocks: tuple[Obstacle, ...]) -> tuple[float, ...]:
    """Return place and half lengths of the box around the blocks that are not turned."""
    level = [block for block in blocks if block.turn[0] == 1.0]
    places, sizes = (np.array([getattr(one, name) for one in level]) for name in ("place", "size"))
    low, high = (places - sizes).min(axis=0), (places + sizes).max(axis=0)
    return (*((low + high) / 2).tolist(), *((high - low) / 2).tolist())


def _quaternion(rotation: Floats) -> tuple[float, float, float, float]:
    """Return the unit quaternion w, x, y, z of a rotation whose z points down."""
    (a, b, _), (c, d, _), (_, _, f) = rotation.tolist()
    x = math.sqrt(max(0.0, 1.0 + a - d - f)) / 2.0
    y = math.sqrt(max(0.0, 1.0 - a + d - f)) / 2.0
    z = math.sqrt(max(0.0, 1.0 - a - d + f)) / 2.0
    w = math.sqrt(max(0.0, 1.0 + a + d + f)) / 2.0
    return w, x, math.copysign(y, b + c), math.copysign(z, rotation[0, 2] + rotation[2, 0])
