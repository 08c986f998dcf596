"""Raw streams that resampled days come from, and figures."""

from owa_bench.scoring.bootstrap import figure, philox


def test_a_figure_is_a_number_or_nothing() -> None:
    assert figure(0.1 + 0.2) == 0.3
    assert figure(1.25e-5) == 1.25e-5
    assert figure(float("nan")) is None
    assert figure(float("inf")) is None
    assert figure(None) is None


def test_philox_is_bit_equal_on_every_machine() -> None:
    raw = philox("0" * 64, "tasks like these", 3).random_raw(4)
    assert raw.tolist() == list(GOLDEN_RAW)


GOLDEN_RAW = (
    10434551056752133224,
    14153999272911625046,
    7175286915439550037,
    17813794536346181794,
)
