"""Tail exponents of linear, MLP and CNN digit classifiers, ten seeds pooled.

Prints a line a subject. Needs the extras `measures` and `rl`; two minutes on two cores.
"""

import argparse

import numpy as np

from owa_bench import seeding
from owa_bench.measures.intelligence_test import failures, measure
from owa_bench.subjects.classifiers import SUBJECTS, digit_scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--resamples", type=int, default=500)
    options = parser.parse_args()
    alphas = {}
    for subject in SUBJECTS:
        runs = [digit_scores(subject, seed=seed) for seed in range(options.seeds)]
        found = failures.from_scores(
            np.vstack([run.scores for run in runs]), np.concatenate([run.reference for run in runs])
        )
        fit = measure.maximum_likelihood(
            found, start=1.0, resamples=options.resamples, rng=seeding.stream(0, "digits", subject)
        )
        line = measure.least_squares(found)
        named = measure.level(fit.alpha, fit.span)
        alphas[subject] = fit.alpha
        wrong = float(np.mean(found.counts >= 1))
        print(
            f"{subject:6s} error {wrong:.3f}  alpha {fit.alpha:.3f} "
            f"[{fit.span.low:.3f}, {fit.span.high:.3f}]  least squares "
            f"{line.alpha:.3f} R2 {line.r_squared:.3f}  {named.name or named.reason}"
        )
    print(f"CNN above linear: {alphas['cnn'] > alphas['linear']}")


if __name__ == "__main__":
    main()
