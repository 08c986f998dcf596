"""The adapter of LeRobot against a double of its `Robot`."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("mujoco")

from owa_bench.agents.solvers.arm import policies
from owa_bench.envs.robosim2real import arm, tasks
from owa_bench.envs.robosim2real.device import MARKS
from owa_bench.envs.robosim2real.driver import DriverEpisode, DriverFault
from owa_bench.envs.robosim2real.driver_check import check_driver
from owa_bench.envs.robosim2real.driver_lerobot import LeRobotDriver, TrackedScene
from owa_bench.envs.robosim2real.oracle import LAYOUT
from owa_bench.errors import FieldError
from owa_bench.seeding import stream

NAMES = [f"joint{k}" for k in range(7)]
PATIENT = 30.0


class Double:
    """A `Robot` that is at once where it is sent; `most` degrees a command."""

    name, id = "double", "no 7"

    def __init__(self, most=1000.0):
        self.most = most
        self.now = 0.0
        self.connected = False
        self.sent = 0
        self.at = {f"{name}.pos": 0.0 for name in (*NAMES, "gripper")}

    def connect(self):
        self.connected = True

    def get_observation(self):
        return dict(self.at)

    def send_action(self, action):
        assert self.connected
        self.sent += 1
        for key, value in action.items():
            step = min(max(value - self.at[key], -self.most), self.most)
            self.at[key] += step
        return dict(self.at)

    def disconnect(self):
        self.connected = False

    def wait(self, seconds):
        self.now += seconds

    def track(self):
        joints = np.radians([self.at[f"{name}.pos"] for name in NAMES])
        tool = arm.forward(joints)[0]
        empty = np.zeros((0, 3)), np.zeros((0, 4))
        return TrackedScene(*empty, np.concatenate((MARKS, tool[None])))


def driver_of(robot):
    return LeRobotDriver(
        robot,
        joints=NAMES,
        gripper="gripper",
        track=robot.track,
        clock=lambda: robot.now,
        wait=robot.wait,
    )


def test_it_keeps_every_rule_of_a_driver():
    robot = Double()
    found = [*check_driver(driver_of(robot), dry_s=2.0, answer_s=PATIENT)]
    assert len(found) == 9
    assert all(one.ok for one in found), found
    assert not robot.connected


def test_an_episode_is_played_and_won():
    robot = Double()
    driver = driver_of(robot)
    driver.connect(1.0)
    task = tasks.draw("reach", 1, stream(3, "base"))
    episode = DriverEpisode(task, driver, answer_s=PATIENT)
    policy = policies.Scripted(LAYOUT, "reach", 0.2)
    while not episode.over:
        episode.tick(policy(episode.observation()))
    assert episode.success
    assert robot.now == pytest.approx(robot.sent / arm.HERTZ, rel=0.05)


def test_a_robot_that_sends_less_says_so():
    robot = Double(most=0.1)
    driver = driver_of(robot)
    driver.connect(1.0)
    robot.most = 1000.0
    driver.ready(tasks.draw("reach", 1, stream(3, "base")))
    robot.most = 0.01
    assert driver.send((1.0, 0.0, 0.0, 0.0, 1.0, 0.0)).clipped
    robot.most = 1000.0
    driver.recover()
    assert not driver.send((0.1, 0.0, 0.0, 0.0, 1.0, 0.0)).clipped
    assert driver.send((2.0, 0.0, 0.0, 0.0, 1.0, 0.0)).clipped


def test_a_stop_holds_it_until_it_is_made_ready():
    robot = Double()
    driver = driver_of(robot)
    driver.connect(1.0)
    driver.ready(tasks.draw("reach", 1, stream(3, "base")))
    driver.stop(1)
    at = dict(robot.at)
    driver.send((1.0, 0.0, 0.0, 0.0, 1.0, 0.0))
    assert robot.at == at
    driver.recover()
    driver.send((1.0, 0.0, 0.0, 0.0, 1.0, 0.0))
    assert robot.at != at


def test_another_count_of_joints_is_refused():
    with pytest.raises(FieldError, match="must name 7 joints"):
        LeRobotDriver(Double(), joints=NAMES[:5], gripper="g", track=lambda: None)


def test_what_lerobot_raises_stops_the_arm():
    robot = Double()
    driver = driver_of(robot)
    driver.connect(1.0)
    episode = DriverEpisode(tasks.draw("reach", 1, stream(3, "base")), driver, answer_s=PATIENT)
    robot.get_observation = dict
    result = episode.tick(np.zeros(6))
    assert result.over == "infrastructure"
    assert "KeyError" in episode.fault
    with pytest.raises(DriverFault):
        DriverEpisode(tasks.draw("reach", 1, stream(3, "base")), driver, answer_s=PATIENT)
