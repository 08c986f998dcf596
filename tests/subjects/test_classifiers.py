"""Classifiers of digits, and pools of convolutional networks on image domains."""

import numpy as np
import pytest

from owa_bench.errors import UnknownNameError
from owa_bench.scoring.companions.intelligence_test import failures, measure
from owa_bench.subjects.classifiers import (
    DOMAINS,
    convolutional_pool,
    digit_scores,
    image_domain,
    train_pool,
)


def test_a_pool_is_drawn_once_and_holds_small_and_large() -> None:
    pool = convolutional_pool(60, seed=3)
    assert pool == convolutional_pool(60, seed=3)
    assert {len(network.channels) for network in pool} == {1, 2, 3}
    widths = [width for network in pool for width in network.channels]
    assert min(widths) == 1
    assert 24 <= max(widths) <= 32


def test_domains_keep_their_classes() -> None:
    pytest.importorskip("sklearn")
    classes = [
        len(np.unique(image_domain(name, seed=0).test_classes)) for name in DOMAINS
    ]
    assert classes == [10, 5, 2, 10]
    with pytest.raises(UnknownNameError, match="noisy digits"):
        image_domain("noisy digit", seed=0)


@pytest.mark.rl
@pytest.mark.slow
def test_a_wider_network_does_better_and_two_classes_are_easier() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    pool = convolutional_pool(12, seed=1)
    ten, two = (
        list(train_pool(pool, image_domain(name, seed=0), steps=70))
        for name in ("digits", "two digits")
    )
    assert [a.size > b.size for a, b in zip(ten, two, strict=True)] == [True] * 12
    sizes, scores = np.array([p.size for p in ten]), np.array([p[1] for p in ten])
    assert np.corrcoef(np.log(sizes), scores)[0, 1] > 0.3
    assert np.mean([p.performance for p in two]) > scores.mean()
    assert ten == list(train_pool(pool, image_domain("digits", seed=0), steps=70))


def test_an_unknown_subject_is_named():
    with pytest.raises(UnknownNameError, match="Did you mean `cnn`"):
        digit_scores("cnm", seed=0)


@pytest.mark.rl
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_convolutional_network_decays_faster_than_a_linear_one():
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    alphas = {}
    for subject in ("linear", "cnn"):
        runs = [digit_scores(subject, seed=seed) for seed in range(10)]
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
