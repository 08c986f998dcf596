"""Drivers: the mock plays as the simulation does, bad ones are named and the arm is stopped."""

import math
import time

import msgspec
import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("mujoco")

from owa_bench.agents.solvers.arm import policies
from owa_bench.envs.robosim2real import driver as drivers
from owa_bench.envs.robosim2real import tasks, units
from owa_bench.envs.robosim2real.driver import DriverEpisode, DriverFault, RobotDriver
from owa_bench.envs.robosim2real.driver_check import check_driver
from owa_bench.envs.robosim2real.driver_mock import MockDriver
from owa_bench.envs.robosim2real.episode import RobotEpisode
from owa_bench.envs.robosim2real.oracle import LAYOUT
from owa_bench.envs.robosim2real.world import Body
from owa_bench.seeding import stream

REST = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])


PATIENT = 20.0  # s: the mock's time is simulated, and the machine may be busy


def begun(task, driver, answer_s=PATIENT):
    return DriverEpisode(task, driver, answer_s=answer_s)


def world(family="reach", tier=1, seed=3):
    return msgspec.structs.replace(tasks.draw(family, tier, stream(seed, "base")), visits=0.0)


def test_a_driver_has_nine_members():
    members = {name for name in vars(RobotDriver) if not name.startswith("_")}
    assert len(members | {*RobotDriver.__annotations__}) == 9


@pytest.mark.parametrize("family", [*tasks.FAMILIES])
def test_the_engine_behind_a_driver_plays_as_without_one(family):
    task = world(family)
    plain, driven = RobotEpisode(task, Body(), 3), begun(task, MockDriver())
    policy, other = policies.Scripted(LAYOUT, family), policies.Scripted(LAYOUT, family)
    while not plain.over:
        plain.tick(policy(plain.observation()))
        driven.tick(other(driven.observation()))
        assert driven.truth.tool == pytest.approx(plain.truth.tool, abs=1e-6)
    for _ in range(5):  # speeds of things are measured over a tick
        if not driven.over:
            driven.tick(REST)
    assert (driven.over, driven.success) == (plain.over, plain.success) == ("done", True)
    driven.close()


def test_a_unit_behind_a_driver_is_measured_and_mastered():
    memory = {}
    for seed in (3, 4, 5):
        task = world(seed=seed)
        episode = begun(task, MockDriver(units.unit(5, 1), seed))
        policy = policies.Adaptive(LAYOUT, "reach", memory)
        while not episode.over:
            episode.tick(policy(episode.observation()))
        episode.close()
    assert memory["delay"] > 2.0
    assert episode.success


class Lagging(MockDriver):
    def read(self):
        return msgspec.structs.replace(super().read(), clock_s=0.0)


class Lying(MockDriver):
    def send(self, action):
        answer = super().send(tuple(0.5 * number for number in action))
        return msgspec.structs.replace(answer, clipped=False)


class Silent(MockDriver):
    asked = 0

    def read(self):
        self.asked += 1
        if self.asked > 5:
            time.sleep(8.0)
        return super().read()


class NoNumber(MockDriver):
    asked = 0

    def read(self):
        self.asked += 1
        reading = super().read()
        joints = (math.nan, *reading.joints[1:])
        return msgspec.structs.replace(reading, joints=joints) if self.asked > 5 else reading


class Raising(MockDriver):
    def send(self, action):
        raise ConnectionResetError("the cable is out")


class Short(MockDriver):
    asked = 0

    def read(self):
        self.asked += 1
        reading = super().read()
        return msgspec.structs.replace(reading, speeds=()) if self.asked > 5 else reading


BAD = {
    Lagging: "`read` shows nothing new for 0.5 s: the clock stands still",
    Lying: "`send` changed a command and does not say `clipped`",
    Silent: "`read` took more than 3 s",
    NoNumber: "a reading holds what is no finite number",
    Raising: "`send` raised ConnectionResetError: the cable is out",
    Short: "`speeds` of a reading must have 7 entries",
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_driver_is_named_and_its_arm_is_stopped(kind):
    bad = kind()
    episode = begun(world(), bad, 3.0 if kind is Silent else PATIENT)
    action = np.array([0.3, 0.0, 0.0, 0.0, 1.0, 0.0])
    for _ in range(30):
        result = episode.tick(action)
        if result.over:
            break
    assert result.over == "infrastructure"
    assert not result.success
    assert episode.fault == f"driver `mock`: {BAD[kind]}"
    assert bad.stops


def test_an_arm_has_a_tenth_of_a_second_to_answer():
    class Slow(MockDriver):
        def send(self, action):
            time.sleep(1.0)
            return super().send(action)

    episode = DriverEpisode(world(), Slow())
    assert episode.tick(REST).over == "infrastructure"
    assert episode.fault.endswith("took more than 0.1 s")


def test_a_driver_that_does_not_stop_is_told_to_the_person_beside_it():
    class Runaway(Raising):
        def stop(self, category):
            raise OSError("no route")

    episode = begun(world(), Runaway())
    assert episode.tick(REST).over == "infrastructure"
    assert episode.fault.endswith("`stop` raised OSError: no route: press the emergency stop")


def test_a_driver_that_cannot_begin_is_no_episode():
    class Empty(MockDriver):
        def ready(self, world):
            return msgspec.structs.replace(super().ready(world), marks=())

    with pytest.raises(DriverFault, match="`marks` of a reading must have 3 entries"):
        begun(world(), Empty())


def test_an_old_reading_holds_the_arm_before_it_stops_it():
    bad = Lagging()
    episode = begun(world(), bad)
    action = np.array([0.3, 0.0, 0.0, 0.0, 1.0, 0.0])
    sent = []
    for _ in range(drivers.DEAD_TICKS - 1):
        episode.tick(action)
        sent.append(float(episode.observation()[-6]))
    assert sent[0] == pytest.approx(0.3)
    assert set(sent[drivers.OLD_TICKS + 1 :]) == {0.0}
    assert not bad.stops


def test_a_stop_of_the_guard_reaches_the_driver_and_is_made_good():
    class Pressing(MockDriver):
        pressed = True

        def read(self):
            force = 100.0 if self.pressed and self._clock > 0.1 else 0.0
            return msgspec.structs.replace(super().read(), table_force=force)

    driver = Pressing()
    episode = begun(world(), driver)
    for _ in range(4):
        episode.tick(REST)
    assert driver.stops == [1]
    driver.pressed = False
    for _ in range(30):
        driver._clock += 0.05  # no command goes out: time passes by itself
        episode.tick(np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0]))
    assert [stop.until is not None for stop in episode.guard.stops] == [True]
    assert not driver._stopped


def findings(driver):
    return {finding.rule: finding for finding in check_driver(driver, dry_s=4.0, answer_s=PATIENT)}


def test_the_mock_keeps_every_rule():
    found = findings(MockDriver())
    assert len(found) == 9
    assert all(finding.ok for finding in found.values()), found


def test_a_driver_that_does_not_keep_a_rule_is_told_which():
    class Deaf(MockDriver):
        def stop(self, category):
            self.stops.append(category)

    class Boasting(MockDriver):
        def send(self, action):
            answer = super().send(action)
            return msgspec.structs.replace(answer, action=action, clipped=False)

    def broken(driver):
        return [rule for rule, finding in findings(driver).items() if not finding.ok]

    assert broken(Deaf()) == ["it stands still .3 s after a stop"]
    assert broken(Boasting()) == ["it clips what is too much, and says so"]
    assert broken(Raising()) == ["its members answer"]
