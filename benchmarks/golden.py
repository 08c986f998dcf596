"""Golden digests of worlds, before and after all their drift.

`python benchmarks/golden.py` writes tests/golden/worlds.json (`--families NAME ..` only
those of some families); `--check` makes the
digests again and exits 1 if any differs; `--masked` does either with the CPU's fast
paths masked: a second machine for free. A changed digest is a change of scores: raise
the version.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from owa_bench.envs.toolquest.generate import (
    FAMILIES,
    HONEYPOT_FAMILIES,
    TIERS,
    VERSION,
    generate,
)
from owa_bench.records.instance import Instance
from owa_bench.run.assembly import source

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "worlds.json"
SEEDS = (0, 1, 1 << 40, (1 << 63) - 1)
ALL_DRIFT = 10_000  # a drift step beyond every drift order


def digests(families: Sequence[str]) -> dict[str, list[str]]:
    """Return the digests of base and fully drifted world by family, tier, seed."""
    timeline = source("toolquest")
    found: dict[str, list[str]] = {}
    for family in families:
        for tier in TIERS:
            for seed in SEEDS:
                instance = Instance(
                    suite="toolquest",
                    version=VERSION,
                    family=family,
                    tier=tier,
                    seed=seed,
                    drift_step=ALL_DRIFT,
                )
                drifted = timeline(instance).worlds[0]
                found[f"toolquest/{family}/{tier}/{seed}"] = [
                    generate(instance).digest(),
                    drifted.digest(),
                ]
    return found


def masked_environment() -> dict[str, str]:
    """Return the environment of a machine without this one's vector instructions.

    numpy names its features differently from version to version, so it is asked.
    """
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return {
        **os.environ,
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2",
        "NPY_DISABLE_CPU_FEATURES": " ".join(found),
    }


def main() -> int:
    """Write the digests, or compare them with those on disk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--masked", action="store_true", help="mask CPU features")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, help="only these")
    given = parser.parse_args()
    if given.masked:
        again = [sys.executable, __file__, *(["--check"] if given.check else [])]
        return subprocess.run(again, env=masked_environment(), check=False).returncode
    known = (*FAMILIES, *HONEYPOT_FAMILIES)
    asked = given.families or FAMILIES
    made = digests([name for name in known if name.partition("-")[0] in asked])
    if not given.check:
        kept = json.loads(GOLDEN.read_text()) if given.families else {}
        kept = dict(sorted({**kept, **made}.items()))
        GOLDEN.write_text(json.dumps(kept, indent=1) + "\n")
        print(f"wrote {len(made)} worlds to {GOLDEN}")
        return 0
    kept = json.loads(GOLDEN.read_text())
    changed = sorted(k for k in made.keys() | kept.keys() if made.get(k) != kept.get(k))
    for name in changed:
        print(f"changed: {name}")
    print(f"{len(made)} worlds made, {len(changed)} differ from {GOLDEN.name}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
