"""Digit classifiers for the Intelligence Test."""

import numpy as np
import pytest

from owa_bench.errors import UnknownNameError
from owa_bench.scoring.companions.intelligence_test import failures, measure
from owa_bench.subjects.digits import digits


def test_an_unknown_subject_is_named():
    with pytest.raises(UnknownNameError, match="Did you mean `cnn`"):
        digits("cnm", seed=0)


@pytest.mark.rl
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_convolutional_network_decays_faster_than_a_linear_one():
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    alphas = {}
    for subject in ("linear", "cnn"):
        runs = [digits(subject, seed=seed) for seed in range(10)]
        found = failures.from_scores(
            np.vstack([run.scores for run in runs]),
            np.concatenate([run.reference for run in runs]),
        )
        alphas[subject] = measure.maximum_likelihood(
            found, start=1.0, resamples=100, rng=np.random.default_rng(0)
        )
    # Its interval is not asked for: with so few failures of the network it depends on
    # the last bits of its weights whether enough resamples give a number.
    assert alphas["cnn"].alpha > alphas["linear"].alpha
