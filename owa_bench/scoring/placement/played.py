"""A placement as it was played: the rule of its plan, its evidence, its looks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import Observables
from owa_bench.records.plan import Plan
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol
from owa_bench.scoring.observe.inner_attempts import CampaignEvidence
from owa_bench.scoring.placement.dates import BatchDate
from owa_bench.scoring.placement.rule import LookState, PlacementRule
from owa_bench.scoring.placement.stages import StageJudge
from owa_bench.scoring.placement.worlds import TraceEvidence


class PlacementFacts(NamedTuple):
    """What a placement rests on beside its counted traces.

    Attributes:
        key: Draws the order of the pool's worlds.
        lost: Entries with an attempt that failed after the env had taken an act of the agent's.
        starts: Entries with any attempt.
        number: Which of its submitter's challenged plans this is.
        plans: How many of theirs a verifier has challenged by now, at least `number`.
        dates: When each batch was played, by the plan's challenger.
        verifier: Their name in the registry of the report, "" for a key that it does not name.
        date: What the machine's own clock says of the first look.
        served: Whether the agent is a model behind an address, which can change from day to day.
    """

    key: str = ""
    lost: frozenset[int] = frozenset()
    starts: frozenset[int] = frozenset()
    number: int = 1
    plans: int = 1
    dates: tuple[BatchDate, ...] = ()
    verifier: str = ""
    date: str = ""
    served: bool = False


def played_placement(
    plan: Plan,
    protocol: Protocol,
    prices: PriceCard,
    episodes: Observables,
    campaigns: Iterable[CampaignEvidence],
    costs: Mapping[int, float],
    facts: PlacementFacts,
    plan_digest: str,
) -> "PlayedPlacement":
    """Return what was played of a placement.

    Args:
        plan: The run's plan.
        protocol: Published numbers.
        prices: Price card.
        episodes: Counted episodes of every arm.
        campaigns: What campaigns of SelfRev show.
        costs: Micro-USD of attempts that do not count, by entry.
        facts: What the placement rests on beside them.
        plan_digest: Seeds the bootstrap of stages.
    """
    judge = StageJudge(
        plan=plan,
        protocol=protocol,
        prices=prices,
        episodes=episodes,
        campaigns=tuple(campaigns),
        lost=facts.lost,
        costs=costs,
        root=plan_digest,
        plans=facts.number,
    )
    return PlayedPlacement(plan, protocol, judge, facts)


@dataclass(frozen=True)
class PlayedPlacement:
    """What was played, and what the rule makes of it.

    Attributes:
        plan: The run's plan.
        protocol: Published numbers.
        judge: Judges stages, from the counted episodes of every arm.
        facts: What the placement rests on beside them.
    """

    plan: Plan
    protocol: Protocol
    judge: StageJudge
    facts: PlacementFacts

    @property
    def episodes(self) -> Observables:
        """The counted episodes of the agent that is placed."""
        table = self.judge.episodes
        return table.take(table.arm == self.plan.arms[0].name)

    @cached_property
    def rule(self) -> PlacementRule:
        """The rule of the plan."""
        return PlacementRule(self.plan, self.protocol, self.facts.number, key=self.facts.key)

    @cached_property
    def looks(self) -> tuple[LookState, ...]:
        """Every look that the traces allow."""
        terms, lost, table = self.plan.placement, self.facts.lost, self.judge.episodes
        depth = 1 if terms is None else terms.depth
        counted = table.take(~np.isin(table.index, sorted(lost)))
        evidence = TraceEvidence(counted, lost, self.facts.starts, depth, self.judge)
        return self.rule.replay(evidence)
