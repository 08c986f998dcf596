"""Observations and rollouts of the linear model, for tests of the balancing skills."""

import numpy as np

from owa_bench.agents.solvers.balancing.control import EFFECTS, BalanceState, advance


def observation(*, cart=(0, 0), speed=(0, 0), lean=(0, 0), spin=(0, 0, 0), balls=()):
    """Return a full observation; the pole leans by small angles along x and y."""
    x, y = lean
    pole = (-y / 2, x / 2, 0.0, 1.0)  # leaning to +x is a turn about +y
    row = [*cart, *speed, *pole, *spin]
    for place, velocity in balls:
        row += [1.0, *place, *velocity]
    return np.array(row + [0.0] * (39 - len(row)), dtype=np.float32)


def balance_state(state):
    """Return a (4, 2) state without balls."""
    nobody = np.zeros((0, 3))
    return BalanceState(*state, nobody, nobody)


def rollout(model, ticks, rng, wind=(0.0, 0.0)):
    """Yield (before, action, after) of random pushes in a world that is the model."""
    state = np.array([[0, 0], [0, 0], [0.01, -0.02], [0.01, 0.02]], dtype=float)
    world = model._replace(wind=wind)
    for _ in range(ticks):
        action = int(rng.integers(5))
        after = advance(world, state, EFFECTS[action])
        yield balance_state(state), action, balance_state(after)
        state = after
        state[2:] *= 0.5  # somebody keeps the pole up
