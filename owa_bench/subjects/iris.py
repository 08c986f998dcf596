"""A few dozen classifiers on Fisher's irises: responses for generality analysis."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.errors import MissingPartError

FOLDS = 10
LEAST_ACCURACY = 0.35  # of classifiers that are kept [S]


class Irises(NamedTuple):
    """Classifiers on irises.

    names: classifiers; responses (classifiers, flowers): 1 where the held-out flower
    was classified right; features (flowers, 4) and classes (flowers,).
    """

    names: tuple[str, ...]
    responses: npt.NDArray[np.float64]
    features: npt.NDArray[np.float64]
    classes: npt.NDArray[np.int64]


def irises(*, seed: int = 0) -> Irises:
    """Return cross-validated answers of scikit-learn's classifiers on the irises.

    Ten stratified folds; classifiers below an accuracy of .35 are left out, as the
    generality seed does. Needs the extra `measures`.
    """
    try:
        from sklearn import datasets, model_selection
    except ImportError as error:
        install = "pip install 'owa_bench[measures]'"
        raise MissingPartError("scikit-learn", install) from error
    bunch = datasets.load_iris()
    features = np.asarray(bunch.data, dtype=np.float64)
    classes = np.asarray(bunch.target, dtype=np.int64)
    folds = model_selection.StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    names, rows = [], []
    for name, model in _classifiers(seed).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # early stopping is part of the population
            said = model_selection.cross_val_predict(model, features, classes, cv=folds)
        right = np.asarray(said == classes, dtype=np.float64)
        if right.mean() >= LEAST_ACCURACY:
            names.append(name)
            rows.append(right)
    return Irises(tuple(names), np.array(rows), features, classes)


def _classifiers(seed: int) -> dict[str, Any]:
    """Return classifiers of many kinds by name, as a practitioner would set them.

    The mean generality is one of this population: deliberate stumps and starved fits
    pull it down.
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

    found: dict[str, Any] = {
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
        found[f"neighbours-{k}"] = neighbors.KNeighborsClassifier(k)
    for depth in (2, 3, None):
        trees = {"tree": tree.DecisionTreeClassifier, "rtree": tree.ExtraTreeClassifier}
        for name, kind in trees.items():
            found[f"{name}-{depth}"] = kind(max_depth=depth, random_state=seed)
    for count in (5, 20):
        for name, kind in (
            ("forest", ensemble.RandomForestClassifier),
            ("extra", ensemble.ExtraTreesClassifier),
            ("bagged", ensemble.BaggingClassifier),
            ("boosted", ensemble.AdaBoostClassifier),
        ):
            found[f"{name}-{count}"] = kind(n_estimators=count, random_state=seed)
    for strength in (0.1, 1.0, 10.0):
        found[f"logistic-{strength}"] = scaled(
            linear_model.LogisticRegression(C=strength)
        )
        for kernel in ("linear", "rbf", "poly"):
            found[f"svm-{kernel}-{strength}"] = svm.SVC(kernel=kernel, C=strength)
    for width in (3, 10, 30):
        found[f"mlp-{width}"] = scaled(
            neural_network.MLPClassifier((width,), solver="lbfgs", random_state=seed)
        )
    return found
