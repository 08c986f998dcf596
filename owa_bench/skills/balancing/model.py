"""A linear model of cart and pole, tick by tick, and the value of a state under it.

Per axis, with u in {-1, 0, 1} the push along it:

    velocity' = velocity + kick u + wind dt
    rate'     = rate + dt growth tilt - lever (kick u + wind dt) + lean dt
    tilt'     = tilt + dt rate'           position' = position + dt velocity'

The value of a state is what a linear-quadratic regulator would still pay for it.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import Floats
from owa_bench.skills.balancing.reading import EFFECTS, TICK, Seen

# What regulating costs: position, velocity, tilt, rate. The first keeps the cart near
# its place; the second lets it roll and holds the pole, for worlds not known well.
Cost = tuple[float, float, float, float]
PLACED: Cost = (0.05, 0.05, 20.0, 1.0)
CAUTIOUS: Cost = (0.001, 0.05, 100.0, 50.0)
PUSH_COST = 0.002


class Model(NamedTuple):
    """Numbers of the linear model; the defaults are level 0's, from its masses.

    kick: velocity a push gives, m/s; growth: 1/s2 of a leaning pole; lever: tilt rate
    per velocity given to the cart, 1/m; wind: acceleration of the cart, and lean: of
    the tilt, by axis.
    """

    kick: float = 0.19845
    growth: float = 9.03
    lever: float = 0.9217
    wind: tuple[float, float] = (0.0, 0.0)
    lean: tuple[float, float] = (0.0, 0.0)


LEVEL_0 = Model()


def advance(model: Model, state: Floats, pushes: Floats) -> Floats:
    """Return states one tick on; (..., 4, 2) and (..., 2)."""
    position, velocity, tilt, rate = np.moveaxis(state, -2, 0)
    gained = model.kick * pushes + TICK * np.asarray(model.wind)
    velocity = velocity + gained
    rate = rate + TICK * (model.growth * tilt + np.asarray(model.lean))
    rate = rate - model.lever * gained
    tilt = tilt + TICK * rate
    return np.stack((position + TICK * velocity, velocity, tilt, rate), axis=-2)


def value(model: Model, state: Floats, target: Floats, cost: Cost = PLACED) -> Floats:
    """Return what is still to pay to stand upright and still at `target`."""
    off = state.copy()
    off[..., 0, :] -= target
    off[..., 2, :] -= _balance(model)
    matrix = _regulator(model.kick, model.growth, model.lever, cost)
    paid: Floats = np.einsum("...ia,ij,...ja->...", off, matrix, off)
    return paid


def choose(
    model: Model, seen: Seen, target: Floats, *, depth: int, cost: Cost = PLACED
) -> int:
    """Return the first action of the best sequence of `depth` actions."""
    states = seen.state[None]
    first = np.zeros(1, dtype=int)
    for ply in range(depth):
        count = len(states)
        pushes = np.tile(EFFECTS, (count, 1))
        states = advance(model, np.repeat(states, len(EFFECTS), axis=0), pushes)
        numbers = np.tile(np.arange(len(EFFECTS)), count)
        first = numbers if ply == 0 else np.repeat(first, len(EFFECTS))
    return int(first[int(np.argmin(value(model, states, target, cost)))])


def surprise(model: Model, before: Seen, action: int, after: Seen) -> Floats:
    """Return what the model did not foresee: velocity and rate by axis, (2, 2)."""
    foreseen = advance(model, before.state, EFFECTS[action])
    return np.stack((after.velocity - foreseen[1], after.rate - foreseen[3]))


def _balance(model: Model) -> Floats:
    """Return the tilt at which the pole stays up while the cart holds its place.

    Against wind the cart must be pushed by -wind on average, which the pole feels as
    nothing; what remains is a lean of its own.
    """
    held: Floats = -np.asarray(model.lean, dtype=float) / max(model.growth, 0.5)
    return held


@lru_cache(maxsize=64)
def _regulator(kick: float, growth: float, lever: float, cost: Cost) -> Floats:
    """Return the cost-to-go matrix of the regulator of one axis."""
    from scipy.linalg import solve_discrete_are

    dt = TICK
    a = np.array(
        [
            [1.0, dt, 0.0, 0.0],
            [0.0, 1.0, 0.0, 0.0],
            [0.0, 0.0, 1.0 + dt * dt * growth, dt],
            [0.0, 0.0, dt * growth, 1.0],
        ]
    )
    b = np.array([[dt * kick], [kick], [-dt * lever * kick], [-lever * kick]])
    found: Floats = solve_discrete_are(a, b, np.diag(cost), np.array([[PUSH_COST]]))
    return found
