"""Compiled contacts of balls, cart, pole and walls, and the impulses that part them.

The law is PyBullet's, measured on single contacts of it (tests/envs/cartpole3d). A contact asks for
a speed of separation: restitution times the speed of approach if that is at least `_SLOW`, plus
`_PUSH_OUT` times the depth; where bodies do not touch yet, less the gap over the tick. It only
pushes, without friction. Balls meet walls and balls once they touch; cart and pole, prisms of 32
sides, count from `_NEAR` on, as far as the boxes around the bodies overlap. Contacts of a lane are
met one after the other, in sweeps until none changes much. Arguments named world, lane, balls and
contacts are records of `records`.
"""

import math

from owa_bench.envs.cartpole3d import bodies
from owa_bench.envs.cartpole3d.batched.motion import cross, direction, dot, solve_cart
from owa_bench.envs.cartpole3d.batched.numbers import compiled

_MARGIN = 0.001  # m: PyBullet's, around prisms
_NEAR = 0.02  # m: from here on a prism's contact counts
_SLOW = 0.2  # m/s: below it nothing bounces
_PUSH_OUT = 4.0  # 1/s: PyBullet's 0.08 of the depth in a tick of 0.02 s
_SLOP = 1e-5  # m: depth that PyBullet leaves
_SWEEPS = 50  # as PyBullet's solver
_STILL = 1e-4  # m/s: a sweep that changes less is the last
_NOBODY, _CART, _POLE = 0, 1, 2
_WEDGE = 2.0 * math.pi / bodies.SIDES
_APOTHEM, _EDGE = math.cos(0.5 * _WEDGE), math.sin(0.5 * _WEDGE)


@compiled
def resolve_contacts(world, lane, balls, contacts):
    """Change the velocities of bodies that touch, before bodies move.

    Args:
        world: Its numbers.
        lane: Changed in place.
        balls: (slots,) records, changed in place.
        contacts: Room for all that a lane can have.
    """
    count = _meet_walls(world, lane, balls, contacts, 0)
    walls = count
    count = _meet_pairs(world, lane, balls, contacts, count)
    count = _meet_bodies(world, lane, balls, contacts, count)
    count = _cart_pole_on_walls(world, lane, balls, contacts, count)
    if count == 0:
        return
    for _ in range(_SWEEPS):
        largest = 0.0
        for i in range(count):
            largest = max(largest, _push(world, lane, balls, contacts[i]))
        # Walls at right angles do not disturb one another.
        if largest < _STILL * world.ball_mass or count == walls or count == 1:
            return


@compiled
def _rail_part(ball, n):
    """Return n for a free ball, its part along the rail for one that is bound."""
    rail = ball.rail
    bound = rail[0] * rail[0] + rail[1] * rail[1]
    along = rail[0] * n[0] + rail[1] * n[1]
    free = 1.0 - bound
    return rail[0] * along + free * n[0], rail[1] * along + free * n[1], free * n[2]


@compiled
def _give(world, ball, n, impulse):
    """Give an impulse along n to a ball, as far as it can take it."""
    speed = impulse / world.ball_mass * ball.moving
    x, y, z = _rail_part(ball, n)
    ball.speed[0] += speed * x
    ball.speed[1] += speed * y
    ball.speed[2] += speed * z


@compiled
def _softness(world, ball, n):
    """Return the speed along n that a unit of impulse along n gives to a ball."""
    return ball.moving * dot(_rail_part(ball, n), n) / world.ball_mass


@compiled
def _parting(lane, balls, contact):
    """Return the speed at which the two sides of a contact part."""
    n = (contact.normal[0], contact.normal[1], contact.normal[2])
    speed = 0.0
    if contact.ball >= 0:
        speed += dot(balls[contact.ball].speed, n)
    if contact.other >= 0:
        speed -= dot(balls[contact.other].speed, n)
    if contact.body != _NOBODY:
        side = lane.velocity[0] * n[0] + lane.velocity[1] * n[1]
        if contact.body == _POLE:
            side += dot(cross(lane.spin, contact.arm), n)
        else:
            side += lane.turn * (contact.arm[0] * n[1] - contact.arm[1] * n[0])
        # Without a ball the wall is the other side: it pushes the cart along n.
        speed = speed - side if contact.ball >= 0 else side
    return speed


@compiled
def _push(world, lane, balls, contact):
    """Push a contact to its target speed; return the change of its impulse."""
    lack = contact.target - _parting(lane, balls, contact)
    total = max(contact.impulse + lack * contact.mass, 0.0)
    change = total - contact.impulse
    if change == 0.0:
        return 0.0
    contact.impulse = total
    n = (contact.normal[0], contact.normal[1], contact.normal[2])
    if contact.ball >= 0:
        _give(world, balls[contact.ball], n, change)
    if contact.other >= 0:
        _give(world, balls[contact.other], n, -change)
    if contact.body != _NOBODY:
        gain = contact.change
        lane.velocity[0] += change * gain[0]
        lane.velocity[1] += change * gain[1]
        lane.spin[0] += change * gain[2]
        lane.spin[1] += change * gain[3]
        lane.spin[2] += change * gain[4]
        lane.turn += change * gain[5]
    return abs(change)


@compiled
def _open(contact, ball, other, body, n):
    """Begin a contact: who takes part, and its normal."""
    contact.ball, contact.other, contact.body = ball, other, body
    contact.normal[0], contact.normal[1], contact.normal[2] = n[0], n[1], n[2]
    contact.arm[0] = contact.arm[1] = contact.arm[2] = 0.0
    contact.impulse = 0.0


@compiled
def _close(world, lane, balls, contact, softness, gap, restitution):
    """Finish a contact: its mass, and the speed of separation that it asks for."""
    contact.mass = 1.0 / softness if softness > 1e-12 else 0.0
    approach = -_parting(lane, balls, contact)
    back = approach * restitution if approach >= _SLOW else 0.0
    gap += _SLOP
    contact.target = back + (gap / -world.tick if gap > 0.0 else gap * -_PUSH_OUT)


@compiled
def _meet_walls(world, lane, balls, contacts, count):
    """Add the contacts of balls with the six walls; return how many there are."""
    middle = 0.5 * (world.floor + world.ceiling)
    side = world.half - world.ball_radius
    high = 0.5 * (world.ceiling - world.floor) - world.ball_radius
    bounce = lane.bounce * lane.bounce
    for i in range(lane.arrived):
        ball = balls[i]
        x, y, z = ball.place[0], ball.place[1], ball.place[2] - middle
        if ball.moving == 0.0 or (abs(x) < side and abs(y) < side and abs(z) < high):
            continue
        if world.railed and (  # rails may lie outside the box
            abs(x) >= world.half or abs(y) >= world.half or abs(z) >= high + world.ball_radius
        ):
            continue
        for axis in range(3):
            place = x if axis == 0 else (y if axis == 1 else z)
            gap = (high if axis == 2 else side) - abs(place)
            if gap > 0.0:
                continue
            inward = -1.0 if place > 0.0 else 1.0
            n = (
                inward if axis == 0 else 0.0,
                inward if axis == 1 else 0.0,
                inward if axis == 2 else 0.0,
            )
            contact = contacts[count]
            _open(contact, i, -1, _NOBODY, n)
            soft = _softness(world, ball, n)
            _close(world, lane, balls, contact, soft, gap, bounce)
            count += 1
    return count


@compiled
def _meet_pairs(world, lane, balls, contacts, count):
    """Add the contacts of balls with balls; return how many there are."""
    wide = 2.0 * world.ball_radius
    bounce = lane.bounce * lane.bounce
    for i in range(1, lane.arrived):
        at = balls[i].place
        for j in range(i):
            other = balls[j].place
            x, y, z = other[0] - at[0], other[1] - at[1], other[2] - at[2]
            square = x * x + y * y + z * z
            if square > wide * wide:
                continue
            length = max(math.sqrt(square), 1e-9)
            n = (x / length, y / length, z / length)
            contact = contacts[count]
            _open(contact, j, i, _NOBODY, n)
            soft = _softness(world, balls[j], n) + _softness(world, balls[i], n)
            _close(world, lane, balls, contact, soft, length - wide, bounce)
            count += 1
    return count


@compiled
def _prism(x, y, z, radius, low, high):
    """Return how a point lies to a prism about the z axis.

    A point inside is pushed out where the surface is nearest.

    Args:
        x: Of the point, in the prism's frame, m.
        y: The same.
        z: The same.
        radius: From the axis to an edge, m.
        low: Of the prism's faces, m.
        high: The same.
    Returns: The distance, negative inside; the unit vector outwards (3); the nearest
    point of the surface (3).
    """
    middle = (math.floor(math.atan2(y, x) / _WEDGE) + 0.5) * _WEDGE
    c, s = math.cos(middle), math.sin(middle)
    depth = radius * _APOTHEM - (x * c + y * s)
    along = y * c - x * s
    beyond = max(abs(along) - radius * _EDGE, 0.0)
    if along < 0.0:
        beyond = -beyond
    level = min(max(z, low), high)
    if depth <= 0.0 or z != level:
        out = max(-depth, 0.0)
        beyond = beyond if depth <= 0.0 else 0.0
        u, v, w = out * c - beyond * s, out * s + beyond * c, z - level
        length = math.sqrt(u * u + v * v + w * w)
        if length > 1e-12:
            n = (u / length, v / length, w / length)
            return length, n, (x - u, y - v, level)
        return 0.0, (c, s, 0.0), (x, y, level)
    if depth <= high - z and depth <= z - low:
        return -depth, (c, s, 0.0), (x + depth * c, y + depth * s, z)
    if high - z < z - low:
        return z - high, (0.0, 0.0, 1.0), (x, y, high)
    return low - z, (0.0, 0.0, -1.0), (x, y, low)


@compiled
def _meet_bodies(world, lane, balls, contacts, count):
    """Add the contacts of balls with cart and pole; return how many there are."""
    end = world.foot + world.pole_length
    d = direction(lane.pole)
    flat = math.sqrt(d[0] * d[0] + d[1] * d[1])
    reach = world.ball_radius + _NEAR
    reach += max(flat * end + world.pole_radius, world.cart_radius)
    top = world.joint + end + world.ball_radius + _NEAR
    for i in range(lane.arrived):
        at = balls[i].place
        x, y, z = at[0] - lane.cart[0], at[1] - lane.cart[1], at[2]
        if x * x + y * y < reach * reach and z < top:
            count = _meet_cart(world, lane, balls, contacts, count, i, (x, y, z))
            r = (x, y, z - world.joint)
            count = _meet_pole(world, lane, balls, contacts, count, i, r)
    return count


@compiled
def _meet_cart(world, lane, balls, contacts, count, i, at):
    """Add the contact of ball i with the cart, if there is one; `at` is from it."""
    top = world.bottom + world.cart_height
    if at[2] - world.ball_radius > top + _NEAR + _MARGIN:
        return count
    c, s = math.cos(lane.yaw), math.sin(lane.yaw)
    box = world.cart_radius * (abs(c) + abs(s)) + world.ball_radius + 3 * _MARGIN
    if abs(at[0]) > box or abs(at[1]) > box:
        return count
    x, y = c * at[0] + s * at[1], c * at[1] - s * at[0]
    gap, n, touched = _prism(x, y, at[2], world.cart_radius, world.bottom, top)
    gap -= world.ball_radius + _MARGIN
    if gap >= _NEAR:
        return count
    n = (c * n[0] - s * n[1], s * n[0] + c * n[1], n[2])
    x, y = c * touched[0] - s * touched[1], s * touched[0] + c * touched[1]
    contact = contacts[count]
    _open(contact, i, -1, _CART, n)
    contact.arm[0], contact.arm[1], contact.arm[2] = x, y, touched[2]
    _finish(world, lane, balls, contact, (-n[0], -n[1], -n[2]), gap)
    return count + 1


@compiled
def _meet_pole(world, lane, balls, contacts, count, i, r):
    """Add the contact of ball i with the pole, if there is one; r is from its joint."""
    low, high = world.foot, world.foot + world.pole_length
    x, y, z, w = lane.pole[0], lane.pole[1], lane.pole[2], lane.pole[3]
    a = (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y))
    b = (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x))
    d = direction(lane.pole)
    gap, n, touched = _prism(dot(r, a), dot(r, b), dot(r, d), world.pole_radius, low, high)
    gap -= world.ball_radius + _MARGIN
    if gap >= _NEAR:
        return count
    half, centre = 0.5 * (high - low), 0.5 * (high + low)
    for k in range(3):
        width = half * abs(d[k]) + world.pole_radius * (abs(a[k]) + abs(b[k]))
        width += world.ball_radius + 3 * _MARGIN
        if gap >= 0.0 and abs(r[k] - centre * d[k]) > width:
            return count
    n = (
        n[0] * a[0] + n[1] * b[0] + n[2] * d[0],
        n[0] * a[1] + n[1] * b[1] + n[2] * d[1],
        n[0] * a[2] + n[1] * b[2] + n[2] * d[2],
    )
    contact = contacts[count]
    _open(contact, i, -1, _POLE, n)
    for k in range(3):
        contact.arm[k] = touched[0] * a[k] + touched[1] * b[k] + touched[2] * d[k]
    _finish(world, lane, balls, contact, (-n[0], -n[1], -n[2]), gap)
    return count + 1


@compiled
def _cart_pole_on_walls(world, lane, balls, contacts, count):
    """Add contacts of the cart, and of the pole's end, with the side walls."""
    d, end = direction(lane.pole), world.foot + world.pole_length
    for axis in range(2):
        place = lane.cart[axis]
        if world.half - world.cart_radius - abs(place) <= 0.0:
            gap = world.half - world.cart_radius - abs(place)
            count = _on_wall(world, lane, balls, contacts, count, axis, place, gap, _CART)
        tip = place + end * d[axis]
        gap = world.half - world.pole_radius - abs(tip)
        if gap <= 0.0:
            count = _on_wall(world, lane, balls, contacts, count, axis, tip, gap, _POLE)
    return count


@compiled
def _on_wall(world, lane, balls, contacts, count, axis, place, gap, body):
    """Add the contact of cart or pole's end with a side wall."""
    inward = -1.0 if place > 0.0 else 1.0
    n = (inward if axis == 0 else 0.0, inward if axis == 1 else 0.0, 0.0)
    contact = contacts[count]
    _open(contact, -1, -1, body, n)
    if body == _POLE:
        d, end = direction(lane.pole), world.foot + world.pole_length
        for k in range(3):
            contact.arm[k] = end * d[k]
    _finish(world, lane, balls, contact, n, gap)
    return count + 1


@compiled
def _finish(world, lane, balls, contact, push, gap):
    """Finish a contact of cart or pole that is pushed along a unit vector."""
    soft = _respond(world, lane, contact, push)
    if contact.ball >= 0:
        n = (contact.normal[0], contact.normal[1], contact.normal[2])
        soft += _softness(world, balls[contact.ball], n)
    _close(world, lane, balls, contact, soft, gap, 0.0)


@compiled
def _respond(world, lane, contact, push):
    """Write what a unit of impulse does to cart and pole; return their softness."""
    d, about = direction(lane.pole), world.about
    share = world.pole_mass * world.centre / about
    arm = (contact.arm[0], contact.arm[1], contact.arm[2])
    load_x, load_y = push[0], push[1]
    torque = (0.0, 0.0, 0.0)
    if contact.body == _POLE:
        torque = cross(arm, push)
        lift = cross(torque, d)
        load_x -= share * lift[0]
        load_y -= share * lift[1]
    x, y = solve_cart(world, d, load_x, load_y)
    swing = cross(d, (x, y, 0.0))
    soft = x * push[0] + y * push[1]
    gain = contact.change
    gain[0], gain[1] = x, y
    along = dot(torque, d)
    own = along / world.pole_axial - along / about
    turn = (
        torque[0] / about + own * d[0] - share * swing[0],
        torque[1] / about + own * d[1] - share * swing[1],
        torque[2] / about + own * d[2] - share * swing[2],
    )
    gain[2], gain[3], gain[4] = turn[0], turn[1], turn[2]
    gain[5] = 0.0
    if contact.body == _POLE:
        soft += dot(cross(turn, arm), push)
    elif contact.ball >= 0:
        lever = arm[0] * push[1] - arm[1] * push[0]
        gain[5] = lever / world.cart_axial
        soft += lever * gain[5]
    return soft
