"""Sandpile exponents in 2, 3 and 4 dimensions, and grains a second.

Needs the extra `measures` for the compiled loop; half a minute on two cores.
"""

import time

import numpy as np

from owa_bench.measures.intelligence_test import failures, measure, sandpile

GRIDS = ((2, 64, 1_000_000), (3, 24, 300_000), (4, 12, 300_000))


def main() -> None:
    for dimension, side, grains in GRIDS:
        stream = np.random.default_rng(dimension)
        begun = time.perf_counter()
        sizes = sandpile.avalanches(side=side, dimension=dimension, grains=grains, rng=stream)
        seconds = time.perf_counter() - begun
        window = sizes[(sizes >= 10) & (sizes <= 100)]
        found = failures.from_counts(window, candidates=101)
        fit = measure.maximum_likelihood(found, start=10.0, resamples=100, rng=stream)
        line = measure.least_squares(failures.from_counts(sizes))
        print(
            f"{dimension}-D {side}^{dimension}: alpha {fit.alpha:.3f} "
            f"[{fit.span.low:.3f}, {fit.span.high:.3f}] on 10..100, least squares "
            f"{line.alpha:.3f}; {grains} grains in {seconds:.1f} s"
        )


if __name__ == "__main__":
    main()
