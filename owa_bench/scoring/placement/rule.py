"""The rule of a placement: what a look says of the gates, and which batch comes next.

A pure function of plan, protocol and what was played; `recompute` runs it again. The tests are in
`statistics/betting.py`; docs/placement.md says why they are what they are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from owa_bench.records.placement import BAR, DECIMALS, HEDGE, GateLine
from owa_bench.records.plan import Plan
from owa_bench.records.protocol import GateRule, Protocol
from owa_bench.records.score import GateStatus
from owa_bench.scoring.gate import reaches
from owa_bench.scoring.observe.sample import plan_families
from owa_bench.scoring.placement.worlds import (
    MILD,
    READS,
    PlacementEvidence,
    PoolWorld,
    batch_bets,
    pool,
)
from owa_bench.scoring.statistics import betting
from owa_bench.scoring.statistics.betting import NO_BETS, Bets

GENERALITY: Final = "G"
GO_ON: Final = "go on"
CAP: Final = "cap"
OPEN: Final = "open"


class Batch(NamedTuple):
    """Worlds that are announced together, and the gates that read them."""

    worlds: tuple[PoolWorld, ...]
    reads: tuple[str, ...]

    @property
    def indices(self) -> tuple[int, ...]:
        """The entries of the plan, in their order."""
        kinds = {READS[gate] for gate in self.reads}
        played = {w.episodes[kind] for w in self.worlds for kind in kinds if kind in w.episodes}
        return tuple(sorted(played))


NOTHING = Batch((), ())


class LookState(NamedTuple):
    """A look: gates, decision and next batch. `open`: entries of its batch never came."""

    number: int
    counts: Mapping[str, int]
    gates: tuple[GateLine, ...]
    decision: str
    batch: Batch
    open: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlacementRule:
    """The rule for one plan.

    Attributes:
        plan: Its `placement` holds the terms.
        protocol: Published numbers.
        plans: How many plans a verifier had challenged for its submitter, with this one.
        bounds: Whether looks hold the gates' bounds, which decide nothing; a simulation does
            without.
    """

    plan: Plan
    protocol: Protocol
    plans: int = 1
    bounds: bool = True
    _gates: Mapping[str, GateRule] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rules = {
            "tools" if rule.gate == "tools" else rule.of: rule
            for rule in self.protocol.gates
            if rule.level == self.level
        }
        object.__setattr__(self, "_gates", rules)

    @property
    def level(self) -> int:
        """The level that is decided."""
        return 0 if self.plan.placement is None else self.plan.placement.level

    @property
    def bar(self) -> float:
        """The e-value that a PASS needs: each further plan of a submitter raises it."""
        return BAR * self.plans

    @property
    def bar_below(self) -> float:
        """The e-value that a BELOW needs: .05 over all gates of the level."""
        return BAR * len(self._gates)

    @cached_property
    def worlds(self) -> Mapping[str, tuple[PoolWorld, ...]]:
        """The pool, by family."""
        return pool(self.plan, self.protocol.drift.mild)

    @cached_property
    def weights(self) -> Mapping[str, Mapping[str, float]]:
        """The weight of each family in each gate."""
        names, weights = plan_families(self.plan)
        every = dict(zip(names, weights.tolist(), strict=True))
        tools = {
            family: weight
            for family, weight in every.items()
            if all(MILD in world.episodes for world in self.worlds[family])
        }
        return {gate: tools if READS[gate] == MILD else every for gate in self._gates}

    def required(self, gate: str) -> float:
        """Return what a gate requires."""
        return self._gates[gate].required or 0.0

    def required_words(self, gate: str) -> str:
        """Return what a gate requires in words."""
        rule = self._gates[gate]
        if gate == "tools":
            mild = self.protocol.drift.mild
            return f"{rule.count} tools, success >= {rule.required:g} at drift {mild:g}"
        if gate == GENERALITY:
            return f"G >= {rule.required:.2f}: {self._families_needed} families covered"
        return f"{gate} >= {rule.required:.2f}"

    # --- looks ------------------------------------------------------------------------

    def replay(self, evidence: PlacementEvidence) -> tuple[LookState, ...]:
        """Return every look that this evidence allows, the first one before any episode.

        The last one has `open` entries where its batch was begun and not played whole: they count
        as lost.

        Args:
            evidence: What was played.
        """
        played: list[Batch] = []
        looks = [self._look(0, played, evidence)]
        while looks[-1].batch.worlds:
            batch = looks[-1].batch
            absent = tuple(i for i in batch.indices if i not in evidence.answers)
            if absent and not evidence.starts & set(batch.indices):
                break
            played.append(batch)
            look = self._look(len(looks), played, evidence)
            looks.append(look._replace(open=absent))
            if absent:
                looks[-1] = looks[-1]._replace(batch=NOTHING, decision=OPEN)
        return tuple(looks)

    def _look(self, number: int, played: Sequence[Batch], evidence: PlacementEvidence) -> LookState:
        counts: dict[str, int] = {}
        for batch in played:
            for world in batch.worlds:
                counts[world.family] = counts.get(world.family, 0) + 1
        lines = tuple(self._line(gate, played, evidence) for gate in self._gates)
        states = {line.gate: line.status for line in lines}
        looks_covered = self._candidates(played, evidence)
        batch = self._next(states, counts, looks_covered)
        decision = GO_ON
        if "BELOW" in states.values():
            decision, batch = f"below AAI-{self.level}", NOTHING
        elif all(status == "PASS" for status in states.values()):
            decision, batch = f"AAI-{self.level}", NOTHING
        elif not batch.worlds:
            decision = CAP
        return LookState(number, counts, lines, decision, batch)

    def _next(
        self, states: Mapping[str, str], counts: Mapping[str, int], candidates: frozenset[str]
    ) -> Batch:
        """Return the next batch: one world of each family that an open gate reads."""
        reads = tuple(gate for gate, status in states.items() if status == "UNDECIDED")
        families = {family for gate in reads for family in self.weights[gate]}
        if reads == (GENERALITY,) and len(candidates) >= self._families_needed:
            families = set(candidates)
        left = {f: self.worlds[f][counts.get(f, 0) :] for f in self.worlds if f in families}
        if not reads or not all(left.values()):
            return NOTHING
        return Batch(tuple(worlds[0] for worlds in left.values()), reads)

    # --- gates ------------------------------------------------------------------------

    def _line(self, gate: str, played: Sequence[Batch], evidence: PlacementEvidence) -> GateLine:
        if gate == GENERALITY:
            return self._generality(played, evidence)
        bets = NO_BETS
        for batch in played:
            if gate in batch.reads:
                bets = bets.joined(batch_bets(gate, batch.worlds, evidence, self.weights[gate]))
        required, slack = self.required(gate), self.protocol.statistics.gate_slack
        mean, note = betting.weighted_mean(bets), ""
        above, below = (
            betting.log_above(bets, required - slack),
            betting.log_below(bets, required),
        )
        status = self._status(above, below, enough=mean is not None and self._at(mean, required))
        if gate == "tools":
            so_far = {index for batch in played for index in batch.indices}
            kinds = evidence.kinds(so_far, self.protocol.tools.distinct_instances)
            count = self._gates[gate].count
            note = f"{kinds} of {count} kinds of tools"
            if status == "PASS" and kinds < count:
                status = "UNDECIDED"
        return GateLine(
            gate=gate,
            worlds=len(bets),
            mean=None if mean is None else round(mean, DECIMALS),
            required=required,
            low=round(betting.lower_bound(bets, math.log(BAR)), DECIMALS) if self.bounds else 0.0,
            high=round(betting.upper_bound(bets, math.log(BAR)), DECIMALS) if self.bounds else 1.0,
            log_pass=round(above, DECIMALS),
            log_below=round(below, DECIMALS),
            bar=self.bar,
            status=status,
            note=note,
        )

    def _at(self, mean: float, required: float) -> bool:
        return reaches(mean, required, self.protocol.statistics.gate_decimals)

    def _status(self, above: float, below: float, *, enough: bool) -> GateStatus:
        if round(below, DECIMALS) >= round(math.log(self.bar_below), DECIMALS):
            return "BELOW"
        if enough and round(above, DECIMALS) >= round(math.log(self.bar), DECIMALS):
            return "PASS"
        return "UNDECIDED"

    # --- generality: families covered -------------------------------------------------

    @property
    def _families_needed(self) -> int:
        return math.ceil(round(self.required(GENERALITY) * len(self.worlds), DECIMALS))

    def _candidates(self, played: Sequence[Batch], evidence: PlacementEvidence) -> frozenset[str]:
        """Return the families whose mean so far is at least their threshold less the slack."""
        slack = self.protocol.statistics.gate_slack
        threshold = self.protocol.generality.of
        bets = self._family_bets(played, evidence)
        return frozenset(
            family
            for family, own in bets.items()
            if len(own) and own.low.mean() >= threshold(family) - slack
        )

    def _family_bets(self, played: Sequence[Batch], evidence: PlacementEvidence) -> dict[str, Bets]:
        rows: dict[str, list[tuple[float, float]]] = {family: [] for family in self.worlds}
        for batch in played:
            if GENERALITY in batch.reads:
                for world in batch.worlds:
                    value = evidence.value(GENERALITY, world.episodes[READS[GENERALITY]])
                    rows[world.family].append((value.low, value.high))
        return {
            family: Bets(
                np.array([low for low, _ in own]),
                np.array([high for _, high in own]),
                np.zeros(len(own)),
                np.ones(len(own)),
            )
            for family, own in rows.items()
        }

    def _generality(self, played: Sequence[Batch], evidence: PlacementEvidence) -> GateLine:
        """Return the line of G: how many families have a mean of at least their threshold.

        A family's world is bet on "covered" where its worlds before looked covered, and on "not
        covered" where they did not: what is bet on is settled before it is played.
        """
        slack, threshold = self.protocol.statistics.gate_slack, self.protocol.generality.of
        families = self._family_bets(played, evidence)
        total, needed = len(families), self._families_needed
        above, below, covered = [], [], 0
        for family, own in families.items():
            limit = threshold(family)
            before = np.cumsum(own.low) - own.low
            seen = np.arange(len(own))
            hopeful = (seen > 0) & (before >= (limit - slack) * seen)
            doubtful = (seen > 0) & ~hopeful
            above.append(_hedged(betting.log_above(_of(own, hopeful), limit - slack)))
            below.append(_hedged(betting.log_below(_of(own, doubtful), limit)))
            covered += bool(len(own)) and self._at(float(own.low.mean()), limit)
        up, down = np.array(above), np.array(below)
        shown = [k for k in range(1, total + 1) if _enough(up, k)]
        refuted = [k for k in range(1, total + 1) if _enough(down, total - k + 1)]
        log_pass = betting.partial_conjunction(up, needed)
        log_below = betting.partial_conjunction(down, total - needed + 1)
        return GateLine(
            gate=GENERALITY,
            worlds=sum(map(len, families.values())),
            mean=round(covered / total, DECIMALS),
            required=self.required(GENERALITY),
            low=round(max(shown, default=0) / total, DECIMALS),
            high=round((min(refuted) - 1 if refuted else total) / total, DECIMALS),
            log_pass=round(log_pass, DECIMALS),
            log_below=round(log_below, DECIMALS),
            bar=self.bar,
            status=self._status(log_pass, log_below, enough=covered >= needed),
            note=f"{covered} of {needed} families",
        )


def _hedged(log: float) -> float:
    """Return the logarithm of what is left and won where a share of the stake is not bet."""
    return float(np.logaddexp(math.log(HEDGE), math.log(1 - HEDGE) + log))


def _of(bets: Bets, rows: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Bets:
    return Bets(*(column[rows] for column in bets))


def _enough(logs: "np.ndarray[tuple[int], np.dtype[np.float64]]", least: int) -> bool:
    return betting.partial_conjunction(logs, least) >= math.log(BAR)
