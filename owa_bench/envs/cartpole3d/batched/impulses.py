"""How contacts push: speeds of parting, impulses, and what they do to bodies.

The law is PyBullet's, read off single contacts of it (tests/envs/cartpole3d). A contact
asks for a speed of parting: restitution times the speed of approach if that is at
least `SLOW`, plus `PUSH_OUT` times the depth; where bodies do not touch yet, less the
gap over the tick. It only pushes, without friction.

Balls are numbered slot * lanes + lane; lists hold contacts of all lanes.
"""

from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from owa_bench.envs.cartpole3d.batched.dynamics import (
    Body,
    Vector,
    cross,
    direction,
    dot,
    solve,
)

SLOW = 0.2  # m/s: below it nothing bounces
PUSH_OUT = 4.0  # 1/s: PyBullet's 0.08 of the depth in a tick of 0.02 s
SLOP = 1e-5  # m: depth that PyBullet lets be


class Motion(NamedTuple):
    """What a tick's contacts read and change: velocities change in place.

    cart: places and velocities (2, lanes). pole: quaternions (4, lanes), angular
    velocities (3, lanes). balls: (3, balls) each; moving: 1 a ball that can move;
    rails: unit axes (3, balls) of balls that are bound to one, zero for others, None
    where no ball is.
    """

    cart: Tensor
    cart_velocity: Tensor
    pole: Tensor
    pole_velocity: Tensor
    balls: Tensor
    velocity: Tensor
    moving: Tensor
    rails: Tensor | None


class Touch(NamedTuple):
    """A list of contacts that one sweep handles at once.

    ball: number of the ball or None; other: of the second ball or None; lane: of cart
    and pole or None; arm: from the joint to the touched point of the pole, None for the
    cart itself. normal points from the other body to the ball (or out of the wall).
    `answer` is what a unit of impulse does to cart and pole, `inverse` 1 / (sum of
    inverse masses), `wanted` the speed of parting, `given` the impulse so far.
    """

    ball: Tensor | None
    other: Tensor | None
    lane: Tensor | None
    arm: Vector | None
    normal: Vector
    answer: tuple[Tensor, ...]
    inverse: Tensor
    wanted: Tensor
    given: Tensor

    def only(self, mask: Tensor) -> Self:
        """Return the contacts that a mask names."""
        parts: dict[str, Any] = {}
        for name, part in zip(self._fields, self, strict=True):
            if isinstance(part, tuple):
                parts[name] = tuple(one[mask] for one in part)
            else:
                parts[name] = None if part is None else part[mask]
        return self._replace(**parts)


def sweep(motion: Motion, touch: Touch, mass: float) -> float:
    """Push every contact of a list to its wanted speed; return the largest change."""
    lack = touch.wanted - parting(motion, touch)
    total = (touch.given + lack * touch.inverse).clamp_min(0.0)
    change = total - touch.given
    touch.given.copy_(total)
    apply(motion, touch, change, mass)
    return float(change.abs().max()) / mass


def parting(motion: Motion, touch: Touch) -> Tensor:
    """Return the speed at which the two sides of each contact part."""
    n = touch.normal
    speed = torch.zeros_like(touch.inverse)
    if touch.ball is not None:
        speed = dot(columns(motion.velocity, touch.ball), n)
    if touch.other is not None:
        speed = speed - dot(columns(motion.velocity, touch.other), n)
    if touch.lane is not None:
        at = motion.cart_velocity[:, touch.lane]
        side = at[0] * n[0] + at[1] * n[1]
        if touch.arm is not None:
            swing = cross(columns(motion.pole_velocity, touch.lane), touch.arm)
            side = side + dot(swing, n)
        # Without a ball the wall is the other side: it pushes the cart along n.
        speed = speed - side if touch.ball is not None else side
    return speed


def apply(motion: Motion, touch: Touch, change: Tensor, mass: float) -> None:
    """Give impulses to both sides."""
    if touch.ball is not None:
        strike(motion, touch.ball, touch.normal, change / mass)
    if touch.other is not None:
        strike(motion, touch.other, touch.normal, -change / mass)
    if touch.lane is not None:
        for i in range(2):
            motion.cart_velocity[i].index_add_(0, touch.lane, touch.answer[i] * change)
        for i in range(3):
            part = touch.answer[2 + i] * change
            motion.pole_velocity[i].index_add_(0, touch.lane, part)


def strike(motion: Motion, ball: Tensor, n: Vector, speed: Tensor) -> None:
    """Add a speed along n to balls, as far as they can take it."""
    free = speed * motion.moving[ball]
    along = n
    if motion.rails is not None:
        along = bound(motion.rails, ball, n)
    for i in range(3):
        motion.velocity[i].index_add_(0, ball, along[i] * free)


def bound(rails: Tensor, ball: Tensor, n: Vector) -> Vector:
    """Return n where balls are free, its part along the rail where they are not."""
    axis = columns(rails, ball)
    bound = dot(axis, axis)
    share = dot(axis, n)
    x, y, z = (axis[i] * share + (1.0 - bound) * n[i] for i in range(3))
    return x, y, z


def softness(motion: Motion, ball: Tensor, n: Vector, mass: float) -> Tensor:
    """Return what a unit of impulse along n does to a ball's speed along n."""
    if motion.rails is None:
        return motion.moving[ball] / mass
    return motion.moving[ball] * dot(bound(motion.rails, ball, n), n) / mass


def columns(table: Tensor, at: Tensor) -> Vector:
    """Return the columns `at` of a table (3, n)."""
    return table[0][at], table[1][at], table[2][at]


def wanted(
    approach: Tensor, bounce: Tensor | float, gap: Tensor, tick: float
) -> Tensor:
    """Return the speed of parting that a contact asks for."""
    back = torch.where(approach >= SLOW, approach * bounce, torch.zeros_like(approach))
    gap = gap + SLOP
    return back + torch.where(gap > 0.0, gap / -tick, gap * -PUSH_OUT)


def inverse(softness: Tensor) -> Tensor:
    """Return 1 / softness, 0 where nothing can move."""
    hard = softness <= 1e-12
    return torch.where(hard, torch.zeros_like(softness), 1.0 / softness)


def finished(
    motion: Motion, touch: Touch, bounce: Tensor | float, tick: float
) -> Touch:
    """Return a list whose `wanted` held gaps with the wanted speeds instead."""
    approach = -parting(motion, touch)
    return touch._replace(wanted=wanted(approach, bounce, touch.wanted, tick))


def answer(
    body: Body, motion: Motion, lane: Tensor, push: Vector, arm: Vector | None
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return what a unit of impulse along `push` does to cart and pole.

    First the changes of velocity (cart x, y, pole x, y, z), then the speed that the
    touched point gains along `push`.
    """
    d = direction(motion.pole[:, lane])
    m, reach, about = body.pole, body.height, body.about
    share = m * reach / about
    load = [push[0], push[1]]
    torque: Vector | None = None
    if arm is not None:
        torque = cross(arm, push)
        lift = cross(torque, d)
        load = [load[i] - share * lift[i] for i in range(2)]
    x, y = solve(body.cart + m - share * m * reach, share * m * reach, d, load)
    swing = cross(d, (x, y, torch.zeros_like(x)))
    turn = [-share * part for part in swing]
    gain = x * push[0] + y * push[1]
    if torque is not None and arm is not None:
        turn = [turn[i] + torque[i] / about for i in range(3)]
        gain = gain + dot(cross((turn[0], turn[1], turn[2]), arm), push)
    return (x, y, *turn), gain
