"""Terms of a run: whether its battery and protocol are those of this package.

Anybody can write a battery of easy tasks and a protocol whose gates ask for nothing.
Their results are judged and shown, and give no level. The digests stand in the signed
plan; a run of another version of the package may have had that version's own terms.
"""

from functools import cache
from importlib.resources import files

from owa_bench.canonical import sha256
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
    return " and ".join(theirs)
