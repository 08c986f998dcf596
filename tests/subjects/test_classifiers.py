"""Classifiers of digits, and pools of convolutional networks on image domains."""

import numpy as np
import pytest

from owa_bench.errors import UnknownNameError
from owa_bench.measures.intelligence_test import failures, measure
from owa_bench.subjects.classifiers import digit_scores
from owa_bench.subjects.image_domains import (
    convolutional_pool,
    image_domain,
    mixed_domain,
    train_pool,
)


def test_a_pool_is_drawn_once_and_holds_small_and_large() -> None:
    pool = convolutional_pool(60, seed=3)
    assert pool == convolutional_pool(60, seed=3)
    assert {len(network.channels) for network in pool} == {1, 2, 3}
    widths = [width for network in pool for width in network.channels]
    assert min(widths) == 1
    assert 24 <= max(widths) <= 32


def test_domains_are_the_digits_changed_as_asked() -> None:
    pytest.importorskip("sklearn")
    plain = image_domain(seed=0)
    for classes in (2, 5, 10):
        few = image_domain(classes=classes, seed=0)
        assert np.array_equal(np.unique(few.test_classes), np.arange(classes))
    twice = image_domain(copies=2, seed=0)
    assert len(twice.train_images) == 2 * len(plain.train_images)
    assert np.array_equal(twice.test_images, plain.test_images)
    noisy = image_domain(noise=0.5, seed=0)
    assert np.std(noisy.test_images - plain.test_images) == pytest.approx(0.5, rel=0.02)
    moved = image_domain(shuffled=True, seed=0)
    assert np.array_equal(moved.test_classes, plain.test_classes)
    assert not np.array_equal(moved.test_images, plain.test_images)
    for one, other in zip(moved.test_images[:5], plain.test_images[:5], strict=True):
        assert sorted(one.ravel()) == sorted(other.ravel())


def test_a_mixture_draws_its_share_of_each_domain() -> None:
    pytest.importorskip("sklearn")
    plain, moved = image_domain(seed=0), image_domain(shuffled=True, seed=0)
    known = {image.tobytes() for image in plain.test_images}
    for share in (0.0, 0.3, 1.0):
        mixed = mixed_domain(plain, moved, share, seed=1)
        ours = np.mean([image.tobytes() in known for image in mixed.test_images])
        assert ours == pytest.approx(share, abs=0.05)
        assert len(mixed.train_images) == len(plain.train_images)


@pytest.mark.part(3)
@pytest.mark.rl
@pytest.mark.slow
def test_a_wider_network_does_better_and_two_classes_are_easier() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    pool = convolutional_pool(12, seed=1)
    ten, two = (
        list(train_pool(pool, image_domain(classes=classes, seed=0), steps=70))
        for classes in (10, 2)
    )
    assert [a.size > b.size for a, b in zip(ten, two, strict=True)] == [True] * 12
    sizes, scores = np.array([p.size for p in ten]), np.array([p[1] for p in ten])
    assert np.corrcoef(np.log(sizes), scores)[0, 1] > 0.3
    assert np.mean([p.performance for p in two]) > scores.mean()
    assert ten == list(train_pool(pool, image_domain(seed=0), steps=70))


def test_an_unknown_subject_is_named():
    with pytest.raises(UnknownNameError, match="Did you mean `cnn`"):
        digit_scores("cnm", seed=0)


@pytest.mark.part(3)
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
            np.vstack([run.scores for run in runs]), np.concatenate([run.reference for run in runs])
        )
        alphas[subject] = measure.maximum_likelihood(
            found, start=1.0, resamples=100, rng=np.random.default_rng(0)
        )
    # Its interval is not asked for: with so few failures of the network it depends on
    # the last bits of its weights whether enough resamples give a number.
    assert alphas["cnn"].alpha > alphas["linear"].alpha
