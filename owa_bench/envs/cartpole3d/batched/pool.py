"""Start states for many lanes: drawn once by the law that both backends share."""

from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from owa_bench import seeding
from owa_bench.envs.cartpole3d.start import Ball, State, draw_start
from owa_bench.worlds.physics import PhysicsWorld

AWAY = 1000.0  # m: where balls that are not there are kept, far from one another


class Lanes(NamedTuple):
    """The state of many lanes, a column each; `step` changes it in place.

    cart, cart_velocity: (2, lanes). pole: quaternions (4, lanes). pole_velocity:
    (3, lanes) in the world. balls, velocity, rails: (3, slots, lanes); there, moving:
    (slots, lanes). bounce: restitution of a ball. heading: of the wind (2, lanes).
    began: the cart's first place; travel: its place when a ball last came. seen_cart,
    seen_pole: poses before the last tick, which a world with lag shows. came: balls so
    far; ticks: agent's steps; age: ticks before them; seeds: of the episode.
    """

    cart: Tensor
    cart_velocity: Tensor
    pole: Tensor
    pole_velocity: Tensor
    balls: Tensor
    velocity: Tensor
    rails: Tensor
    there: Tensor
    moving: Tensor
    bounce: Tensor
    heading: Tensor
    push: Tensor
    began: Tensor
    travel: Tensor
    seen_cart: Tensor
    seen_pole: Tensor
    came: Tensor
    ticks: Tensor
    age: Tensor
    seeds: Tensor

    def take(self, at: Tensor) -> Self:
        """Return a copy of the columns `at`."""
        return type(self)(*(part.index_select(-1, at) for part in self))

    def put(self, at: Tensor, other: Self) -> None:
        """Replace the columns `at` by those of `other`."""
        for mine, part in zip(self, other, strict=True):
            mine.index_copy_(-1, at, part)

    def seen(self, lag: bool) -> tuple[Tensor, Tensor]:
        """Return the poses of cart and pole that a world with or without lag shows."""
        return (self.seen_cart, self.seen_pole) if lag else (self.cart, self.pole)

    def used(self) -> Self:
        """Return these lanes without the slots that no ball has taken yet."""
        count = max(int(self.came.max()), 1)
        parts = {
            name: getattr(self, name)[..., :count, :].contiguous() for name in _BY_SLOT
        }
        return self._replace(**parts)

    def keep(self, used: Self) -> None:
        """Take over what a tick changed in `used`."""
        count = used.there.shape[0]
        self.balls[:, :count] = used.balls
        self.velocity[:, :count] = used.velocity


_BY_SLOT = ("balls", "velocity", "rails", "there", "moving")


def drawn(world: PhysicsWorld, count: int, seed: int) -> list[State]:
    """Return `count` starts of a world, each of its own stream."""
    return [draw_start(world, seeding.stream(seed, "batched", i)) for i in range(count)]


def lanes_of(
    states: list[State], slots: int, *, device: torch.device, dtype: torch.dtype
) -> Lanes:
    """Return exact states as columns; `slots` is the room for balls."""

    def column(rows: list[tuple[float, ...]]) -> Tensor:
        table = np.asarray(rows, dtype=np.float64).T
        return torch.as_tensor(table, dtype=dtype, device=device).contiguous()

    def balls(part: str) -> Tensor:
        rows = [[_of(state, i, part) for state in states] for i in range(slots)]
        table = torch.as_tensor(np.asarray(rows), dtype=dtype, device=device)
        return table.permute(2, 0, 1).contiguous()

    cart, pole, rates = (
        column([getattr(state, name) for state in states])
        for name in ("cart", "pole", "rates")
    )
    flags = balls("flags")
    whole = torch.zeros(len(states), dtype=torch.int64, device=device)
    return Lanes(
        cart=cart,
        cart_velocity=column([state.velocity for state in states]),
        pole=pole,
        pole_velocity=_in_world(pole, rates),
        balls=balls("position"),
        velocity=balls("velocity"),
        rails=balls("rail"),
        there=flags[0] > 0,
        moving=flags[1].contiguous(),
        bounce=column([(state.restitution,) for state in states])[0].contiguous(),
        heading=column([state.wind for state in states]),
        push=column([state.push for state in states]),
        began=cart.clone(),
        travel=cart.clone(),
        seen_cart=cart.clone(),
        seen_pole=pole.clone(),
        came=(flags[0] > 0).sum(0),
        ticks=whole.clone(),
        age=whole.clone(),
        seeds=whole,
    )


def _of(state: State, i: int, part: str) -> tuple[float, ...]:
    """Return one ball's part of a state; an empty slot's is far away and at rest."""
    ball = state.balls[i] if i < len(state.balls) else None
    if part == "flags":
        return (float(ball is not None), float(ball is not None and not ball.fixed), 0)
    if ball is None:
        return (AWAY + 100.0 * i, AWAY, AWAY) if part == "position" else (0.0, 0.0, 0.0)
    if part == "rail":
        return (*ball.rail, 0.0) if ball.rail else (0.0, 0.0, 0.0)
    return _triple(ball, part)


def _triple(ball: Ball, part: str) -> tuple[float, ...]:
    return ball.position if part == "position" else ball.velocity


def _in_world(q: Tensor, rates: Tensor) -> Tensor:
    """Return joint rates, kept in the pole's own frame, as seen in the world."""
    axis, w = q[:3], q[3]
    twice = 2.0 * torch.linalg.cross(axis, rates, dim=0)
    turned: Tensor = rates + w * twice + torch.linalg.cross(axis, twice, dim=0)
    return turned
