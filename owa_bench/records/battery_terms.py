"""Battery terms: a digest of what a plan asks of an arm, whoever the agent is.

A battery and the suites fix every entry but the name of its arm, so the entries of the
shipped batteries have digests that are known beforehand (`batteries/digests.json`).
Source: docs/check-a-report.md.
"""

import hashlib
import itertools

import msgspec

from owa_bench.records.plan import Arm, Plan, PlanEntry

_ENCODER = msgspec.json.Encoder(order="sorted")


def arm_role(arm: Arm) -> str:
    """Return what an arm is in its run: learner, frozen, placebo or baseline."""
    for role in ("frozen", "placebo", "baseline"):
        if getattr(arm, role):
            return role
    return "learner"


def arm_terms(plan: Plan, arm: Arm) -> str:
    """Return the digest of what a plan asks of one arm.

    It is over suites with their weights (not their sources), the calendar, the axes of
    the dynamics, the share of help, and the entries of the arm. Entries of one day and
    kind may stand in any order: attempt sets are shuffled among the arms.

    Args:
        plan: The plan.
        arm: One of its arms.

    Returns:
        A SHA-256 in hex, equal for all agents that play the same battery.
    """
    suites = [
        msgspec.structs.replace(suite, source_digest="", source_rule=0, groups=())
        for suite in plan.suites
    ]
    terms = (plan.calendar, plan.dynamics, plan.help_share, plan.underpowered)
    found = hashlib.sha256(_ENCODER.encode([suites, terms, arm_role(arm)]))
    own = (entry for entry in plan.entries if entry.arm == arm.name)
    for place, group in itertools.groupby(own, key=_place):
        found.update(_ENCODER.encode(place))
        for line in sorted(_ENCODER.encode(_unnamed(entry)) for entry in group):
            found.update(line)
    return found.hexdigest()


def _place(entry: PlanEntry) -> tuple[int | None, str, str]:
    """Return the part of a run in which an entry stands."""
    kind = "maintenance" if entry.condition in ("clean", "drifted") else "revision"
    return entry.day, entry.phase, kind if entry.condition else ""


def _unnamed(entry: PlanEntry) -> PlanEntry:
    """Return an entry without its place and the name of its arm."""
    lane = None if entry.lane is None else "own"
    return msgspec.structs.replace(entry, index=0, arm="", lane=lane)
