"""Mean generality of classifiers on Fisher's irises, by seed and by scale of features.

    python benchmarks/iris_generality.py

The generality paper finds 0.75 for 419 classifiers of OpenML, the most capable at
0.797. Difficulty is the share of disagreeing neighbours among ten; seven of the 150
flowers lie at .5 or above and carry half of the scale, so a few answers move the mean.
"""

import numpy as np

from owa_bench.measures.generality import difficulty
from owa_bench.measures.generality.measure import measure
from owa_bench.subjects.classifiers import iris_responses

SEEDS = range(4)
PAPER = 0.75


def main() -> None:
    """Print a line a seed and scale, then the means over seeds."""
    means: dict[str, list[float]] = {"raw": [], "standardised": []}
    for seed in SEEDS:
        held = iris_responses(seed=seed)
        scaled = (held.features - held.features.mean(axis=0)) / held.features.std(axis=0)
        for name, features in (("raw", held.features), ("standardised", scaled)):
            hard = difficulty.disagreeing_neighbours(features, held.classes)
            found = measure(held.responses, hard)
            mean = float(np.nanmean([one.normalised for one in found]))
            means[name].append(mean)
            best, many = max(one.capability for one in found), int((hard >= 0.5).sum())
            print(
                f"seed {seed}, {name} features: mean generality {mean:.3f}, most "
                f"capable {best:.3f}, {many} flowers at .5 or above"
            )
    for name, values in means.items():
        mean = float(np.mean(values))
        print(f"{name}: {mean:.3f} over {len(values)} seeds, paper {PAPER}")


if __name__ == "__main__":
    main()
