"""Image domains made of digits, and pools of convolutional networks trained on them.

The same random networks are trained on every domain, each for a fixed budget (MCCP complexity).
Needs the extras `measures` (scikit-learn) and `rl` (torch).
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from owa_bench import seeding
from owa_bench.subjects.classifiers import (
    BATCH,
    Classes,
    Images,
    fit,
    load_images,
    load_torch,
    one_thread,
)

_LAYERS = (1, 3)  # convolutional layers of a network [S: 1-3]
_CHANNELS = (1, 32)  # channels of a layer [S: 1-32 nodes]
_TEST = 899  # images scored; the rest trains


class Network(NamedTuple):
    """An architecture: channels of its convolutional layers, and its own seed."""

    channels: tuple[int, ...]
    seed: int


class NetworkResult(NamedTuple):
    """A trained network: its parameters, and its accuracy on held-out images."""

    size: int
    performance: float


class ImageDomain(NamedTuple):
    """Images (items, 1, 8, 8) and classes, to learn from and to be scored on."""

    train_images: Images
    train_classes: Classes
    test_images: Images
    test_classes: Classes


def convolutional_pool(count: int, *, seed: int) -> tuple[Network, ...]:
    """Return random architectures of one to three layers of 1 to 32 channels.

    Layers and the logarithm of channels are uniform: small networks are as frequent as large ones,
    as the curve of least sizes needs.

    Args:
        count: of networks.
        seed: of architectures and of their training.
    """
    rng = seeding.stream(seed, "pool")
    networks = []
    for i in range(count):
        depth = int(rng.integers(_LAYERS[0], _LAYERS[1] + 1))
        channels = np.exp(rng.uniform(np.log(_CHANNELS[0]), np.log(_CHANNELS[1]), depth))
        widths = tuple(round(float(w)) for w in channels)
        networks.append(Network(widths, seeding.derive(seed, "pool", i) % 2**31))
    return tuple(networks)


def image_domain(
    *, classes: int = 10, noise: float = 0.0, copies: int = 1, shuffled: bool = False, seed: int
) -> ImageDomain:
    """Return an image domain made of scikit-learn's digits.

    Args:
        classes: only the digits below it.
        noise: standard deviation of Gaussian noise, of grey values in 0 .. 1.
        copies: how often each image to learn from is there, one noise for all.
        shuffled: whether the pixels of every image change places by one permutation.
        seed: of noise, permutation and split.
    Returns: The domain; at most 899 images are scored, the rest is learnt from.
    """
    images, truth = load_images()
    rng = seeding.stream(seed, "images")
    order = rng.permutation(len(images))  # the same split of all domains of a seed
    places = seeding.stream(seed, "images", "places").permutation(64)
    added = rng.standard_normal(images.shape, dtype=np.float32)
    images = images + np.float32(noise) * added
    if shuffled:
        images = images.reshape(-1, 64)[:, places].reshape(images.shape)
    order = order[truth[order] < classes]
    cut = len(order) - min(_TEST, len(order) // 2)
    train, test = np.tile(order[:cut], copies), order[cut:]
    return ImageDomain(images[train], truth[train], images[test], truth[test])


def mixed_domain(
    first: ImageDomain, second: ImageDomain, share: float, *, seed: int
) -> ImageDomain:
    """Return a domain whose images are drawn from two domains.

    Args:
        first: the domain of `share` of the images.
        second: the domain of the others.
        share: 0 to 1.
        seed: of the draws.
    Returns: As many images as the smaller domain has, without repetition from each.
    """
    rng = seeding.stream(seed, "images", "mixture")

    def mixture(one: Images, other: Images, *labels: Classes) -> tuple[Images, Classes]:
        count = min(len(one), len(other))
        ours = rng.random(count) < share
        parts = (rng.permutation(len(one))[:count], rng.permutation(len(other))[:count])
        images = np.where(ours[:, None, None, None], one[parts[0]], other[parts[1]])
        return images, np.where(ours, labels[0][parts[0]], labels[1][parts[1]])

    train = mixture(
        first.train_images, second.train_images, first.train_classes, second.train_classes
    )
    test = mixture(first.test_images, second.test_images, first.test_classes, second.test_classes)
    return ImageDomain(*train, *test)


def train_pool(
    pool: Sequence[Network], domain: ImageDomain, *, steps: int
) -> Iterator[NetworkResult]:
    """Yield each network of the pool, trained on a domain for a fixed budget.

    Args:
        pool: architectures.
        domain: images to train and to test on.
        steps: gradient steps in complete passes: as many on few images as on many.
    Yields: Size and accuracy of each network.
    """
    epochs = max(1, round(steps * BATCH / len(domain.train_images)))
    classes = int(domain.train_classes.max()) + 1
    torch = load_torch()
    with one_thread(torch):
        for network in pool:
            with torch.random.fork_rng():
                torch.manual_seed(network.seed)
                model = _pool_network(torch, network.channels, classes)
                fit(torch, model, domain.train_images, domain.train_classes, epochs)
            with torch.inference_mode():
                scores = model(torch.as_tensor(domain.test_images))
            right = scores.argmax(dim=1).numpy() == domain.test_classes
            size = sum(part.numel() for part in model.parameters())
            yield NetworkResult(size, float(right.mean()))


def _pool_network(torch: Any, channels: Sequence[int], classes: int) -> Any:
    """Return an untrained network that ends in one mean value a channel."""
    nn, layers, before = torch.nn, [], 1
    for width in channels:
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
        before = width
    pooled = [nn.AdaptiveAvgPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, *pooled, nn.Linear(4 * before, classes))
