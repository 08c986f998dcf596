"""System identification: what cart, pole and balls really do, by regression.

Each tick gives two equations an axis for the cart and pole, and three a ball:

    dv = kick u + couple tilt dt + wind dt
    dw = growth tilt dt - lever dv + lean dt
    db + drag dt = origin, centroid, cart, down (unit directions, m/s2) dt

A tick with a hit in it fits no such equation and is left out: its residual under the
present estimate is far beyond what any of these explains.
"""

from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import Flags, Floats
from owa_bench.skills.balancing.model import LEVEL_0, Model
from owa_bench.skills.balancing.reading import EFFECTS, TICK, Seen

_HIT = 0.6  # m/s beyond the estimate: somebody was hit
_WALL = 4.2  # balls beyond it may bounce within the tick, m
_LOW, _HIGH = 0.75, 9.2
_APART = 1.3  # balls nearer to each other may touch, m
_DRAG = 0.04
_PLAIN = (LEVEL_0.kick, -0.9, 0.0, 0.0)
_TURN = (LEVEL_0.growth, LEVEL_0.lever, 0.0, 0.0)


class Fit:
    """A ridge regression that goes on: X'X and X'y, the prior within."""

    def __init__(self, means: tuple[float, ...], strengths: tuple[float, ...]) -> None:
        self._held = np.diag(strengths)
        self._sums = np.asarray(means) * np.asarray(strengths)
        self._found: Floats | None = np.asarray(means)

    def take(self, rows: Floats, values: Floats) -> None:
        """Add equations."""
        self._held = self._held + rows.T @ rows
        self._sums = self._sums + rows.T @ values
        self._found = None

    @property
    def found(self) -> Floats:
        """The estimate."""
        if self._found is None:
            self._found = np.linalg.solve(self._held, self._sums)
        return self._found


class Estimate(NamedTuple):
    """All that has been identified: cart, pole, balls."""

    cart: Fit
    pole: Fit
    balls: Fit

    @property
    def model(self) -> Model:
        """The linear model with what was found."""
        kick, _, *wind = self.cart.found
        growth, lever, *lean = self.pole.found
        return Model(
            kick=_coarse(max(float(kick), 0.005)),
            growth=_coarse(max(float(growth), 0.5)),
            lever=_coarse(max(float(lever), 0.02)),
            wind=(float(wind[0]), float(wind[1])),
            lean=(float(lean[0]), float(lean[1])),
        )


class Deviation(NamedTuple):
    """How far the estimate lies from level 0, in units of what is tolerated."""

    cart: float
    pole: float
    wind: float
    balls: float

    @property
    def largest(self) -> float:
        """The largest of them."""
        return max(self)


def fresh(model: Model = LEVEL_0) -> Estimate:
    """Return an estimate that believes `model` and calm air, and is easily moved.

    Wind and lean are an episode's own, so they begin at 0 each time.
    """
    return Estimate(
        cart=Fit((model.kick, _PLAIN[1], 0.0, 0.0), (2.0, 1e-6, 4e-4, 4e-4)),
        pole=Fit((model.growth, model.lever, 0.0, 0.0), (1e-8, 2e-3, 2e-2, 2e-2)),
        balls=Fit((0.0, 0.0, 0.0, 0.0), (1e-2,) * 4),
    )


def learn(estimate: Estimate, before: Seen, action: int, after: Seen) -> None:
    """Add what one tick showed."""
    push = EFFECTS[action]
    gained = after.velocity - before.velocity
    turned = after.rate - before.rate
    eye = np.eye(2)
    cart = np.column_stack((push, TICK * before.tilt, TICK * eye))
    if float(np.abs(gained - cart @ estimate.cart.found).max()) < _HIT:
        estimate.cart.take(cart, gained)
        pole = np.column_stack((TICK * before.tilt, -gained, TICK * eye))
        if float(np.abs(turned - pole @ estimate.pole.found).max()) < _HIT:
            estimate.pole.take(pole, turned)
    _learn_balls(estimate, before, after)


def _learn_balls(estimate: Estimate, before: Seen, after: Seen) -> None:
    """Add the balls that flew freely; none where one came or went."""
    count = len(before.places)
    if not count or len(after.places) != count:
        return
    rows, values = ball_equations(before, after)
    for row, value in zip(rows, values, strict=True):
        estimate.balls.take(row, value)


def ball_equations(before: Seen, after: Seen) -> tuple[list[Floats], list[Floats]]:
    """Return a (3, 4) block and three velocity changes for every free ball."""
    rows: list[Floats] = []
    values: list[Floats] = []
    centre = before.places.mean(axis=0)
    goals = (np.zeros(3), centre, np.array([before.cart[0], before.cart[1], 0.7]))
    for i in np.flatnonzero(free(before) & free(after)):
        place, speed = before.places[i], before.speeds[i]
        slow = _DRAG + _DRAG * float(np.linalg.norm(speed))
        change = after.speeds[i] - speed + slow * TICK * speed
        if float(np.linalg.norm(change)) > 4.0:
            continue
        columns = [TICK * _unit(goal - place) for goal in goals]
        columns.append(np.array([0.0, 0.0, -TICK]))
        rows.append(np.column_stack(columns))
        values.append(change)
    return rows, values


def free(seen: Seen) -> Flags:
    """Return which balls touch neither wall, nor each other, nor the cart or pole."""
    places = seen.places
    inside = (np.abs(places[:, :2]).max(axis=1) < _WALL) & (places[:, 2] > _LOW)
    inside &= places[:, 2] < _HIGH
    gaps = np.linalg.norm(places[:, None] - places[None], axis=-1)
    np.fill_diagonal(gaps, np.inf)
    alone = gaps.min(axis=1) > _APART
    beside = np.linalg.norm(places[:, :2] - seen.cart, axis=1) > _APART
    kept: Flags = inside & alone & (beside | (places[:, 2] > 2.0))
    return kept


def deviation(estimate: Estimate) -> Deviation:
    """Return how far the world is from level 0, each part by its own tolerance."""
    model = estimate.model
    balls = float(np.abs(estimate.balls.found).max())
    return Deviation(
        cart=abs(model.kick / LEVEL_0.kick - 1.0) / 0.15,
        pole=max(
            abs(model.growth / LEVEL_0.growth - 1.0) / 0.2,
            abs(model.lever / LEVEL_0.lever - 1.0) / 0.15,
        ),
        wind=float(np.hypot(*model.wind)) / 0.8,
        balls=balls / 1.5,
    )


def _coarse(value: float) -> float:
    """Return a number to two digits, so that few different regulators are solved."""
    return float(f"{value:.2g}")


def _unit(vector: Floats) -> Floats:
    size = float(np.linalg.norm(vector))
    return vector / size if size > 0.0 else vector
