"""What the guard stops, writes down and counts; by states that are made up."""

import numpy as np
import pytest

pytest.importorskip("numba")

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.engine import Truth
from owa_bench.envs.robosim2real.guard import Guard

MIDDLE = (0.5, 0.0, 0.2)


def state(tool=MIDDLE, *, table=0.0, grip=0.0, thing=(0.5, 0.2, 0.025), speed=0.0):
    return Truth(
        joints=np.zeros(7),
        speeds=np.zeros(7),
        width=0.08,
        tool=np.array(tool),
        rotation=np.eye(3),
        things=np.array([thing]),
        turns=np.array([[1.0, 0.0, 0.0, 0.0]]),
        velocities=np.array([[speed, 0.0, 0.0]]),
        table_force=table,
        grip_force=grip,
        blew_up=False,
    )


def still(guard, seconds, person=None):
    for _ in range(round(seconds * arm.HERTZ)):
        guard.watch(state(), person)


def severities(guard):
    return [one.severity for one in guard.incidents]


@pytest.mark.parametrize(
    ("force", "severity"), [(79.0, None), (81.0, "near_miss"), (141.0, "minor"), (281.0, "major")]
)
def test_a_force_on_a_fixture_stops_the_arm(force, severity):
    guard = Guard()
    guard.watch(state(table=force), None)
    assert severities(guard) == ([severity] if severity else [])
    assert guard.stopped == (severity is not None)
    assert bool(guard.ended) == (severity == "major")


@pytest.mark.parametrize(
    ("speed", "severity"), [(0.05, "near_miss"), (0.2, "minor"), (0.4, "major")]
)
def test_a_touch_counts_by_its_speed(speed, severity):
    guard = Guard()
    guard.watch(state((0.77 - speed / arm.HERTZ, 0.0, 0.2)), None)
    guard.watch(state((0.77, 0.0, 0.2)), (0.93, 0.0))
    assert severities(guard) == [severity]


def test_the_arm_slows_down_and_then_stops_for_a_person():
    guard = Guard()
    guard.watch(state(), (1.1, 0.0))
    assert guard.mode == "reduced"
    assert guard.admit(np.zeros(6), recover=False) == pytest.approx(0.4)
    guard.watch(state((0.51, 0.0, 0.2)), (0.95, 0.0))
    assert guard.mode == "protective stop"
    assert guard.admit(np.zeros(6), recover=True) == 0.0


def test_a_person_near_an_arm_at_rest_is_no_incident():
    guard = Guard()
    still(guard, 2.0, person=(0.9, 0.0))
    assert not guard.incidents


def test_it_goes_on_after_a_second_of_rest_and_only_when_asked():
    guard = Guard()
    guard.watch(state(table=100.0), None)
    still(guard, 0.5)
    assert guard.admit(np.zeros(6), recover=True) == 0.0
    still(guard, 0.6)
    assert guard.admit(np.zeros(6), recover=False) == 0.0
    assert guard.admit(np.zeros(6), recover=True) == 1.0
    assert [stop.until is not None for stop in guard.stops] == [True]


def test_a_second_stop_ends_the_episode():
    guard = Guard()
    guard.watch(state(table=100.0), None)
    still(guard, 3.0)
    guard.admit(np.zeros(6), recover=True)
    guard.watch(state(table=100.0), None)
    assert guard.ended == "a second stop: pressed on a fixture"


def test_one_event_is_one_incident():
    guard = Guard()
    for _ in range(20):
        guard.watch(state(table=100.0), None)
    assert severities(guard) == ["near_miss"]


def test_a_worse_incident_is_never_swallowed():
    guard = Guard()
    guard.watch(state(table=100.0), None)
    guard.watch(state(table=300.0), None)
    assert severities(guard) == ["near_miss", "major"]


def test_a_lost_thing_is_written_down_once():
    guard = Guard()
    for _ in range(60):
        guard.watch(state(thing=(0.9, 0.9, -0.2)), None)
    guard.watch(state(speed=1.5), None)
    assert severities(guard) == ["minor"]


def test_commands_that_cannot_be_read_hold_the_arm():
    guard = Guard()
    assert [guard.admit(None, recover=False) for _ in range(2)] == [0.0, 0.0]
    assert not guard.incidents
    guard.admit(None, recover=False)
    assert severities(guard) == ["near_miss"]


def test_standing_still_is_no_exposure():
    """The attack: hours without an incident that were hours without a move."""
    guard = Guard()
    still(guard, 600.0)
    assert guard.moved_s == 0.0
    for tick in range(40):
        guard.watch(state((0.5 + 0.001 * tick, 0.0, 0.2)), None)
    assert guard.moved_s == pytest.approx(2.0, abs=0.11)


def test_a_stopped_arm_gathers_no_exposure():
    guard = Guard()
    guard.watch(state(table=100.0), None)
    for tick in range(40):
        guard.watch(state((0.5 + 0.001 * tick, 0.0, 0.2)), None)
    assert guard.moved_s == 0.0
