"""`owa-bench robot check`: the mock passes, a driver that runs on does not, bad input is named."""

import json

import pytest

pytest.importorskip("numba")
pytest.importorskip("mujoco")

DEAF = """
from owa_bench.envs.robosim2real.driver_mock import MockDriver


class Deaf(MockDriver):
    def stop(self, category):
        self.stops.append(category)
"""


def test_the_mock_keeps_every_rule(owa):
    found = json.loads(owa("robot check mock --seconds 1 --json").out)
    assert len(found) == 9
    assert all(one["ok"] for one in found)


def test_a_driver_that_runs_on_after_a_stop_fails_the_check(owa, place):
    (place / "deaf.py").write_text(DEAF)
    said = owa("robot check deaf.py:Deaf --seconds 1 --answer-seconds 30")
    assert said.code == 1
    assert "NO  it stands still .3 s after a stop" in said.out


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        ("my_arm", "FILE.py:NAME or MODULE:NAME"),
        ("nowhere.py:Arm", "cannot be made"),
        ("mock --seconds 0", "--seconds must be above 0"),
    ],
)
def test_bad_input_is_named(owa, args, fault):
    said = owa(f"robot check {args}")
    assert said.code == 2
    assert fault in said.err
