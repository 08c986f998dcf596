"""Novelty detection for CartPole3D: system identification, Pareto tails, statements.

System identification: each tick gives two equations an axis for the cart and pole, and
three a ball:

    dv = kick u + couple tilt dt + wind dt
    dw = growth tilt dt - lever dv + lean dt
    db + drag dt = origin, centroid, cart, down (unit directions, m/s2) dt

A tick with a hit in it fits no such equation and is left out: its residual under the present
estimate is far beyond what any of these explains.

Pareto tails: above a high threshold, excesses of almost any quantity follow a generalised Pareto
law (Pickands, Ann. Statist. 3 (1975)). It is fitted on ticks of plain episodes; a prediction error
that it gives less than a stated chance is an exceedance, and many of these in one episode do not
happen by chance.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from owa_bench.agents.solvers.balancing.control import (
    DRAG,
    EFFECTS,
    LEVEL_0,
    TICK,
    BalanceState,
    LinearModel,
    parse_observation,
)
from owa_bench.interfaces import Brief, Move, ToolSpec
from owa_bench.records.observables import Flags, Floats

_HIT = 0.6  # m/s beyond the estimate: a collision
_WALL = 4.2  # balls beyond it may bounce within the tick, m
_LOW, _HIGH = 0.75, 9.2
_APART = 1.3  # balls nearer to each other may touch, m
_COUPLING = -0.9  # prior of the pole's pull on the cart, m/s2 a radian

TAIL_SHARE = 0.1  # of the reference lies above the fit's threshold
_LEAST = 60  # values below which no tail is fitted

NOVELTY, THRESHOLD = "novelty", "novelty_threshold"
_STEP = 0.02  # smaller changes are not worth an event


class RidgeRegression:
    """A ridge regression that is updated in place: X'X and X'y, the prior within."""

    def __init__(self, means: tuple[float, ...], strengths: tuple[float, ...]) -> None:
        self._gram = np.diag(strengths)
        self._moments = np.asarray(means) * np.asarray(strengths)
        self._solution: Floats | None = np.asarray(means)

    def update(self, rows: Floats, values: Floats) -> None:
        """Add equations.

        Args:
            rows: (equations, coefficients).
            values: (equations,) right-hand sides.
        """
        self._gram = self._gram + rows.T @ rows
        self._moments = self._moments + rows.T @ values
        self._solution = None

    @property
    def coefficients(self) -> Floats:
        """The estimate, (coefficients,)."""
        if self._solution is None:
            self._solution = np.linalg.solve(self._gram, self._moments)
        return self._solution


class DynamicsEstimate(NamedTuple):
    """The regressions of cart, pole and balls."""

    cart: RidgeRegression
    pole: RidgeRegression
    balls: RidgeRegression

    @property
    def model(self) -> LinearModel:
        """The linear model with the estimated numbers."""
        kick, _, *wind = self.cart.coefficients
        growth, lever, *lean = self.pole.coefficients
        return LinearModel(
            kick=_two_digits(max(float(kick), 0.005)),
            growth=_two_digits(max(float(growth), 0.5)),
            lever=_two_digits(max(float(lever), 0.02)),
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


def initial_estimate(model: LinearModel = LEVEL_0) -> DynamicsEstimate:
    """Return an estimate that believes `model` and calm air, and is easily moved.

    Wind and lean are an episode's own, so they begin at 0 each time.
    """
    return DynamicsEstimate(
        cart=RidgeRegression((model.kick, _COUPLING, 0.0, 0.0), (2.0, 1e-6, 4e-4, 4e-4)),
        pole=RidgeRegression((model.growth, model.lever, 0.0, 0.0), (1e-8, 2e-3, 2e-2, 2e-2)),
        balls=RidgeRegression((0.0, 0.0, 0.0, 0.0), (1e-2,) * 4),
    )


def update_estimate(
    estimate: DynamicsEstimate, before: BalanceState, action: int, after: BalanceState
) -> None:
    """Add the equations of one tick, in place.

    Args:
        estimate: the estimate that is updated.
        before: state before the action.
        action: number of the action.
        after: state one tick later.
    """
    push = EFFECTS[action]
    gained = after.velocity - before.velocity
    turned = after.rate - before.rate
    eye = np.eye(2)
    cart = np.column_stack((push, TICK * before.tilt, TICK * eye))
    if float(np.abs(gained - cart @ estimate.cart.coefficients).max()) < _HIT:
        estimate.cart.update(cart, gained)
        pole = np.column_stack((TICK * before.tilt, -gained, TICK * eye))
        if float(np.abs(turned - pole @ estimate.pole.coefficients).max()) < _HIT:
            estimate.pole.update(pole, turned)
    count = len(before.places)
    if count and len(after.places) == count:
        for rows, values in _ball_equations(before, after):
            estimate.balls.update(rows, values)


def _ball_equations(before: BalanceState, after: BalanceState) -> list[tuple[Floats, Floats]]:
    """Return a (3, 4) block and three velocity changes for every free ball."""
    equations: list[tuple[Floats, Floats]] = []
    centre = before.places.mean(axis=0)
    goals = (np.zeros(3), centre, np.array([before.cart[0], before.cart[1], 0.7]))
    for i in np.flatnonzero(free_balls(before) & free_balls(after)):
        place, speed = before.places[i], before.speeds[i]
        slow = DRAG + DRAG * float(np.linalg.norm(speed))
        change = after.speeds[i] - speed + slow * TICK * speed
        if float(np.linalg.norm(change)) > 4.0:
            continue
        columns = [TICK * _unit(goal - place) for goal in goals]
        columns.append(np.array([0.0, 0.0, -TICK]))
        equations.append((np.column_stack(columns), change))
    return equations


def free_balls(state: BalanceState) -> Flags:
    """Return (balls,) which touch neither wall, nor each other, nor cart or pole."""
    places = state.places
    inside = (np.abs(places[:, :2]).max(axis=1) < _WALL) & (places[:, 2] > _LOW)
    inside &= places[:, 2] < _HIGH
    gaps = np.linalg.norm(places[:, None] - places[None], axis=-1)
    np.fill_diagonal(gaps, np.inf)
    alone = gaps.min(axis=1) > _APART
    beside = np.linalg.norm(places[:, :2] - state.cart, axis=1) > _APART
    free: Flags = inside & alone & (beside | (places[:, 2] > 2.0))
    return free


def deviation(estimate: DynamicsEstimate) -> Deviation:
    """Return how far the world is from level 0, each part by its own tolerance."""
    model = estimate.model
    balls = float(np.abs(estimate.balls.coefficients).max())
    return Deviation(
        cart=abs(model.kick / LEVEL_0.kick - 1.0) / 0.15,
        pole=max(
            abs(model.growth / LEVEL_0.growth - 1.0) / 0.2,
            abs(model.lever / LEVEL_0.lever - 1.0) / 0.15,
        ),
        wind=float(np.hypot(*model.wind)) / 0.8,
        balls=balls / 1.5,
    )


def _two_digits(value: float) -> float:
    """Return a number to two digits, so that few different regulators are solved."""
    return float(f"{value:.2g}")


def _unit(vector: Floats) -> Floats:
    size = float(np.linalg.norm(vector))
    return vector / size if size > 0.0 else vector


# --- extreme values -------------------------------------------------------------------


class ParetoTail(NamedTuple):
    """A fitted tail; the chance of a value above `start` falls by the Pareto law."""

    start: float
    shape: float
    scale: float

    def level(self, chance: float) -> float:
        """Return the value that is exceeded with `chance` (below `TAIL_SHARE`)."""
        from scipy.stats import genpareto

        excess = genpareto.isf(chance / TAIL_SHARE, self.shape, scale=self.scale)
        return self.start + float(excess)


def fit_tail(values: Sequence[float] | Floats) -> ParetoTail | None:
    """Return the tail of a reference.

    Args:
        values: (n,) the reference, of any unit.
    Returns: The fitted tail; None where the reference holds too few values for one.
    """
    from scipy.stats import genpareto

    known = np.asarray(values, dtype=float)
    if known.size < _LEAST:
        return None
    start = float(np.quantile(known, 1.0 - TAIL_SHARE))
    excess = known[known > start] - start
    if excess.size < 5 or float(excess.max()) <= 0.0:
        return ParetoTail(start=start, shape=0.0, scale=max(1e-6, 0.1 * abs(start)))
    shape, _, scale = genpareto.fit(excess, floc=0.0)
    return ParetoTail(
        start=start, shape=float(min(max(shape, -0.5), 0.9)), scale=float(max(scale, 1e-6))
    )


def exceedance_probability(count: int, ticks: int, chance: float) -> float:
    """Return the probability of so many exceedances or more by chance alone.

    Args:
        count: exceedances counted.
        ticks: ticks in which one could have come.
        chance: of an exceedance in one tick.
    Returns: Upper tail of the binomial law, in [0, 1].
    """
    from scipy.stats import binom

    return float(binom.sf(count - 1, max(ticks, 1), chance)) if count else 1.0


# --- statements -----------------------------------------------------------------------


class NoveltyStatement(NamedTuple):
    """A probability that this episode is novel, and the threshold for calling it so."""

    p: float
    threshold: float = 0.5


class NoveltyReporter:
    """Adds a statement to a move where it differs from the last one."""

    def __init__(self) -> None:
        self._last: NoveltyStatement | None = None

    def move(self, action: int, now: NoveltyStatement) -> Move:
        """Return the move with beliefs where the statement is new.

        Args:
            action: number of the action.
            now: the present statement; p is clipped to [0, 1].
        """
        bounded = NoveltyStatement(min(max(now.p, 0.0), 1.0), now.threshold)
        if self._last is not None and not _differs(self._last, bounded):
            return Move(action)
        self._last = bounded
        return Move(action, beliefs=((NOVELTY, bounded.p), (THRESHOLD, bounded.threshold)))


def _differs(a: NoveltyStatement, b: NoveltyStatement) -> bool:
    crossed = (a.p >= a.threshold) != (b.p >= b.threshold)
    return crossed or abs(a.p - b.p) >= _STEP


class NoveltyAgent(ABC):
    """Base of agents that observe every tick, state novelty and remember in a file.

    A subclass gives `FILE`, the name of the file in the memory folder, and the abstract methods.
    `ticks` counts the transitions of the episode so far.
    """

    FILE: ClassVar[str]

    _path: Path | None = None

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode with the memory of the last one.

        Args:
            brief: plays no part.
            tools: play no part.
            memory_dir: folder of the memory.
        """
        self._path = memory_dir / self.FILE
        self._before: tuple[BalanceState, int] | None = None
        self._reporter = NoveltyReporter()
        self.ticks = 0
        self.begin(self._path.read_bytes() if self._path.exists() else None)

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the action, with a statement of novelty where it is new.

        Args:
            observation: of the env, full or core.
            info: Gymnasium's.
        """
        state = parse_observation(observation)
        if self._before is not None:
            self.ticks += 1
            self.observe(*self._before, state)
        action = self.choose(state, observation, info)
        self._before = (state, action)
        return self._reporter.move(action, self.statement())

    def close(self) -> None:
        """Write the memory."""
        memory = self.memory() if self._path else None
        if self._path and memory is not None:
            self._path.write_bytes(msgspec.json.encode(memory))

    @abstractmethod
    def begin(self, memory: bytes | None) -> None:
        """Begin an episode with the JSON of the memory, None where there is none."""

    @abstractmethod
    def observe(self, before: BalanceState, action: int, after: BalanceState) -> None:
        """Learn from one tick.

        Args:
            before: state before the action.
            action: number of the action.
            after: state one tick later.
        """

    @abstractmethod
    def choose(self, state: BalanceState, observation: Any, info: Mapping[str, Any]) -> int:
        """Return the number of the next action.

        Args:
            state: the present state.
            observation: that it was read from.
            info: Gymnasium's.
        Returns: 0 to 4.
        """

    @abstractmethod
    def statement(self) -> NoveltyStatement:
        """Return the present statement of novelty."""

    @abstractmethod
    def memory(self) -> msgspec.Struct | None:
        """Return what the next episode begins with; None leaves the file as it is."""
