"""Control of CartPole3D: observations, PD rule, linear model and LQR, ball forecast.

The full observation is eleven numbers on cart and pole and then seven a ball.

    0-1 cart x, y      2-3 its velocity      4-7 pole quaternion x, y, z, w
    8-10 angular velocity of the pole in the world
    then a ball: presence, place x, y, z, velocity x, y, z

The linear model, per axis, with u in {-1, 0, 1} the push along it:

    velocity' = velocity + kick u + wind dt
    rate'     = rate + dt growth tilt - lever (kick u + wind dt) + lean dt
    tilt'     = tilt + dt rate'           position' = position + dt velocity'

The value of a state is the cost to go of a linear-quadratic regulator on this model.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from owa_bench.records.observables import Floats

CORE = 11
PER_BALL = 7
EFFECTS = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], dtype=float)
TICK = 0.02  # s between two observations

# Weights of position, velocity, tilt and rate in the regulator's cost. The first keeps
# the cart near its place; the second lets it roll and holds the pole, for worlds that
# are not known well.
Cost = tuple[float, float, float, float]
PLACED: Cost = (0.05, 0.05, 20.0, 1.0)
CAUTIOUS: Cost = (0.001, 0.05, 100.0, 50.0)
PUSH_COST = 0.002

HORIZON_S = 2.0  # s of flight that are forecast
_TIMES = np.arange(0.06, HORIZON_S, 0.06)
_LOW = np.array([-4.45, -4.45, 0.45])  # centres of balls of radius 0.5 stay within
_HIGH = np.array([4.45, 4.45, 9.45])
_REACH = 1.75  # a ball centre above this touches neither pole nor cart
_CLEAR = 1.15  # horizontal distance that is safe, m
DRAG = 0.04  # of balls, 1/s and 1/m
_STEPS = (0.5, 1.0, 1.5)
_ROUND = np.arange(8) * (np.pi / 4)
_OFFSETS = np.concatenate(
    [np.zeros((1, 2)), *(step * np.stack((np.cos(_ROUND), np.sin(_ROUND)), 1) for step in _STEPS)]
)
_SHIFT_COST = 0.02
_EDGE = 3.2  # the cart stays within, m


class BalanceState(NamedTuple):
    """Cart and pole by axis (x, y), and the balls that are there, (n, 3) each.

    `tilt` is how far the pole's unit vector leans along the axis (radians, for small angles),
    `rate` its change per second.
    """

    cart: Floats
    velocity: Floats
    tilt: Floats
    rate: Floats
    places: Floats
    speeds: Floats

    @property
    def table(self) -> Floats:
        """Position, velocity, tilt and rate by row, an axis a column: (4, 2)."""
        return np.stack((self.cart, self.velocity, self.tilt, self.rate))


def parse_observation(observation: Any) -> BalanceState:
    """Return the state that a full or core observation describes."""
    numbers = np.asarray(observation, dtype=float)
    x, y, z, w = numbers[4:8]
    lean = np.array([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)])
    spin = numbers[8:11]
    rate = np.array([spin[1] * lean[2] - spin[2] * lean[1], spin[2] * lean[0] - spin[0] * lean[2]])
    size = (len(numbers) - CORE) // PER_BALL * PER_BALL
    balls = numbers[CORE : CORE + size].reshape(-1, PER_BALL)
    there = balls[balls[:, 0] > 0.5]
    return BalanceState(numbers[0:2], numbers[2:4], lean[:2], rate, there[:, 1:4], there[:, 4:7])


# --- the proportional-derivative rule -------------------------------------------------

# Weights of the error's terms; an error below the band calls for no push.
TILT, RATE, POSITION, VELOCITY, BAND = 1.0, 0.5, 0.02, 0.05, 0.002


def pd_error(tilt: float, rate: float, position: float, velocity: float) -> float:
    """Return the error of the rule along an axis.

    Args:
        tilt: of the pole along the axis, rad.
        rate: its change, rad/s.
        position: of the cart, m.
        velocity: of the cart, m/s.
    Source: docs/cartpole3d.md#agents.
    """
    return TILT * tilt + RATE * rate + POSITION * position + VELOCITY * velocity


def push_against(x: float, y: float) -> int:
    """Return the push along the axis with the larger error, 0 within the band.

    Args:
        x: error along x.
        y: error along y.
    Returns: Number of the action, 0 to 4.
    """
    if max(abs(x), abs(y)) <= BAND:
        return 0
    if abs(x) >= abs(y):
        return 1 if x > 0 else 2
    return 3 if y > 0 else 4


def pd_action(state: BalanceState) -> int:
    """Return what the rule does, 0 to 4."""
    return push_against(*map(pd_error, state.tilt, state.rate, state.cart, state.velocity))


# --- the linear model and its regulator -----------------------------------------------


class LinearModel(NamedTuple):
    """Numbers of the linear model; the defaults are level 0's, from its masses.

    kick: velocity a push gives, m/s; growth: 1/s2 of a leaning pole; lever: tilt rate per velocity
    given to the cart, 1/m; wind: acceleration of the cart, and lean: of the tilt, by axis.
    """

    kick: float = 0.19845
    growth: float = 9.03
    lever: float = 0.9217
    wind: tuple[float, float] = (0.0, 0.0)
    lean: tuple[float, float] = (0.0, 0.0)


LEVEL_0 = LinearModel()


def advance(model: LinearModel, states: Floats, pushes: Floats) -> Floats:
    """Return states one tick on.

    Args:
        model: the linear model.
        states: (..., 4, 2) position, velocity, tilt, rate by axis.
        pushes: (..., 2) in {-1, 0, 1} by axis.
    Returns: (..., 4, 2).
    """
    position, velocity, tilt, rate = np.moveaxis(states, -2, 0)
    gained = model.kick * pushes + TICK * np.asarray(model.wind)
    velocity = velocity + gained
    rate = rate + TICK * (model.growth * tilt + np.asarray(model.lean))
    rate = rate - model.lever * gained
    tilt = tilt + TICK * rate
    return np.stack((position + TICK * velocity, velocity, tilt, rate), axis=-2)


def cost_to_go(model: LinearModel, states: Floats, target: Floats, cost: Cost = PLACED) -> Floats:
    """Return the regulator's remaining cost of standing upright and still at a place.

    Against wind the cart must be pushed by -wind on average, which the pole feels as nothing; a
    lean of the model's own is held by a tilt against it.

    Args:
        model: the linear model.
        states: (..., 4, 2).
        target: (2,) place of the cart, m.
        cost: weights of the regulator.
    Returns: (...,) cost.
    """
    off = states.copy()
    off[..., 0, :] -= target
    off[..., 2, :] -= -np.asarray(model.lean, dtype=float) / max(model.growth, 0.5)
    matrix = _regulator(model.kick, model.growth, model.lever, cost)
    total: Floats = np.einsum("...ia,ij,...ja->...", off, matrix, off)
    return total


def choose_action(
    model: LinearModel, state: BalanceState, target: Floats, *, depth: int, cost: Cost = PLACED
) -> int:
    """Return the first action of the best of all sequences of actions.

    Args:
        model: the linear model.
        state: the present state.
        target: (2,) place to make for, m.
        depth: actions of a sequence.
        cost: weights of the regulator that values where a sequence ends.
    Returns: Number of the action, 0 to 4.
    """
    states = state.table[None]
    first = np.zeros(1, dtype=int)
    for ply in range(depth):
        count = len(states)
        pushes = np.tile(EFFECTS, (count, 1))
        states = advance(model, np.repeat(states, len(EFFECTS), axis=0), pushes)
        numbers = np.tile(np.arange(len(EFFECTS)), count)
        first = numbers if ply == 0 else np.repeat(first, len(EFFECTS))
    return int(first[int(np.argmin(cost_to_go(model, states, target, cost)))])


def plan_action(model: LinearModel, state: BalanceState, *, depth: int, cost: Cost = PLACED) -> int:
    """Return the first action of the best sequence, out of the way of balls.

    Args:
        model: the linear model.
        state: the present state.
        depth: actions of a sequence.
        cost: weights of the regulator.
    Returns: Number of the action, 0 to 4.
    """
    target = safest_target(state, np.zeros(2))
    return choose_action(model, state, target, depth=depth, cost=cost)


def prediction_error(
    model: LinearModel, before: BalanceState, action: int, after: BalanceState
) -> Floats:
    """Return what the model did not predict of one tick.

    Args:
        model: the linear model.
        before: state before the action.
        action: number of the action.
        after: state one tick later.
    Returns: (2, 2): velocity (m/s) and tilt rate (1/s) by row, an axis a column.
    """
    predicted = advance(model, before.table, EFFECTS[action])
    return np.stack((after.velocity - predicted[1], after.rate - predicted[3]))


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
    matrix: Floats = solve_discrete_are(a, b, np.diag(cost), np.array([[PUSH_COST]]))
    return matrix


# --- the forecast of balls ------------------------------------------------------------


def forecast_balls(state: BalanceState) -> Floats:
    """Return where every ball will be, (times, balls, 3) in metres.

    Balls fly straight, slowed by drag, and bounce off the walls.
    """
    speed = np.linalg.norm(state.speeds, axis=1)
    slow = DRAG + DRAG * speed
    flown = (1.0 - np.exp(-slow * _TIMES[:, None])) / slow
    at = state.places + state.speeds * flown[..., None]
    width = _HIGH - _LOW
    folded = np.mod(at - _LOW, 2.0 * width)
    places: Floats = _LOW + np.where(folded > width, 2.0 * width - folded, folded)
    return places


def safest_target(state: BalanceState, home: Floats) -> Floats:
    """Return the place to make for: `home`, unless balls come that way.

    Args:
        state: the present state.
        home: (2,) place that is kept while nothing comes, m.
    Returns: (2,) the candidate about the cart whose way is clearest of balls, m.
    """
    if not len(state.places):
        return home
    places = forecast_balls(state)
    low = places[..., 2] < _REACH
    if not low.any():
        return home
    targets = np.clip(state.cart + _OFFSETS, -_EDGE, _EDGE)
    share = np.minimum(_TIMES / HORIZON_S, 1.0) ** 2
    moved = state.cart + share[:, None, None] * (targets - state.cart)
    gaps = np.linalg.norm(
        places[:, None, :, :2] - moved[:, :, None, :], axis=-1
    )  # (times, targets, balls)
    close = np.where(low[:, None, :], np.maximum(_CLEAR - gaps, 0.0), 0.0)
    danger = close.sum(axis=(0, 2))
    if danger[0] <= 0.0:
        return home
    danger = danger + _SHIFT_COST * np.linalg.norm(targets - home, axis=1)
    best: Floats = targets[int(np.argmin(danger))]
    return best
