import numpy as np
import pytest
from scipy import stats

from owa_bench.scoring.statistics.distributions import (
    chi2_quantile,
    normal_quantile,
    normal_share,
    t_quantile,
    t_tail,
)

LEVELS = (0.001, 0.05, 0.3, 0.5, 0.8, 0.975, 0.9999)


@pytest.mark.parametrize("freedom", [1, 2, 3.7, 12, 400])
def test_quantiles_and_tails_are_those_of_scipy(freedom):
    for level in LEVELS:
        assert t_quantile(level, freedom) == stats.t.ppf(level, freedom)
        assert chi2_quantile(level, freedom) == pytest.approx(
            stats.chi2.ppf(level, freedom), rel=1e-12
        )
    values = np.array([-4.0, -0.2, 0.0, 1.3, 9.0])
    assert t_tail(values, freedom).tolist() == stats.t.sf(values, freedom).tolist()


def test_the_normal_law_is_that_of_scipy():
    for level in LEVELS:
        assert normal_quantile(level) == stats.norm.ppf(level)
        assert normal_share(level) == stats.norm.cdf(level)
