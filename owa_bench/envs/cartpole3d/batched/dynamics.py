"""Free motion of the cart and its pole, in closed form.

The cart slides in x and y; the pole hangs on it by a ball joint, so the pair has five
degrees of freedom. With v the cart's velocity, w the pole's angular velocity in the
world, d the pole's direction, l the height of its centre of mass above the joint,
r = l d, and J = J_t (1 - d d') + J_s d d' its inertia about the joint, Newton and Euler
give

    (M + m) v' + m (w' x r + w x (w x r)) = F + f            (x and y only)
    J w' + w x J w + m r x v' = r x f + t

F acts on the cart, f at the pole's centre of mass (weight and drag in it), t is a
torque. `r x f` has no part along d, so w' follows from v', and v' from two equations.
Vectors are tuples of tensors, one entry a lane: torch then works on long rows.
"""

from typing import NamedTuple

import torch
from torch import Tensor

Vector = tuple[Tensor, Tensor, Tensor]


class Body(NamedTuple):
    """Masses and lengths of cart and pole.

    height: of the pole's centre of mass above the joint; across, along: moments of
    inertia of the pole about its centre of mass; damping: the world's.
    """

    cart: float
    pole: float
    height: float
    across: float
    along: float
    damping: tuple[float, float]

    @property
    def about(self) -> float:
        """Return the pole's moment of inertia across the joint."""
        return self.across + self.pole * self.height * self.height


class Load(NamedTuple):
    """The force on the pole: all of it (x, y, z), and its part that acts elsewhere.

    `side` (x, y) acts `offset` metres above the centre of mass along the pole; with
    offset 0 everything acts at the centre.
    """

    x: Tensor
    y: Tensor
    z: Tensor
    side: tuple[Tensor, Tensor] | None = None
    offset: float = 0.0


def cross(a: Vector, b: Vector) -> Vector:
    """Return a x b."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def dot(a: Vector, b: Vector) -> Tensor:
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def direction(q: Tensor) -> Vector:
    """Return where the pole points: the z axis turned by q = (x, y, z, w)."""
    x, y, z, w = q
    return (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))


def slow(v: tuple[Tensor, ...], damping: tuple[float, float]) -> Tensor:
    """Return a + b |v| of a damping (a, b): the rate at which drag takes speed away."""
    square = v[0] * v[0]
    for part in v[1:]:
        square = square + part * part
    return damping[0] + damping[1] * square.sqrt()


def accelerate(
    body: Body,
    d: Vector,
    v: tuple[Tensor, Tensor],
    w: Vector,
    cart: tuple[Tensor, Tensor],
    pole: Load,
) -> tuple[Tensor, Tensor, Vector]:
    """Return the cart's acceleration in x and y and the pole's angular one.

    cart: the force on the cart; pole: that on the pole, weight included. Drag comes on
    top of both.
    """
    m, reach, about = body.pole, body.height, body.about
    spin = dot(w, d)
    wd = cross(w, d)
    tip = (v[0] + reach * wd[0], v[1] + reach * wd[1], reach * wd[2])
    rate = m * slow(tip, body.damping)
    f = (pole.x - rate * tip[0], pole.y - rate * tip[1], pole.z - rate * tip[2])
    turn = slow(w, body.damping)
    t = _aside(pole, d, _torque(body, d, w, wd, spin, turn))
    lift = cross(t, d)
    along_f = dot(f, d)
    still = slow(v, body.damping) * body.cart
    square = dot(w, w)
    share = m * reach / about
    load = [
        cart[i]
        - still * v[i]
        + f[i]
        - share * (reach * (f[i] - along_f * d[i]) + lift[i])
        - m * reach * (spin * w[i] - square * d[i])
        for i in range(2)
    ]
    a = solve(body.cart + m - share * m * reach, share * m * reach, d, load)
    g = (f[0] - m * a[0], f[1] - m * a[1], f[2])
    rg = cross(d, g)
    wa = tuple((reach * rg[i] + t[i]) / about - turn * spin * d[i] for i in range(3))
    return a[0], a[1], (wa[0], wa[1], wa[2])


def _torque(
    body: Body, d: Vector, w: Vector, wd: Vector, spin: Tensor, turn: Tensor
) -> Vector:
    """Return the torques across the pole: drag on its rotation, and w x J w."""
    gyro = (body.along - body.about) * spin
    x, y, z = (
        -turn * body.across * (w[i] - spin * d[i]) - gyro * wd[i] for i in range(3)
    )
    return x, y, z


def _aside(pole: Load, d: Vector, torque: Vector) -> Vector:
    """Return torques with that of the force beside the centre of mass, r' x f."""
    if pole.side is None:
        return torque
    more = cross(d, (pole.side[0], pole.side[1], torch.zeros_like(d[0])))
    x, y, z = (torque[i] + pole.offset * more[i] for i in range(3))
    return x, y, z


def solve(
    base: float, share: float, d: Vector, load: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Solve (base 1 + share d d') a = load for the x and y parts."""
    inner = (d[0] * load[0] + d[1] * load[1]) * share
    square = d[0] * d[0] + d[1] * d[1]
    factor = inner / (base + share * square)
    return (load[0] - factor * d[0]) / base, (load[1] - factor * d[1]) / base


def turned(q: Tensor, w: Vector, dt: float) -> Tensor:
    """Return q after a step at angular velocity w, of length 1."""
    angle = dot(w, w).clamp_min(1e-20).sqrt()
    half = 0.5 * dt * angle
    s = torch.sin(half) / angle
    c = torch.cos(half)
    x, y, z = (part * s for part in w)
    qx, qy, qz, qw = q
    new = torch.stack(
        (
            c * qx + x * qw + y * qz - z * qy,
            c * qy - x * qz + y * qw + z * qx,
            c * qz + x * qy - y * qx + z * qw,
            c * qw - x * qx - y * qy - z * qz,
        )
    )
    return new / new.square().sum(0).sqrt()
