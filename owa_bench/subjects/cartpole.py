"""The classic cart and pole, batched, with a force and a gravity of each lane's own.

Equations and limits are those of Barto, Sutton and Anderson 1983 as Gymnasium's
CartPole-v1 states them: 0.02 s, explicit Euler, 12 degrees, 2.4 m, 500 ticks.
"""

import math
from typing import Any

import torch
from torch import Tensor

from owa_bench import seeding
from owa_bench.subjects.learning import Recipe, learn, performances
from owa_bench.subjects.populations import Population, architectures

TICK = 0.02
MASS, POLE, HALF = 1.1, 0.1, 0.5  # kg: both, the pole alone; m: half its length
FALL, EDGE = math.radians(12.0), 2.4
FORCE, GRAVITY = 10.0, 9.8
FORCES = tuple(float(n) for n in range(1, 21))  # [S section 3.1.4]
GRAVITIES = tuple(float(n) for n in range(180, 361, 9))
_LANES, _SCORED = 16, 32  # episodes at once that a network learns from and is scored on
_SCALE = (2.4, 2.0, 0.2, 2.0)  # of x, v, angle, rate: what networks see


class CartPoleField:
    """Lanes of the classic task; see `learning.Field`."""

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
    ) -> None:
        self.lanes = forces.numel()
        self.ticks = ticks
        self._forces, self._gravities = forces, gravities
        self._generator = generator
        self._spread = spread
        self._scale = torch.tensor(_SCALE)
        self.state = torch.zeros(4, self.lanes)
        self._age = torch.zeros(self.lanes, dtype=torch.int64)
        self.restart()

    def observe(self) -> Tensor:
        """Return places and speeds, scaled."""
        return self.state.T / self._scale

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Push every cart left (0) or right (1)."""
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
        """Begin with every number uniform in a small range."""
        drawn = torch.rand(4, self.lanes, generator=self._generator)
        fresh = self._spread * (2.0 * drawn - 1.0)
        if mask is None:
            mask = torch.ones(self.lanes, dtype=torch.bool)
        self.state = torch.where(mask, fresh, self.state)
        self._age = torch.where(mask, 0, self._age)


def checked(what: str, *, pool: int, updates: int, seed: int) -> list[dict[str, Any]]:
    """Return sizes and performances of one pool on every value of a parameter.

    `what` is "force" (1 to 20 N) or "gravity" (180 to 360 m/s2). Source: AIQ seed,
    section 3.1.4 [S]; the training budget [D].
    """
    values = FORCES if what == "force" else GRAVITIES
    rng = seeding.stream(seed, "aiq", "classic pool")
    drawn = architectures(pool, rng=rng)
    networks = drawn * len(values)
    generator = torch.Generator().manual_seed(seeding.derive(seed, "aiq", what))
    population = Population(networks, 4, 2, generator=generator)
    learn(
        population,
        _field(what, values, pool, _LANES, generator),
        Recipe(updates=updates),
        generator=generator,
    )
    scene = _field(what, values, pool, _SCORED, generator)
    found = performances(population, scene).mean(1).tolist()
    return [
        {
            "table": what,
            "domain": values[k // pool],
            "size": population.sizes[k],
            "performance": found[k],
        }
        for k in range(len(networks))
    ]


def _field(
    what: str,
    values: tuple[float, ...],
    pool: int,
    lanes: int,
    generator: torch.Generator,
) -> CartPoleField:
    """Return lanes for `pool` networks at each of the values."""
    each = torch.tensor(values).repeat_interleave(pool * lanes)
    same = torch.full_like(each, GRAVITY if what == "force" else FORCE)
    forces, gravities = (each, same) if what == "force" else (same, each)
    return CartPoleField(forces, gravities, generator=generator)
