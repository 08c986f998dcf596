"""Drivers: how a real robot plays the tasks, under the same guard and the same judge.

A driver has nine members. It moves one arm and reads its sensors; it judges nothing, and no code
here is a safety function: the emergency stop is hardware, outside of this process.
"""

import contextlib
import math
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.device import Sensed
from owa_bench.envs.robosim2real.engine import Truth
from owa_bench.envs.robosim2real.episode import (
    ACTION,
    CommandResult,
    Shown,
    ending,
    sent_command,
    show,
)
from owa_bench.envs.robosim2real.guard import Guard
from owa_bench.envs.robosim2real.tasks import Judge
from owa_bench.envs.robosim2real.world import RobotWorld
from owa_bench.errors import InfrastructureFailure
from owa_bench.records.observables import Floats

ANSWER_S = 0.1  # most time that a member but `connect` and `ready` may take
READY_S = 600.0  # a person may have to lay things out
OLD_TICKS, DEAD_TICKS = 3, 10  # without a new reading: the arm holds; it is stopped
_SAME = 1e-6
T = TypeVar("T")


class DriverFault(InfrastructureFailure):
    """A driver did not do what it must; the arm was told to stop."""


class DriverCard(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver says of its robot.

    `serial` is a digest of the maker's number, `hertz` how many commands a second it takes,
    `limits` what the robot itself keeps, by name.
    """

    name: str
    maker: str
    serial: str
    hertz: int = arm.HERTZ
    limits: dict[str, float] = {}


class DriverCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """What the robot believes of itself: zeros of its joints, gains, firmware, payload, camera."""

    zeros: tuple[float, ...] = ()
    gains: tuple[float, ...] = ()
    firmware: str = ""
    payload: float = 0.0
    camera: tuple[float, ...] = ()


class DriverReading(msgspec.Struct, frozen=True, kw_only=True):
    """The newest state, at `clock_s` of the device.

    Joints rad, lengths m, forces N; `things` (n, 3) with `turns` (n, 4) as measured, `marks` (3, 3)
    as of `device.MARKS` and the tool's own.
    """

    clock_s: float
    joints: tuple[float, ...]
    speeds: tuple[float, ...]
    width: float
    things: tuple[tuple[float, float, float], ...]
    turns: tuple[tuple[float, float, float, float], ...]
    marks: tuple[tuple[float, float, float], ...]
    table_force: float = 0.0
    grip_force: float = 0.0
    person: tuple[float, float] | None = None


class DriverAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent to the drives for a command; `clipped`: it is less than what was asked."""

    clock_s: float
    action: tuple[float, ...]
    clipped: bool = False


class RobotDriver(Protocol):
    """A robot. Every member but `connect` and `ready` answers within `ANSWER_S`."""

    card: DriverCard

    def connect(self, deadline_s: float) -> None:
        """Open the connection.

        Args:
            deadline_s: Seconds that it may take.
        """

    def snapshot(self) -> DriverCalibration:
        """Return what the robot believes of itself now."""

    def ready(self, world: RobotWorld) -> DriverReading:
        """Lay the things out and move to the start, or have a person do it.

        Args:
            world: The task.
        Returns: The state, as measured.
        """

    def read(self) -> DriverReading:
        """Return the newest state; wait for none."""

    def send(self, action: tuple[float, ...]) -> DriverAnswer:
        """Send a command.

        Args:
            action: Velocities of the tool x, y, z (1: `arm.SPEED`), its turn (1: `arm.TURN`), the
                gripper (above 0: open), and a number without meaning here.
        Returns: What was sent in truth.
        """

    def stop(self, category: int) -> None:
        """Stop the arm; called again, it stays so. It may come from another thread.

        Args:
            category: 0, power off at once; 1, brake first; 2, brake and hold.
        """

    def recover(self) -> bool:
        """Make the arm ready after a stop; False: a person must."""

    def close(self) -> None:
        """End the connection; the arm stands still before."""


class DriverEpisode:
    """An episode that a driver's robot plays.

    Args:
        world: The task.
        driver: Connected.
        answer_s: Seconds that a member but `connect` and `ready` may take. An arm keeps the
            default; a driver whose time is simulated may take longer on a busy machine.
    Raises: DriverFault: what the driver says at the start cannot be.
    """

    def __init__(
        self, world: RobotWorld, driver: RobotDriver, *, answer_s: float = ANSWER_S
    ) -> None:
        self.world, self._driver, self._answer_s = world, driver, answer_s
        self.fault = ""
        reading = self._ask("ready", driver.ready, world, seconds=READY_S)
        self._reading = self._before = self._checked(reading)
        self.truth = truth_of(self._reading)
        self.guard, self.judge = Guard(fixed=len(world.sliders)), Judge(world, self.truth)
        self.ticks = 0
        self._old = 0
        self._last = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
        self.over = ""

    def tick(self, action: Floats | None) -> CommandResult:
        """Play one command; a driver's fault ends the episode as infrastructure.

        Args:
            action: (6,) in [-1, 1]; None: none could be read.
        Returns: What came of it.
        """
        before = self.judge.quality
        try:
            self._play(action)
        except DriverFault as fault:
            self.fault = str(fault)
        self.over = ending(self.world, self.judge, self.guard, self.ticks, broken=bool(self.fault))
        return CommandResult(self.judge.quality - before, self.success, self.over)

    @property
    def success(self) -> bool:
        """Whether the task is done, with neither a fault nor an end by the guard."""
        return self.judge.success and not self.guard.ended and not self.fault

    def observation(self) -> Shown:
        """Return what the agent is shown, (SIZE,) in the order of FIELDS."""
        shown = sensed_of(self._reading, self._old / arm.HERTZ)
        person = self._reading.person
        return show(self.world, shown, self.judge, self.guard, person, self.ticks, self._last)

    def close(self) -> None:
        """Stop the arm and end the connection."""
        self._stop(1)
        with contextlib.suppress(DriverFault):
            self._ask("close", self._driver.close)

    def _play(self, action: Floats | None) -> None:
        wishes = action is not None and bool(action[5] > 0)
        was_stopped = self.guard.stopped
        share = self.guard.admit(action, recover=wishes)
        goes_on = was_stopped and not self.guard.stopped
        if goes_on and not self._ask("recover", self._driver.recover):
            self.guard.ended = "a person must make the arm ready"
        asked = sent_command(action, 0.0 if self._old >= OLD_TICKS else share, self._last)
        if not self.guard.stopped:
            self._send(asked)
        self._read()
        self.ticks += 1
        self.truth = truth_of(self._reading, self._before)
        self.guard.watch(self.truth, self._reading.person)
        self.judge.tick(self.truth)
        if self.guard.stopped and not was_stopped:
            self._stop(1)

    def _send(self, asked: Floats) -> None:
        sent = self._ask("send", self._driver.send, tuple(asked.tolist()))
        if len(sent.action) != ACTION or not all(map(math.isfinite, sent.action)):
            raise self._fault(f"`send` says {sent.action}; it must say {ACTION} finite numbers")
        gap = float(np.abs(np.array(sent.action) - asked).max())
        if gap > _SAME and not sent.clipped:
            raise self._fault("`send` changed a command and does not say `clipped`")
        self._last = np.array(sent.action)

    def _read(self) -> None:
        self._before = self._reading
        self._reading = self._checked(self._ask("read", self._driver.read))
        fresh = self._reading.clock_s - self._before.clock_s >= 0.25 / arm.HERTZ
        self._old = 0 if fresh else self._old + 1
        if self._old >= DEAD_TICKS:
            late = DEAD_TICKS / arm.HERTZ
            raise self._fault(f"`read` shows nothing new for {late:g} s: the clock stands still")

    def _checked(self, reading: DriverReading) -> DriverReading:
        """Return a reading that can be; what is not finite stops the arm."""
        count = self.world.objects
        for name, size in (("joints", 7), ("speeds", 7), ("things", count), ("marks", 3)):
            if len(getattr(reading, name)) != size:
                raise self._fault(f"`{name}` of a reading must have {size} entries")
        numbers = (
            *(reading.clock_s, reading.width, reading.table_force, reading.grip_force),
            *(*reading.joints, *reading.speeds, *(reading.person or ())),
            *(n for row in (*reading.things, *reading.turns, *reading.marks) for n in row),
        )
        if not all(map(math.isfinite, numbers)):
            raise self._fault("a reading holds what is no finite number")
        return reading

    def _ask(self, name: str, call: Callable[..., T], *given: Any, seconds: float = 0.0) -> T:
        """Return what a member answers in time: `seconds`, or else those of every member."""
        seconds = seconds or self._answer_s
        found: list[T] = []
        raised: list[Exception] = []

        def answer() -> None:
            try:
                found.append(call(*given))
            except Exception as error:  # noqa: BLE001  a driver may raise anything
                raised.append(error)

        # A daemon: a driver that hangs must not keep the harness from ending.
        thread = threading.Thread(target=answer, daemon=True, name=f"driver {name}")
        thread.start()
        thread.join(seconds)
        if raised:
            words = f"`{name}` raised {type(raised[0]).__name__}: {raised[0]}"
            raise self._fault(words) from raised[0]
        if not found:
            raise self._fault(f"`{name}` took more than {seconds:g} s")
        return found[0]

    def _fault(self, reason: str) -> DriverFault:
        """Stop the arm; return the fault, which says so if it could not be stopped."""
        failure = self._stop(1)
        also = f"; {failure}: press the emergency stop" if failure else ""
        return DriverFault(f"driver `{self._driver.card.name}`: {reason}{also}")

    def _stop(self, category: int) -> str:
        """Stop the arm from a thread of its own: another one of the driver's may hang.

        Args:
            category: As of `RobotDriver.stop`.
        Returns: Why it may not have stopped, "" if it has.
        """
        failures = [f"`stop` took more than {self._answer_s:g} s"]

        def stop() -> None:
            try:
                self._driver.stop(category)
                failures[0] = ""
            except Exception as error:  # noqa: BLE001  a driver may raise anything
                failures[0] = f"`stop` raised {type(error).__name__}: {error}"

        apart = threading.Thread(target=stop, daemon=True, name="driver stop")
        apart.start()
        apart.join(self._answer_s)
        return failures[0]


def truth_of(reading: DriverReading, before: DriverReading | None = None) -> Truth:
    """Return a reading as the state that guard and judge read: what was measured is what is so.

    Args:
        reading: The reading.
        before: The one before it, for the velocities of things.
    """
    joints = np.array(reading.joints)
    tool, rotation = arm.forward(joints)
    things = np.array(reading.things).reshape(-1, 3)
    moved = np.zeros_like(things)
    if before is not None and reading.clock_s > before.clock_s:
        passed = reading.clock_s - before.clock_s
        moved = (things - np.array(before.things).reshape(-1, 3)) / passed
    return Truth(
        joints=joints,
        speeds=np.array(reading.speeds),
        width=reading.width,
        tool=tool,
        rotation=rotation,
        things=things,
        turns=np.array(reading.turns).reshape(-1, 4),
        velocities=moved,
        table_force=reading.table_force,
        grip_force=reading.grip_force,
        blew_up=False,
    )


def sensed_of(reading: DriverReading, age: float) -> Sensed:
    """Return a reading as what is shown.

    Args:
        reading: The reading.
        age: Of it, s.
    """
    truth = truth_of(reading)
    return Sensed(
        joints=truth.joints,
        speeds=truth.speeds,
        width=truth.width,
        tool=truth.tool,
        rotation=truth.rotation,
        things=truth.things,
        turns=truth.turns,
        marks=np.array(reading.marks).reshape(3, 3),
        age=age,
    )
