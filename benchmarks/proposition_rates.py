"""How often each class of world proposition is true, in drawn worlds of every suite.

    python benchmarks/proposition_rates.py [SEEDS]

Every family and tier of every suite, at every drift magnitude of the protocol, with
SEEDS seeds each (default 20). The shares are what `world_model.references` of the
protocol holds, to two decimals.
"""

import sys
from collections import Counter
from importlib.resources import files

import msgspec

from owa_bench.discovery import find
from owa_bench.drift import timeline as timelines
from owa_bench.interfaces import Suite
from owa_bench.records import protocol
from owa_bench.records.instance import Instance


def rates(name: str, seeds: int) -> dict[str, tuple[int, int]]:
    """Return (true, all) propositions of a suite by class.

    Args:
        name: Name of the suite.
        seeds: Seeds per family, tier and magnitude.

    Returns:
        Counts by class.
    """
    suite: Suite = find("suites")[name].plugin
    card, play = suite.card, timelines.source(name)
    data = (files("owa_bench.protocols") / "default.toml").read_bytes()
    magnitudes = protocol.load(data).drift.magnitudes
    true, whole = Counter[str](), Counter[str]()
    for family in card.families:
        for tier in card.tiers:
            for seed in range(seeds):
                base = Instance(
                    suite=name, version=card.version, family=family, tier=tier, seed=seed
                )
                for delta in magnitudes:
                    step = timelines.drift_step(name, base, delta)
                    drawn = play(msgspec.structs.replace(base, drift_step=step))
                    for entry in suite.oracle.propositions(drawn):
                        whole[entry.kind] += 1
                        true[entry.kind] += entry.truth
    return {kind: (true[kind], whole[kind]) for kind in sorted(whole)}


def main(seeds: int) -> None:
    """Print a line per suite and class."""
    for name, item in sorted(find("suites").items()):
        if not item.plugin.card.proposition_kinds:
            continue
        for kind, (true, whole) in rates(name, seeds).items():
            print(f"{name:12} {kind:12} {true / whole:.3f} of {whole}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
