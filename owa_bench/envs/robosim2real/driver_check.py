"""Conformance of a driver: `check_driver` moves the arm a little and says what does not hold."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.driver import (
    ANSWER_S,
    DriverEpisode,
    DriverFault,
    DriverReading,
    RobotDriver,
    truth_of,
)
from owa_bench.envs.robosim2real.world import GoalPlace, RobotWorld
from owa_bench.records.observables import Floats

DRY_S = 60.0  # of motion to and fro
_TO_AND_FRO = 2.0  # s
_DRIFT = 0.02  # share by which the device's clock may differ from the commands'
_STOP_TICKS = 6  # .3 s
_STILL = 0.01  # m/s
_OFF = 0.02  # m between where the arm went and where it was sent
_AMPLITUDE = 0.5


class DriverFinding(NamedTuple):
    """A rule, whether the driver keeps it, and what was seen."""

    rule: str
    ok: bool
    seen: str


def _world() -> RobotWorld:
    goal = GoalPlace(place=(0.6, 0.2, 0.3), tolerance=0.001, hold=1000.0)
    start = tuple(round(float(angle), 4) for angle in arm.HOME)
    return RobotWorld(family="reach", tier=1, limit=1e6, start=start, goals=(goal,), visits=0.0)


def check_driver(
    driver: RobotDriver, *, dry_s: float = DRY_S, answer_s: float = ANSWER_S
) -> Iterator[DriverFinding]:
    """Yield what holds of a driver; a person stands by the emergency stop.

    The arm moves to and fro above the middle of the table, is stopped in motion and made ready
    again. After a fault of the driver nothing more is tried.

    Args:
        driver: Not connected yet.
        dry_s: Seconds of motion, made even: the arm ends where it began.
        answer_s: As of `DriverEpisode`.
    """
    card = driver.card
    rate = card.hertz == arm.HERTZ
    yield DriverFinding("it takes 20 commands a second", rate, f"`hertz` is {card.hertz}")
    named = bool(card.name and card.maker and len(card.serial) == 64)
    yield DriverFinding("the card names robot, maker and a SHA-256 of the serial", named, str(card))
    try:
        driver.connect(30.0)
        before = driver.snapshot()
        episode = DriverEpisode(_world(), driver, answer_s=answer_s)
        try:
            yield from _moves(episode, driver, dry_s)
        finally:
            episode.close()
        after = driver.snapshot()
        said = f"{before} before, {after} after"
        yield DriverFinding("its calibration stays", before == after, said)
    except DriverFault as fault:
        yield DriverFinding("its members answer", ok=False, seen=str(fault))


def _moves(episode: DriverEpisode, driver: RobotDriver, dry_s: float) -> Iterator[DriverFinding]:
    first = driver.read()
    dry_s = _TO_AND_FRO * max(1, round(dry_s / _TO_AND_FRO))
    for tick in range(round(dry_s * arm.HERTZ)):
        turn = 1.0 if tick // arm.HERTZ % 2 else -1.0
        _tick(episode, np.array([0.0, _AMPLITUDE * turn, 0.0, 0.0, 1.0, 0.0]))
    last = driver.read()
    passed = last.clock_s - first.clock_s
    drift = abs(passed / dry_s - 1.0)
    yield DriverFinding("its clock keeps time", drift <= _DRIFT, f"{passed:.2f} s in {dry_s:g} s")
    yield from _returns(first, last)
    incidents = [one.cause for one in episode.guard.incidents]
    said = ", ".join(incidents) or "none"
    yield DriverFinding("the guard has nothing to stop", not incidents, f"incidents: {said}")
    _tick(episode, np.array([0.0, _AMPLITUDE, 0.0, 0.0, 1.0, 0.0]))
    driver.stop(1)
    speed = _speed_after(driver, _STOP_TICKS)
    yield DriverFinding("it stands still .3 s after a stop", speed <= _STILL, f"{speed:.3f} m/s")
    ready = driver.recover()
    yield DriverFinding("it is ready again when asked", ready, f"`recover` says {ready}")
    answer = driver.send((2.0, 0.0, 0.0, 0.0, 1.0, 0.0))
    honest = answer.clipped and abs(answer.action[0]) <= 1.0
    said = f"`send` of 2.0 says {answer.action[0]:g}, clipped {answer.clipped}"
    yield DriverFinding("it clips what is too much, and says so", honest, said)


def _tick(episode: DriverEpisode, action: Floats) -> None:
    episode.tick(action)
    if episode.fault:
        raise DriverFault(episode.fault)


def _returns(first: DriverReading, last: DriverReading) -> Iterator[DriverFinding]:
    gap = float(np.linalg.norm(truth_of(last).tool - truth_of(first).tool))
    yield DriverFinding("the arm comes back to where it began", gap <= _OFF, f"{gap:.3f} m away")


def _speed_after(driver: RobotDriver, ticks: int) -> float:
    """Return the speed of the tool some ticks later, while it is told to move."""
    before = after = driver.read()
    for _ in range(ticks):
        driver.send((0.0, _AMPLITUDE, 0.0, 0.0, 1.0, 0.0))
        before, after = after, driver.read()
    passed = after.clock_s - before.clock_s
    if passed <= 0:
        return 0.0
    return float(np.linalg.norm(truth_of(after).tool - truth_of(before).tool)) / passed
