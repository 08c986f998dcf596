"""Contact impulses: separation speeds, impulses, and their effect on bodies.

The law is PyBullet's, measured on single contacts of it (tests/envs/cartpole3d). A
contact asks for a speed of separation: restitution times the speed of approach if that
is at least `SLOW`, plus `PUSH_OUT` times the depth; where bodies do not touch yet, less
the gap over the tick. It only pushes, without friction.

Balls are numbered slot * lanes + lane; lists hold contacts of all lanes.
"""

from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from owa_bench.envs.cartpole3d.batched import dynamics
from owa_bench.envs.cartpole3d.batched.dynamics import Vector, cross, dot
from owa_bench.worlds.physics import PhysicsWorld

SLOW = 0.2  # m/s: below it nothing bounces
PUSH_OUT = 4.0  # 1/s: PyBullet's 0.08 of the depth in a tick of 0.02 s
SLOP = 1e-5  # m: depth that PyBullet leaves


class Motion(NamedTuple):
    """State that a tick's contacts read and change: velocities change in place.

    world: its sizes, masses and tick are read. cart: places and velocities (2, lanes).
    pole: quaternions (4, lanes), angular velocities (3, lanes). balls: (3, balls) each;
    moving: 1 a ball that can move; bounce: restitution of a ball (lanes,); rails: unit
    axes (3, balls) of balls that are bound to one, zero for others, None where no ball
    is.
    """

    world: PhysicsWorld
    cart: Tensor
    cart_velocity: Tensor
    pole: Tensor
    pole_velocity: Tensor
    balls: Tensor
    velocity: Tensor
    moving: Tensor
    bounce: Tensor
    rails: Tensor | None

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return self.bounce.numel()


class Contacts(NamedTuple):
    """A list of contacts that one sweep handles at once.

    normal points from the other body to the ball (or out of the wall). `mass` is the
    inverse of the sum of inverse masses along it, 0 where nothing can move;
    `target_speed` the speed of separation, `impulse` the impulse so far. ball: number
    of the ball or None; other: of the second ball or None; lane: of cart and pole or
    None; arm: from the joint to the touched point of the pole, None for the cart
    itself. `response` is what a unit of impulse does to cart and pole.
    """

    normal: Vector
    mass: Tensor
    target_speed: Tensor
    impulse: Tensor
    ball: Tensor | None = None
    other: Tensor | None = None
    lane: Tensor | None = None
    arm: Vector | None = None
    response: tuple[Tensor, ...] = ()

    def select(self, mask: Tensor) -> Self:
        """Return the contacts that a mask (contacts,) names."""
        parts: dict[str, Any] = {}
        for name, part in zip(self._fields, self, strict=True):
            if isinstance(part, tuple):
                parts[name] = tuple(one[mask] for one in part)
            else:
                parts[name] = None if part is None else part[mask]
        return self._replace(**parts)

    def lanes_of(self, lanes: int) -> Tensor:
        """Return (contacts,) the lane of each contact, of so many lanes."""
        if self.ball is not None:
            return self.ball % lanes
        if self.lane is None:
            raise ValueError("a contact must have a ball or a lane")
        return self.lane


class CartResponse(NamedTuple):
    """What a unit of impulse does to cart and pole.

    changes: of velocity (cart x, y, pole x, y, z); softness: speed that the touched
    point gains along the impulse.
    """

    changes: tuple[Tensor, ...]
    softness: Tensor


def sweep(motion: Motion, contacts: Contacts) -> float:
    """Push every contact of a list to its target speed, in place.

    Args:
        motion: state, changed in place.
        contacts: the list; `impulse` is changed in place.

    Returns:
        The largest change of a ball's speed, m/s.
    """
    lack = contacts.target_speed - separation_speed(motion, contacts)
    total = (contacts.impulse + lack * contacts.mass).clamp_min(0.0)
    change = total - contacts.impulse
    contacts.impulse.copy_(total)
    _apply(motion, contacts, change)
    return float(change.abs().max()) / motion.world.ball.mass


def separation_speed(motion: Motion, contacts: Contacts) -> Tensor:
    """Return the speed at which the two sides of each contact part.

    Args:
        motion: the present state.
        contacts: the list.

    Returns:
        (contacts,) in m/s.
    """
    n = contacts.normal
    speed = torch.zeros_like(contacts.mass)
    if contacts.ball is not None:
        speed = dot(columns(motion.velocity, contacts.ball), n)
    if contacts.other is not None:
        speed = speed - dot(columns(motion.velocity, contacts.other), n)
    if contacts.lane is not None:
        at = motion.cart_velocity[:, contacts.lane]
        side = at[0] * n[0] + at[1] * n[1]
        if contacts.arm is not None:
            swing = cross(columns(motion.pole_velocity, contacts.lane), contacts.arm)
            side = side + dot(swing, n)
        # Without a ball the wall is the other side: it pushes the cart along n.
        speed = speed - side if contacts.ball is not None else side
    return speed


def _apply(motion: Motion, contacts: Contacts, change: Tensor) -> None:
    """Give impulses to both sides."""
    speed = change / motion.world.ball.mass
    if contacts.ball is not None:
        _push_balls(motion, contacts.ball, contacts.normal, speed)
    if contacts.other is not None:
        _push_balls(motion, contacts.other, contacts.normal, -speed)
    if contacts.lane is not None:
        for i in range(2):
            part = contacts.response[i] * change
            motion.cart_velocity[i].index_add_(0, contacts.lane, part)
        for i in range(3):
            part = contacts.response[2 + i] * change
            motion.pole_velocity[i].index_add_(0, contacts.lane, part)


def _push_balls(motion: Motion, ball: Tensor, n: Vector, speed: Tensor) -> None:
    """Add a speed along n to balls, as far as they can take it."""
    free = speed * motion.moving[ball]
    along = n if motion.rails is None else _movable_part(motion.rails, ball, n)
    for i in range(3):
        motion.velocity[i].index_add_(0, ball, along[i] * free)


def _movable_part(rails: Tensor, ball: Tensor, n: Vector) -> Vector:
    """Return n where balls are free, its part along the rail where they are not."""
    axis = columns(rails, ball)
    bound = dot(axis, axis)
    share = dot(axis, n)
    x, y, z = (axis[i] * share + (1.0 - bound) * n[i] for i in range(3))
    return x, y, z


def ball_softness(motion: Motion, ball: Tensor, n: Vector) -> Tensor:
    """Return the speed along n that a unit of impulse along n gives to balls.

    Args:
        motion: the present state.
        ball: (contacts,) numbers of the balls.
        n: unit vectors.

    Returns:
        (contacts,) in 1/kg.
    """
    if motion.rails is None:
        return motion.moving[ball] / motion.world.ball.mass
    along = _movable_part(motion.rails, ball, n)
    return motion.moving[ball] * dot(along, n) / motion.world.ball.mass


def columns(table: Tensor, at: Tensor) -> Vector:
    """Return columns of a table.

    Args:
        table: (3, n).
        at: (contacts,) of int64.

    Returns:
        Three tensors (contacts,).
    """
    return table[0][at], table[1][at], table[2][at]


def inverse(softness: Tensor) -> Tensor:
    """Return 1 / softness (contacts,), 0 where nothing can move."""
    hard = softness <= 1e-12
    return torch.where(hard, torch.zeros_like(softness), 1.0 / softness)


def with_target_speed(
    motion: Motion, contacts: Contacts, gap: Tensor, restitution: Tensor | float
) -> Contacts:
    """Return contacts with the speed of separation that they ask for.

    Args:
        motion: the present state.
        contacts: the list.
        gap: (contacts,) between the bodies, m; negative where they overlap.
        restitution: of each contact.

    Returns:
        The list with its `target_speed`.
    """
    approach = -separation_speed(motion, contacts)
    zero = torch.zeros_like(approach)
    back = torch.where(approach >= SLOW, approach * restitution, zero)
    gap = gap + SLOP
    push_out = torch.where(gap > 0.0, gap / -motion.world.tick, gap * -PUSH_OUT)
    return contacts._replace(target_speed=back + push_out)


def cart_response(
    motion: Motion, lane: Tensor, push: Vector, arm: Vector | None
) -> CartResponse:
    """Return what a unit of impulse does to cart and pole.

    Args:
        motion: the present state.
        lane: (contacts,) of int64.
        push: unit vector of the impulse.
        arm: from the joint to the touched point of the pole, m; None for the cart.

    Returns:
        Changes of velocity and the softness.
    """
    world, d = motion.world, dynamics.direction(motion.pole[:, lane])
    m, reach, about = world.pole.mass, world.pole.centre, dynamics.joint_inertia(world)
    share = m * reach / about
    load = [push[0], push[1]]
    torque: Vector | None = None
    if arm is not None:
        torque = cross(arm, push)
        lift = cross(torque, d)
        load = [load[i] - share * lift[i] for i in range(2)]
    x, y = dynamics.solve_cart(world, d, load)
    swing = cross(d, (x, y, torch.zeros_like(x)))
    turn = [-share * part for part in swing]
    gain = x * push[0] + y * push[1]
    if torque is not None and arm is not None:
        turn = [turn[i] + torque[i] / about for i in range(3)]
        gain = gain + dot(cross((turn[0], turn[1], turn[2]), arm), push)
    return CartResponse((x, y, *turn), gain)
