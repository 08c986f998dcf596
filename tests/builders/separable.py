"""Separability of planted rows from plain ones by what should say nothing.

A kind plants rows into a drawn company. Whoever finds them by the look of their ids, amounts or
dates need not understand them: tests hold these figures near 0.5.
"""

import bisect
import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from owa_bench.company.kinds.contract import JsonRow
from owa_bench.errors import FieldError
from owa_bench.seeding import stream

POSITION: Final = "position"
WORLD: Final = "world"
TREE: Final = "tree"
FOLDS: Final = 5
_THRESHOLDS = 64  # of a feature that a tree tries
_DEPTH = 2
_ABSENT = -1.0  # a field that a row lacks is seen, too
_LEAST_GAIN = 1e-9
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(T.*)?$")
_NUMBERS = re.compile(r"(\d+)")

_Values = NDArray[np.float64]


def separability(planted: Sequence[JsonRow], plain: Sequence[JsonRow]) -> Mapping[str, float]:
    """Return how well features of one kind of rows separate them from another kind.

    Features follow from the values of a field: of ids (text that ends in a digit) the rank and
    the last one and two digits; of whole numbers the remainders by 100 and 1000; of dates the
    weekday; of texts the length. Ranks are among the rows of one `world`, if rows name
    theirs; `position`, if given, is a place in the world's table. Other kinds of values are passed
    over. Fields that planted rows must differ in are to be left out.

    Args:
        planted: Rows of one kind.
        plain: Rows of the other.
    Returns: By feature max(AUC, 1 - AUC), so that 0.5 says nothing. By chance alone it lies about
        0.3 / sqrt(n) from that for n planted rows among many: 300 of them for 0.05 to be three
        standard deviations. Under "tree" the mean AUC of decision trees of depth 2 in the parts of
        the rows that they were not grown on.
    Raises: FieldError: A kind has fewer rows than there are parts.
    """
    for name, rows in (("planted", planted), ("plain", plain)):
        if len(rows) < FOLDS:
            raise FieldError(name, len(rows), f"must be {FOLDS} rows or more")
    columns = features([*planted, *plain])
    truth = np.arange(len(planted) + len(plain)) < len(planted)
    found = {}
    for name, values in columns.items():
        value = auc(values[truth], values[~truth])
        found[name] = max(value, 1.0 - value)
    found[TREE] = _tree_auc(np.column_stack(list(columns.values())), truth) if columns else 0.5
    return found


def auc(higher: _Values, lower: _Values) -> float:
    """Return the chance that a value of one sample is above one of another, ties as halves.

    Args:
        higher: Values of the one, [n].
        lower: Values of the other, [m].
    """
    ordered = np.sort(lower)
    below = np.searchsorted(ordered, higher, "left") + np.searchsorted(ordered, higher, "right")
    return float(below.mean() / (2 * len(lower)))


# --- features -------------------------------------------------------------------------


def features(rows: Sequence[JsonRow]) -> dict[str, _Values]:
    """Return the features of rows by name.

    Args:
        rows: All that are compared.
    Returns: Values by feature, [row]; -1 where a row lacks the field.
    """
    worlds = [row.get(WORLD) for row in rows]
    found: dict[str, _Values] = {}
    for field in dict.fromkeys(field for row in rows for field in row if field != WORLD):
        places = [index for index, row in enumerate(rows) if row.get(field) is not None]
        cells = [_cell(rows[index][field]) for index in places]
        for name, values in _of_field(field, cells, [worlds[index] for index in places]).items():
            found[name] = np.full(len(rows), _ABSENT)
            found[name][places] = values
    return found


def _cell(value: Any) -> Any:
    """Return a value; a date for a text that is one."""
    if isinstance(value, str) and _DATE.match(value):
        return dt.datetime.fromisoformat(value)
    return value


def _of_field(field: str, cells: list[Any], worlds: list[Any]) -> dict[str, list[float]]:
    """Return the features of a field's values by name."""
    if field == POSITION:
        return {field: _ranks(cells, worlds)}
    if all(isinstance(cell, dt.date) for cell in cells):
        return {f"{field} weekday": [cell.weekday() for cell in cells]}
    if all(isinstance(cell, int) and not isinstance(cell, bool) for cell in cells):
        return {f"{field} % {base}": [cell % base for cell in cells] for base in (100, 1000)}
    if not all(isinstance(cell, str) for cell in cells):
        return {}
    found: dict[str, list[float]] = {f"{field} length": [len(cell) for cell in cells]}
    if all(cell[-1:].isdecimal() for cell in cells):
        numbers = [int(_NUMBERS.findall(cell)[-1]) for cell in cells]
        found[f"{field} rank"] = _ranks([_natural(cell) for cell in cells], worlds)
        for digits in (1, 2):
            found[f"{field}, last {digits}"] = [number % 10**digits for number in numbers]
    return found


def _natural(text: str) -> list[Any]:
    """Return a key that orders ids by the numbers in them."""
    return [int(part) if part.isdecimal() else part for part in _NUMBERS.split(text)]


def _ranks(keys: list[Any], worlds: list[Any]) -> list[float]:
    """Return the rank of each key among those of its world, in [0, 1]."""
    own: dict[Any, list[Any]] = {}
    for key, world in zip(keys, worlds, strict=True):
        own.setdefault(world, []).append(key)
    ordered = {world: sorted(of_world) for world, of_world in own.items()}
    return [
        bisect.bisect_left(ordered[world], key) / max(len(ordered[world]) - 1, 1)
        for key, world in zip(keys, worlds, strict=True)
    ]


# --- trees ----------------------------------------------------------------------------


class _Split(NamedTuple):
    """A node that sends rows with a feature up to a threshold to the left."""

    feature: int
    threshold: float
    left: "_Split | float"
    right: "_Split | float"


def _tree_auc(table: _Values, truth: NDArray[np.bool_]) -> float:
    """Return the mean AUC of trees in the parts of rows that each was not grown on."""
    rng = stream(0, "separable", len(truth))  # in the order of rows parts would differ in kind
    places = np.zeros(len(truth), dtype=int)
    for kind in (truth, ~truth):
        places[kind] = rng.permutation(int(kind.sum())) % FOLDS
    values = []
    for part in range(FOLDS):
        out = places == part
        tree = _grow(table[~out], truth[~out], _DEPTH)
        scores = np.array([_score(tree, row) for row in table[out]])
        values.append(auc(scores[truth[out]], scores[~truth[out]]))
    return float(np.mean(values))


def _grow(table: _Values, truth: NDArray[np.bool_], depth: int) -> "_Split | float":
    """Return the tree whose leaves are purest by Gini's measure; a leaf is a share of rows."""
    share = float(truth.mean())
    best, chosen = _impurity(truth), None
    for feature in range(table.shape[1] if depth else 0):
        values = table[:, feature]
        for threshold in _thresholds(values):
            left = values <= threshold
            impurity = _impurity(truth[left]) + _impurity(truth[~left])
            if impurity < best - _LEAST_GAIN:
                best, chosen = impurity, (feature, float(threshold))
    if chosen is None:
        return share
    left = table[:, chosen[0]] <= chosen[1]
    sides = (_grow(table[side], truth[side], depth - 1) for side in (left, ~left))
    return _Split(*chosen, *sides)


def _thresholds(values: _Values) -> _Values:
    """Return values between which rows can be split, a sample of them where there are many."""
    distinct = np.unique(values)[:-1]
    places = np.linspace(0, len(distinct) - 1, min(_THRESHOLDS, len(distinct)))
    sample: _Values = distinct[places.astype(int)]
    return sample


def _impurity(truth: NDArray[np.bool_]) -> float:
    """Return Gini's impurity times the number of rows."""
    share = float(truth.mean()) if truth.size else 0.0
    return truth.size * 2.0 * share * (1.0 - share)


def _score(tree: "_Split | float", row: _Values) -> float:
    while isinstance(tree, _Split):
        tree = tree.left if row[tree.feature] <= tree.threshold else tree.right
    return tree
