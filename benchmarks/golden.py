"""Golden digests of the worlds of the tool suites, before and after all drift.

`python benchmarks/golden.py` writes worlds.json, sites.json, crews.json, codebases.json
and registers.json in tests/golden/; `--check` makes the digests again and exits 1 if
any differs; `--masked` does either with the CPU's fast paths masked: a second machine
for free. A changed digest is a change of scores: raise the suite's version.
"""

import json
import sys
from pathlib import Path
from typing import NamedTuple

import golden_command

from owa_bench.discovery import get
from owa_bench.drift.timeline import source
from owa_bench.envs.changesurf import generate as changesurf
from owa_bench.envs.multicrew import generate as multicrew
from owa_bench.envs.recall import generate as recall
from owa_bench.envs.toolquest import generate as toolquest
from owa_bench.records.instance import Instance

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
ALL_DRIFT = 10_000  # a drift step beyond every drift order


class Kept(NamedTuple):
    """What is kept of a suite: the file, its families and seeds."""

    name: str
    families: tuple[str, ...]
    seeds: tuple[int, ...]


KEPT = {
    "toolquest": Kept(
        name="worlds.json",
        families=(*toolquest.FAMILIES, *toolquest.HONEYPOT_FAMILIES),
        seeds=(0, 1, 1 << 40, (1 << 63) - 1),
    ),
    "changesurf": Kept(
        name="sites.json",
        families=(
            *changesurf.FAMILIES,
            *changesurf.HELD_OUT_FAMILIES,
            *changesurf.HONEYPOT_FAMILIES,
        ),
        seeds=(0, 1 << 40),
    ),
    "multicrew": Kept(
        name="crews.json", families=(*multicrew.FAMILIES, *multicrew.HELD_OUT), seeds=(0, 1 << 40)
    ),
    "multicrew/codebase": Kept(name="codebases.json", families=multicrew.REAL, seeds=(0, 1 << 40)),
    "recall": Kept(name="registers.json", families=recall.FAMILIES, seeds=(0, 1 << 40)),
}


def pair(suite: str, family: str, tier: int, seed: int) -> list[str]:
    """Return the digests of an instance's base and fully drifted world."""
    timeline = source(suite)
    found = []
    for step in (0, ALL_DRIFT):
        instance = Instance(
            suite=suite,
            version=get("suites", suite).card.version,
            family=family,
            tier=tier,
            seed=seed,
            drift_step=step,
        )
        found.append(timeline(instance).worlds[-1].digest())
    return found


def digests(suite: str) -> dict[str, list[str]]:
    """Return the digests of a suite's worlds by family, tier and seed.

    Args: suite: a key of `KEPT`: its name, or its name and a part of it.
    """
    kept, suite = KEPT[suite], suite.partition("/")[0]
    return {
        f"{suite}/{family}/{tier}/{seed}": pair(suite, family, tier, seed)
        for family in kept.families
        for tier in get("suites", suite).card.tiers
        for seed in kept.seeds
    }


def write() -> str:
    """Keep the digests."""
    count = 0
    for suite, kept in KEPT.items():
        made = digests(suite)
        count += len(made)
        text = json.dumps(made, indent=1, sort_keys=True)
        (GOLDEN / kept.name).write_text(f"{text}\n", encoding="utf-8")
    return f"{count} digests written"


def check() -> tuple[list[str], str]:
    """Return the digests that changed, and a line on all of them."""
    changed, count = [], 0
    for suite, kept in KEPT.items():
        made = digests(suite)
        count += len(made)
        known = json.loads((GOLDEN / kept.name).read_text())
        changed += golden_command.differences(made, known)
    return changed, f"{count - len(changed)} digests hold, {len(changed)} differ"


if __name__ == "__main__":
    sys.exit(golden_command.run(__doc__, write, check))
