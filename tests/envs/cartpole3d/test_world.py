"""The physics world: digests, grades, distance."""

import subprocess
import sys

import pytest

from owa_bench.envs.cartpole3d.world import base, distance, graded
from owa_bench.errors import FieldError

CODE = """
from owa_bench.envs.cartpole3d.levels import LEVELS, level
print([level(s, n, 0.4).digest() for s in ("table1", "released") for n in LEVELS])
"""


def test_variants_differ_and_digests_are_those_of_another_process():
    assert base("table1").digest() != base("released").digest()
    runs = [
        subprocess.run(
            [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert base("table1").digest() in runs[0]


def test_a_distance_is_a_metric_on_what_differs():
    a, b = base("table1"), base("released")
    assert distance(a, a) == 0
    assert 0 < distance(a, b) == distance(b, a) < 1


def test_grades_meet_the_presets_and_refuse_what_lies_outside():
    assert [graded(m, 0, 1, 5, 7) for m in (0, 1 / 3, 2 / 3, 1)] == [0, 1, 5, 7]
    assert graded(1 / 6, 0, 1, 5, 7) == 0.5
    with pytest.raises(FieldError):
        graded(1.01, 0, 1, 5, 7)
    with pytest.raises(FieldError):
        base("paper")
