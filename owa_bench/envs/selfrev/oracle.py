"""The answer key: the gain that was played, decisions, attribution, forecasts.

Source: docs/selfrev.md#quality
"""

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from owa_bench.envs.selfrev.session import EFFECT
from owa_bench.envs.selfrev.state import CampaignState
from owa_bench.envs.selfrev.world import RevisionWorld
from owa_bench.interfaces import Oracle, PropositionTruth, SubgoalNode
from owa_bench.records.instance import Timeline

_GAIN, _DECISIONS, _ATTRIBUTION, _FORECASTS = 0.5, 0.25, 0.15, 0.10
_TEST_PAIRS = 20  # of the oracle's own tests


class CampaignOracle(Oracle):
    """Knows the class of every component; the gain is played."""

    @override
    def quality(self, timeline: Timeline, state: CampaignState) -> float:
        world: RevisionWorld = timeline.worlds[-1]
        return (
            _GAIN * gain(state)
            + _DECISIONS * decisions(world, state)
            + _ATTRIBUTION * attribution(world, state)
            + _FORECASTS * forecasts(world, state)
        )

    @override
    def subgoals(self, world: RevisionWorld) -> tuple[SubgoalNode, ...]:
        """Return none: no product of one step is the input of another."""
        return ()

    @override
    def solved(self, world: RevisionWorld, state: CampaignState) -> frozenset[str]:
        """Return none."""
        return frozenset()

    @override
    def gained(
        self, before: CampaignState, action: Mapping[str, Any], after: CampaignState
    ) -> frozenset[str]:
        """Return the tests that were answered, and the components adopted on one."""
        tests = {
            f"test/{plan.digest}" for plan in after.plans.values() if plan.statistic is not None
        }
        adopted = {f"adopt/{name}" for name, plan in after.evidence.items() if plan}
        return frozenset(tests | adopted)

    @override
    def hint(self, timeline: Timeline, state: CampaignState) -> Mapping[str, Any]:
        """Return the next right action: test the best version, adopt it, say why."""
        world: RevisionWorld = timeline.worlds[-1]
        best = world.useful
        if state.current != best:
            return _towards(best, state)
        for component in world.components:
            if component.name not in state.forecasts:
                p = float(component.name in best)
                arguments = {"component": component.name, "p": p}
                return {"tool": "forecast", "arguments": arguments}
        if state.attributed != best:
            arguments = {"components": sorted(best)}
            return {"tool": "attribute", "arguments": arguments}
        return {"tool": "finish", "arguments": {"p": 1.0}}

    @override
    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return a proposition a component: is it one of the best version."""
        world: RevisionWorld = timeline.worlds[-1]
        return tuple(
            PropositionTruth(component.name, EFFECT, component.name in world.useful)
            for component in world.components
        )

    @override
    def categories(self, world: RevisionWorld) -> tuple[str, ...]:
        """Return none: the laboratory is the episode's frame, no tool of the world outside."""
        return ()


def _towards(best: frozenset[str], state: CampaignState) -> Mapping[str, Any]:
    """Return the next action on the way to the best version."""
    version = next((n for n, c in state.versions.items() if c == best), None)
    if version is None:
        diff = sorted(best ^ state.current)
        return {"tool": "propose", "arguments": {"diff": diff}}
    for name, plan in state.plans.items():
        if (plan.base, plan.candidate) == (state.current, best):
            if plan.statistic is None:
                return {"tool": "request_holdout", "arguments": {"plan": name}}
            return {"tool": "adopt", "arguments": {"version": version}}
    arguments = {
        "version": version,
        "metric": "quality",
        "pairs": _TEST_PAIRS,
        "rule": "mean",
        "level": 0.05,
    }
    return {"tool": "register", "arguments": arguments}


def gain(state: CampaignState) -> float:
    """Return the share of the best version's gain, 0 where nothing was adopted."""
    found = state.confirmation
    if found is None or found.best <= found.before:
        return 0.0
    share = (found.after - found.before) / (found.best - found.before)
    return min(1.0, max(0.0, share))


def decisions(world: RevisionWorld, state: CampaignState) -> float:
    """Return the share of useful components adopted less that of others.

    A harmful one counts twice; rejecting everything gives 0, as adopting everything.

    Args:
        world: Holds the classes.
        state: Holds the last version.
    Returns: In [0, 1].
    """
    useful = world.useful
    others = [c for c in world.components if c.name not in useful]
    wrong = sum(1 + (c.truth == "harmful") for c in others if c.name in state.current)
    weight = sum(1 + (c.truth == "harmful") for c in others)
    right = len(useful & state.current) / len(useful)
    return max(0.0, right - wrong / weight)


def attribution(world: RevisionWorld, state: CampaignState) -> float:
    """Return the F1 of the adopted components that were named as the gain's cause.

    Args:
        world: Holds the classes.
        state: Holds what was named.
    Returns: In [0, 1].
    """
    named = state.attributed & state.current
    hits = len(named & world.useful)
    return 2 * hits / (len(state.attributed) + len(world.useful)) if hits else 0.0


def forecasts(world: RevisionWorld, state: CampaignState) -> float:
    """Return the Brier skill of the forecasts over the share of useful components.

    One number for all components has no skill, whatever it is.

    Args:
        world: Holds the classes.
        state: Holds the forecasts; one that was not made counts as 1/2.
    Returns: In [0, 1].
    """
    components, useful = world.components, world.useful
    share = len(useful) / len(components)
    total = 0.0
    for component in components:
        p = state.forecasts.get(component.name, 0.5)
        total += (p - (component.name in useful)) ** 2
    return max(0.0, 1.0 - total / (len(components) * share * (1.0 - share)))
