"""Raw streams that resampled days come from, and figures."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from owa_bench.canonical import canonical_json
from owa_bench.errors import CheckFailure, ScoringError
from owa_bench.scoring.statistics.bootstrap import (
    block_bootstrap,
    block_length,
    figure,
    philox,
    rounded,
)


@given(st.floats() | st.floats(0, 25).map(lambda power: 10**power))
def test_a_report_can_be_signed_with_every_figure(value: float) -> None:
    """Written, read and written again: a bound of two tasks may be 10^18."""
    written = canonical_json({"bound": figure(value), "least": figure(-value)})
    assert canonical_json(json.loads(written)) == written


def test_a_number_that_is_no_figure_cannot_be_signed_twice() -> None:
    """The control: the bound that once ended a report."""
    written = canonical_json({"bound": 1.216801e18})
    with pytest.raises(CheckFailure, match="exceeds safe integer domain"):
        canonical_json(json.loads(written))


def test_a_figure_is_a_number_or_nothing() -> None:
    assert figure(0.1 + 0.2) == 0.3
    assert figure(1.25e-5) == 1.25e-5
    assert figure(float("nan")) is None
    assert figure(float("inf")) is None
    assert figure(None) is None
    assert figure(0.123456789) == rounded(0.123456789) == 0.1234568
    assert math.copysign(1.0, rounded(-1e-400)) == 1.0  # a zero has no sign


def test_blocks_are_as_long_as_the_cube_root_of_the_days() -> None:
    assert [block_length(n) for n in (1, 2, 8)] == [1.0, 1.25992105, 2.0]
    drawn = block_bootstrap(27, 4_000, "root")
    follows = (drawn[:, 1:] - drawn[:, :-1]) % 27 == 1
    assert follows.mean() == pytest.approx(2 / 3 + 1 / 3 / 27, abs=0.005)
    assert drawn.mean() == pytest.approx(13.0, abs=0.2)
    assert (drawn.min(), drawn.max()) == (0, 26)


def test_a_day_and_a_resample_are_enough_to_resample() -> None:
    assert block_bootstrap(1, 1, "root").tolist() == [[0]]
    for days, resamples in ((0, 1), (1, 0)):
        with pytest.raises(ScoringError, match="need a day and a resample"):
            block_bootstrap(days, resamples, "root")


def test_philox_is_bit_equal_on_every_machine() -> None:
    raw = philox("0" * 64, "tasks like these", 3).random_raw(4)
    assert raw.tolist() == list(GOLDEN_RAW)


GOLDEN_RAW = (10434551056752133224, 14153999272911625046, 7175286915439550037, 17813794536346181794)
