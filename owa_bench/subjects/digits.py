"""Classifiers of handwritten digits, from linear to convolutional: score matrices.

The Intelligence Test's smallest subject: the ten classes are the candidates, the true
class is the reference. Needs the extras `measures` (the digits) and `rl` (torch).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench import seeding
from owa_bench.errors import MissingPartError, UnknownNameError

SUBJECTS = ("linear", "mlp", "cnn")
EPOCHS = {"linear": 30, "mlp": 30, "cnn": 30}
BATCH = 64
_RATE = 3e-3


class Scores(NamedTuple):
    """Scores (items, 10) of held-out digits, higher is tried earlier, and the truth."""

    scores: npt.NDArray[np.float64]
    reference: npt.NDArray[np.int64]


def digits(subject: str, *, seed: int, train: int = 898) -> Scores:
    """Return a trained subject's scores on the digits it did not see.

    `train` of the 1,797 digits are drawn by the seed for training; the rest is scored.
    """
    if subject not in SUBJECTS:
        raise UnknownNameError("digit subject", subject, SUBJECTS)
    images, truth = load_images()
    order = seeding.stream(seed, "digits").permutation(len(images))
    seen, held = order[:train], order[train:]
    torch = load_torch()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = _network(torch, subject)
            train_network(torch, model, images[seen], truth[seen], EPOCHS[subject])
        with torch.inference_mode():
            scores = model(torch.as_tensor(images[held])).numpy()
    finally:
        torch.set_num_threads(threads)
    return Scores(np.asarray(scores, dtype=np.float64), truth[held])


def train_network(
    torch: Any,
    model: Any,
    images: npt.NDArray[np.float32],
    truth: npt.NDArray[np.int64],
    epochs: int,
) -> None:
    """Train with Adam on cross-entropy."""
    inputs, labels = torch.as_tensor(images), torch.as_tensor(truth)
    optimiser = torch.optim.Adam(model.parameters(), lr=_RATE)
    for _ in range(epochs):
        for part in torch.randperm(len(inputs)).split(BATCH):
            loss = torch.nn.functional.cross_entropy(model(inputs[part]), labels[part])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    model.eval()


def _network(torch: Any, subject: str) -> Any:
    """Return an untrained network on 8 x 8 images."""
    nn = torch.nn
    if subject == "linear":
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    if subject == "mlp":
        return nn.Sequential(
            nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
        )
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(64 * 16, 10),
    )


def load_images() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return scikit-learn's digits, grey values in 0 .. 1."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        install = "pip install 'owa_bench[measures]'"
        raise MissingPartError("scikit-learn", install) from error
    bunch = load_digits()
    images = np.asarray(bunch.images, dtype=np.float32)[:, None] / np.float32(16.0)
    return images, np.asarray(bunch.target, dtype=np.int64)


def load_torch() -> Any:
    """Return the module torch; MissingPartError names the extra that holds it."""
    try:
        import torch
    except ImportError as error:
        raise MissingPartError("torch", "pip install 'owa_bench[rl]'") from error
    return torch
