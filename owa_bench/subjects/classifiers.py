"""Classifiers of digits and irises, whose scores the companion measures read.

Digits (Intelligence Test): subjects from linear to convolutional; the ten classes are the
candidates, the true class is the reference. Irises (generality analysis): a few dozen classifiers.
Needs the extras `measures` (scikit-learn) and, but for the irises, `rl` (torch).
"""

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench import seeding
from owa_bench.errors import MissingPartError, UnknownNameError, extra

Images = npt.NDArray[np.float32]
Classes = npt.NDArray[np.int64]

SUBJECTS = ("linear", "mlp", "cnn")
EPOCHS = {"linear": 30, "mlp": 30, "cnn": 30}
BATCH = 64
_RATE = 3e-3


FOLDS = 10
LEAST_ACCURACY = 0.35  # of classifiers that take part [S]


def _sklearn(module: str) -> Any:
    """Return a module of scikit-learn; MissingPartError names the extra."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError as error:
        install = extra("measures")
        raise MissingPartError("scikit-learn", install) from error


def load_torch() -> Any:
    """Return the module torch.

    Raises: MissingPartError: it is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingPartError("torch", extra("rl")) from error
    return torch


@contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    """Keep torch to one thread: small tensors gain nothing from more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def load_images() -> tuple[Images, Classes]:
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
    Returns: Scores and true classes of the rest.
    Raises:
        UnknownNameError: there is no such subject.
        MissingPartError: scikit-learn or torch is not installed.
    """
    if subject not in SUBJECTS:
        raise UnknownNameError("digit subject", subject, SUBJECTS)
    images, truth = load_images()
    order = seeding.stream(seed, "digits").permutation(len(images))
    first, rest = order[:train], order[train:]
    torch = load_torch()
    with one_thread(torch):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = _digit_network(torch, subject)
            fit(torch, model, images[first], truth[first], EPOCHS[subject])
        with torch.inference_mode():
            scores = model(torch.as_tensor(images[rest])).numpy()
    return DigitScores(np.asarray(scores, dtype=np.float64), truth[rest])


def fit(torch: Any, model: Any, images: Images, truth: Classes, epochs: int) -> None:
    """Train a network with Adam on cross-entropy.

    Args:
        torch: The module.
        model: The network, changed in place.
        images: (items, 1, 8, 8).
        truth: (items,) classes.
        epochs: Passes over the images.
    """
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
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
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


# --- irises ---------------------------------------------------------------------------


class IrisResponses(NamedTuple):
    """Responses of classifiers to irises.

    names: classifiers; responses (classifiers, flowers): 1 where the held-out flower was classified
    right; features (flowers, 4) and classes (flowers,).
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
    Returns: Answers, features and classes.
    Raises: MissingPartError: scikit-learn is not installed.
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
            answers = model_selection.cross_val_predict(model, features, classes, cv=folds)
        right = np.asarray(answers == classes, dtype=np.float64)
        if right.mean() >= LEAST_ACCURACY:
            names.append(name)
            rows.append(right)
    return IrisResponses(tuple(names), np.array(rows), features, classes)


def _iris_classifiers(seed: int) -> dict[str, Any]:
    """Return classifiers of many kinds by name, as a practitioner would set them.

    The mean generality is that of this population: stumps and fits of few iterations lower it.
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
        models[f"logistic-{strength}"] = scaled(linear_model.LogisticRegression(C=strength))
        for kernel in ("linear", "rbf", "poly"):
            models[f"svm-{kernel}-{strength}"] = svm.SVC(kernel=kernel, C=strength)
    for width in (3, 10, 30):
        models[f"mlp-{width}"] = scaled(
            neural_network.MLPClassifier((width,), solver="lbfgs", random_state=seed)
        )
    return models
