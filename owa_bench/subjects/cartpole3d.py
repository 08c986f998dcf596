"""AIQ measurement of CartPole3D's levels: units of work that give raw tables.

A unit of work trains one population on a mixture of levels for each of its networks:

    pool/L           random and handicapped networks, all on level L
    mixtures/L..     the calibration network, retrained at every share of two levels:
                     each of L.. with each reference
    among/L..        the same for all pairs among L.. (the levels of the APTI suite)
    controls/L       nothing, random and the PD rule on level L
    played/L         agents on level L, in the PyBullet env
    force, gravity   the classic cart and pole with another number (`cartpole`)
    gravities/K      its K-th gravity mixed with itself and the later ones

Networks of the pool are halted at their best on the levels as they are; all are scored on other
episodes of these (`cartpole3d_lanes`). A finished unit is a file, so an interrupted measurement
goes on where it was stopped.

Source: AIQ paper, sections 2.4.3, 2.5.3, 3.4 [S]; sizes of pool and budget [D].
"""

import itertools
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from owa_bench import seeding
from owa_bench.envs.cartpole3d import levels
from owa_bench.envs.cartpole3d.batched import simulator as batched
from owa_bench.envs.cartpole3d.world import Spec
from owa_bench.errors import UsageError
from owa_bench.subjects import agent_play, cartpole, cartpole3d_lanes
from owa_bench.subjects import learning as populations
from owa_bench.subjects.learning import Architecture

SHARES, CALIBRATION = cartpole.SHARES, cartpole.CALIBRATION
CONTROL_NAMES = tuple(batched.CONTROLS)
HANDICAPPED = tuple((n,) * deep for deep in range(1, 6) for n in (2, 4, 8, 16, 32))
AGENTS = ("one_step", "two_step", "model_repair", "extreme_value", "action_adjustment")
CHUNK = 4  # levels of one unit of mixtures: more share their references' episodes
_PLAN, _UNITS = "plan.json", "units"


class MeasurementPlan(NamedTuple):
    """Size of a measurement; the defaults are the command's.

    among: levels that are mixed with each other too (a suite of their own in the paper's figure
    29). pool: random networks. retrained: calibration networks a share. lanes: episodes at once
    that a network learns from. scored: episodes that a performance is the mean of. updates: rounds
    of training on mixtures; the pool's networks get twice, the classic ones three times as many.
    agents play `episodes` each on every level. classic: networks of the classic checks, left out at
    0. repeats: pools are drawn and trained anew with the seeds after `seed`.
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
    agents: tuple[agent_play.MeasuredAgent, ...] = tuple(
        map(agent_play.MeasuredAgent, AGENTS, AGENTS)
    )
    episodes: int = 10
    classic: int = 15
    seed: int = 0
    repeats: int = 1


class WorkUnit(NamedTuple):
    """One piece of work, of a kind that the module's docstring lists.

    repeat: the number that is added to the plan's seed.
    """

    kind: str
    first: int
    others: tuple[int, ...] = ()
    repeat: int = 0

    @property
    def name(self) -> str:
        """Return the name of the unit's file."""
        name = "-".join((self.kind, *(str(n) for n in (self.first, *self.others))))
        return f"{name}.{self.repeat}" if self.repeat else name


RawRow = dict[str, Any]


def units(plan: MeasurementPlan) -> list[WorkUnit]:
    """Return all work of a plan; the large pieces come first."""
    work = [
        WorkUnit("mixtures", plan.levels[i], plan.levels[i + 1 : i + CHUNK])
        for i in range(0, len(plan.levels), CHUNK)
    ]
    if plan.among and not plan.full:
        work.append(WorkUnit("among", plan.among[0], plan.among[1:]))
    for repeat in range(plan.repeats):
        work += [WorkUnit("pool", k, (), repeat) for k in reversed(plan.levels)]
    for kind in ("controls", *(["played"] if plan.agents else [])):
        work += [WorkUnit(kind, level) for level in reversed(plan.levels)]
    if plan.classic:
        work += [WorkUnit("force", 0), WorkUnit("gravity", 0)]
        work += [WorkUnit("gravities", k) for k in range(len(cartpole.MIXED))]
    return work


def run(
    plan: MeasurementPlan, folder: Path, *, workers: int, on_done: Callable[[int, int], None]
) -> list[RawRow]:
    """Do the units of a plan that are left.

    Args:
        plan: sizes and seed.
        folder: holds the plan and a file for each finished unit.
        workers: processes that work side by side.
        on_done: takes finished and all units, at the start and after each unit.
    Returns: The rows of all units.
    Raises: UsageError: the folder holds another plan.
    """
    _write_plan(plan, folder)
    work = units(plan)
    left = [unit for unit in work if not _file(folder, unit).exists()]
    on_done(len(work) - len(left), len(work))
    if left:
        # Forked children would share the parent's torch threads; fresh ones do not.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            jobs = [pool.submit(measure_to_file, unit, plan, folder) for unit in left]
            try:
                for count, job in enumerate(as_completed(jobs), 1):
                    job.result()
                    on_done(len(work) - len(left) + count, len(work))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)  # units that run end
                raise
    rows = (msgspec.json.decode(_file(folder, unit).read_bytes()) for unit in work)
    return [row for part in rows for row in part]


def measure_to_file(unit: WorkUnit, plan: MeasurementPlan, folder: Path) -> None:
    """Do a unit and write its rows, complete or not at all.

    Args:
        unit: the piece of work.
        plan: sizes and seed.
        folder: of the measurement.
    """
    target = _file(folder, unit)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(f".{os.getpid()}")
    draft.write_bytes(msgspec.json.encode(measure(unit, plan)))
    draft.replace(target)


def _file(folder: Path, unit: WorkUnit) -> Path:
    return folder / _UNITS / f"{unit.name}.json"


def _write_plan(plan: MeasurementPlan, folder: Path) -> None:
    """Write the plan, or check that the folder's is the same."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _PLAN
    text = msgspec.json.format(msgspec.json.encode(plan._asdict()), indent=2)
    if not path.exists():
        path.write_bytes(text)
    elif path.read_bytes() != text:
        raise UsageError(f"`{folder}` holds another plan ({path}): name a new folder.")


def measure(unit: WorkUnit, plan: MeasurementPlan) -> list[RawRow]:
    """Return the rows of a unit.

    Args:
        unit: the piece of work.
        plan: sizes and seed.
    Returns: Rows; `table` names the table that each belongs to.
    """
    torch.set_num_threads(1)  # units run side by side, one a core
    if unit.kind == "controls":
        return _controls(unit.first, plan)
    if unit.kind == "played":
        return _level_rows(unit.first, plan)
    if unit.kind in ("force", "gravity"):
        return cartpole.measure_parameter(
            unit.kind, pool=plan.classic, updates=3 * plan.updates, seed=plan.seed
        )
    if unit.kind == "gravities":
        return cartpole.measure_gravity_mixtures(
            unit.first, retrained=plan.retrained, updates=3 * plan.updates, seed=plan.seed
        )
    if unit.kind == "pool":
        return _pool(unit, plan._replace(seed=plan.seed + unit.repeat))
    return _mixtures(unit, plan)


def _pairs(plan: MeasurementPlan, chunk: Sequence[int]) -> list[tuple[int, int]]:
    """Return (reference, level) for the levels of a chunk; no pair comes twice."""
    firsts = plan.levels if plan.full else plan.references
    return [
        (first, other)
        for other in chunk
        for first in firsts
        if other not in firsts or firsts.index(first) <= firsts.index(other)
    ]


def _mixed_pairs(unit: WorkUnit, plan: MeasurementPlan) -> list[tuple[int, int]]:
    """Return the pairs of a unit of mixtures."""
    chunk = (unit.first, *unit.others)
    if unit.kind == "among":
        return list(itertools.combinations(chunk, 2))
    return _pairs(plan, chunk)


def _trained(
    networks: Sequence[Architecture],
    mixtures: Sequence[dict[int, float]],
    plan: MeasurementPlan,
    seed: int,
    *,
    updates: int,
    halted: bool = False,
) -> tuple[populations.Population, list[float]]:
    """Train each network on its mixture; return performances on these mixtures.

    halted: each network ends as it was at its best on episodes of their own.
    """
    generator = torch.Generator().manual_seed(seed)
    ends = cartpole3d_lanes.INPUTS, cartpole3d_lanes.OUTPUTS
    population = populations.Population(networks, *ends, generator=generator)
    apart = len(plan.levels)  # seeds of a batch's worlds follow each other

    def batch(lanes: int, number: int, *, learning: bool = False) -> cartpole3d_lanes.LevelsBatch:
        return cartpole3d_lanes.mixture_batch(
            mixtures,
            lanes,
            spec=plan.spec,
            magnitude=plan.magnitude,
            seed=seed + number * apart,
            learning=learning,
        )

    episodes, scored = batch(plan.lanes, 0, learning=True), batch(plan.scored, 1)
    trial = batch(plan.lanes // 2, 2) if halted else None
    settings = populations.PPOSettings(updates=updates)
    populations.train(population, episodes, settings, generator=generator, trial=trial)
    return population, populations.performances(population, scored).mean(1).tolist()


def _pool(unit: WorkUnit, plan: MeasurementPlan) -> list[RawRow]:
    """Return sizes and performances of random and handicapped networks on a level."""
    rng = seeding.stream(plan.seed, "aiq", "pool")  # the same pool for every level
    networks = populations.architectures(plan.pool, rng=rng) + list(HANDICAPPED)
    seed = seeding.derive(plan.seed, "aiq", unit.name)
    population, reached = _trained(
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
            "repeat": unit.repeat,
            "network": "x".join(str(n) for n in network),
            "size": population.sizes[k],
            "performance": reached[k],
        }
        for k, network in enumerate(networks)
    ]


def _mixtures(unit: WorkUnit, plan: MeasurementPlan) -> list[RawRow]:
    """Return what the calibration network reaches on mixtures of two levels."""
    cells = [
        (first, other, p)
        for first, other in _mixed_pairs(unit, plan)
        for p in SHARES
        for _ in range(plan.retrained)
    ]
    mixtures = [
        {first: p, other: 1.0 - p} if other != first else {first: 1.0} for first, other, p in cells
    ]
    seed = seeding.derive(plan.seed, "aiq", unit.name)
    networks = [CALIBRATION] * len(cells)
    _, reached = _trained(networks, mixtures, plan, seed, updates=plan.updates)
    return [
        {"table": "mixtures", "first": a, "second": b, "p": p, "performance": value}
        for (a, b, p), value in zip(cells, reached, strict=True)
    ]


def _controls(level: int, plan: MeasurementPlan) -> list[RawRow]:
    """Return the performances of the control rules on a level."""
    world = cartpole3d_lanes.level_world(plan.spec, level, plan.magnitude, learning=False)
    seed = seeding.derive(plan.seed, "aiq", "controls")
    simulator = batched.Simulator(world, plan.scored, seed=seed, starts=cartpole3d_lanes.STARTS)
    return [
        {
            "table": "performances",
            "agent": name,
            "domain": level,
            "performance": float(batched.episode_lengths(simulator, policy).mean() / world.ticks),
        }
        for name, policy in batched.CONTROLS.items()
    ]


def _level_rows(level: int, plan: MeasurementPlan) -> list[RawRow]:
    """Return the performances of agents on a level."""
    return [
        {
            "table": "performances",
            "agent": one.name,
            "domain": level,
            "performance": agent_play.performance(
                one.spec, plan.spec, level, plan.magnitude, episodes=plan.episodes, seed=plan.seed
            ),
        }
        for one in plan.agents
    ]
