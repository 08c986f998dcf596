"""Compiled forces and free motion of cart, pole and balls, in closed form.

The cart slides in x and y; the pole hangs on it by a ball joint, so the pair has five degrees of
freedom, and the cart turns freely about z. With v the cart's velocity, w the pole's angular
velocity in the world, d the pole's direction, l the height of its centre of mass above the joint, r
= l d, and J = J_t (1 - d d') + J_s d d' its inertia about the joint, Newton and Euler give

    (M + m) v' + m (w' x r + w x (w x r)) = F + f            (x and y only)
    J w' + w x J w + m r x v' = r x f + t

F acts on the cart, f at the pole's centre of mass (weight and drag in it), t is a torque. `r x f`
has no part along d, so w' follows from v', and v' from two equations. The numbers of forces are
those of `rules`. Arguments named world, lane and ball are records of `records`.
"""

import math

import numpy as np

from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.batched.numbers import child_seed, compiled, uniform

_EDGES = np.array([height for height, _ in rules.PROFILE])
_SHARES = np.array([share for _, share in rules.PROFILE])
_AIR, _DRAG_BALL = rules.AIR, rules.DRAG_BALL
_DRAG_CART, _DRAG_POLE = rules.DRAG_CART, rules.DRAG_POLE
_BENT_CART, _BENT_BALL = rules.BENT_CART, rules.BENT_BALL
_MIDDLE = rules.MIDDLE
_CENTROID, _ORIGIN, _MIDDLE_OF_CART = 0, 1, 2  # as `records.TARGETS`
_PULLS = 1000  # first of the numbers that pulls draw in an episode


@compiled
def direction(q):
    """Return where the pole points: the z axis rotated by a quaternion."""
    x, y, z, w = q[0], q[1], q[2], q[3]
    return 2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)


@compiled
def cross(a, b):
    """Return a x b.

    Args:
        a: Three numbers.
        b: Three numbers.
    Returns: Three numbers.
    """
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@compiled
def dot(a, b):
    """Return a . b.

    Args:
        a: Three numbers.
        b: Three numbers.
    """
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@compiled
def solve_cart(world, d, x, y):
    """Return a of the cart's two equations: (base 1 + share d d') a = (x, y).

    Args:
        world: Its masses give base and share.
        d: Direction of the pole.
        x: First right-hand side, N.
        y: The second.
    Returns: The cart's acceleration along x and y, m/s2.
    """
    reach = world.pole_mass * world.centre
    moved = reach * reach / world.about
    base = world.cart_mass + world.pole_mass - moved
    inner = (d[0] * x + d[1] * y) * moved
    factor = inner / (base + moved * (d[0] * d[0] + d[1] * d[1]))
    return (x - factor * d[0]) / base, (y - factor * d[1]) / base


@compiled
def _loss(world, x, y, z):
    """Return a + b |v|: the rate at which drag takes a speed away."""
    return world.drag + world.drag_rise * math.sqrt(x * x + y * y + z * z)


@compiled
def _wind_share(height):
    """Return the wind's share of its speed, as `rules.wind_share`."""
    return np.interp(min(height, 10.0 - height), _EDGES, _SHARES)


@compiled
def _blown(area, u, v):
    """Return the drag of air that passes at (u, v) on `area` times its coefficient."""
    scale = 0.5 * _AIR * area * math.sqrt(u * u + v * v)
    return scale * u, scale * v


@compiled
def accelerate_cart_pole(world, lane, push_x, push_y):
    """Change the velocities of cart and pole: push, weight, wind and drag.

    Args:
        world: Its numbers.
        lane: Changed in place.
        push_x: Force on the cart, N.
        push_y: The same along y.
    """
    m, reach, about = world.pole_mass, world.centre, world.about
    d = direction(lane.pole)
    w = (lane.spin[0], lane.spin[1], lane.spin[2])
    vx, vy = lane.velocity[0], lane.velocity[1]
    spin, wd = dot(w, d), cross(w, d)
    turn = _loss(world, w[0], w[1], w[2])
    # Torques across the pole: drag on its rotation, and w x J w.
    gyro = (world.pole_axial - about) * spin
    slow = turn * world.pole_across
    tx = -slow * (w[0] - spin * d[0]) - gyro * wd[0]
    ty = -slow * (w[1] - spin * d[1]) - gyro * wd[1]
    tz = -slow * (w[2] - spin * d[2]) - gyro * wd[2]
    side_x = side_y = 0.0
    if world.wind == 2:
        x = lane.heading[0]
        square = x * x
        size = 0.5 * _BENT_CART * world.wind_speed**2 * square * (1.0 + square)
        push_x += math.copysign(size, x)
    elif world.wind == 1:
        area = _DRAG_CART * 2.0 * world.cart_radius * world.cart_height
        low = world.wind_low
        fx, fy = _blown(area, low * lane.heading[0] - vx, low * lane.heading[1] - vy)
        push_x, push_y = push_x + fx, push_y + fy
        middle = world.foot + 0.5 * world.pole_length
        air = world.wind_speed * _wind_share(world.joint + middle * d[2])
        area = _DRAG_POLE * 2.0 * world.pole_radius * world.pole_length
        side_x, side_y = _blown(area, air * lane.heading[0] - vx, air * lane.heading[1] - vy)
        # It acts at the middle, not at the centre of mass.
        lever = cross(d, (side_x, side_y, 0.0))
        offset = middle - reach
        tx, ty, tz = (tx + offset * lever[0], ty + offset * lever[1], tz + offset * lever[2])
    tip = (vx + reach * wd[0], vy + reach * wd[1], reach * wd[2])
    rate = m * _loss(world, tip[0], tip[1], tip[2])
    f = (side_x - rate * tip[0], side_y - rate * tip[1], -m * world.gravity - rate * tip[2])
    lift = cross((tx, ty, tz), d)
    along = dot(f, d)
    still = _loss(world, vx, vy, 0.0) * world.cart_mass
    square = dot(w, w)
    share = m * reach / about
    sway = m * reach
    ax, ay = solve_cart(
        world,
        d,
        push_x
        - still * vx
        + f[0]
        - share * (reach * (f[0] - along * d[0]) + lift[0])
        - sway * (spin * w[0] - square * d[0]),
        push_y
        - still * vy
        + f[1]
        - share * (reach * (f[1] - along * d[1]) + lift[1])
        - sway * (spin * w[1] - square * d[1]),
    )
    rg = cross(d, (f[0] - m * ax, f[1] - m * ay, f[2]))
    dt = world.tick
    lane.velocity[0] += dt * ax
    lane.velocity[1] += dt * ay
    lane.spin[0] += dt * ((reach * rg[0] + tx) / about - turn * spin * d[0])
    lane.spin[1] += dt * ((reach * rg[1] + ty) / about - turn * spin * d[1])
    lane.spin[2] += dt * ((reach * rg[2] + tz) / about - turn * spin * d[2])
    lane.turn *= 1.0 - dt * _loss(world, 0.0, 0.0, lane.turn)


@compiled
def _goal(world, lane, balls, count, target):
    """Return the point that pulls."""
    if target == _ORIGIN:
        return 0.0, 0.0, 0.0
    if target == _CENTROID:
        x = y = z = 0.0
        for i in range(count):
            place = balls[i].place
            x, y, z = x + place[0], y + place[1], z + place[2]
        many = max(count, 1)
        return x / many, y / many, z / many
    cart, pole = lane.cart, lane.pole
    if world.lag:
        cart, pole = lane.seen_cart, lane.seen_pole
    if target == _MIDDLE_OF_CART:
        return cart[0], cart[1], _MIDDLE
    d, top = direction(pole), world.foot + world.pole_length
    return cart[0] + top * d[0], cart[1] + top * d[1], world.joint + top * d[2]


@compiled
def accelerate_balls(world, lane, balls, forces):
    """Change the velocities of balls: pulls, wind, weight and drag.

    Args:
        world: Its numbers.
        lane: Their lane.
        balls: (slots,) records, changed in place.
        forces: (slots, 3) room for what acts on each, m/s2.
    """
    dt, mass, count = world.tick, world.ball_mass, lane.arrived
    acting = world.pulls > 0 or world.wind > 0 or world.weighs > 0
    if acting:  # from the places before anything moves
        for i in range(count):
            forces[i, 0] = forces[i, 1] = 0.0
            forces[i, 2] = -world.gravity if world.weighs else 0.0
        for place in range(world.pulls):
            goal = _goal(world, lane, balls, count, world.pull_target[place])
            low, high = world.pull_low[place], world.pull_high[place]
            seed = child_seed(lane.seed, lane.ticks)
            for i in range(count):
                at, size = balls[i].place, low
                if low != high:  # drawn anew for each ball and tick
                    size += (high - low) * uniform(seed, _PULLS * (place + 1) + i)
                x, y, z = goal[0] - at[0], goal[1] - at[1], goal[2] - at[2]
                scale = size / mass / max(math.sqrt(x * x + y * y + z * z), 1e-9)
                forces[i, 0] += scale * x
                forces[i, 1] += scale * y
                forces[i, 2] += scale * z
        if world.wind:
            _blow_balls(world, lane, balls, forces)
    for i in range(count):
        ball = balls[i]
        v, rail = ball.speed, ball.rail
        bound = rail[0] * rail[0] + rail[1] * rail[1]
        keep = 1.0 - (1.0 - bound) * dt * _loss(world, v[0], v[1], v[2])
        x = y = z = 0.0
        if acting and ball.moving > 0.0:
            x, y, z = forces[i, 0], forces[i, 1], forces[i, 2]
            along = rail[0] * x + rail[1] * y
            x = rail[0] * along + (1.0 - bound) * x
            y = rail[1] * along + (1.0 - bound) * y
            z = (1.0 - bound) * z
        v[0] = keep * v[0] + dt * x
        v[1] = keep * v[1] + dt * y
        v[2] = keep * v[2] + dt * z


@compiled
def _blow_balls(world, lane, balls, forces):
    """Add the wind's acceleration of every ball."""
    area = _DRAG_BALL * math.pi * world.ball_radius**2
    x, y = lane.heading[0], lane.heading[1]
    for i in range(lane.arrived):
        ball = balls[i]
        air = world.wind_speed * _wind_share(ball.place[2])
        if world.wind == 2:
            fx, fy = -_BENT_BALL * air * air * x * x, -_BENT_BALL * air * air * y * y
        else:
            fx, fy = _blown(area, air * x - ball.speed[0], air * y - ball.speed[1])
        forces[i, 0] += fx / world.ball_mass
        forces[i, 1] += fy / world.ball_mass


@compiled
def move(world, lane, balls):
    """Move everything by one tick at its velocity.

    Args:
        world: Its numbers.
        lane: Changed in place.
        balls: (slots,) records, changed in place.
    """
    dt = world.tick
    lane.cart[0] += dt * lane.velocity[0]
    lane.cart[1] += dt * lane.velocity[1]
    lane.yaw += dt * lane.turn
    for i in range(lane.arrived):
        at, speed = balls[i].place, balls[i].speed
        at[0] += dt * speed[0]
        at[1] += dt * speed[1]
        at[2] += dt * speed[2]
    w, q = lane.spin, lane.pole
    angle = math.sqrt(max(w[0] * w[0] + w[1] * w[1] + w[2] * w[2], 1e-20))
    s, c = math.sin(0.5 * dt * angle) / angle, math.cos(0.5 * dt * angle)
    x, y, z = w[0] * s, w[1] * s, w[2] * s
    a = c * q[0] + x * q[3] + y * q[2] - z * q[1]
    b = c * q[1] - x * q[2] + y * q[3] + z * q[0]
    e = c * q[2] + x * q[1] - y * q[0] + z * q[3]
    g = c * q[3] - x * q[0] - y * q[1] - z * q[2]
    norm = math.sqrt(a * a + b * b + e * e + g * g)
    q[0], q[1], q[2], q[3] = a / norm, b / norm, e / norm, g / norm
