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
from owa_bench.records.placement import (
    ASSURANCE,
    BAR,
    DECIMALS,
    HEDGE,
    POOL_GATES,
    DateMean,
    GateLine,
    Stage,
    stage_gate,
)
from owa_bench.records.plan import Plan
from owa_bench.records.protocol import GateRule, Protocol
from owa_bench.records.score import GateStatus
from owa_bench.scoring.gate import reaches
from owa_bench.scoring.observe.sample import plan_families
from owa_bench.scoring.placement.dates import WAIT, date_mean, is_below, passes
from owa_bench.scoring.placement.kinds import KindCount
from owa_bench.scoring.placement.worlds import (
    MILD,
    READS,
    PlacementEvidence,
    PoolWorld,
    batch_bets,
    part_of,
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
TOO_FEW: Final = "too few kinds of tools"


GateKey = tuple[int, str]  # level and gate


class Batch(NamedTuple):
    """What is announced together: worlds of the pool or a stage, the gates that read it, entries.

    `stage` is "" for worlds of the pool.
    """

    worlds: tuple[PoolWorld, ...] = ()
    reads: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()
    stage: str = ""


NOTHING = Batch()


class LookState(NamedTuple):
    """A look: gates, decision and next batch. `open`: entries of its batch never came."""

    number: int
    counts: Mapping[str, int]
    gates: tuple[GateLine, ...]
    decision: str
    batch: Batch
    open: tuple[int, ...] = ()

    def passed(self, level: int) -> bool:
        """Return whether all gates of a level pass, and what is next is for a higher one.

        Args:
            level: The level.
        """
        own = [line.status == "PASS" for line in self.gates if line.level == level]
        return bool(own) and all(own) and any(line.level > level for line in self.gates)


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
    _gates: Mapping[GateKey, GateRule] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rules = {
            (rule.level, stage_gate(rule)): rule
            for rule in self.protocol.gates
            if rule.level <= self.level and stage_gate(rule) != ASSURANCE
        }
        object.__setattr__(self, "_gates", rules)

    @property
    def level(self) -> int:
        """The highest level that is decided; by dates no stage is played."""
        if self.dates > 1:
            return 1
        return 0 if self.plan.placement is None else self.plan.placement.level

    @property
    def dates(self) -> int:
        """The dates that the level needs: 1, or that of an agent that can change."""
        return 1 if self.plan.placement is None else self.plan.placement.dates

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What is played after the pool."""
        return () if self.plan.placement is None else self.plan.placement.stages

    def upto(self, level: int) -> "PlacementRule":
        """Return the rule that stops at a level.

        Args:
            level: At most the plan's own.
        """
        terms = self.plan.placement
        if terms is None:
            return self
        terms = msgspec.structs.replace(terms, level=min(level, terms.level))
        plan = msgspec.structs.replace(self.plan, placement=terms)
        other = dataclasses.replace(self, plan=plan)
        vars(other).update(worlds=self.worlds, weights=self.weights)
        return other

    @cached_property
    def pool_plan(self) -> Plan:
        """The plan of the pool alone."""
        end = self.stages[0].first if self.stages else len(self.plan.entries)
        entries = self.plan.entries[:end]
        return part_of(self.plan, entries)

    @property
    def bar(self) -> float:
        """The e-value that a PASS needs: each further plan of a submitter raises it."""
        return BAR * self.plans

    @property
    def bar_below(self) -> float:
        """The e-value that a BELOW of AAI-1 needs: .05 over all its gates."""
        return self.bar_below_of(1)

    def bar_below_of(self, level: int) -> float:
        """Return the e-value that a BELOW needs: .05 over all gates of a level.

        Args:
            level: The level.
        """
        return BAR * sum(of == level for of, _ in self._gates)

    @cached_property
    def worlds(self) -> Mapping[str, tuple[PoolWorld, ...]]:
        """The pool, by family."""
        return pool(self.pool_plan, self.protocol.drift.mild)

    @cached_property
    def weights(self) -> Mapping[str, Mapping[str, float]]:
        """The weight of each family in each gate."""
        names, weights = plan_families(self.pool_plan)
        every = dict(zip(names, weights.tolist(), strict=True))
        tools = {
            family: weight
            for family, weight in every.items()
            if all(MILD in world.episodes for world in self.worlds[family])
        }
        gates = dict.fromkeys(gate for _, gate in self._gates if gate in POOL_GATES)
        return {gate: tools if READS[gate] == MILD else every for gate in gates}

    def required(self, gate: str, level: int = 1) -> float:
        """Return what a gate of a level requires.

        Args:
            gate: The gate.
            level: Its level.
        """
        return self._gates[level, gate].required or 0.0

    def required_words(self, gate: str, level: int = 1) -> str:
        """Return what a gate of the pool requires in words.

        Args:
            gate: The gate.
            level: Its level.
        """
        rule = self._gates[level, gate]
        if gate == TOOLS:
            mild = self.protocol.drift.mild
            return f"{rule.count} kinds of tool, success >= {rule.required:g} at drift {mild:g}"
        if gate == GENERALITY:
            return f"G >= {rule.required:.2f}: {self._families_needed(level)} families covered"
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
        while (batch := looks[-1].batch).indices:
            absent = tuple(i for i in batch.indices if i not in evidence.answers)
            if absent and not evidence.starts & set(batch.indices):
                break
            if absent and batch.stage:  # a stage is judged when it is whole
                number, last = len(looks), looks[-1]
                looks.append(
                    last._replace(number=number, batch=NOTHING, decision=OPEN, open=absent)
                )
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
        before = {line.key: line for line in looks[-1].gates} if looks else {}
        last = looks[-1].batch if looks else NOTHING
        for key in self.pool_keys(1):
            before[key] = self._line_after(key, before.get(key), last, tally, evidence)
        if self.level > 1 and _all(before, 1, "PASS"):
            for key in self.pool_keys(2):
                before[key] = self._line_after(key, before.get(key), last, tally, evidence)
        for stage in self.stages:
            if stage.name == last.stage:
                before |= {line.key: line for line in evidence.stage(stage)}
        decision, batch = self._decide(before, tally, evidence)
        lines = tuple(before[key] for key in self._gates if key in before)
        return LookState(len(looks), dict(tally.counts), lines, decision, batch)

    def pool_keys(self, level: int) -> tuple[GateKey, ...]:
        """Return the gates of a level that bet on the pool.

        Args:
            level: The level.
        """
        return tuple(key for key in self._gates if key[0] == level and key[1] in POOL_GATES)

    def _line_after(
        self,
        key: GateKey,
        line: GateLine | None,
        last: Batch,
        tally: "_Tally",
        evidence: PlacementEvidence,
    ) -> GateLine:
        """Return a gate's line after a batch: as it was where it did not read it."""
        if line is None or key[1] in last.reads:
            line = self._line(key, tally, evidence)
            means = tally.dates.get(key[1], ()) if self.dates > 1 else ()
            return msgspec.structs.replace(line, dates=tuple(means))
        if key[1] == TOOLS:
            note = self._kinds(tally, evidence).words
            return msgspec.structs.replace(line, note=note)
        return line

    def _decide(
        self, lines: Mapping[GateKey, GateLine], tally: "_Tally", evidence: PlacementEvidence
    ) -> tuple[str, Batch]:
        """Return what the lines decide, and the next batch.

        AAI-1 first; then the gates of AAI-2 that bet on the pool, then stage by stage. A stage is
        judged once: what it leaves undecided no further episode can change.
        """
        for level in range(1, self.level + 1):
            own = {gate: self._answer(one) for (of, gate), one in lines.items() if of == level}
            if "BELOW" in own.values():
                return f"below AAI-{level}", NOTHING
            if any(own[gate] != "PASS" for gate in own if gate not in POOL_GATES):
                return CAP, NOTHING
            if any(answer != "PASS" for answer in own.values()):
                given_up = [
                    line.gate for line in lines.values() if self._gives_up(line, tally, evidence)
                ]
                hoped = {gate: status for gate, status in own.items() if gate not in given_up}
                batch = self._next(level, hoped, tally)
                if batch.worlds:
                    return (WAIT if self.dates > 1 and tally.counts else GO_ON), batch
                return (TOO_FEW if self._next(level, own, tally).worlds else CAP), NOTHING
            stage = self._next_stage(level, tally)
            if stage is not None:
                return (GO_ON, stage) if stage.indices else (CAP, NOTHING)
        return f"AAI-{self.level}", NOTHING

    def _answer(self, line: GateLine) -> GateStatus:
        """Return what a gate decides: by its evidence, and by its dates where they count."""
        if self.dates == 1 or line.status == "NO EVIDENCE":
            return line.status
        if is_below(line, self.dates):
            return "BELOW"
        return "PASS" if passes(line, self.dates) else "UNDECIDED"

    def _next_stage(self, level: int, tally: "_Tally") -> Batch | None:
        """Return the next stage of a level, None where all were played."""
        for stage in self.stages if level > 1 else ():
            if stage.name not in tally.stages:
                return Batch((), stage.gates, tuple(stage.indices), stage.name)
        return None

    def _next(self, level: int, states: Mapping[str, str], tally: "_Tally") -> Batch:
        """Return the next batch: one world of each family that an open gate reads.

        Where dates count and one is open, all gates read each date.
        """
        reads = tuple(gate for gate, status in states.items() if status == "UNDECIDED")
        reads = tuple(states) if reads and self.dates > 1 else reads
        families = {family for gate in reads for family in self.weights[gate]}
        if reads == (GENERALITY,):
            candidates = tally.families.candidates()
            enough = len(candidates) >= self._families_needed(level)
            families = candidates if enough else families
        places = {f: tally.counts.get(f, 0) for f in self.worlds if f in families}
        if not reads or any(place >= len(self.worlds[f]) for f, place in places.items()):
            return NOTHING
        worlds = tuple(self.worlds[f][self.order[f][place]] for f, place in places.items())
        kinds = {READS[gate] for gate in reads}
        played = {w.episodes[kind] for w in worlds for kind in kinds if kind in w.episodes}
        return Batch(worlds, reads, tuple(sorted(played)))

    # --- gates ------------------------------------------------------------------------

    def null(self, gate: str, level: int = 1) -> float:
        """Return the mean that a PASS of a gate refutes.

        Args:
            gate: The gate.
            level: Its level.
        """
        return self.required(gate, level) - self.protocol.statistics.gate_slack

    def _line(self, key: GateKey, tally: "_Tally", evidence: PlacementEvidence) -> GateLine:
        level, gate = key
        if gate == GENERALITY:
            return self._generality(level, tally)
        own = tally.gates[key]
        required, note = self.required(gate, level), ""
        mean = betting.weighted_mean(own.bets)
        above, below = float(betting.mixture(own.above)), float(betting.mixture(own.below))
        reached = mean is not None and self._at(mean, required)
        status = self._status(level, above, below, enough=reached)
        if gate == TOOLS:
            kinds = self._kinds(tally, evidence)
            note = kinds.words
            if status == "PASS" and not kinds.enough:
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
            level=level,
        )

    def _kinds(self, tally: "_Tally", evidence: PlacementEvidence) -> KindCount:
        least = self.protocol.tools.distinct_instances
        return KindCount(evidence.kinds(tally.played), self._gates[1, TOOLS].count or 0, least)

    def _gives_up(self, line: GateLine, tally: "_Tally", evidence: PlacementEvidence) -> bool:
        """Return whether a gate is open, and neither PASS nor BELOW is to be expected of it.

        That is the gate of tools where too few kinds can come into use, while success is what is
        asked for. Where success is less it is played on, for a BELOW.
        """
        if line.gate != TOOLS or line.status != "UNDECIDED" or line.mean is None:
            return False
        return self._at(line.mean, line.required) and self._kinds(tally, evidence).hopeless

    def _at(self, mean: float, required: float) -> bool:
        return reaches(mean, required, self.protocol.statistics.gate_decimals)

    def _status(self, level: int, above: float, below: float, *, enough: bool) -> GateStatus:
        if round(below, DECIMALS) >= round(math.log(self.bar_below_of(level)), DECIMALS):
            return "BELOW"
        if enough and round(above, DECIMALS) >= round(math.log(self.bar), DECIMALS):
            return "PASS"
        return "UNDECIDED"

    # --- generality: families covered -------------------------------------------------

    def _families_needed(self, level: int) -> int:
        return math.ceil(round(self.required(GENERALITY, level) * len(self.worlds), DECIMALS))

    def _generality(self, level: int, tally: "_Tally") -> GateLine:
        """Return the line of G: how many families have a mean of at least their threshold."""
        own, needed = tally.families, self._families_needed(level)
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
            required=self.required(GENERALITY, level),
            low=round(low / total, DECIMALS),
            high=round(high / total, DECIMALS),
            log_pass=round(log_pass, DECIMALS),
            log_below=round(log_below, DECIMALS),
            bar=self.bar,
            status=self._status(level, log_pass, log_below, enough=covered >= needed),
            note=f"{covered} of {needed} families",
            level=level,
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
        self.stages: set[str] = set()
        keys = [key for level in range(1, rule.level + 1) for key in rule.pool_keys(level)]
        self.gates = {key: _Gate() for key in keys if key[1] != GENERALITY}
        self.dates: dict[str, list[DateMean]] = {gate: [] for _, gate in keys}
        limits = np.array([rule.protocol.generality.of(family) for family in rule.worlds])
        self.families = _Families(list(rule.worlds), limits, rule.protocol.statistics.gate_slack)

    def add(self, batch: Batch, evidence: PlacementEvidence) -> None:
        """Add a batch that was played. What it says of a gate counts at every level."""
        if batch.stage:
            self.stages.add(batch.stage)
            return
        self.played.update(batch.indices)
        for world in batch.worlds:
            self.counts[world.family] = self.counts.get(world.family, 0) + 1
        rule = self._rule
        if GENERALITY in batch.reads:
            covered = self.families.add(batch.worlds, evidence)
            self.dates[GENERALITY].append(date_mean(covered, 0.0))
        bets = {
            gate: batch_bets(gate, batch.worlds, evidence, rule.weights[gate])
            for gate in batch.reads
            if gate != GENERALITY
        }
        for gate, own_bets in bets.items():
            self.dates[gate].append(date_mean(own_bets, rule.required(gate)))
        for (level, gate), own in self.gates.items():
            if gate in bets:
                own.add(bets[gate], rule.null(gate, level), rule.required(gate, level))


def _all(lines: Mapping[GateKey, GateLine], level: int, status: str) -> bool:
    """Return whether all lines of a level say the same; True where it has none."""
    return all(line.status == status for line in lines.values() if line.level == level)


def _hedged(logs: Floats) -> Floats:
    """Return the logarithms of what is left and won where a share of the stake is not bet."""
    won: Floats = np.logaddexp(math.log(HEDGE), math.log(1 - HEDGE) + betting.mixture(logs))
    return won


def _enough(logs: Floats, least: int) -> bool:
    return betting.partial_conjunction(logs, least) >= math.log(BAR)
