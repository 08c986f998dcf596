"""The AIQ paper's checks on images, in kind: scikit-learn's digits for MNIST and CIFAR.

    python benchmarks/aiq_digits.py [--state FOLDER]

Complexity by number of classes, by noise and by copies of the set; what mixing a domain
with itself, with another and with its own subsets costs; five domains as a suite, and
handicapped networks on it. The data sets of the paper cannot be loaded here. Cells are
kept in --state; a call goes on where one was stopped. Needs the extras `measures` and
`rl`. Writes docs/tables/aiq_digits.md.
"""

import argparse
import json
import sys
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
from rich.progress import track
from scipy import stats

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from owa_bench.measures.aiq import measure as aiq  # noqa: E402
from owa_bench.measures.aiq.complexity import complexity, image_entropy  # noqa: E402
from owa_bench.subjects.image_domains import (  # noqa: E402
    Network,
    convolutional_pool,
    image_domain,
    mixed_domain,
    train_pool,
)

TABLE = ROOT / "docs" / "tables" / "aiq_digits.md"
NETWORKS, POOLS, STEPS = 24, 3, 150
SHARES, RETRAINED = tuple(i / 10 for i in range(11)), 5
CALIBRATION = (8, 8)
SUITE = {
    "two digits": {"classes": 2},
    "five digits": {"classes": 5},
    "digits": {},
    "noisy digits": {"noise": 0.4},
    "shuffled digits": {"shuffled": True},
}
BY_CLASSES = {f"{n}": {"classes": n} for n in range(2, 10)} | {"10": {}}
BY_NOISE = {"0": {}} | {f"{x:g}": {"noise": x} for x in (0.1, 0.2, 0.4, 0.8)}
BY_COPIES = {"1": {}} | {f"{n}": {"copies": n} for n in (2, 4)}
HANDICAPPED = [(n,) * deep for deep in (1, 2, 3) for n in (1, 2, 4, 8, 16, 32)]


class Cells:
    """Results by key, kept in a file as they are made."""

    def __init__(self, state):
        state.mkdir(parents=True, exist_ok=True)
        self._path = state / "cells.jsonl"
        self._kept = {}
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                key, value = json.loads(line)
                self._kept[json.dumps(key)] = value

    def get(self, key, make):
        name = json.dumps(key)
        if name not in self._kept:
            self._kept[name] = value = make()
            with self._path.open("a") as file:
                file.write(json.dumps([json.loads(name), value]) + "\n")
        return self._kept[name]


def trend(places, values):
    """Return a rank correlation in words."""
    if np.ptp(values) < 1e-9:
        return "constant"
    fit = stats.spearmanr(places, values)
    odds = "p < .001" if fit.pvalue < 0.001 else f"p {fit.pvalue:.2g}"
    return f"rank correlation {fit.statistic:.2f} ({odds})"


def height(cells, changes):
    """Return the complexity of a domain, over pools that were trained apart."""

    def pool(seed):
        domain = image_domain(seed=seed, **changes)
        networks = convolutional_pool(NETWORKS, seed=seed)
        return [list(one) for one in train_pool(networks, domain, steps=STEPS)]

    pools = [cells.get(["pool", seed, changes], lambda s=seed: pool(s)) for seed in range(POOLS)]
    sizes, good = np.array(pools).reshape(-1, 2).T
    return complexity(sizes, good, pools=np.repeat(np.arange(POOLS), NETWORKS))


def entropy(changes):
    """Return bits an image, classes included."""
    domain = image_domain(seed=0, **changes)
    classes = int(domain.test_classes.max()) + 1
    return image_entropy(domain.test_images[:, 0], classes=classes).mean


def curve(cells, first, second):
    """Return what the calibration network reaches, (shares, retrainings)."""

    def mixed():
        table = []
        for share in SHARES:
            row = []
            for seed in range(RETRAINED):
                ends = (image_domain(seed=seed, **first), image_domain(seed=seed, **second))
                domain = mixed_domain(*ends, share, seed=seed)
                network = [Network(CALIBRATION, seed)]
                row.append(next(train_pool(network, domain, steps=STEPS)).performance)
            table.append(row)
        return table

    return np.array(cells.get(["mixture", first, second], mixed))


def gap(cells, first, second):
    return aiq.dissimilarity(curve(cells, first, second), SHARES)


def heights(cells, title, domains, label):
    """Return a table of complexity and entropy, with their trend."""
    found = {name: height(cells, domains[name]) for name in track(domains, title)}
    bits = [entropy(changes) for changes in domains.values()]
    lines = [
        f"## {title}",
        "",
        f"| {label} | complexity | 95 % | entropy (bits) |",
        "|---|---|---|---|",
    ]
    for (name, one), bit in zip(found.items(), bits, strict=True):
        span = f"{one.span.low:.0f} to {one.span.high:.0f}"
        lines.append(f"| {name} | {one.value:.0f} | {span} | {bit:.2f} |")
    values = [one.value for one in found.values()]
    if label == "domain":
        lines += ["", f"Complexity and entropy: {trend(values, bits)}."]
    else:
        places = [float(name) for name in domains]
        lines += ["", f"Complexity with {label}: {trend(places, values)}."]
        lines += ["", f"Entropy with {label}: {trend(places, bits)}."]
    return [*lines, ""], values


def curves(cells, by_classes):
    """Return what mixing costs: a domain with itself, and with others.

    by_classes: complexity of 2 to 10 classes.
    """
    digits, two = SUITE["digits"], SUITE["two digits"]
    lines = ["## Mixtures (figures 11 to 13 and 15)", ""]
    for name, other in (
        ("themselves", digits),
        ("shuffled digits", SUITE["shuffled digits"]),
        ("two digits", two),
    ):
        table = curve(cells, digits, other).mean(axis=1)
        shown = ", ".join(f"{value:.3f}" for value in table)
        lines.append(
            f"- Digits with {name}, share of digits 0 to 1: {shown}; "
            f"dissimilarity {gap(cells, digits, other):.4f}."
        )
    lines += ["", "| classes | to all ten | to one class more |", "|---|---|---|"]
    subsets = [{"classes": n} for n in range(2, 10)] + [digits]
    whole = [gap(cells, one, digits) for one in track(subsets, "subsets")]
    steps = [gap(cells, one, other) for one, other in pairwise(subsets)]
    for place, (far, step) in enumerate(zip(whole, [*steps, None], strict=True)):
        lines.append(f"| {place + 2} | {far:.4f} | {'' if step is None else f'{step:.4f}'} |")
    said = [
        f"Classes and dissimilarity to all ten: {trend(range(2, 11), whole)}.",
        "",
        f"Complexity and dissimilarity to one class more: {trend(by_classes[:-1], steps)}.",
    ]
    return [*lines, "", *said, ""]


def suite(cells, values):
    """Return the suite's dissimilarities, differences of complexity, and AIQ."""
    names = list(SUITE)
    selves = [gap(cells, SUITE[name], SUITE[name]) for name in track(names, "suite")]
    floor = aiq.noise_floor(selves)
    table = np.diag(np.zeros(len(names)))
    for (i, one), (j, other) in combinations(enumerate(names), 2):
        table[i, j] = table[j, i] = gap(cells, SUITE[one], SUITE[other])
    gaps = aiq.dissimilarity_matrix(table, floor=floor)
    space = aiq.intelligence_space(gaps.matrix, values)
    lines = [
        "## A suite of five (figures 16 to 18, 20 and 21)",
        "",
        f"Dissimilarity above the diagonal (~ below the noise floor {floor:.4f}), "
        "difference of complexity below it:",
        "",
    ]
    lines += ["|  | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for i, name in enumerate(names):
        cells_ = [
            ""
            if i == j
            else f"{'' if gaps.told[i, j] else '~'}{gaps.matrix[i, j]:.4f}"
            if i < j
            else f"{abs(values[i] - values[j]):.0f}"
            for j in range(len(names))
        ]
        lines.append(f"| {name} | " + " | ".join(cells_) + " |")
    pairs = np.triu_indices(len(names), 1)
    apart = np.abs(np.subtract.outer(values, values))[pairs]
    far = gaps.matrix[pairs]
    cosine = far @ apart / np.linalg.norm(far) / np.linalg.norm(apart)
    lines += [
        "",
        f"Cosine of the two over the {len(far)} pairs: {cosine:.2f}; {trend(far, apart)}.",
        "",
        f"Effective dimension {space.dimension}. Handicapped networks, mean accuracy "
        f"and AIQ^(1/r), {RETRAINED} trainings each:",
        "",
        "| channels | 1 layer | 2 layers | 3 layers |",
        "|---|---|---|---|",
    ]

    def trained():
        rows = []
        for changes in SUITE.values():
            each = []
            for seed in range(RETRAINED):
                domain = image_domain(seed=seed, **changes)
                networks = [Network(one, seed) for one in HANDICAPPED]
                each.append([one.performance for one in train_pool(networks, domain, steps=STEPS)])
            rows.append(np.mean(each, axis=0).tolist())
        return rows

    good = np.array(cells.get(["handicapped"], trained)).T
    lengths = [aiq.measure(space, row).length for row in good]
    place = {one: i for i, one in enumerate(HANDICAPPED)}
    for width in (1, 2, 4, 8, 16, 32):
        at = [place[(width,) * deep] for deep in (1, 2, 3)]
        lines.append(
            f"| {width} | "
            + " | ".join(f"{good[i].mean():.3f}, {lengths[i]:.1f}" for i in at)
            + " |"
        )
    for deep in (1, 2, 3):
        at = [place[(width,) * deep] for width in (1, 2, 4, 8, 16, 32)]
        found = trend(range(6), [lengths[i] for i in at])
        lines += ["", f"{deep} layers, channels and AIQ: {found}."]
    return [*lines, ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", type=Path, default=Path("runs") / "aiq_digits")
    cells = Cells(parser.parse_args().state)
    five, values = heights(cells, "Complexity beside entropy (figure 5)", SUITE, "domain")
    classes, by_classes = heights(cells, "Classes (figure 6)", BY_CLASSES, "classes")
    parts = [
        ["# The AIQ paper's checks on images, in kind", ""],
        [
            "Made by `python benchmarks/aiq_digits.py`, which says what is "
            f"played: {POOLS} pools of {NETWORKS} random convolutional networks, "
            f"{STEPS} gradient steps each.",
            "",
        ],
        five,
        classes,
        heights(cells, "Noise (figure 9)", BY_NOISE, "noise (s.d.)")[0],
        heights(cells, "Copies of the set (figure 10)", BY_COPIES, "copies")[0],
        curves(cells, by_classes),
        suite(cells, values),
    ]
    TABLE.write_text("\n".join(line for part in parts for line in part))
    print(TABLE.read_text())


if __name__ == "__main__":
    main()
