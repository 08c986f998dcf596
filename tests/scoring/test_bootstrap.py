"""Bootstrap: whole weights, resampled in chunks; intervals and what they cover."""

import numpy as np
import pytest
from scipy import stats

from owa_bench.canonical import sha256
from owa_bench.errors import ScoringError
from owa_bench.scoring import bootstrap
from owa_bench.scoring.bootstrap import (
    BootstrapEstimate,
    Sampling,
    bootstrap_weights,
    figure,
    philox,
    sampling,
)

LABEL = "tasks like these"
WIDE = Sampling(LABEL, None, 50)


def test_a_figure_is_a_number_or_nothing() -> None:
    assert figure(0.1 + 0.2) == 0.3
    assert figure(1.25e-5) == 1.25e-5
    assert figure(float("nan")) is None
    assert figure(float("inf")) is None
    assert figure(None) is None


def test_percentiles_of_a_large_stratum() -> None:
    spread = BootstrapEstimate(0.5, np.linspace(0.0, 1.0, 10_001), WIDE)
    band = spread.interval(0.95)
    assert (band.low, band.high) == (0.025, 0.975)
    assert spread.lower(0.95) == 0.05
    assert spread.summary() == (0.5, 0.5, (0.25, 0.75))


def test_small_strata_give_a_t_interval_with_their_degrees_of_freedom() -> None:
    strata = np.repeat([0, 1], 5)
    how = sampling(LABEL, strata, np.array([0.5, 0.5]), small=10, single="")
    assert how.freedom == pytest.approx(8.0)
    draws = np.array([0.4, 0.6] * 100)
    band = BootstrapEstimate(0.5, draws, how).interval(0.95)
    assert band.high == pytest.approx(0.5 + 0.1 * stats.t.ppf(0.975, 8), abs=1e-6)


def test_one_task_in_a_family_gives_no_interval_and_says_why() -> None:
    how = sampling(LABEL, np.array([0, 0, 1]), np.ones(2), small=10, single="one task")
    spread = BootstrapEstimate(0.5, None, how)
    assert spread.interval(0.95).reason == "one task"
    assert spread.interval(0.95).low is None
    assert spread.lower(0.95) is None


def test_all_successes_are_not_certainty() -> None:
    spread = BootstrapEstimate(1.0, np.ones(100), Sampling(LABEL, None, 60))
    band = spread.interval(0.95)
    assert band.high == 1.0
    assert band.low == pytest.approx(0.025 ** (1 / 60), abs=1e-6)
    assert "rule of three" in str(band.reason)
    assert spread.lower(0.95) == pytest.approx(0.05 ** (1 / 60), abs=1e-6)


def test_undefined_resamples_give_no_interval() -> None:
    draws = np.array([np.nan] * 10 + [0.5] * 90)
    assert "5 percent" in str(BootstrapEstimate(0.5, draws, WIDE).interval(0.95).reason)
    assert BootstrapEstimate(float("nan"), draws, WIDE).interval(0.95).low is None


@pytest.mark.slow
@pytest.mark.parametrize(("families", "size"), [(3, 5), (3, 20), (8, 12), (1, 40)])
def test_intervals_cover_at_the_stated_rate(families: int, size: int) -> None:
    """Cluster coverage of a weighted mean of family means: 93 to 97 percent."""
    rng = np.random.default_rng(11)
    strata = np.repeat(np.arange(families), size)
    share = np.full(families, 1 / families)
    how = sampling(LABEL, strata, share, small=10, single="")
    weights = np.concatenate(
        list(bootstrap_weights(strata, 1500, "coverage", families, size))
    )
    hits, rounds = 0, 1500
    for _ in range(rounds):
        values = rng.beta(2.0, 2.0, len(strata))
        parts = [weights[:, strata == k] @ values[strata == k] for k in range(families)]
        draws = np.mean(parts, axis=0) / (size - 1)
        band = BootstrapEstimate(float(values.mean()), draws, how).interval(0.95)
        hits += bool(band.low <= 0.5 <= band.high)
    assert 0.93 <= hits / rounds <= 0.97


STRATA = np.array([0, 0, 0, 1, 1, 2])


def matrix(resamples: int = 50, root: str = "root") -> np.ndarray:
    return np.concatenate(list(bootstrap_weights(STRATA, resamples, root, "tasks")))


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
    monkeypatch.setattr(bootstrap, "_CELLS_AT_ONCE", 7 * len(STRATA))
    assert (matrix() == whole).all()


def test_philox_is_bit_equal_on_every_machine() -> None:
    raw = philox("0" * 64, "tasks like these", 3).random_raw(4)
    assert raw.tolist() == list(GOLDEN_RAW)
    assert sha256(matrix().astype("<f8").tobytes()) == GOLDEN_MATRIX


def test_draws_are_uniform() -> None:
    table = np.concatenate(
        list(bootstrap_weights(np.zeros(10, dtype=int), 20_000, "r"))
    )
    assert np.abs(table.mean(axis=0) - 0.9).max() < 0.03


def test_variance_is_that_of_the_mean_even_for_two_units() -> None:
    table = np.concatenate(list(bootstrap_weights(np.zeros(2, dtype=int), 4000, "r")))
    means = table @ np.array([0.0, 1.0]) / table.sum(axis=1)
    assert means.var() == pytest.approx(0.25, abs=0.01)  # s^2 / n = .5 / 2


@pytest.mark.parametrize("strata", [np.array([], dtype=int), np.array([1, 0])])
def test_bad_strata_are_refused(strata: np.ndarray) -> None:
    with pytest.raises(ScoringError, match="sorted"):
        next(bootstrap_weights(strata, 1, "r"))


GOLDEN_RAW = (
    10434551056752133224,
    14153999272911625046,
    7175286915439550037,
    17813794536346181794,
)
GOLDEN_MATRIX = "8b082ff1fb39e09f8add06938f62454888b691c16d99963bc3f31afae671d294"
