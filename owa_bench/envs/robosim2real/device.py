"""The way between an agent and the cell: controller, dead time, firmware, sensors.

At the drawing's numbers every part passes on what it gets, so simulation and device are one code.
A command is a velocity of the tool; the controller turns it into joint targets by nominal
kinematics, as the maker of an arm does, and does not know the unit's errors.
"""

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.engine import TABLE, Truth
from owa_bench.envs.robosim2real.world import Body
from owa_bench.records.observables import Floats

LEASH = 0.06  # m that the commanded place may run ahead of the measured one
LOW_PLACE = np.array([0.3, -0.35, 0.02])
HIGH_PLACE = np.array([0.72, 0.35, 0.55])
_WANDER = 180.0  # s of a period of the dead time
# Two marks on the table, whose places everybody knows.
MARKS = np.array([[0.4, -0.4, 0.0], [0.7, 0.4, 0.0]])
_BLOCK = 256  # random numbers at once
_FASTEST = 0.8  # share of the joints' speed


class UniformStream:
    """Uniform random numbers in (-1, 1) or (0, 1), one after the other."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._waiting: list[float] = []

    def share(self) -> float:
        """Return a number in [0, 1)."""
        if not self._waiting:
            self._waiting = self._rng.random(_BLOCK).tolist()
        return self._waiting.pop()

    def either(self) -> float:
        """Return a number in [-1, 1)."""
        return 2.0 * self.share() - 1.0

    def several(self, count: int) -> Floats:
        """Return the next numbers in [-1, 1), as `either` would one after the other.

        Args:
            count: How many.
        Returns: (count,).
        """
        taken: list[float] = []
        while len(taken) < count:
            if not self._waiting:
                self._waiting = self._rng.random(_BLOCK).tolist()
            more = min(count - len(taken), len(self._waiting))
            taken += self._waiting[: -more - 1 : -1]
            del self._waiting[-more:]
        return 2.0 * np.array(taken) - 1.0


class Sensed(NamedTuple):
    """What the device shows: by its own encoders and its camera.

    `marks` are the table's marks and the tool's own, (3, 3), as the camera sees them; `age` is how
    old the camera's places are, s.
    """

    joints: Floats
    speeds: Floats
    width: float
    tool: Floats
    rotation: Floats
    things: Floats
    turns: Floats
    marks: Floats
    age: float


def commanded(action: Floats, body: Body) -> Floats:
    """Return a command as the firmware takes it; done twice but for the pace, it is the command.

    Args:
        action: (5,) or more: velocities x, y, z, the turn, the gripper.
        body: Its firmware.
    Returns: Of the same shape.
    """
    if not (body.exchanged or body.reversed or body.pace != 1.0):
        return action
    taken = action.copy()
    if body.exchanged:
        taken[:2] = action[1], action[0]
    taken[:3] *= body.pace
    if body.reversed:
        taken[4] = -action[4]
    return taken


class Controller:
    """Turns velocities of the tool into joint targets and sends them to the drives."""

    def __init__(self, body: Body, joints: Floats, draws: UniformStream, clock: float) -> None:
        self._body, self._draws = body, draws
        self._zeros = np.array(body.zeros)
        shown = joints + self._zeros
        self._command = shown.copy()
        self.place = arm.forward(shown)[0].copy()
        self.yaw = arm.yaw_of(arm.forward(shown)[1])
        self._tick = 0
        self._clock = clock
        self._queue: deque[tuple[float, Floats, float]] = deque()
        self._arrived = (shown.copy(), arm.OPEN)
        self._filtered, self._played = shown.copy(), shown.copy()
        self.link_lost = False

    def drive(self, action: Floats, shown: Floats) -> tuple[Floats, float]:
        """Take a command.

        Args:
            action: Velocities of the tool x, y, z, its turn, and the gripper, in [-1, 1].
            shown: (7,) the encoders.
        Returns: (7,) the true joint targets that the drives get at this tick, and the width.
        """
        body = self._body
        self._tick += 1
        action = commanded(action, body)
        measured = arm.forward(shown)[0]
        wanted = self.place + action[:3] * (arm.SPEED / arm.HERTZ)
        wanted = np.minimum(np.maximum(wanted, LOW_PLACE), HIGH_PLACE)
        ahead = wanted - measured
        length = math.sqrt(float(ahead @ ahead))
        if length > LEASH:
            wanted = measured + ahead * (LEASH / length)
        self.place = wanted
        self.yaw += float(action[3]) * arm.TURN / arm.HERTZ
        most = arm.FASTEST * (_FASTEST / arm.HERTZ)
        change = arm.inverse(self._command, wanted, self.yaw) - self._command
        self._command = self._command + np.minimum(np.maximum(change, -most), most)
        width = arm.OPEN if action[4] > 0 else 0.0
        self._send(width)
        joints, width = self._arrived
        self._filtered = self._filtered + body.filter * (joints - self._filtered)
        if body.backlash:
            low, high = self._filtered - body.backlash, self._filtered + body.backlash
            self._played = np.minimum(np.maximum(self._played, low), high)
        else:
            self._played = self._filtered
        return self._played - self._zeros, width

    def _send(self, width: float) -> None:
        """Put the command on its way, and take what has arrived."""
        body = self._body
        if not body.dead_time:
            if not self.link_lost:
                self._arrived = (self._command, width)
            return
        lost = body.loss and self._draws.share() < body.loss
        lost = lost or self.link_lost
        now = self._clock + self._tick / arm.HERTZ
        wander = body.wander * math.sin(2.0 * math.pi * now / _WANDER)
        late = body.dead_time + wander + body.jitter * self._draws.either()
        if not lost:
            arrives = self._tick + max(0.0, late) * arm.HERTZ
            self._queue.append((arrives, self._command, width))
        while self._queue and self._queue[0][0] <= self._tick:
            self._arrived = self._queue.popleft()[1:]

    def hold(self, shown: Floats) -> tuple[Floats, float]:
        """Stop where the arm is: forget what is on its way.

        Args:
            shown: (7,) the encoders.
        Returns: As of `drive`.
        """
        self._queue.clear()
        self._command = self._filtered = self._played = shown.copy()
        self._arrived = (shown.copy(), self._arrived[1])
        self.place = arm.forward(shown)[0].copy()
        return shown - self._zeros, self._arrived[1]


class Sensors:
    """Encoders and a camera over the table."""

    def __init__(self, body: Body, draws: UniformStream) -> None:
        self._body, self._draws = body, draws
        self._zeros = np.array(body.zeros)
        self._offset = np.array(body.camera)
        cosine, sine = math.cos(body.camera_yaw), math.sin(body.camera_yaw)
        self._turn = np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
        self._middle = np.array([*TABLE, 0.0])
        self._lag = round(body.old * arm.HERTZ)
        self._seen: deque[tuple[Floats, Floats]] = deque(maxlen=self._lag + 1)
        self._age = 0
        self.occluded = False

    def encoders(self, truth: Truth) -> Floats:
        """Return the angles that the encoders show."""
        shown: Floats = truth.joints + self._zeros
        if self._body.quantum:
            shown = np.rint(shown / self._body.quantum) * self._body.quantum
        return shown

    def read(self, truth: Truth) -> Sensed:
        """Return what is shown after a tick."""
        body, draws = self._body, self._draws
        shown = self.encoders(truth)
        tool, rotation = arm.forward(shown)
        self._age += 1
        fresh = not (body.dropout and self._seen and draws.share() < body.dropout)
        if fresh and not self.occluded:
            points = np.concatenate((truth.things, MARKS, truth.tool[None]))
            seen = (points - self._middle) @ self._turn.T + self._middle + self._offset
            if body.noise:
                seen = seen + (body.noise * draws.several(seen.size)).reshape(seen.shape)
            self._seen.append((seen, truth.turns))
            self._age = 0
        seen, turns = self._seen[0]
        things, marks = seen[:-3], seen[-3:]
        age = (self._age + len(self._seen) - 1) / arm.HERTZ
        return Sensed(shown, truth.speeds, truth.width, tool, rotation, things, turns, marks, age)
