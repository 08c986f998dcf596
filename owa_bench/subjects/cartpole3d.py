"""CartPole3D's levels as domains: what the AIQ measures of them need, as raw tables.

A unit of work trains one population on a mixture of levels for each of its networks:

    pool/L           random and handicapped networks, all on level L
    mixtures/L..     the calibration network, retrained at every share of two levels:
                     each of L.. with each reference
    among/L..        the same for all pairs among L.. (the levels of the APTI suite)
    controls/L       nothing, random and the PD rule on level L
    played/L         agents on level L, in the PyBullet env
    force, gravity   the classic cart and pole with another number (`cartpole`)
    gravities/K      its K-th gravity mixed with itself and the later ones

Policies see the seed's ten numbers (no balls). They are trained from tilts and rates
wider than the episode's own, where doing nothing soon fails; those of the pool are
halted at their best on the levels as they are; all are scored on other episodes of
these. Source: AIQ seed, sections 2.4.3, 2.5.3, 3.4 [S]; sizes of pool and budget [D].
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from msgspec.structs import replace
from torch import Tensor

from owa_bench import seeding
from owa_bench.envs.cartpole3d import levels
from owa_bench.envs.cartpole3d.batched.simulator import (
    CONTROLS,
    Simulator,
    episode_lengths,
)
from owa_bench.subjects import cartpole, played
from owa_bench.subjects.learning import Recipe, learn, performances
from owa_bench.subjects.populations import Architecture, Population, architectures
from owa_bench.worlds.physics import PhysicsWorld, Spec

INPUTS, OUTPUTS = 10, 5
SHARES, CALIBRATION = cartpole.SHARES, cartpole.CALIBRATION
CONTROL_NAMES = tuple(CONTROLS)
HANDICAPPED = tuple((n,) * deep for deep in range(1, 6) for n in (2, 4, 8, 16, 32))
AGENTS = ("one_step", "two_step", "model_repair", "extreme_value", "action_adjustment")
CHUNK = 4  # levels of one unit of mixtures: more share their references' episodes
_TILT, _RATE = 0.05, 0.3  # of the starts that policies learn from
_STARTS = 2048
# One row a number that policies see: cart x, y, vx, vy, roll, pitch, yaw and rates.
_SCALE = (0.2, 0.2, 0.5, 0.5, 8.0, 8.0, 1.0, 1.5, 1.5, 1.0)


class Plan(NamedTuple):
    """How large a measurement is; the defaults are the command's.

    among: levels that are mixed with each other too (a suite of their own in the seed's
    figure 29). pool: random networks. retrained: calibration networks a share. lanes:
    episodes at once that a network learns from. scored: episodes that a performance is
    the mean of. updates: rounds of training on mixtures; the pool's networks get twice,
    the classic ones three times as many. agents play `episodes` each on every level.
    classic: networks of the classic checks, which are left out at 0.
    """

    spec: Spec = "table1"
    magnitude: float = 1 / 3
    levels: tuple[int, ...] = levels.LEVELS
    references: tuple[int, ...] = (0, 9)
    among: tuple[int, ...] = (14, 15, 16)
    full: bool = False
    pool: int = 16
    retrained: int = 5
    lanes: int = 32
    scored: int = 192
    updates: int = 60
    agents: tuple[played.Contender, ...] = tuple(map(played.Contender, AGENTS, AGENTS))
    episodes: int = 10
    classic: int = 15
    seed: int = 0


class Unit(NamedTuple):
    """One piece of work; the module's head says what kinds there are."""

    kind: str
    first: int
    others: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Return the name of the unit's file."""
        return "-".join((self.kind, *(str(n) for n in (self.first, *self.others))))


Row = dict[str, Any]


def units(plan: Plan) -> list[Unit]:
    """Return all work of a plan; the large pieces come first."""
    found = [
        Unit("mixtures", *_split(plan.levels[i : i + CHUNK]))
        for i in range(0, len(plan.levels), CHUNK)
    ]
    if plan.among and not plan.full:
        found.append(Unit("among", *_split(plan.among)))
    kinds = ["pool", "controls", *(["played"] if plan.agents else [])]
    for kind in kinds:
        found += [Unit(kind, level) for level in reversed(plan.levels)]
    if plan.classic:
        found += [Unit("force", 0), Unit("gravity", 0)]
        found += [Unit("gravities", k) for k in range(len(cartpole.MIXED))]
    return found


def done(unit: Unit, plan: Plan) -> list[Row]:
    """Return the rows of a unit: `table` says which table each belongs to."""
    torch.set_num_threads(1)  # units run side by side, one a core
    if unit.kind == "controls":
        return _controls(unit.first, plan)
    if unit.kind == "played":
        return _played(unit.first, plan)
    if unit.kind in ("force", "gravity"):
        return cartpole.checked(
            unit.kind, pool=plan.classic, updates=3 * plan.updates, seed=plan.seed
        )
    if unit.kind == "gravities":
        return cartpole.mixed(
            unit.first,
            retrained=plan.retrained,
            updates=3 * plan.updates,
            seed=plan.seed,
        )
    return _pool(unit, plan) if unit.kind == "pool" else _mixtures(unit, plan)


class LevelsField:
    """Lanes of several levels; see `learning.Field`.

    `places` says for each level which of all lanes are its own.
    """

    inputs = INPUTS
    outputs = OUTPUTS

    def __init__(
        self, worlds: Sequence[tuple[PhysicsWorld, Tensor]], *, seed: int
    ) -> None:
        self._parts = [
            (Simulator(world, at.numel(), seed=seed + k, starts=_STARTS), at)
            for k, (world, at) in enumerate(worlds)
            if at.numel()
        ]
        self.lanes = sum(at.numel() for _, at in self._parts)
        self.ticks = self._parts[0][0].world.ticks

    def observe(self) -> Tensor:
        """Return the ten numbers of every lane, scaled."""
        seen = torch.empty(self.lanes, INPUTS)
        for simulator, at in self._parts:
            seen[at] = numbers(simulator.core())
        return seen

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Play one action a lane."""
        failed = torch.empty(self.lanes, dtype=torch.bool)
        late = torch.empty_like(failed)
        for simulator, at in self._parts:
            failed[at], late[at] = simulator.step(actions[at])
        return failed, late

    def restart(self, mask: Tensor | None = None) -> None:
        """Begin episodes anew."""
        for simulator, at in self._parts:
            simulator.restart(None if mask is None else mask[at])


def numbers(core: Tensor) -> Tensor:
    """Return what a policy sees of an observation (11, lanes): (lanes, 10)."""
    x, y, z, w = core[4:8]
    roll = torch.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = torch.asin((2.0 * (w * y - z * x)).clamp(-1.0, 1.0))
    yaw = torch.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    table = torch.cat((core[:4], torch.stack((roll, pitch, yaw)), core[8:]))
    return table.T * torch.tensor(_SCALE)


def _split(chunk: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return chunk[0], chunk[1:]


def _pairs(plan: Plan, chunk: Sequence[int]) -> list[tuple[int, int]]:
    """Return (reference, level) for the levels of a chunk; no pair comes twice."""
    firsts = plan.levels if plan.full else plan.references
    return [
        (first, other)
        for other in chunk
        for first in firsts
        if other not in firsts or firsts.index(first) <= firsts.index(other)
    ]


def _mixed_pairs(unit: Unit, plan: Plan) -> list[tuple[int, int]]:
    """Return the pairs of a unit of mixtures."""
    chunk = (unit.first, *unit.others)
    if unit.kind == "among":
        return list(itertools.combinations(chunk, 2))
    return _pairs(plan, chunk)


def _world(plan: Plan, level: int, *, learning: bool) -> PhysicsWorld:
    world = levels.level(plan.spec, level, plan.magnitude if level else 1.0)
    if not learning:
        return world
    return replace(world, start=replace(world.start, tilt=_TILT, rate=_RATE))


def _trained(
    networks: Sequence[Architecture],
    mixtures: Sequence[dict[int, float]],
    plan: Plan,
    seed: int,
    *,
    updates: int,
    halted: bool = False,
) -> tuple[Population, list[float]]:
    """Train each network on its mixture; return performances on these mixtures.

    halted: each network ends as it was at its best on episodes of their own.
    """
    generator = torch.Generator().manual_seed(seed)
    population = Population(networks, INPUTS, OUTPUTS, generator=generator)
    apart = len(plan.levels)  # seeds of a field's worlds follow each other
    field = _field(mixtures, plan, plan.lanes, seed, learning=True)
    scene = _field(mixtures, plan, plan.scored, seed + apart, learning=False)
    trial = (
        _field(mixtures, plan, plan.lanes // 2, seed + 2 * apart, learning=False)
        if halted
        else None
    )
    recipe = Recipe(updates=updates)
    learn(population, field, recipe, generator=generator, trial=trial)
    return population, performances(population, scene).mean(1).tolist()


def _field(
    mixtures: Sequence[dict[int, float]],
    plan: Plan,
    lanes: int,
    seed: int,
    *,
    learning: bool,
) -> LevelsField:
    """Return the lanes of all networks, each split over the levels of its mixture."""
    places: dict[int, list[int]] = {}
    for k, mixture in enumerate(mixtures):
        start = k * lanes
        names = list(mixture)
        for name in names:
            last = name == names[-1]
            end = (k + 1) * lanes if last else start + round(mixture[name] * lanes)
            places.setdefault(name, []).extend(range(start, end))
            start = end
    worlds = [
        (_world(plan, level, learning=learning), torch.tensor(at))
        for level, at in places.items()
    ]
    return LevelsField(worlds, seed=seed)


def _pool(unit: Unit, plan: Plan) -> list[Row]:
    """Return sizes and performances of random and handicapped networks on a level."""
    rng = seeding.stream(plan.seed, "aiq", "pool")  # the same pool for every level
    networks = architectures(plan.pool, rng=rng) + list(HANDICAPPED)
    seed = seeding.derive(plan.seed, "aiq", unit.name)
    population, found = _trained(
        networks,
        [{unit.first: 1.0}] * len(networks),
        plan,
        seed,
        updates=2 * plan.updates,
        halted=True,
    )
    return [
        {
            "table": "pool" if k < plan.pool else "handicapped",
            "domain": unit.first,
            "network": "x".join(str(n) for n in network),
            "size": population.sizes[k],
            "performance": found[k],
        }
        for k, network in enumerate(networks)
    ]


def _mixtures(unit: Unit, plan: Plan) -> list[Row]:
    """Return what the calibration network reaches on mixtures of two levels."""
    cells = [
        (first, other, p)
        for first, other in _mixed_pairs(unit, plan)
        for p in SHARES
        for _ in range(plan.retrained)
    ]
    mixtures = [
        {first: p, other: 1.0 - p} if other != first else {first: 1.0}
        for first, other, p in cells
    ]
    seed = seeding.derive(plan.seed, "aiq", unit.name)
    networks = [CALIBRATION] * len(cells)
    _, found = _trained(networks, mixtures, plan, seed, updates=plan.updates)
    return [
        {
            "table": "mixtures",
            "first": first,
            "second": other,
            "p": p,
            "performance": value,
        }
        for (first, other, p), value in zip(cells, found, strict=True)
    ]


def _controls(level: int, plan: Plan) -> list[Row]:
    """Return the performances of the control rules on a level."""
    world = _world(plan, level, learning=False)
    seed = seeding.derive(plan.seed, "aiq", "controls")
    simulator = Simulator(world, plan.scored, seed=seed, starts=_STARTS)
    return [
        {
            "table": "performances",
            "agent": name,
            "domain": level,
            "performance": float(
                episode_lengths(simulator, policy).double().mean() / world.ticks
            ),
        }
        for name, policy in CONTROLS.items()
    ]


def _played(level: int, plan: Plan) -> list[Row]:
    """Return the performances of agents on a level."""
    return [
        {
            "table": "performances",
            "agent": one.name,
            "domain": level,
            "performance": played.performance(
                one.spec,
                plan.spec,
                level,
                plan.magnitude,
                episodes=plan.episodes,
                seed=plan.seed,
            ),
        }
        for one in plan.agents
    ]
