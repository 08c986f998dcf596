"""An arm behind the `Robot` class of LeRobot, as a driver.

LeRobot's robots take joint positions by name and say what they sent; they have no clock of their
own, no stop and no incidents. So the driver keeps the clock, holds the last position to stop, and
takes things and marks from a tracker that the caller gives. Tried against a double alone.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from owa_bench.canonical import sha256
from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.device import HIGH_PLACE, LOW_PLACE
from owa_bench.envs.robosim2real.driver import (
    DriverAnswer,
    DriverCalibration,
    DriverCard,
    DriverReading,
)
from owa_bench.envs.robosim2real.world import RobotWorld
from owa_bench.errors import FieldError
from owa_bench.records.observables import Floats


class LeRobotArm(Protocol):
    """What is used of LeRobot's `Robot`."""

    name: str
    id: str | None

    def connect(self) -> None:
        """Open the connection."""

    def get_observation(self) -> Mapping[str, Any]:
        """Return positions by "JOINT.pos"."""

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Send positions by "JOINT.pos".

        Args:
            action: The positions.
        Returns: What was sent.
        """

    def disconnect(self) -> None:
        """End the connection."""


class TrackedScene(NamedTuple):
    """What a tracker sees in the base's frame: places (n, 3), turns (n, 4), marks (3, 3)."""

    things: Floats
    turns: Floats
    marks: Floats


class LeRobotDriver:
    """A driver of an arm with seven joints and a gripper.

    Args:
        robot: LeRobot's.
        joints: Names of the seven joints, from the base; degrees.
        gripper: Name of the gripper; 0 to 100, shut to open.
        track: Returns what lies on the table now.
        clock: Seconds, rising.
        wait: Waits for so many seconds: a command takes a tick.
    Raises: FieldError: there are not seven joints.
    """

    def __init__(
        self,
        robot: LeRobotArm,
        *,
        joints: Sequence[str],
        gripper: str,
        track: Callable[[], TrackedScene],
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        if len(joints) != arm.JOINTS:
            raise FieldError("joints", tuple(joints), f"must name {arm.JOINTS} joints")
        serial = sha256((robot.id or "").encode())
        self.card = DriverCard(name=robot.name, maker="LeRobot", serial=serial)
        self._robot, self._joints, self._gripper = robot, tuple(joints), gripper
        self._track, self._clock, self._wait = track, clock, wait
        self._held, self._due = False, 0.0
        self._target = self._place = np.zeros(0)
        self._yaw = 0.0
        self._last: dict[str, float] = {}  # positions that were asked for
        self._before: tuple[float, Floats] | None = None

    def connect(self, deadline_s: float) -> None:
        """Open the connection.

        Args:
            deadline_s: Not read: LeRobot's call has no limit of its own.
        """
        self._robot.connect()

    def snapshot(self) -> DriverCalibration:
        """Return the zeros: LeRobot keeps its calibration to itself."""
        return DriverCalibration(zeros=(0.0,) * arm.JOINTS, firmware=f"lerobot {self._robot.name}")

    def ready(self, world: RobotWorld) -> DriverReading:
        """Move to the start at a walking pace; a person has laid the things out.

        Args:
            world: The task.
        Returns: The state.
        """
        start, shown = np.array(world.start), self._angles()
        ticks = int(np.abs(start - shown).max() / _STEP) + 1
        for tick in range(1, ticks + 1):
            self._send(shown + (start - shown) * tick / ticks, arm.OPEN)
            self._pace()
        self._before = None
        self.recover()
        return self.read()

    def read(self) -> DriverReading:
        """Return the newest state."""
        now, seen = self._clock(), self._robot.get_observation()
        joints = self._angles_of(seen)
        speeds = np.zeros(arm.JOINTS)
        if self._before is not None and now > self._before[0]:
            speeds = (joints - self._before[1]) / (now - self._before[0])
        self._before = (now, joints)
        scene = self._track()
        return DriverReading(
            clock_s=now,
            joints=tuple(joints.tolist()),
            speeds=tuple(speeds.tolist()),
            width=float(seen[f"{self._gripper}.pos"]) / _WIDE * arm.OPEN,
            things=tuple(map(tuple, scene.things.tolist())),
            turns=tuple(map(tuple, scene.turns.tolist())),
            marks=tuple(map(tuple, scene.marks.tolist())),
            table_force=0.0,
            grip_force=0.0,
        )

    def send(self, action: tuple[float, ...]) -> DriverAnswer:
        """Send a command: a tick's way of the tool, as joint positions.

        Args:
            action: As of `RobotDriver.send`.
        Returns: What was sent; clipped where the robot sent another position.
        """
        within = np.clip(action, -1.0, 1.0)
        clipped = bool((within != np.array(action)).any())
        if not self._held:
            wanted = self._place + within[:3] * (arm.SPEED / arm.HERTZ)
            self._place = np.minimum(np.maximum(wanted, LOW_PLACE), HIGH_PLACE)
            self._yaw += float(within[3]) * arm.TURN / arm.HERTZ
            self._target = arm.inverse(self._target, self._place, self._yaw)
            clipped |= self._send(self._target, arm.OPEN if within[4] > 0 else 0.0)
        self._pace()
        return DriverAnswer(clock_s=self._clock(), action=tuple(within.tolist()), clipped=clipped)

    def stop(self, category: int) -> None:
        """Hold where the arm is: LeRobot has no stop of its own.

        Args:
            category: As of `RobotDriver.stop`; every one holds.
        """
        self._held = True
        try:
            seen = self._robot.get_observation()
            hold = {key: float(seen[key]) for key in self._last}
        except Exception:  # noqa: BLE001  a robot that cannot say where it is holds its last target
            hold = dict(self._last)
        self._robot.send_action(hold)

    def recover(self) -> bool:
        """Make the arm ready: commands go on from where it is."""
        self._target = self._angles()
        place, rotation = arm.forward(self._target)
        self._place, self._yaw = place.copy(), arm.yaw_of(rotation)
        self._held = False
        return True

    def close(self) -> None:
        """Hold, and end the connection."""
        self.stop(2)
        self._robot.disconnect()

    def _pace(self) -> None:
        """Wait until the tick is over."""
        self._due = max(self._due + 1.0 / arm.HERTZ, self._clock())
        self._wait(max(0.0, self._due - self._clock()))

    def _angles(self) -> Floats:
        return self._angles_of(self._robot.get_observation())

    def _angles_of(self, seen: Mapping[str, Any]) -> Floats:
        return np.radians([float(seen[f"{name}.pos"]) for name in self._joints])

    def _send(self, joints: Floats, width: float) -> bool:
        """Send positions; return whether the robot sent others."""
        asked = dict(zip(self._joints, np.degrees(joints).tolist(), strict=True))
        asked[self._gripper] = width / arm.OPEN * _WIDE
        named = {f"{name}.pos": float(value) for name, value in asked.items()}
        self._last = named
        sent = self._robot.send_action(named)
        return any(abs(float(sent[key]) - value) > _SAME for key, value in named.items())


_STEP = 0.03  # rad a tick on the way to a start
_WIDE = 100.0  # of LeRobot's gripper
_SAME = 1e-3
