"""Entropy of a domain's observations: the baseline that complexity is held against."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.companions import checks

_OFFSETS = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))  # radius 1: five pixels


class ImageEntropy(NamedTuple):
    """Entropy of an image set: of the whole set, and the mean of one image."""

    total: float
    mean: float
    images: int


def control_entropy(observations: npt.ArrayLike, *, bins: int = 30) -> float:
    """Return the entropy of the observations of a trained agent.

    Formula: sum over coordinates of -sum p log2 p, p the shares of `bins` equal bins
        over the coordinate's own range
    Shapes: (observations, coordinates) of 100 episodes; a scalar.
    Units: bits.
    Missing: nothing may be missing; a coordinate that never moves adds 0.
    Errors: ScoringError for NaN or an empty table.
    Source: AIQ seed, section 3.1.4, equation 4 per coordinate [S].

    >>> control_entropy([[0.0, 7.0], [1.0, 7.0]], bins=2)
    1.0
    """
    table = checks.matrix(
        observations, "observations", axes="observations, coordinates"
    )
    checks.finite(table, "observations")
    still = np.eye(1, bins)[0]
    return counted_entropy(
        [
            np.histogram(column, bins)[0] if np.ptp(column) > 0 else still
            for column in table.T
        ]
    )


def counted_entropy(counts: npt.ArrayLike) -> float:
    """Return the entropy of observations that are counted in bins already.

    Formula: sum over coordinates of -sum p log2 p, p the shares of the bins
    Shapes: (coordinates, bins) of counts; a scalar.
    Units: bits.
    Missing: nothing may be missing.
    Errors: ScoringError for NaN, a count below 0 or a coordinate without any.
    Source: AIQ seed, section 3.1.4, equation 4 per coordinate [S].

    >>> counted_entropy([[5, 5, 0], [0, 7, 0]])
    1.0
    """
    table = checks.matrix(counts, "counts", axes="coordinates, bins")
    checks.finite(table, "counts")
    checks.within(table, "counts", 0.0, math.inf)
    whole = table.sum(1)
    if not np.all(whole > 0):
        raise ScoringError(
            "each row of `counts` must hold an observation, got one with none."
        )
    total = 0.0
    for row, count in zip(table, whole, strict=True):
        shares = row[row > 0] / count
        total -= float(shares @ np.log2(shares))
    return total + 0.0


def image_entropy(images: npt.ArrayLike, *, classes: int) -> ImageEntropy:
    """Return the local entropy of an image set, labels included.

    Formula: per image: mean over pixels of the entropy of the pixel and its four
        neighbours (fewer at the border), plus log2(classes); summed over the images
    Shapes: (images, height, width) of grey values; scalars.
    Units: bits. The seed prints 3.32 bits for the 100 classes of CIFAR-100; the formula
        gives 6.64, which is used.
    Missing: nothing may be missing.
    Errors: ScoringError for another shape, NaN, or `classes` below 1.
    Source: AIQ seed, section 3.1.2 [S].

    >>> image_entropy(np.zeros((2, 3, 3)), classes=4)
    ImageEntropy(total=4.0, mean=2.0, images=2)
    """
    stack = np.asarray(images, dtype=np.float64)
    if stack.ndim != 3 or not stack.size or classes < 1:
        raise ScoringError(
            "`images` must be (images, height, width) and `classes` at least 1, got "
            f"{stack.shape} and {classes}."
        )
    checks.finite(stack, "images")
    means = [_local(image) + math.log2(classes) for image in stack]
    total = float(np.sum(means))
    return ImageEntropy(total, total / len(stack), len(stack))


def _local(image: Floats) -> float:
    """Return the mean entropy of the five-pixel neighbourhoods of an image."""
    framed = np.pad(image, 1, constant_values=np.nan)
    height, width = image.shape
    around = np.stack(
        [framed[1 + i : 1 + i + height, 1 + j : 1 + j + width] for i, j in _OFFSETS]
    )
    inside = ~np.isnan(around)
    alike = (around[:, None] == around[None, :]).sum(axis=1)  # NaN equals nothing
    size = inside.sum(axis=0)
    shares = np.where(inside, alike / size, 1.0)
    return float(np.mean(-np.log2(shares).sum(axis=0) / size)) + 0.0
