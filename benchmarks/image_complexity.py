"""MCCP complexity of image domains from one pool of random convolutional networks.

    python benchmarks/image_complexity.py --out pool.csv
    owa-bench measure aiq --pool pool.csv

Prints a line a domain. Needs the extras `measures` and `rl`; minutes on two cores.
"""

import argparse
import csv
from pathlib import Path

from owa_bench.scoring.companions.aiq.complexity import complexity, image_entropy
from owa_bench.subjects.classifiers import (
    DOMAINS,
    convolutional_pool,
    image_domain,
    train_pool,
)


def main() -> None:
    """Train the pool on every domain, print complexities, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=40)
    parser.add_argument("--steps", type=int, default=300, help="gradient steps each")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    pool = convolutional_pool(given.networks, seed=0)
    rows = []
    for name in DOMAINS:
        played = image_domain(name, seed=0)
        policies = list(train_pool(pool, played, steps=given.steps))
        rows += [(name, policy.size, policy.performance) for policy in policies]
        found = complexity(
            [policy.size for policy in policies],
            [policy.performance for policy in policies],
        )
        classes = int(played.test_classes.max()) + 1
        bits = image_entropy(played.test_images[:, 0], classes=classes).mean
        seen = sum(how == "observed" for how in found.how)
        print(
            f"{name:13s} complexity {found.value:7.1f}, {seen} bins observed, "
            f"best accuracy {max(p.performance for p in policies):.3f}, "
            f"entropy {bits:.2f} bits an image"
        )
    if given.out is not None:
        with given.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("domain", "size", "performance"))
            writer.writerows(rows)


if __name__ == "__main__":
    main()
