"""Stages of a placement: episodes of a fixed number, judged once as a run of their own."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from owa_bench.records.observables import Observables
from owa_bench.records.placement import (
    DECIMALS,
    FIRST_PRACTICE,
    LOST_IN_STAGE,
    GateLine,
    Stage,
    stage_gate,
)
from owa_bench.records.plan import Plan
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import GateRule, Protocol
from owa_bench.records.score import GateStatus
from owa_bench.scoring.axis import all_axes
from owa_bench.scoring.gate import Findings, gated_statistic, judge_gates
from owa_bench.scoring.observe.attempt_sets import EMPTY_FOLDER
from owa_bench.scoring.observe.inner_attempts import CampaignEvidence
from owa_bench.scoring.placement.worlds import part_of
from owa_bench.scoring.verdict.findings import ArmEpisodes, JudgingContext
from owa_bench.scoring.verdict.reading import read_arm, with_dynamics

LEVEL = 2  # whose gates stages decide
KAPPA = "kappa"


@dataclass(frozen=True)
class StageJudge:
    """Judges stages.

    Attributes:
        plan: The plan of the placement.
        protocol: Published numbers.
        prices: Price card.
        episodes: Counted episodes of every arm.
        campaigns: What campaigns of SelfRev show.
        lost: Entries that were lost after they began.
        costs: Micro-USD of attempts that do not count, by entry.
        root: Seeds the bootstrap: the plan's digest, which no later episode changes.
        plans: How many plans a verifier had challenged for its submitter: a gate is tested at so
            many times less.
    """

    plan: Plan
    protocol: Protocol
    prices: PriceCard
    episodes: Observables
    campaigns: tuple[CampaignEvidence, ...]
    lost: frozenset[int]
    costs: Mapping[int, float]
    root: str
    plans: int = 1
    _known: dict[str, tuple[GateLine, ...]] = field(default_factory=dict, repr=False)

    def __call__(self, stage: Stage) -> tuple[GateLine, ...]:
        """Return the lines of the gates that a stage was played for, in the protocol's order.

        Args:
            stage: A stage that was played whole.
        """
        if stage.name not in self._known:
            self._known[stage.name] = tuple(self._lines(stage))
        return self._known[stage.name]

    def _lines(self, stage: Stage) -> Iterator[GateLine]:
        agent = self.plan.arms[0].name
        own = [i for i in stage.indices if self.plan.entries[i].arm == agent]
        if stage.name == FIRST_PRACTICE:
            if line := self._kept_nothing(stage, own):
                yield line
            return
        if reason := self._fault(stage) if own else "the agent plays no suite of this stage":
            for rule in self._rules(stage):
                yield _line(rule, stage, _Reading(), "NO EVIDENCE", reason)
            return
        findings = self._findings(stage)
        judged = dict(zip(map(_key, self.protocol.gates), judge_gates(findings), strict=True))
        for rule in self._rules(stage):
            result = judged[_key(rule)]
            words = result.reason or result.measured
            read = _Reading()
            if rule.gate == "axis":
                read = _Reading(*gated_statistic(findings.axes[rule.of]))
            yield _line(rule, stage, read, result.status, words, len(own))

    def _rules(self, stage: Stage) -> list[GateRule]:
        return [
            rule
            for rule in self.protocol.gates
            if rule.level == LEVEL and stage_gate(rule) in stage.gates
        ]

    def _fault(self, stage: Stage) -> str:
        """Return of which arm too many episodes were lost after they began, "" for none.

        Of any arm: a frozen control whose good episodes are laid to faults lets the agent gain.
        """
        arms = Counter(self.plan.entries[i].arm for i in stage.indices)
        lost = Counter(self.plan.entries[i].arm for i in stage.indices if i in self.lost)
        for arm, count in lost.items():
            if count > LOST_IN_STAGE * arms[arm]:
                return (
                    f"{count} of {arms[arm]} episodes of {arm} in this stage were lost after they "
                    f"began, {LOST_IN_STAGE:.1%} may be"
                )
        return ""

    def _kept_nothing(self, first: Stage, own: list[int]) -> GateLine | None:
        """Return that an agent cannot improve whose memory folder a day of practice left empty."""
        rows = np.isin(self.episodes.index, own)
        if (~np.isin(self.episodes.memory[rows], ["", EMPTY_FOLDER])).any():
            return None
        stages = self.plan.placement.stages if self.plan.placement else ()
        for stage in stages:
            for rule in self._rules(stage):
                if rule.gate == KAPPA:
                    words = f"it kept nothing in {len(own)} episodes of practice"
                    return _line(rule, first, _Reading(), "BELOW", words, len(own))
        return None

    def _findings(self, stage: Stage) -> Findings:
        """Return what the gates read of a stage, as of a run that holds nothing else."""
        stages = self.plan.placement.stages if self.plan.placement else ()
        read = [one for one in stages if one.name in (stage.name, *stage.reads)]
        indices = sorted(i for one in read for i in one.indices)
        places = {index: place for place, index in enumerate(indices)}
        entries = [replace(self.plan.entries[i], index=place) for i, place in places.items()]
        plan = part_of(self.plan, entries)
        rows = np.isin(self.episodes.index, indices) & ~np.isin(self.episodes.index, [*self.lost])
        table = self.episodes.take(rows)
        table = dataclasses.replace(
            table, index=np.array([places[i] for i in table.index.tolist()], dtype=np.int64)
        )
        protocol = with_dynamics(_at_price(self.protocol, self.plans), plan)
        context = JudgingContext(
            plan=plan,
            protocol=protocol,
            prices=self.prices,
            axes=all_axes(),
            root=self.root,
            assurance=None,
            faults=(),
            exposures={},
            lost={places[i]: cost for i, cost in self.costs.items() if i in places},
        )
        arm = plan.arms[0]
        pairs = {entry.pair for entry in entries}
        campaigns = [c for c in self.campaigns if c.arm == arm.name and c.pair in pairs]
        episodes = ArmEpisodes(arm, table.take(table.arm == arm.name), table)
        return read_arm(context, episodes, campaigns).findings


class _Reading(NamedTuple):
    value: float | None = None
    lower: float | None = None
    highest: float | None = None


def _key(rule: GateRule) -> tuple[int, str]:
    return rule.level, stage_gate(rule)


def _at_price(protocol: Protocol, plans: int) -> Protocol:
    """Return a protocol whose gates are tested at the level of one of several plans."""
    if plans == 1:
        return protocol
    rules, gains = protocol.statistics, protocol.improvement
    return replace(
        protocol,
        statistics=replace(rules, gate_level=1 - (1 - rules.gate_level) / plans),
        improvement=replace(gains, alpha=gains.alpha / plans),
    )


def _line(
    rule: GateRule, stage: Stage, read: _Reading, status: GateStatus, note: str, worlds: int = 0
) -> GateLine:
    """Return the line of a gate that a stage decides."""
    low = 0.0 if read.lower is None else max(read.lower, 0.0)
    high = 1.0 if read.highest is None else min(read.highest, 1.0)
    return GateLine(
        gate=stage_gate(rule),
        worlds=worlds,
        mean=None if read.value is None else round(read.value, DECIMALS),
        required=rule.required or 0.0,
        low=round(low, DECIMALS),
        high=round(high, DECIMALS),
        log_pass=0.0,
        log_below=0.0,
        bar=0.0,
        status=status,
        note=note,
        level=rule.level,
        stage=stage.name,
    )
