"""Writes owa_bench/batteries/digests.json: what each shipped battery asks of an arm.

A version step of a suite, a battery or the way plans are made moves them.
Run: python benchmarks/battery_digests.py
"""

import json
from pathlib import Path

from owa_bench.records.plan import arm_role, arm_terms
from owa_bench.runs.plan import draws
from owa_bench.runs.plan.request import Request, draft_plan

FILE = Path(__file__).resolve().parent.parent / "owa_bench" / "batteries" / "digests.json"


def digests(name: str) -> dict[str, str]:
    """Return the digest of every arm that a battery's plan has, by its role."""
    plan = draft_plan(Request(agents=("random",), battery=name)).plan
    return {arm_role(arm): arm_terms(plan, arm) for arm in plan.arms}


def main() -> None:
    """Write the file, or say which batteries give no level and are left out."""
    names = [n for n in draws.battery_names() if draws.load_battery(n).gives_level]
    made = {name: digests(name) for name in names}
    FILE.write_text(json.dumps(made, indent=2, sort_keys=True) + "\n")
    print(f"{FILE.name}: {', '.join(names)}")


if __name__ == "__main__":
    main()
