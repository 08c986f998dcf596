"""Bootstrap weights: whole, reproducible, cut into chunks without a trace."""

import numpy as np
import pytest

from owa_bench.canonical import sha256
from owa_bench.errors import ScoringError
from owa_bench.scoring import weights
from owa_bench.scoring.weights import philox, resampled

STRATA = np.array([0, 0, 0, 1, 1, 2])


def matrix(resamples: int = 50, root: str = "root") -> np.ndarray:
    return np.concatenate(list(resampled(STRATA, resamples, root, "tasks")))


def test_a_stratum_of_n_gets_n_minus_one_draws() -> None:
    table = matrix()
    assert (table[:, :3].sum(axis=1) == 2).all()
    assert (table[:, 3:5].sum(axis=1) == 1).all()
    assert (table[:, 5] == 1).all()
    assert (table == np.round(table)).all()


def test_equal_roots_give_equal_weights_and_others_do_not() -> None:
    assert (matrix() == matrix()).all()
    assert (matrix() != matrix(root="other")).any()


def test_chunks_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = matrix()
    monkeypatch.setattr(weights, "_CELLS_AT_ONCE", 7 * len(STRATA))
    assert (matrix() == whole).all()


def test_philox_is_bit_equal_on_every_machine() -> None:
    raw = philox("0" * 64, "tasks like these", 3).random_raw(4)
    assert raw.tolist() == list(GOLDEN_RAW)
    assert sha256(matrix().astype("<f8").tobytes()) == GOLDEN_MATRIX


def test_draws_are_uniform() -> None:
    table = np.concatenate(list(resampled(np.zeros(10, dtype=int), 20_000, "r")))
    assert np.abs(table.mean(axis=0) - 0.9).max() < 0.03


def test_variance_is_that_of_the_mean_even_for_two_units() -> None:
    table = np.concatenate(list(resampled(np.zeros(2, dtype=int), 4000, "r")))
    means = table @ np.array([0.0, 1.0]) / table.sum(axis=1)
    assert means.var() == pytest.approx(0.25, abs=0.01)  # s^2 / n = .5 / 2


@pytest.mark.parametrize("strata", [np.array([], dtype=int), np.array([1, 0])])
def test_bad_strata_are_refused(strata: np.ndarray) -> None:
    with pytest.raises(ScoringError, match="sorted"):
        next(resampled(strata, 1, "r"))


GOLDEN_RAW = (
    10434551056752133224,
    14153999272911625046,
    7175286915439550037,
    17813794536346181794,
)
GOLDEN_MATRIX = "8b082ff1fb39e09f8add06938f62454888b691c16d99963bc3f31afae671d294"
