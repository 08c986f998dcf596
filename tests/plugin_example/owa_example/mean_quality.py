"""An axis of somebody else: mean quality, by another name."""

import numpy as np
import numpy.typing as npt

from owa_bench.scoring.axis import Axis

Floats = npt.NDArray[np.float64]


def mean_quality(quality: Floats) -> Floats:
    """Return the mean quality over families.

    Formula: the weighted mean over families of mean quality.
    Shapes: quality (resamples,); result the same.
    Units: quality in [0, 1].
    Missing: NaN in gives NaN out.
    Errors: none.
    Source: an example.
    """
    return quality


AXIS = Axis(
    "Q", "mean_quality", formula=mean_quality, columns={"quality": lambda sample: sample.table.q}
)
