"""Terms of a run: whether its battery and protocol are those of this package.

Anybody can write a battery of easy tasks and a protocol whose gates ask for nothing.
Their results are judged and shown, and give no level. The digests stand in the signed
plan, and what the plan asks of each arm must be what the shipped battery asks: whoever
patches the program can write any digest into a plan of easy tasks. A run of another
version of the package may have had that version's own terms.
"""

import json
from collections import Counter, defaultdict
from functools import cache
from importlib.resources import files

from owa_bench.canonical import sha256
from owa_bench.records.battery_terms import arm_role, arm_terms
from owa_bench.records.plan import Plan


@cache
def _shipped(folder: str) -> dict[str, str]:
    """Return the SHA-256 of each TOML file in a folder of the package, by its stem."""
    found = (files("owa_bench") / folder).iterdir()
    return {
        file.name.removesuffix(".toml"): sha256(file.read_bytes())
        for file in found
        if file.name.endswith(".toml")
    }


@cache
def _asked() -> dict[str, dict[str, str]]:
    """Return what each battery of the package asks of an arm, by its role."""
    path = files("owa_bench") / "batteries" / "digests.json"
    found: dict[str, dict[str, str]] = json.loads(path.read_text())
    return found


def own_terms(plan: Plan) -> str:
    """Return what of a plan's terms is the submitter's own, "" where nothing is.

    Args:
        plan: The plan; one without a battery gives no level anyway.

    Returns:
        Words for the report.
    """
    if plan.battery is None:
        return ""
    theirs = []
    if plan.protocol_digest not in _shipped("protocols").values():
        theirs.append("protocol")
    if plan.battery_digest != _shipped("batteries").get(plan.battery):
        theirs.append(f"battery {plan.battery}")
    elif other := _other_entries(plan, _asked().get(plan.battery, {})):
        theirs.append(f"entries under the name of battery {plan.battery}: {other}")
    return " and ".join(theirs)


def _other_entries(plan: Plan, asked: dict[str, str]) -> str:
    """Return which arm plays something else than the battery asks, "" for none."""
    agents: dict[str, Counter[str]] = defaultdict(Counter)
    for arm in plan.arms:
        role = arm_role(arm)
        if asked.get(role) != arm_terms(plan, arm):
            return f"arm {arm.name} is asked for other entries than the package's"
        agents[role][arm.fingerprint] += 1
    for role in ("frozen", "placebo"):
        if role in asked and agents["learner"] != agents[role]:
            return f"an agent has no {role} control"
    if "baseline" in asked and not agents["baseline"]:
        return "no baseline plays the lanes of maintenance"
    return ""
