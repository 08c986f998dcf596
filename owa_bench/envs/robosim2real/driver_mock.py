"""A driver whose robot is the surrogate device's engine: to try what drivers are tried with."""

import numpy as np

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.device import Controller, Sensors, UniformStream
from owa_bench.envs.robosim2real.driver import (
    DriverAnswer,
    DriverCalibration,
    DriverCard,
    DriverReading,
)
from owa_bench.envs.robosim2real.engine import Cell, Truth
from owa_bench.envs.robosim2real.world import Body, RobotWorld, joined
from owa_bench.seeding import stream


class MockDriver:
    """An arm in MuJoCo behind the nine members of a driver.

    Its clock is that of the engine: a command takes a tick. Things are measured without the
    camera's errors, as a fixture with markers does.

    Args:
        body: The hidden numbers of its unit.
        seed: Of noise and lost commands.
    """

    def __init__(self, body: Body = Body(), seed: int = 0) -> None:  # noqa: B008  frozen
        self.card = DriverCard(name="mock", maker="MuJoCo", serial="0" * 64)
        self._body, self._seed = body, seed
        self._cell: Cell | None = None
        self._clock = 0.0
        self._stopped = False
        self.stops: list[int] = []

    def connect(self, deadline_s: float) -> None:
        """Do nothing: there is no connection."""

    def snapshot(self) -> DriverCalibration:
        """Return what a maker would write: the drawing, not the unit's errors."""
        return DriverCalibration(zeros=(0.0,) * 7, firmware="mock 1")

    def ready(self, world: RobotWorld) -> DriverReading:
        """Put the engine to the start of a world.

        Args:
            world: The task.
        Returns: The state.
        """
        body = joined(world.body, self._body)
        draws = UniformStream(stream(self._seed, "mock", world.digest()))
        self._cell = Cell(world, body)
        self._truth: Truth = self._cell.truth()
        self._sensors = Sensors(body, draws)
        self._controller = Controller(body, self._truth.joints, draws, self._clock)
        self._stopped = False
        return self.read()

    def read(self) -> DriverReading:
        """Return the newest state."""
        truth, sensed = self._truth, self._sensors.read(self._truth)
        return DriverReading(
            clock_s=self._clock,
            joints=tuple(sensed.joints.tolist()),
            speeds=tuple(sensed.speeds.tolist()),
            width=truth.width,
            things=tuple(map(tuple, truth.things.tolist())),
            turns=tuple(map(tuple, truth.turns.tolist())),
            marks=tuple(map(tuple, sensed.marks.tolist())),
            table_force=truth.table_force,
            grip_force=truth.grip_force,
        )

    def send(self, action: tuple[float, ...]) -> DriverAnswer:
        """Play a command for a tick.

        Args:
            action: As of `RobotDriver.send`.
        Returns: What was sent: nothing more than what is within [-1, 1].
        """
        asked = np.array(action)
        within = np.clip(asked, -1.0, 1.0)
        self._play(within)
        clipped = bool((within != asked).any())
        return DriverAnswer(clock_s=self._clock, action=tuple(within.tolist()), clipped=clipped)

    def stop(self, category: int) -> None:
        """Hold the arm where it is.

        Args:
            category: As of `RobotDriver.stop`.
        """
        self.stops.append(category)
        self._stopped = True

    def recover(self) -> bool:
        """Make the arm ready."""
        self._stopped = False
        return True

    def close(self) -> None:
        """Do nothing more."""
        self._stopped = True

    def _play(self, action: np.ndarray) -> None:
        cell, shown = self._cell, self._sensors.encoders(self._truth)
        if cell is None:
            return
        if self._stopped:
            targets, width = self._controller.hold(shown)
        else:
            targets, width = self._controller.drive(action, shown)
        self._truth = cell.tick(targets, width)
        self._clock += 1.0 / arm.HERTZ
