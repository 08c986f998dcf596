"""Agents with a planted truth, for placement.py: what a placement would see of them.

A truth is a chance of full marks in each cell of a gate, and what a failed episode still earns.
One draw per episode decides all gates that read it; episodes of one world are alike, a date moves
them all, and some are lost.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, combinations, product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import Array, Floats, Integers
from owa_bench.records.tool_kinds import TOOL_KINDS
from owa_bench.reports.read.bundle import read
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.placement.kinds import KindUse
from owa_bench.scoring.placement.rule import GENERALITY, PlacementRule
from owa_bench.scoring.placement.worlds import LOST, READS, WorldValue
from owa_bench.seeding import stream

GATES = tuple(READS)
SHAPES = ("alike", "uneven", "first cells")
CLEAR = 0.85  # chance of full marks where a gate is to pass clearly
COVERED = 0.95  # the same of a family that is clearly covered
# Spread of families in log odds, and what a tier and a whole unit of magnitude take.
FAMILY_SD, TIER, MAGNITUDE = 1.0, 0.6, 1.2
EARLY = 3  # first batches, of which "first cells" are made
# Depth of a plan over the depth asked for (axis P), by suite and tier; rounded means of a
# placement of `agentic`. Only one family of Recall has plans.
DEPTH = {
    "toolquest": (0.7, 0.85, 1.0),
    "changesurf": (0.6, 0.85, 1.0),
    "recall": (0.0, 0.0),
    "multicrew": (0.6, 0.8),
    "projforge": (0.6, 0.8),  # of no placement: no reference agent delivers a project
}
DEEP = {"recall/reasoning": 0.6}
# What a failed episode earns in A, P and G, by suite; rounded means of the same placement.
FAILED = {
    "toolquest": (0.05, 0.0, 0.1),
    "changesurf": (0.0, 0.0, 0.1),
    "recall": (0.0, 0.0, 0.35),
    "multicrew": (0.45, 0.35, 0.45),
    "projforge": (0.0, 0.0, 0.1),
}
_HALVINGS = 50


class Truth(NamedTuple):
    """By gate, (entries,): chance of full marks, and what an episode earns otherwise."""

    chance: Mapping[str, Floats]
    failed: Mapping[str, Floats]


class PlantedPool:
    """The entries of a placement's plan as columns."""

    def __init__(self, rule: PlacementRule) -> None:
        """Args: the rule for the plan."""
        entries = rule.pool_plan.entries
        self.rule = rule
        self.families = list(rule.worlds)
        self.every = frozenset(range(len(entries)))
        self.suite = [entry.suite for entry in entries]
        self.family: Integers = np.zeros(len(entries), np.int64)
        self.number: Integers = np.zeros(len(entries), np.int64)
        self.tier = np.array([entry.tier for entry in entries])
        self.delta = np.array([entry.delta for entry in entries])
        pairs = {pair: place for place, pair in enumerate(dict.fromkeys(e.pair for e in entries))}
        self.world = np.array([pairs[entry.pair] for entry in entries])
        for place, worlds in enumerate(rule.worlds.values()):
            for world in worlds:
                own = list(world.episodes.values())
                self.family[own], self.number[own] = place, world.number
        self.depth = np.array(
            [DEEP.get(f"{e.suite}/{e.family}", DEPTH[e.suite][e.tier - 1]) for e in entries]
        )
        self.slope = {gate: np.zeros(len(entries)) for gate in GATES} | {"P": 1.0 - self.depth}

        self.slopes = {gate: slope.tolist() for gate, slope in self.slope.items()}

    @cached_property
    def weights(self) -> Mapping[str, Floats]:
        """The weight of each entry in each gate, (entries,)."""
        found = {gate: np.zeros(len(self.every)) for gate in GATES}
        for gate, families in self.rule.weights.items():
            for family, weight in families.items():
                worlds = self.rule.worlds[family]
                own = [world.episodes[READS[gate]] for world in worlds]
                found[gate][own] = weight / len(own)
        return found

    @cached_property
    def odds(self) -> Floats:
        """Log odds of success of uneven cells, (entries,), up to a constant."""
        rng = stream(0, "placement", "families")
        families = FAMILY_SD * rng.standard_normal(len(self.families))
        return families[self.family] - TIER * self.tier - MAGNITUDE * self.delta

    def value(self, gate: str, truth: Truth) -> float:
        """Return the planted value of a gate of means over the whole pool."""
        weights = self.weights[gate] * (1 - self.slope[gate])
        earned = truth.chance[gate] + (1 - truth.chance[gate]) * truth.failed[gate]
        return float((weights * earned).sum() / weights.sum())

    def covered(self, truth: Truth) -> int:
        """Return how many families are covered."""
        earned = truth.chance["G"] + (1 - truth.chance["G"]) * truth.failed["G"]
        limit, read = self.rule.protocol.generality.of, self.weights["G"] > 0
        means = (earned[read & (self.family == k)].mean() for k in range(len(self.families)))
        return sum(m >= limit(f) - 1e-9 for m, f in zip(means, self.families, strict=True))

    def cells(self, weights: Floats, value: float, shape: str) -> Floats:
        """Return a chance per entry whose weighted mean is a value.

        Args:
            weights: (entries,)
            value: The mean.
            shape: "alike", "uneven" or "first cells".
        """
        if shape == "alike":
            return np.full(len(weights), value)
        if shape == "first cells":
            early = weights * (self.number < EARLY)
            found = [_on(cells, weights, value) for cells in self.rectangles]
            return max(found, key=lambda chance: float((early * chance).sum()))
        low, high = -20.0, 20.0
        chance = np.zeros(len(weights))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            chance = 1 / (1 + np.exp(-(self.odds + middle)))
            above = (weights * chance).sum() > value * weights.sum()
            low, high = (low, middle) if above else (middle, high)
        return chance

    @cached_property
    def rectangles(self) -> Sequence[Array]:
        """The entries of every set of tiers and magnitudes."""
        sets = product(_subsets(np.unique(self.tier)), _subsets(np.unique(self.delta)))
        return [np.isin(self.tier, tiers) & np.isin(self.delta, deltas) for tiers, deltas in sets]


def _subsets(values: Floats) -> list[tuple[float, ...]]:
    sizes = range(1, len(values) + 1)
    return list(chain.from_iterable(combinations(values.tolist(), size) for size in sizes))


def _on(cells: Array, weights: Floats, value: float) -> Floats:
    """Return the chance that is as high on some entries as the weighted mean allows."""
    share = (weights * cells).sum() / weights.sum()
    high = min(1.0, value / share) if share > 0 else 0.0
    low = (value - high * share) / (1 - share) if share < 1 else 0.0
    return np.where(cells, high, max(low, 0.0))


def clear(pool: PlantedPool, gate: str, value: float, shape: str, *, passes: bool = True) -> Truth:
    """Return a truth in which one gate has a value and all others pass clearly.

    Args:
        pool: The pool.
        gate: The gate.
        value: Its value; of G what `required` less the slack or `required` says.
        shape: How its cells differ.
        passes: Of G: whether one family less than required is covered and the others lie just
            under what a PASS shows; else just as many as required are covered.
    """
    size = len(pool.every)
    chance = {name: np.full(size, CLEAR) for name in GATES}
    if gate == GENERALITY:
        chance[gate] = _families(pool, shape, passes=passes)
    else:
        weights = pool.weights[gate] * (1 - pool.slope[gate])
        chance[gate] = pool.cells(weights, value, shape)
    return Truth(chance, {name: np.zeros(size) for name in GATES})


def _families(pool: PlantedPool, shape: str, *, passes: bool) -> Floats:
    """Return chances of G at a boundary, family by family."""
    rules, weights = pool.rule.protocol, pool.weights[GENERALITY]
    needed = math.ceil(pool.rule.required(GENERALITY) * len(pool.families) - 1e-9)
    limits = np.array([rules.generality.of(family) for family in pool.families])
    order = stream(0, "placement", "covered").permutation(len(pool.families))
    values = limits - rules.statistics.gate_slack if passes else np.zeros(len(limits))
    best = order[: needed - passes]
    values[best] = COVERED if passes else limits[best]
    owns = [pool.family == family for family in range(len(pool.families))]

    def chances(cells: Callable[[Floats, float], Floats]) -> Floats:
        chance = np.zeros(len(pool.every))
        for own, value in zip(owns, values.tolist(), strict=True):
            if value:
                chance[own] = cells(weights * own, value)[own]
        return chance

    if shape != "first cells":
        return chances(lambda own, value: pool.cells(own, value, shape))
    early = weights * (pool.number < EARLY)  # one set of cells for all families
    found = (chances(partial(_on, cells)) for cells in pool.rectangles)
    return max(found, key=lambda chance: float((early * chance).sum()))


def skilled(pool: PlantedPool, success: float) -> Truth:
    """Return a truth in which one skill feeds all gates.

    Args:
        pool: The pool.
        success: Weighted mean share of successes under mild drift.
    """
    chance = pool.cells(pool.weights["tools"], success, "uneven")
    earned = np.array([(*FAILED[suite], 0.0) for suite in pool.suite])
    columns = dict(zip(("A", "P", "G", "tools"), earned.T, strict=True))
    return Truth(dict.fromkeys(GATES, chance), columns)


@dataclass(frozen=True)
class Seen:
    """What a placement sees of one planted agent, had it played the whole pool."""

    pool: PlantedPool
    low: Mapping[str, Sequence[float]]
    lost: Sequence[bool]

    @property
    def answers(self) -> frozenset[int]:
        """All entries."""
        return self.pool.every

    starts = answers

    def value(self, gate: str, index: int) -> WorldValue:
        """Return what a gate reads of an episode."""
        if self.lost[index]:
            return LOST
        value = self.low[gate][index]
        return WorldValue(value, value, self.pool.slopes[gate][index])

    def kinds(self, indices: Collection[int]) -> Mapping[str, KindUse]:
        """Return more kinds of tools in use than any gate asks for."""
        return dict.fromkeys(TOOL_KINDS, KindUse(len(indices), len(indices)))


@dataclass(frozen=True)
class Agent:
    """A planted agent and the days on which it is placed.

    Attributes:
        truth: Its chances.
        icc: Correlation of two episodes of one world with equal chances.
        shock: Spread of what a date adds to all chances.
        dates: Numbers of worlds with which a new date begins.
        excused: Share of its failed episodes that it lays to a fault after the first act.
        again: Whether those are played again: the control of the rule, which counts them lost.
        faults: Share of all episodes lost.
        repeats: Episodes of a world that a gate reads.
        naive: Whether each of them is a bet of its own.
    """

    truth: Truth
    icc: float = 0.0
    shock: float = 0.0
    dates: tuple[int, ...] = ()
    excused: float = 0.0
    again: bool = False
    faults: float = 0.0
    repeats: int = 1
    naive: bool = False

    def seen(self, pool: PlantedPool, rng: np.random.Generator, count: int) -> Iterator[Seen]:
        """Yield what placements of `count` such agents see."""
        size = len(pool.every)
        date = np.searchsorted(np.array(self.dates), pool.number, side="right")
        moved = self.shock * rng.standard_normal((count, len(self.dates) + 1))[:, date]
        groups, draws = pool.world, self.repeats
        if self.naive:  # so many worlds of the rule are episodes of one
            groups = pool.family * size + pool.number // self.repeats
            groups, draws = np.unique(groups, return_inverse=True)[1], 1
        common = rng.random((count, int(groups.max()) + 1))[:, groups]
        earned = {gate: np.zeros((count, size)) for gate in GATES}
        lost = rng.random((count, size)) < self.faults
        for _ in range(draws):
            drawn = rng.random((count, size))
            drawn = np.where(rng.random((count, size)) < np.sqrt(self.icc), common, drawn)
            blamed = self._blamed(drawn, moved, rng)
            while self.again and blamed.any():
                drawn = np.where(blamed, rng.random((count, size)), drawn)
                blamed &= self._blamed(drawn, moved, rng)
            lost |= blamed
            for gate in GATES:
                full = drawn < self.truth.chance[gate] + moved
                value = np.where(full, 1.0, self.truth.failed[gate])
                earned[gate] += value * (1 - pool.slope[gate]) / draws
        for k in range(count):
            yield Seen(pool, {g: earned[g][k].tolist() for g in GATES}, lost[k].tolist())

    def _blamed(self, drawn: Floats, moved: Floats, rng: np.random.Generator) -> Array:
        """Return which episodes are laid to a fault."""
        failed = drawn >= self.truth.chance["tools"] + moved
        return failed & (rng.random(drawn.shape) < self.excused)


def alike_in(run: Path) -> str:
    """Return how alike episodes of one world are in a run: among all, and within cells."""
    bundle = read(run)
    table = observe(bundle.traces(), bundle.prices)
    words = []
    for name, values in (("success", (table.u > 0).astype(float)), ("quality", table.q)):
        worlds: dict[tuple[object, ...], list[float]] = {}
        columns = (table.family, table.tier, table.delta, table.pair, values)
        for *world, value in zip(*(c.tolist() for c in columns), strict=True):
            worlds.setdefault(tuple(world), []).append(value)
        cells: dict[tuple[object, ...], list[Floats]] = {}
        for world, own in worlds.items():
            cells.setdefault(world[:3], []).append(np.array(own))
        every = [world for cell in cells.values() for world in cell]
        words.append(f"{name} {_icc([every]):.2f}, in a cell {_icc(list(cells.values())):.2f}")
    return f"{run.name}, {len(table)} episodes, ICC of a world: {'; '.join(words)}"


def _icc(cells: Sequence[Sequence[Floats]]) -> float:
    """Return the intraclass correlation of worlds within cells, by analysis of variance."""
    many = [cell for cell in cells if len(cell) > 1]
    worlds = [world for cell in many for world in cell]
    n, free = sum(map(len, worlds)), len(worlds) - len(many)
    if not free or n == len(worlds):
        return math.nan
    means = [np.concatenate(cell).mean() for cell in many for _ in cell]
    within = sum(((w - w.mean()) ** 2).sum() for w in worlds) / (n - len(worlds))
    between = sum(len(w) * (w.mean() - m) ** 2 for w, m in zip(worlds, means, strict=True)) / free
    size = n / len(worlds)
    return float((between - within) / (between + (size - 1) * within))
