"""Classifiers of digits and irises, whose scores and sizes the companion measures read.

Digits (Intelligence Test): subjects from linear to convolutional; the ten classes are
the candidates, the true class is the reference. Image pools (MCCP complexity): the same
random convolutional networks are trained on every domain, each for a fixed budget.
Irises (generality analysis): a few dozen classifiers. Needs the extras `measures`
(scikit-learn) and, but for the irises, `rl` (torch).
"""

import importlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench import seeding
from owa_bench.errors import MissingPartError, UnknownNameError

Images = npt.NDArray[np.float32]
Classes = npt.NDArray[np.int64]

SUBJECTS = ("linear", "mlp", "cnn")
EPOCHS = {"linear": 30, "mlp": 30, "cnn": 30}
BATCH = 64
_RATE = 3e-3

_LAYERS = (1, 3)  # convolutional layers of a network [S: 1-3]
_CHANNELS = (1, 32)  # channels of a layer [S: 1-32 nodes]
_TEST = 899  # images scored; the rest trains

FOLDS = 10
LEAST_ACCURACY = 0.35  # of classifiers that take part [S]


def _sklearn(module: str) -> Any:
    """Return a module of scikit-learn; MissingPartError names the extra."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError as error:
        install = "pip install 'owa_bench[measures]'"
        raise MissingPartError("scikit-learn", install) from error


def load_torch() -> Any:
    """Return the module torch.

    Raises:
        MissingPartError: it is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingPartError("torch", "pip install 'owa_bench[rl]'") from error
    return torch


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """Keep torch to one thread: small tensors gain nothing from more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _load_images() -> tuple[Images, Classes]:
    """Return scikit-learn's digits (items, 1, 8, 8) with grey values in 0 .. 1."""
    bunch = _sklearn("datasets").load_digits()
    images = np.asarray(bunch.images, dtype=np.float32)[:, None] / np.float32(16.0)
    return images, np.asarray(bunch.target, dtype=np.int64)


# --- digits ---------------------------------------------------------------------------


class DigitScores(NamedTuple):
    """Scores (items, 10) of held-out digits, higher is tried earlier, and the truth."""

    scores: npt.NDArray[np.float64]
    reference: Classes


def digit_scores(subject: str, *, seed: int, train: int = 898) -> DigitScores:
    """Return a trained subject's scores on the digits it did not see.

    Args:
        subject: one of `SUBJECTS`.
        seed: of the split and of the training.
        train: how many of the 1,797 digits train; the rest is scored.

    Returns:
        Scores and true classes of the rest.

    Raises:
        UnknownNameError: there is no such subject.
        MissingPartError: scikit-learn or torch is not installed.
    """
    if subject not in SUBJECTS:
        raise UnknownNameError("digit subject", subject, SUBJECTS)
    images, truth = _load_images()
    order = seeding.stream(seed, "digits").permutation(len(images))
    first, rest = order[:train], order[train:]
    torch = load_torch()
    with _one_thread(torch):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = _digit_network(torch, subject)
            _train(torch, model, images[first], truth[first], EPOCHS[subject])
        with torch.inference_mode():
            scores = model(torch.as_tensor(images[rest])).numpy()
    return DigitScores(np.asarray(scores, dtype=np.float64), truth[rest])


def _train(torch: Any, model: Any, images: Images, truth: Classes, epochs: int) -> None:
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


def _digit_network(torch: Any, subject: str) -> Any:
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


# --- pools of convolutional networks --------------------------------------------------


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

    Layers and the logarithm of channels are uniform: small networks are as frequent
    as large ones, as the curve of least sizes needs.

    Args:
        count: of networks.
        seed: of architectures and of their training.

    Returns:
        The architectures.
    """
    rng = seeding.stream(seed, "pool")
    networks = []
    for i in range(count):
        depth = int(rng.integers(_LAYERS[0], _LAYERS[1] + 1))
        channels = np.exp(
            rng.uniform(np.log(_CHANNELS[0]), np.log(_CHANNELS[1]), depth)
        )
        widths = tuple(round(float(w)) for w in channels)
        networks.append(Network(widths, seeding.derive(seed, "pool", i) % 2**31))
    return tuple(networks)


def image_domain(
    *,
    classes: int = 10,
    noise: float = 0.0,
    copies: int = 1,
    shuffled: bool = False,
    seed: int,
) -> ImageDomain:
    """Return an image domain made of scikit-learn's digits.

    Args:
        classes: only the digits below it.
        noise: standard deviation of Gaussian noise, of grey values in 0 .. 1.
        copies: how often each image to learn from is there, one noise for all.
        shuffled: whether the pixels of every image change places by one permutation.
        seed: of noise, permutation and split.

    Returns:
        The domain; at most 899 images are scored, the rest is learnt from.
    """
    images, truth = _load_images()
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

    Returns:
        As many images as the smaller domain has, without repetition from each.
    """
    rng = seeding.stream(seed, "images", "mixture")

    def drawn(one: Images, other: Images, *labels: Classes) -> tuple[Images, Classes]:
        count = min(len(one), len(other))
        ours = rng.random(count) < share
        parts = (rng.permutation(len(one))[:count], rng.permutation(len(other))[:count])
        images = np.where(ours[:, None, None, None], one[parts[0]], other[parts[1]])
        return images, np.where(ours, labels[0][parts[0]], labels[1][parts[1]])

    train = drawn(
        first.train_images,
        second.train_images,
        first.train_classes,
        second.train_classes,
    )
    test = drawn(
        first.test_images, second.test_images, first.test_classes, second.test_classes
    )
    return ImageDomain(*train, *test)


def train_pool(
    pool: Sequence[Network], domain: ImageDomain, *, steps: int
) -> Iterator[NetworkResult]:
    """Yield each network of the pool, trained on a domain for a fixed budget.

    Args:
        pool: architectures.
        domain: images to train and to test on.
        steps: gradient steps in complete passes: as many on few images as on many.

    Yields:
        Size and accuracy of each network.
    """
    epochs = max(1, round(steps * BATCH / len(domain.train_images)))
    classes = int(domain.train_classes.max()) + 1
    torch = load_torch()
    with _one_thread(torch):
        for network in pool:
            with torch.random.fork_rng():
                torch.manual_seed(network.seed)
                model = _pool_network(torch, network.channels, classes)
                _train(torch, model, domain.train_images, domain.train_classes, epochs)
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


# --- irises ---------------------------------------------------------------------------


class IrisResponses(NamedTuple):
    """Responses of classifiers to irises.

    names: classifiers; responses (classifiers, flowers): 1 where the held-out flower
    was classified right; features (flowers, 4) and classes (flowers,).
    """

    names: tuple[str, ...]
    responses: npt.NDArray[np.float64]
    features: npt.NDArray[np.float64]
    classes: Classes


def iris_responses(*, seed: int = 0) -> IrisResponses:
    """Return cross-validated answers of scikit-learn's classifiers on the irises.

    Ten stratified folds; classifiers below an accuracy of .35 are left out [S].

    Args:
        seed: of the folds and of the classifiers.

    Returns:
        Answers, features and classes.

    Raises:
        MissingPartError: scikit-learn is not installed.

    Source: Generality paper, section on feature-based classification.
    """
    bunch = _sklearn("datasets").load_iris()
    model_selection = _sklearn("model_selection")
    features = np.asarray(bunch.data, dtype=np.float64)
    classes = np.asarray(bunch.target, dtype=np.int64)
    folds = model_selection.StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    names, rows = [], []
    for name, model in _iris_classifiers(seed).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # early stopping is part of the population
            answers = model_selection.cross_val_predict(
                model, features, classes, cv=folds
            )
        right = np.asarray(answers == classes, dtype=np.float64)
        if right.mean() >= LEAST_ACCURACY:
            names.append(name)
            rows.append(right)
    return IrisResponses(tuple(names), np.array(rows), features, classes)


def _iris_classifiers(seed: int) -> dict[str, Any]:
    """Return classifiers of many kinds by name, as a practitioner would set them.

    The mean generality is that of this population: stumps and fits of few iterations
    lower it.
    """
    from sklearn import (
        discriminant_analysis,
        ensemble,
        linear_model,
        naive_bayes,
        neighbors,
        neural_network,
        pipeline,
        preprocessing,
        svm,
        tree,
    )

    def scaled(model: Any) -> Any:
        return pipeline.make_pipeline(preprocessing.StandardScaler(), model)

    models: dict[str, Any] = {
        "lda": discriminant_analysis.LinearDiscriminantAnalysis(),
        "qda": discriminant_analysis.QuadraticDiscriminantAnalysis(),
        "gaussian-bayes": naive_bayes.GaussianNB(),
        "multinomial-bayes": naive_bayes.MultinomialNB(),
        "complement-bayes": naive_bayes.ComplementNB(),
        "bernoulli-bayes": naive_bayes.BernoulliNB(binarize=2.5),
        "centroid": neighbors.NearestCentroid(),
        "perceptron": scaled(linear_model.Perceptron(random_state=seed)),
        "ridge": linear_model.RidgeClassifier(),
        "sgd": scaled(linear_model.SGDClassifier(random_state=seed)),
        "stump": tree.DecisionTreeClassifier(max_depth=1, random_state=seed),
    }
    for k in (1, 3, 5, 10, 25, 50):
        models[f"neighbours-{k}"] = neighbors.KNeighborsClassifier(k)
    for depth in (2, 3, None):
        trees = {"tree": tree.DecisionTreeClassifier, "rtree": tree.ExtraTreeClassifier}
        for name, kind in trees.items():
            models[f"{name}-{depth}"] = kind(max_depth=depth, random_state=seed)
    for count in (5, 20):
        for name, kind in (
            ("forest", ensemble.RandomForestClassifier),
            ("extra", ensemble.ExtraTreesClassifier),
            ("bagged", ensemble.BaggingClassifier),
            ("boosted", ensemble.AdaBoostClassifier),
        ):
            models[f"{name}-{count}"] = kind(n_estimators=count, random_state=seed)
    for strength in (0.1, 1.0, 10.0):
        models[f"logistic-{strength}"] = scaled(
            linear_model.LogisticRegression(C=strength)
        )
        for kernel in ("linear", "rbf", "poly"):
            models[f"svm-{kernel}-{strength}"] = svm.SVC(kernel=kernel, C=strength)
    for width in (3, 10, 30):
        models[f"mlp-{width}"] = scaled(
            neural_network.MLPClassifier((width,), solver="lbfgs", random_state=seed)
        )
    return models
