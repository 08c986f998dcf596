"""Golden digests of ChangeSurf's worlds, before and after all their drift.

`python benchmarks/golden_sites.py` writes tests/golden/sites.json; `--check` makes the
digests again and exits 1 if any differs; `--masked` does either with the CPU's fast
paths masked. A changed digest is a change of scores: raise the version.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from golden import masked_environment

from owa_bench.calendars import drift_order
from owa_bench.discovery import get
from owa_bench.envs.changesurf.generate import (
    FAMILIES,
    HELD_OUT_FAMILIES,
    HONEYPOT_FAMILIES,
    TIERS,
    VERSION,
    generate,
)
from owa_bench.records.instance import Instance
from owa_bench.seeding import stream

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "sites.json"
SEEDS = (0, 1 << 40)


def digests() -> dict[str, list[str]]:
    """Return the digests of base and fully drifted world by family, tier, seed."""
    found: dict[str, list[str]] = {}
    for family in (*FAMILIES, *HELD_OUT_FAMILIES, *HONEYPOT_FAMILIES):
        for tier in TIERS:
            for seed in SEEDS:
                instance = Instance(
                    suite="changesurf",
                    version=VERSION,
                    family=family,
                    tier=tier,
                    seed=seed,
                )
                name = f"changesurf/{family}/{tier}/{seed}"
                found[name] = list(pair(instance))
    return found


def pair(instance: Instance) -> tuple[str, str]:
    """Return the digests of an instance's base and fully drifted world."""
    base = world = generate(instance)
    for strike in drift_order(instance, base, "web"):
        rng = stream(instance.seed, "drift", strike.operator, strike.target)
        operator = get("operators", strike.operator)
        world = operator.apply(world, strike.target, strike.intensity, rng=rng)
    return base.digest(), world.digest()


def main() -> int:
    """Write or check the golden digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--masked", action="store_true")
    options = parser.parse_args()
    if options.masked:
        command = [sys.executable, __file__, *(["--check"] * options.check)]
        return subprocess.run(command, env=masked_environment(), check=False).returncode
    made = digests()
    if options.check:
        known = json.loads(GOLDEN.read_text(encoding="utf-8"))
        wrong = sorted(
            name for name in {*made, *known} if made.get(name) != known.get(name)
        )
        print("\n".join(wrong) or f"{len(made)} digests hold")
        return int(bool(wrong))
    GOLDEN.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    print(f"{len(made)} digests written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
