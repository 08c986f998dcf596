"""Agreement with other implementations, and whether intervals cover."""

import numpy as np
import pytest
from scipy import stats

from owa_bench.scoring.improvement.kappa import theil_sen
from owa_bench.scoring.statistics.bootstrap import block_bootstrap, block_length
from owa_bench.scoring.statistics.jackknife import Clusters, JackknifeEstimate, jackknife_estimate
from tests.builders.episodes import ROOT


def mean_of(values: np.ndarray) -> JackknifeEstimate:
    """Return the estimate of a mean over tasks, as an axis has it."""
    left_out = (values.sum() - values) / (len(values) - 1)
    strata = np.zeros(len(values), dtype=np.int64)
    how = Clusters("", "tasks", np.arange(len(values)), strata, "one task")
    return jackknife_estimate(float(values.mean()), left_out, how)


def test_the_interval_agrees_with_arch() -> None:
    arch = pytest.importorskip("arch.bootstrap")
    values = np.random.default_rng(0).beta(2, 1, 60)
    ours = mean_of(values).interval(0.95)
    peer = arch.IIDBootstrap(values, seed=1)
    low, high = peer.conf_int(np.mean, 8000, method="percentile")[:, 0]
    assert ours.low == pytest.approx(low, abs=0.01)
    assert ours.high == pytest.approx(high, abs=0.01)


def test_stationary_blocks_agree_with_arch() -> None:
    arch = pytest.importorskip("arch.bootstrap")
    rng = np.random.default_rng(1)
    noise = rng.standard_normal(40)
    series = np.convolve(noise, [1, 0.6, 0.3])[:40]
    rows = block_bootstrap(40, 6000, ROOT)
    ours = series[rows].mean(axis=1).std()
    peer = arch.StationaryBootstrap(block_length(40), series, seed=2)
    theirs = float(np.sqrt(peer.cov(np.mean, 6000)).item())
    assert ours == pytest.approx(theirs, rel=0.05)


def test_the_interval_agrees_with_rliable() -> None:
    library = pytest.importorskip("rliable.library")
    values = np.random.default_rng(3).beta(2, 1, (60, 1))
    _, spans = library.get_interval_estimates(
        {"a": values}, lambda x: np.array([x.mean()]), reps=2000
    )
    low, high = np.ravel(spans["a"])
    ours = mean_of(values[:, 0]).interval(0.95)
    assert ours.low == pytest.approx(low, abs=0.01)
    assert ours.high == pytest.approx(high, abs=0.01)


def test_theil_sen_agrees_with_scipy() -> None:
    rng = np.random.default_rng(4)
    x = np.sort(rng.random(15))
    y = x + 0.2 * rng.standard_normal(15)
    assert theil_sen(x, y, 0.95).value == pytest.approx(stats.theilslopes(y, x).slope)


@pytest.mark.slow
@pytest.mark.parametrize("lag", [0.0, 0.2, 0.4])
def test_sens_interval_covers_planted_kappa_under_autocorrelation(
    lag: float, record_property
) -> None:
    hits, rounds, x = 0, 2000, np.arange(14.0)
    for seed in range(rounds):
        noise = np.random.default_rng(seed).standard_normal(14)
        noise[0] /= np.sqrt(1 - lag**2)  # stationary from the first day on
        for i in range(1, 14):
            noise[i] += lag * noise[i - 1]
        slope = theil_sen(x, 0.4 + 0.01 * x + 0.01 * noise, 0.95)
        hits += slope.low <= 0.01 <= slope.high
    record_property("coverage", float(hits / rounds))
    assert 0.93 <= hits / rounds <= 0.975
