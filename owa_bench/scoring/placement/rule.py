"""The rule of a placement: what a look says of the gates, and which batch comes next.

A pure function of plan, protocol and what was played; `recompute` runs it again. The tests are in
`statistics/betting.py`; docs/placement.md says why they are what they are.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import msgspec
import numpy as np

from owa_bench.canonical import sha256
from owa_bench.records.observables import Floats
from owa_bench.records.placement import BAR, DECIMALS, HEDGE, DateMean, GateLine
from owa_bench.records.plan import Plan
from owa_bench.records.protocol import GateRule, Protocol
from owa_bench.records.score import GateStatus
from owa_bench.scoring.gate import reaches
from owa_bench.scoring.observe.sample import plan_families
from owa_bench.scoring.placement.dates import WAIT, date_mean, is_below, passes
from owa_bench.scoring.placement.worlds import (
    MILD,
    READS,
    PlacementEvidence,
    PoolWorld,
    batch_bets,
    pool,
)
from owa_bench.scoring.statistics import betting
from owa_bench.scoring.statistics.betting import BETS, NO_BETS, Bets
from owa_bench.seeding import stream

GENERALITY: Final = "G"
TOOLS: Final = "tools"
GO_ON: Final = "go on"
CAP: Final = "cap"
OPEN: Final = "open"


class Batch(NamedTuple):
    """Worlds that are announced together, the gates that read them, and entries of the plan."""

    worlds: tuple[PoolWorld, ...] = ()
    reads: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()


NOTHING = Batch()


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
        key: Draws the order of each family's worlds: plan digest and challenge.
    """

    plan: Plan
    protocol: Protocol
    plans: int = 1
    bounds: bool = True
    key: str = ""
    _gates: Mapping[str, GateRule] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rules = {
            TOOLS if rule.gate == TOOLS else rule.of: rule
            for rule in self.protocol.gates
            if rule.level == self.level
        }
        object.__setattr__(self, "_gates", rules)

    @property
    def level(self) -> int:
        """The level that is decided."""
        return 0 if self.plan.placement is None else self.plan.placement.level

    @property
    def dates(self) -> int:
        """The dates that the level needs: 1, or that of an agent that can change."""
        return 1 if self.plan.placement is None else self.plan.placement.dates

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
        if gate == TOOLS:
            mild = self.protocol.drift.mild
            return f"{rule.count} kinds of tool, success >= {rule.required:g} at drift {mild:g}"
        if gate == GENERALITY:
            return f"G >= {rule.required:.2f}: {self._families_needed} families covered"
        return f"{gate} >= {rule.required:.2f}"

    @cached_property
    def order(self) -> Mapping[str, tuple[int, ...]]:
        """The order in which each family's worlds are played, drawn by the key.

        So an agent that is good at the tiers and magnitudes of the first worlds alone passes no
        more often than another: which come first is settled after the agent is.
        """
        rng = stream(int(sha256(self.key.encode())[:15], 16), "order")
        return {
            family: tuple(rng.permutation(len(worlds)).tolist())
            for family, worlds in self.worlds.items()
        }

    def with_key(self, key: str) -> "PlacementRule":
        """Return the same rule under another key; what is read from the plan is kept."""
        other = dataclasses.replace(self, key=key)
        vars(other).update(worlds=self.worlds, weights=self.weights)
        return other

    # --- looks ------------------------------------------------------------------------

    def replay(self, evidence: PlacementEvidence) -> tuple[LookState, ...]:
        """Return every look that this evidence allows, the first one before any episode.

        The last one has `open` entries where its batch was begun and not played whole: they count
        as lost.

        Args:
            evidence: What was played.
        """
        tally = _Tally(self)
        looks = [self._look(tally, evidence)]
        while looks[-1].batch.worlds:
            batch = looks[-1].batch
            absent = tuple(i for i in batch.indices if i not in evidence.answers)
            if absent and not evidence.starts & set(batch.indices):
                break
            tally.add(batch, evidence)
            look = self._look(tally, evidence, looks)
            looks.append(look._replace(open=absent))
            if absent:
                looks[-1] = looks[-1]._replace(batch=NOTHING, decision=OPEN)
        return tuple(looks)

    def _look(
        self, tally: "_Tally", evidence: PlacementEvidence, looks: Sequence[LookState] = ()
    ) -> LookState:
        """Return the look after `looks`; a gate that did not read the last batch has its line.

        Kinds of tools are counted over all batches; there are never less of them.
        """
        before = {line.gate: line for line in looks[-1].gates} if looks else {}
        for gate in self._gates:
            if not looks or gate in looks[-1].batch.reads:
                line = self._line(gate, tally, evidence)
                means = tuple(tally.dates[gate]) if self.dates > 1 else ()
                before[gate] = msgspec.structs.replace(line, dates=means)
            elif gate == TOOLS:
                note = self._kinds_words(self._kinds(tally, evidence))
                before[gate] = msgspec.structs.replace(before[gate], note=note)
        lines = tuple(before[gate] for gate in self._gates)
        states = {line.gate: line.status for line in lines}
        batch = self._next(states, tally)
        decision = GO_ON
        if any(is_below(line, self.dates) for line in lines):
            decision, batch = f"below AAI-{self.level}", NOTHING
        elif all(passes(line, self.dates) for line in lines):
            decision, batch = f"AAI-{self.level}", NOTHING
        elif not batch.worlds:
            decision = CAP
        elif looks and self.dates > 1:
            decision = WAIT
        return LookState(len(looks), dict(tally.counts), lines, decision, batch)

    def _next(self, states: Mapping[str, str], tally: "_Tally") -> Batch:
        """Return the next batch: one world of each family that an open gate reads.

        Where dates count, all gates read each date.
        """
        each = self.dates > 1
        reads = tuple(gate for gate, status in states.items() if each or status == "UNDECIDED")
        families = {family for gate in reads for family in self.weights[gate]}
        if reads == (GENERALITY,):
            candidates = tally.families.candidates()
            families = candidates if len(candidates) >= self._families_needed else families
        places = {f: tally.counts.get(f, 0) for f in self.worlds if f in families}
        if not reads or any(place >= len(self.worlds[f]) for f, place in places.items()):
            return NOTHING
        worlds = tuple(self.worlds[f][self.order[f][place]] for f, place in places.items())
        kinds = {READS[gate] for gate in reads}
        played = {w.episodes[kind] for w in worlds for kind in kinds if kind in w.episodes}
        return Batch(worlds, reads, tuple(sorted(played)))

    # --- gates ------------------------------------------------------------------------

    def null(self, gate: str) -> float:
        """Return the mean that a PASS of a gate refutes."""
        return self.required(gate) - self.protocol.statistics.gate_slack

    def _line(self, gate: str, tally: "_Tally", evidence: PlacementEvidence) -> GateLine:
        if gate == GENERALITY:
            return self._generality(tally)
        own = tally.gates[gate]
        required, note = self.required(gate), ""
        mean = betting.weighted_mean(own.bets)
        above, below = float(betting.mixture(own.above)), float(betting.mixture(own.below))
        status = self._status(above, below, enough=mean is not None and self._at(mean, required))
        if gate == TOOLS:
            kinds = self._kinds(tally, evidence)
            note = self._kinds_words(kinds)
            if status == "PASS" and kinds < self._gates[gate].count:
                status = "UNDECIDED"
        low, high = 0.0, 1.0
        if self.bounds:
            low = betting.lower_bound(own.bets, math.log(BAR))
            high = betting.upper_bound(own.bets, math.log(BAR))
        return GateLine(
            gate=gate,
            worlds=len(own.bets),
            mean=None if mean is None else round(mean, DECIMALS),
            required=required,
            low=round(low, DECIMALS),
            high=round(high, DECIMALS),
            log_pass=round(above, DECIMALS),
            log_below=round(below, DECIMALS),
            bar=self.bar,
            status=status,
            note=note,
        )

    def _kinds(self, tally: "_Tally", evidence: PlacementEvidence) -> int:
        return evidence.kinds(tally.played, self.protocol.tools.distinct_instances)

    def _kinds_words(self, kinds: int) -> str:
        return f"{kinds} of {self._gates[TOOLS].count} kinds of tools"

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

    def _generality(self, tally: "_Tally") -> GateLine:
        """Return the line of G: how many families have a mean of at least their threshold."""
        own, needed = tally.families, self._families_needed
        total = len(own.limits)
        up, down = _hedged(own.above), _hedged(own.below)
        means = np.divide(own.low, own.seen, out=np.zeros(total), where=own.seen > 0)
        covered = sum(map(self._at, means.tolist(), own.limits.tolist()))
        low, high = 0, total
        if self.bounds:
            low = max((k for k in range(1, total + 1) if _enough(up, k)), default=0)
            refuted = (k - 1 for k in range(1, total + 1) if _enough(down, total - k + 1))
            high = min(refuted, default=total)
        log_pass = betting.partial_conjunction(up, needed)
        log_below = betting.partial_conjunction(down, total - needed + 1)
        return GateLine(
            gate=GENERALITY,
            worlds=int(own.seen.sum()),
            mean=round(covered / total, DECIMALS),
            required=self.required(GENERALITY),
            low=round(low / total, DECIMALS),
            high=round(high / total, DECIMALS),
            log_pass=round(log_pass, DECIMALS),
            log_below=round(log_below, DECIMALS),
            bar=self.bar,
            status=self._status(log_pass, log_below, enough=covered >= needed),
            note=f"{covered} of {needed} families",
        )


class _Gate:
    """What a gate has read so far: its bets, and what they won."""

    def __init__(self) -> None:
        self.bets = NO_BETS
        self.above: Floats = np.zeros(len(BETS))
        self.below: Floats = np.zeros(len(BETS))

    def add(self, bets: Bets, null: float, required: float) -> None:
        """Add the bets of a batch."""
        self.bets = self.bets.joined(bets)
        self.above += betting.wins_above(bets, null).sum(axis=0)
        self.below += betting.wins_below(bets, required).sum(axis=0)


class _Families:
    """What gate G has read so far, one row a family.

    A family's world is bet on "covered" where its worlds before looked covered, and on "not
    covered" where they did not: what is bet on is settled before it is played.
    """

    def __init__(self, names: Sequence[str], limits: Floats, slack: float) -> None:
        """Args: families, the mean from which on each is covered, and the slack of a PASS."""
        self.names, self.limits, self.slack = tuple(names), limits, slack
        self._rows = {name: row for row, name in enumerate(names)}
        self.seen: Floats = np.zeros(len(names))
        self.low: Floats = np.zeros(len(names))
        self.above: Floats = np.zeros((len(names), len(BETS)))
        self.below: Floats = np.zeros((len(names), len(BETS)))

    def add(self, worlds: Sequence[PoolWorld], evidence: PlacementEvidence) -> Bets:
        """Add a batch, which has at most one world of a family.

        Returns: The worlds bet on as of covered families, their values over the thresholds.
        """
        rows = np.array([self._rows[world.family] for world in worlds])
        values = [evidence.value(GENERALITY, w.episodes[READS[GENERALITY]]) for w in worlds]
        low, high, _ = (np.array(column) for column in zip(*values, strict=True))
        hopeful = self._hopeful()[rows]
        again = self.seen[rows] > 0
        bets = Bets(low, high, np.zeros(len(rows)), np.ones(len(rows)))
        up, down = rows[again & hopeful], rows[again & ~hopeful]
        self.above[up] += betting.wins_above(bets.of(again & hopeful), self.limits[up] - self.slack)
        self.below[down] += betting.wins_below(bets.of(again & ~hopeful), self.limits[down])
        self.seen[rows] += 1
        self.low[rows] += low
        limits = self.limits[rows]
        return Bets(low - limits, high - limits, *bets[2:]).of(again & hopeful)

    def _hopeful(self) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Return which families' means so far are at least their threshold less the slack."""
        return self.low >= (self.limits - self.slack) * self.seen

    def candidates(self) -> set[str]:
        """Return the families that were played and look covered."""
        return {self.names[row] for row in np.flatnonzero((self.seen > 0) & self._hopeful())}


class _Tally:
    """What a replay has added up so far."""

    def __init__(self, rule: PlacementRule) -> None:
        self._rule = rule
        self.counts: dict[str, int] = {}
        self.played: set[int] = set()
        self.gates = {gate: _Gate() for gate in rule.weights}
        self.dates: dict[str, list[DateMean]] = {gate: [] for gate in rule.weights}
        limits = np.array([rule.protocol.generality.of(family) for family in rule.worlds])
        self.families = _Families(list(rule.worlds), limits, rule.protocol.statistics.gate_slack)

    def add(self, batch: Batch, evidence: PlacementEvidence) -> None:
        """Add a batch that was played."""
        self.played.update(batch.indices)
        for world in batch.worlds:
            self.counts[world.family] = self.counts.get(world.family, 0) + 1
        for gate in batch.reads:
            if gate == GENERALITY:
                bets, required = self.families.add(batch.worlds, evidence), 0.0
            else:
                rule, required = self._rule, self._rule.required(gate)
                bets = batch_bets(gate, batch.worlds, evidence, rule.weights[gate])
                self.gates[gate].add(bets, rule.null(gate), required)
            self.dates[gate].append(date_mean(bets, required))


def _hedged(logs: Floats) -> Floats:
    """Return the logarithms of what is left and won where a share of the stake is not bet."""
    won: Floats = np.logaddexp(math.log(HEDGE), math.log(1 - HEDGE) + betting.mixture(logs))
    return won


def _enough(logs: Floats, least: int) -> bool:
    return betting.partial_conjunction(logs, least) >= math.log(BAR)
