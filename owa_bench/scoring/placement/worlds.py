"""The worlds of a placement's pool, and what each gate reads of them as bets."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import numpy as np
from msgspec.structs import replace

from owa_bench.records.observables import Floats, Observables
from owa_bench.records.placement import GateLine, Stage
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.scoring.axes.autonomy import autonomy
from owa_bench.scoring.placement.kinds import KindUse
from owa_bench.scoring.statistics.betting import Bets

EpisodeKind = str
PLAIN: Final = "plain"  # without help, at the world's own drift magnitude
PRICED: Final = "priced"  # the same under the protocol's budget of help
MILD: Final = "mild"  # without help under mild drift
# Which of a world's episodes each gate reads.
READS: Mapping[str, EpisodeKind] = {"A": PRICED, "P": PLAIN, "G": PLAIN, "tools": MILD}


class PoolWorld(NamedTuple):
    """One world of the pool: its family, its place in it, and its episodes by kind.

    `family` is "suite/family", `episodes` maps PLAIN, PRICED and MILD to indices of plan entries;
    at mild drift one episode is both PLAIN and MILD.
    """

    family: str
    number: int
    episodes: Mapping[EpisodeKind, int]


class WorldValue(NamedTuple):
    """A world's value for one gate: for bets on above and on below, and its slope."""

    low: float
    high: float
    slope: float = 0.0


LOST = WorldValue(0.0, 1.0)


def part_of(plan: Plan, entries: Sequence[PlanEntry]) -> Plan:
    """Return a plan of some of its entries, with the suites and families that they hold.

    Args:
        plan: The plan of a placement.
        entries: Some of its entries.
    """
    held = {(entry.suite, entry.family) for entry in entries}
    suites = (
        replace(s, families=tuple(family for family in s.families if (s.name, family) in held))
        for s in plan.suites
    )
    kept = tuple(suite for suite in suites if suite.families)
    return replace(plan, entries=tuple(entries), suites=kept)


def pool(plan: Plan, mild: float) -> Mapping[str, tuple[PoolWorld, ...]]:
    """Return the worlds of a plan by family, each family's in the order of the plan.

    Args:
        plan: The plan of a placement.
        mild: Magnitude of mild drift.
    """
    pairs: dict[str, list[PlanEntry]] = {}
    for entry in plan.entries:
        pairs.setdefault(entry.pair, []).append(entry)
    families: dict[str, list[PoolWorld]] = {}
    for entries in pairs.values():
        first = entries[0]
        family = f"{first.suite}/{first.family}"
        own = families.setdefault(family, [])
        own.append(PoolWorld(family, len(own), _episodes(entries, mild)))
    return {family: tuple(worlds) for family, worlds in families.items()}


def _episodes(entries: Sequence[PlanEntry], mild: float) -> Mapping[EpisodeKind, int]:
    """Return the episodes of one world; its own magnitude is the one with a budget of help."""
    priced = next(e for e in entries if e.interventions == "protocol")
    free = {e.delta: e.index for e in entries if e.interventions == 0}
    episodes = {PLAIN: free[priced.delta], PRICED: priced.index}
    if mild in free:
        episodes[MILD] = free[mild]
    return episodes


class PlacementEvidence(Protocol):
    """What a rule reads of what was played, and nothing else."""

    @property
    def answers(self) -> frozenset[int]:
        """The entries that have an answer: played or lost."""

    @property
    def starts(self) -> frozenset[int]:
        """The entries with any attempt."""

    def value(self, gate: str, index: int) -> WorldValue:
        """Return what a gate reads of an episode.

        Args:
            gate: The gate.
            index: The episode's entry.
        Returns: Its world's value; LOST where the episode was lost or never came.
        """

    def kinds(self, indices: Collection[int]) -> Mapping[str, KindUse]:
        """Return what was seen of each kind of tool that played worlds need.

        Args:
            indices: Entries that count.
        """

    def stage(self, stage: Stage) -> tuple[GateLine, ...]:
        """Return the gates of AAI-2 that a stage was played for.

        Args:
            stage: A stage that was played whole.
        """


@dataclass(frozen=True)
class TraceEvidence:
    """The evidence of a run: counted episodes, lost ones, and those begun at all.

    Attributes:
        table: The counted episodes of the agent.
        lost: Indices of entries that were lost after the env had taken an act of the agent's.
        starts: Indices of entries with any attempt.
        depth: D of the plan's terms, nodes.
        judge: Judges a stage.
    """

    table: Observables
    lost: frozenset[int]
    starts: frozenset[int]
    depth: int
    judge: Callable[[Stage], tuple[GateLine, ...]]

    def stage(self, stage: Stage) -> tuple[GateLine, ...]:
        """Return the gates of AAI-2 that a stage was played for.

        Args:
            stage: A stage that was played whole.
        """
        return self.judge(stage)

    @cached_property
    def answers(self) -> frozenset[int]:
        """The entries that have an answer: played or lost."""
        return frozenset(self.table.index.tolist()) | self.lost

    @cached_property
    def values(self) -> Mapping[str, Mapping[int, WorldValue]]:
        """The value of each played episode by gate, by index of its entry."""
        table = self.table
        horizon = np.minimum(
            table.horizon, np.where(table.horizon_cap > 0, table.horizon_cap, 10**9)
        )
        shares = autonomy(table.u > 0, table.q_state, table.helped, table.n, horizon)
        capped = np.minimum(table.depth, np.where(table.depth_cap > 0, table.depth_cap, self.depth))
        possible = np.minimum(capped, self.depth) / self.depth
        weight = np.where(table.u > 0, 1.0, table.q_state)
        solved = weight * np.minimum(table.d, capped) / self.depth
        columns: Mapping[str, tuple[Floats, Floats]] = {
            "A": (shares, np.zeros(len(table))),
            "P": (np.minimum(solved, possible), 1.0 - possible),
            "G": (table.q, np.zeros(len(table))),
            "tools": ((table.u > 0).astype(np.float64), np.zeros(len(table))),
        }
        index = table.index.tolist()
        return {
            gate: {
                i: WorldValue(x, x, s)
                for i, x, s in zip(index, column.tolist(), slopes.tolist(), strict=True)
            }
            for gate, (column, slopes) in columns.items()
        }

    def value(self, gate: str, index: int) -> WorldValue:
        """Return what a gate reads of an episode.

        Args:
            gate: The gate.
            index: The episode's entry.
        Returns: Its world's value; LOST where the episode was lost or never came.
        """
        return self.values[gate].get(index, LOST)

    def kinds(self, indices: Collection[int]) -> Mapping[str, KindUse]:
        """Return what was seen of each kind of tool that played worlds need.

        Args:
            indices: Entries that count.
        """
        table = self.table
        rows = np.isin(table.index, sorted(indices)) & table.needs_tools & (table.delta > 0)
        rows &= table.interventions == 0
        found = {}
        for kind, used, needed in zip(table.categories, table.used.T, table.offered.T, strict=True):
            worlds, wins = (len(np.unique(table.pair[rows & flags])) for flags in (needed, used))
            if worlds:
                suites = sorted(set(table.suite[rows & needed].tolist()))
                found[kind] = KindUse(worlds, wins, ", ".join(suites))
        return found


def batch_bets(
    gate: str,
    worlds: Iterable[PoolWorld],
    evidence: PlacementEvidence,
    weights: Mapping[str, float],
) -> Bets:
    """Return a batch's bets of one gate; the worlds of a family share its stake.

    Args:
        gate: The gate.
        worlds: Worlds of the batch.
        evidence: What was played.
        weights: Weight of each family of the gate.
    """
    chosen = [world for world in worlds if world.family in weights]
    counts: dict[str, int] = {}
    for world in chosen:
        counts[world.family] = counts.get(world.family, 0) + 1
    stakes = np.array([weights[world.family] / counts[world.family] for world in chosen])
    values = [evidence.value(gate, world.episodes[READS[gate]]) for world in chosen]
    low, high, slope = (np.array(column) for column in zip(*values, strict=True))
    return Bets(low, high, slope, stakes / stakes.max())
