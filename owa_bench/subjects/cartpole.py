"""Classic cart and pole in batches, with a force and a gravity of each lane's own.

Equations and limits are those of Barto, Sutton and Anderson 1983 as Gymnasium's CartPole-v1 states
them: 0.02 s, explicit Euler, 12 degrees, 2.4 m, 500 ticks.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from owa_bench import seeding
from owa_bench.subjects import learning

TICK = 0.02
MASS, POLE, HALF = 1.1, 0.1, 0.5  # kg: both, the pole alone; m: half its length
FALL, EDGE = math.radians(12.0), 2.4
FORCE, GRAVITY = 10.0, 9.8
FORCES = tuple(float(n) for n in range(1, 21))  # [S section 3.1.4]
GRAVITIES = tuple(float(n) for n in range(180, 361, 9))
MIXED = tuple(float(n) for n in range(0, 201, 40))  # [S section 3.2.4: steps of 20]
SHARES = tuple(i / 10 for i in range(11))  # of the first domain in a mixture [S]
CALIBRATION: learning.Architecture = (16,)  # the smallest that learns nearly always [D]
COORDINATES = ("x", "v", "angle", "rate")
_LANES, _SCORED = 16, 64  # episodes at once that a network learns from and is scored on
_MIXED_LANES = 20  # so that every share is a whole number of them
_WATCHED, _BINS = 100, 30  # episodes and bins of an entropy [S section 3.1.4]
SCALE = (2.4, 2.0, 0.2, 2.0)  # of x, v, angle, rate: what networks see


class CartPoleBatch:
    """Lanes of the classic task; see `learning.EpisodeBatch`."""

    inputs = 4
    outputs = 2

    def __init__(
        self,
        forces: Tensor,
        gravities: Tensor,
        *,
        generator: torch.Generator,
        spread: float = 0.05,
        ticks: int = 500,
        scale: tuple[float, ...] = SCALE,
    ) -> None:
        self.lanes = forces.numel()
        self.ticks = ticks
        self._forces, self._gravities = forces, gravities
        self._generator = generator
        self._spread = spread
        self._scale = torch.tensor(scale)
        self.state = torch.zeros(4, self.lanes)
        self._age = torch.zeros(self.lanes, dtype=torch.int64)
        self.restart()

    def observe(self) -> Tensor:
        """Return places and speeds (lanes, 4), scaled."""
        return self.state.T / self._scale

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Push every cart.

        Args:
            actions: (lanes,), 0 for left and 1 for right.
        Returns: Where episodes failed and where time is up, (lanes,) each.
        """
        x, v, angle, rate = self.state
        sine, cosine = angle.sin(), angle.cos()
        push = torch.where(actions > 0, self._forces, -self._forces)
        shared = (push + POLE * HALF * rate.square() * sine) / MASS
        inertia = HALF * (4.0 / 3.0 - POLE * cosine.square() / MASS)
        turn = (self._gravities * sine - cosine * shared) / inertia
        speed = shared - POLE * HALF * turn * cosine / MASS
        self.state = torch.stack(
            (x + TICK * v, v + TICK * speed, angle + TICK * rate, rate + TICK * turn)
        )
        self._age += 1
        failed = (self.state[0].abs() > EDGE) | (self.state[2].abs() > FALL)
        return failed, self._age >= self.ticks

    def restart(self, mask: Tensor | None = None) -> None:
        """Begin episodes near the upright rest, of all lanes without a mask."""
        uniform = torch.rand(4, self.lanes, generator=self._generator)
        fresh = self._spread * (2.0 * uniform - 1.0)
        if mask is None:
            mask = torch.ones(self.lanes, dtype=torch.bool)
        self.state = torch.where(mask, fresh, self.state)
        self._age = torch.where(mask, 0, self._age)


def measure_parameter(what: str, *, pool: int, updates: int, seed: int) -> list[dict[str, Any]]:
    """Return sizes and performances of one pool on every value of a parameter.

    Each network is halted at its best; the best of each value then plays the episodes whose
    observations are counted for the entropy.

    Args:
        what: "force" (1 to 20 N) or "gravity" (180 to 360 m/s2).
        pool: networks of the pool.
        updates: rounds of training.
        seed: of everything.
    Returns: Rows of the tables `what` and "entropy".
    Source: AIQ paper, section 3.1.4 [S]; the budget [D].
    """
    values = FORCES if what == "force" else GRAVITIES
    rng = seeding.stream(seed, "aiq", "classic pool")
    networks = learning.architectures(pool, rng=rng) * len(values)
    generator = torch.Generator().manual_seed(seeding.derive(seed, "aiq", what))
    population = learning.Population(networks, 4, 2, generator=generator)
    learning.train(
        population,
        _batch(what, values, pool * _LANES, generator),
        learning.PPOSettings(updates=updates),
        generator=generator,
        trial=_batch(what, values, pool * _LANES, generator),
    )
    scored = _batch(what, values, pool * _SCORED, generator)
    reached = learning.performances(population, scored).mean(1)
    rows = [
        {
            "table": what,
            "domain": values[k // pool],
            "size": population.sizes[k],
            "performance": float(reached[k]),
        }
        for k in range(len(networks))
    ]
    ahead = reached.view(len(values), pool).argmax(1).tolist()
    best = population.subset([k * pool + at for k, at in enumerate(ahead)])
    counted = _observation_counts(best, _batch(what, values, _WATCHED, generator))
    return rows + [
        {"table": "entropy", "check": what, "domain": value, "coordinate": name, "counts": counts}
        for value, each in zip(values, counted, strict=True)
        for name, counts in zip(COORDINATES, each, strict=True)
    ]


def measure_gravity_mixtures(
    first: int, *, retrained: int, updates: int, seed: int
) -> list[dict[str, Any]]:
    """Return what the calibration network reaches on mixtures of two gravities.

    Args:
        first: place in `MIXED`; it is mixed with itself and with each later one.
        retrained: networks of each mixture.
        updates: rounds of training.
        seed: of everything.
    Returns: Rows of the table "gravities".
    Source: AIQ paper, section 3.2.4 and figure 14 [S].
    """
    cells = [
        (MIXED[first], other, p)
        for other in MIXED[first:]
        for p in SHARES
        for _ in range(retrained)
    ]
    name = f"gravities-{first}"
    generator = torch.Generator().manual_seed(seeding.derive(seed, "aiq", name))
    population = learning.Population([CALIBRATION] * len(cells), 4, 2, generator=generator)
    learning.train(
        population,
        _mixture(cells, _MIXED_LANES, generator),
        learning.PPOSettings(updates=updates),
        generator=generator,
        trial=_mixture(cells, _MIXED_LANES, generator),
    )
    scored = _mixture(cells, 3 * _MIXED_LANES, generator)
    reached = learning.performances(population, scored).mean(1).tolist()
    return [
        {"table": "gravities", "first": a, "second": b, "p": p, "performance": value}
        for (a, b, p), value in zip(cells, reached, strict=True)
    ]


def _mixture(
    cells: Sequence[tuple[float, float, float]], lanes: int, generator: torch.Generator
) -> CartPoleBatch:
    """Return the lanes of mixtures: each its share of the first gravity."""
    each = [
        torch.where(torch.arange(lanes) < round(p * lanes), first, other)
        for first, other, p in cells
    ]
    gravities = torch.cat(each)
    forces = torch.full_like(gravities, FORCE)
    return CartPoleBatch(forces, gravities, generator=generator)


def _batch(
    what: str, values: tuple[float, ...], lanes: int, generator: torch.Generator
) -> CartPoleBatch:
    """Return `lanes` lanes at each of the values."""
    each = torch.tensor(values).repeat_interleave(lanes)
    same = torch.full_like(each, GRAVITY if what == "force" else FORCE)
    forces, gravities = (each, same) if what == "force" else (same, each)
    return CartPoleBatch(forces, gravities, generator=generator)


@torch.no_grad()
def _observation_counts(
    population: learning.Population, batch: CartPoleBatch
) -> list[list[list[int]]]:
    """Return the observations of each network's episodes, counted in bins.

    Shapes: (networks, coordinates, bins), bins of equal width over what was seen.
    """
    count = len(population.networks)
    batch.restart()
    alive = torch.ones(batch.lanes, dtype=torch.bool)
    states: list[Tensor] = []
    for _ in range(batch.ticks):
        state = torch.where(alive, batch.state, math.nan)
        states.append(state.view(4, count, -1))
        scores = population.scores(batch.observe().view(count, -1, batch.inputs))
        failed, _ = batch.step(scores.argmax(-1).view(-1))
        alive &= ~failed
        if not alive.any():
            break
    table = torch.stack(states, -1).flatten(2)
    return [[_histogram(table[i, k]) for i in range(len(COORDINATES))] for k in range(count)]


def _histogram(values: Tensor) -> list[int]:
    known = values[~values.isnan()]
    low, high = float(known.min()), float(known.max())
    return [int(n) for n in torch.histc(known, _BINS, low, high)]
