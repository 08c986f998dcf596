"""Forecasts of placements: the rule played against agents whose success is known."""

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from owa_bench.records.placement import GateLine, Stage, stage_gate
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.protocol import Protocol
from owa_bench.records.tool_kinds import TOOL_KINDS
from owa_bench.runs.plan.sample_sizes import sample_sizes
from owa_bench.scoring.placement.kinds import KindUse
from owa_bench.scoring.placement.rule import PlacementRule
from owa_bench.scoring.placement.stages import KAPPA, LEVEL
from owa_bench.scoring.placement.worlds import WorldValue, part_of
from owa_bench.scoring.validation.power import gain_power, gate_powers
from owa_bench.seeding import stream

MARGINS = (0.05, 0.1, 0.2)  # of an agent's figures above what the gates of AAI-2 require
TRUTHS = (0.25, 0.45, 0.6, 0.75, 0.9)
AGENTS = 20  # a truth
_FAILED = 0.3  # [D] what A, P and quality read of an episode that failed


class Forecast(NamedTuple):
    """What a placement takes of agents that succeed in one share of worlds.

    Attributes:
        success: The share, the same at every magnitude.
        passed: Share of those agents that are placed at the level.
        below: Share that is said to be below it.
        expected: Mean number of episodes.
        most: Most episodes among them.
        suites: Mean number of episodes by suite.
    """

    success: float
    passed: float
    below: float
    expected: float
    most: int
    suites: dict[str, float]


def forecasts(plan: Plan, protocol: Protocol) -> tuple[Forecast, ...]:
    """Return what the rule of a plan makes of agents of several truths.

    Episodes are independent but for their world's luck; A, P and quality are 1 where an episode
    succeeds and a stated share where it fails.

    Args:
        plan: The plan of a placement.
        protocol: Published numbers.
    """
    rule = PlacementRule(plan, protocol, bounds=False).upto(1)
    return tuple(_forecast(rule, success) for success in TRUTHS)


class StageForecast(NamedTuple):
    """What a stage of AAI-2 takes, and what it decides.

    Attributes:
        stage: The stage.
        entries: The agent's entries in it, those of its frozen control among them.
        powers: Chance to pass by gate, one a margin, which is the gain itself for kappa; None where
            no formula gives it.
    """

    stage: Stage
    entries: tuple[PlanEntry, ...]
    powers: dict[str, tuple[float | None, ...]]


def stage_forecasts(plan: Plan, protocol: Protocol) -> tuple[StageForecast, ...]:
    """Return the sizes of a plan's stages, and the power of their gates.

    Args:
        plan: The plan of a placement.
        protocol: Published numbers.
    """
    stages = () if plan.placement is None else plan.placement.stages
    return tuple(_stage_forecast(stage, stages, plan, protocol) for stage in stages)


def _stage_forecast(
    stage: Stage, stages: Sequence[Stage], plan: Plan, protocol: Protocol
) -> StageForecast:
    names = (stage.name, *stage.reads)
    read = [plan.entries[i] for one in stages if one.name in names for i in one.indices]
    arms = {
        arm.name
        for arm in plan.arms
        if arm.agent == plan.arms[0].agent and not (arm.companion or arm.baseline)
    }
    own = tuple(plan.entries[i] for i in stage.indices if plan.entries[i].arm in arms)
    powers: dict[str, tuple[float | None, ...]] = {}
    if own:
        sizes = sample_sizes(part_of(plan, read), protocol.projects.suite)
        by_margin = [gate_powers(_at_margin(protocol, margin), sizes) for margin in MARGINS]
        for rule, *found in zip(protocol.gates, *by_margin, strict=True):
            if rule.level == LEVEL and stage_gate(rule) in stage.gates:
                powers[stage_gate(rule)] = tuple(one.power for one in found)
        if KAPPA in powers and sizes.family_day > 1:
            counted = (gain_power(gain, sizes.family_day, protocol.improvement) for gain in MARGINS)
            powers[KAPPA] = tuple(counted)
    return StageForecast(stage, own, powers)


def _at_margin(protocol: Protocol, margin: float) -> Protocol:
    return replace(protocol, statistics=replace(protocol.statistics, power_margin=margin))


def _forecast(rule: PlacementRule, success: float) -> Forecast:
    suites = [entry.suite for entry in rule.plan.entries]
    ends, sizes = [], []
    by_suite: dict[str, float] = dict.fromkeys(dict.fromkeys(suites), 0.0)
    for number in range(AGENTS):
        looks = rule.with_key(str(number)).replay(_Luck(rule.plan, success, number))
        ends.append(looks[-1].decision)
        played = [index for look in looks for index in look.batch.indices]
        sizes.append(len(played))
        for index in played:
            by_suite[suites[index]] += 1 / AGENTS
    return Forecast(
        success=success,
        passed=ends.count(f"AAI-{rule.level}") / AGENTS,
        below=ends.count(f"below AAI-{rule.level}") / AGENTS,
        expected=sum(sizes) / AGENTS,
        most=max(sizes),
        suites=by_suite,
    )


class _Luck:
    """Evidence of an agent that succeeds in a share of worlds.

    Args:
        plan: The plan of a placement.
        success: The share.
        number: Which such agent.
    """

    def __init__(self, plan: Plan, success: float, number: int) -> None:
        rng = stream(number, "forecast", f"{success:g}")
        pairs = sorted({entry.pair for entry in plan.entries})
        luck = dict(zip(pairs, rng.random(len(pairs)).tolist(), strict=True))
        self._won = [luck[entry.pair] < success for entry in plan.entries]

    @cached_property
    def answers(self) -> frozenset[int]:
        """Every entry."""
        return frozenset(range(len(self._won)))

    @property
    def starts(self) -> frozenset[int]:
        """Every entry."""
        return self.answers

    def value(self, gate: str, index: int) -> WorldValue:
        """Return what a gate reads of an episode."""
        failed = 0.0 if gate == "tools" else _FAILED
        earned = 1.0 if self._won[index] else failed
        return WorldValue(earned, earned)

    def kinds(self, indices: Collection[int]) -> dict[str, KindUse]:
        """Return more kinds of tools in use than any gate asks for."""
        return dict.fromkeys(TOOL_KINDS, KindUse(len(indices), len(indices)))

    def stage(self, stage: Stage) -> tuple[GateLine, ...]:
        """Return nothing: forecasts end at AAI-1."""
        return ()
