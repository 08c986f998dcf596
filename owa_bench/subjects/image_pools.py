"""Pools of random convolutional networks on image domains, for MCCP complexity.

The same pool is trained on every domain of a suite, each network for a fixed budget.
Needs the extras `measures` (the digits) and `rl` (torch).
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench import seeding
from owa_bench.errors import UnknownNameError
from owa_bench.subjects.digits import BATCH, load_images, load_torch, train_network

DOMAINS = ("digits", "five digits", "two digits", "noisy digits")
_LAYERS = (1, 3)  # convolutional layers of a network [S: 1-3]
_CHANNELS = (1, 32)  # channels of a layer [S: 1-32 nodes]
_CLASSES = {"two digits": 2, "five digits": 5}
_NOISE = 0.5  # standard deviation, of grey values in 0 .. 1
_HELD = 899  # images scored; the rest trains


class Network(NamedTuple):
    """An architecture: channels of its convolutional layers, and its own seed."""

    channels: tuple[int, ...]
    seed: int


class Policy(NamedTuple):
    """A trained network: its parameters, and its accuracy on held-out images."""

    size: int
    performance: float


class Domain(NamedTuple):
    """Images (items, 1, 8, 8) and classes, to learn from and to be scored on."""

    seen: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    held: npt.NDArray[np.float32]
    truth: npt.NDArray[np.int64]


def convolutional_pool(count: int, *, seed: int) -> tuple[Network, ...]:
    """Return random architectures of one to three layers of 1 to 32 channels.

    Layers and the logarithm of channels are uniform: small networks are as frequent
    as large ones, as the curve of least sizes needs.
    """
    rng = seeding.stream(seed, "pool")
    found = []
    for i in range(count):
        depth = int(rng.integers(_LAYERS[0], _LAYERS[1] + 1))
        drawn = np.exp(rng.uniform(np.log(_CHANNELS[0]), np.log(_CHANNELS[1]), depth))
        widths = tuple(round(float(w)) for w in drawn)
        found.append(Network(widths, seeding.derive(seed, "pool", i) % 2**31))
    return tuple(found)


def domain(name: str, *, seed: int) -> Domain:
    """Return an image domain made of scikit-learn's digits.

    "five digits" and "two digits" keep the first classes, "noisy digits" adds Gaussian
    noise to every image. Errors: UnknownNameError for another name.
    """
    if name not in DOMAINS:
        raise UnknownNameError("image domain", name, DOMAINS)
    images, truth = load_images()
    rng = seeding.stream(seed, "images", name)
    kept = truth < _CLASSES.get(name, 10)
    images, truth = images[kept], truth[kept]
    if name == "noisy digits":
        noise = rng.standard_normal(images.shape, dtype=np.float32)
        images = images + np.float32(_NOISE) * noise
    order = rng.permutation(len(images))
    cut = len(images) - min(_HELD, len(images) // 2)
    seen, held = order[:cut], order[cut:]
    return Domain(images[seen], truth[seen], images[held], truth[held])


def train_pool(
    pool: Sequence[Network], played: Domain, *, steps: int
) -> Iterator[Policy]:
    """Yield each network of the pool, trained on a domain for a fixed budget.

    `steps` are gradient steps, whole passes of them: as many on few images as on many.
    """
    epochs = max(1, round(steps * BATCH / len(played.seen)))
    torch = load_torch()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for network in pool:
            yield _trained(torch, network, played, epochs)
    finally:
        torch.set_num_threads(threads)


def _trained(torch: Any, network: Network, played: Domain, epochs: int) -> Policy:
    with torch.random.fork_rng():
        torch.manual_seed(network.seed)
        model = _built(torch, network.channels, int(played.labels.max()) + 1)
        train_network(torch, model, played.seen, played.labels, epochs)
    with torch.inference_mode():
        said = model(torch.as_tensor(played.held)).argmax(dim=1).numpy()
    size = sum(part.numel() for part in model.parameters())
    return Policy(size, float((said == played.truth).mean()))


def _built(torch: Any, channels: Sequence[int], classes: int) -> Any:
    """Return an untrained network that ends in one mean value a channel."""
    nn, layers, before = torch.nn, [], 1
    for width in channels:
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
        before = width
    pooled = [nn.AdaptiveAvgPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, *pooled, nn.Linear(4 * before, classes))
