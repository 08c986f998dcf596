"""Compiled kernels over lanes: a tick, balls that arrive, observations, control rules.

Each plays a range of lanes that does not depend on the others, so threads may share a batch. The
law of arrivals is that of `start.spawn_ball`.
"""

import math

import numpy as np

from owa_bench.agents.solvers.balancing.leaning import pd_action
from owa_bench.envs.cartpole3d import rules, start
from owa_bench.envs.cartpole3d.batched.contacts import resolve_contacts
from owa_bench.envs.cartpole3d.batched.motion import (
    accelerate_balls,
    accelerate_cart_pole,
    direction,
    move,
)
from owa_bench.envs.cartpole3d.batched.numbers import child_seed, compiled, uniform

_turned, _has_fallen = compiled(rules.rotated), compiled(rules.has_fallen)
_PUSHES = np.array(rules.DIRECTIONS)
_CORE, _PER_BALL = rules.CORE, rules.PER_BALL
_HEIGHT, _REACH, _APART = start.HEIGHT, start.REACH, start.APART
_LEAST_SWERVE = 1e-5  # rad a tick, as the scene's
_SPAWNS = 100  # first of the numbers that arrivals draw at a tick
_PLACES = 16  # places tried for a ball that flies; two thirds are free at worst
_TRIES = 100  # places tried for one that rests
_SPEEDS = _SPAWNS + 3 * _TRIES
_RANDOM = 1 << 40  # seeds of the random rule lie apart from those of the physics


@compiled
def _tick(world, lane, balls, due, contacts, forces, push_x, push_y):
    """Play a tick of a lane: let balls come, then move everything."""
    tick = lane.ticks + lane.age + 1
    if tick < due.shape[1]:  # a lane goes on after its episode, with no more balls
        for law in range(world.arrivals):
            if due[law, tick]:
                seed = child_seed(child_seed(lane.seed, tick), law)
                _arrive(world, lane, balls, law, seed)
    turn = lane.turn
    accelerate_balls(world, lane, balls, forces)
    accelerate_cart_pole(world, lane, push_x, push_y)
    resolve_contacts(world, lane, balls, contacts)
    speed, seen = lane.velocity, lane.seen_velocity
    swerve = (lane.turn - turn) * world.tick
    swerves = world.lag and abs(swerve) > _LEAST_SWERVE
    if swerves:  # the released joint keeps the velocity in the cart's own frame
        speed[0], speed[1] = _turned(speed[0], speed[1], swerve)
        seen[0], seen[1] = _turned(speed[0], speed[1], -lane.turn * world.tick)
    else:
        seen[0], seen[1] = speed[0], speed[1]
    for k in range(2):
        lane.seen_cart[k] = lane.cart[k]
    for k in range(4):
        lane.seen_pole[k] = lane.pole[k]
    move(world, lane, balls)


@compiled
def play(worlds, lanes, balls, due, contacts, forces, actions, fallen, late):
    """Play one action a lane.

    Args:
        worlds: (1,) the world.
        lanes: (n,) changed in place.
        balls: (n, slots) changed in place.
        due: (laws, ticks + 2) where balls arrive.
        contacts: Room for a lane's contacts.
        forces: (slots, 3) room.
        actions: (n,) 0 to 4.
        fallen: (n,) written: whether the pole has fallen.
        late: (n,) written: whether the ticks are used up.
    """
    for i in range(lanes.shape[0]):
        fallen[i], late[i] = play_lane(
            worlds[0], lanes[i], balls[i], due, contacts, forces, actions[i]
        )


@compiled
def play_one(worlds, lanes, balls, due, contacts, forces, action, rows):
    """Play one action of one lane and observe it.

    Args:
        worlds: (1,) the world.
        lanes: (1,) changed in place.
        balls: (1, slots) changed in place.
        due: (laws, ticks + 2) where balls arrive.
        contacts: Room for a lane's contacts.
        forces: (slots, 3) room.
        action: 0 to 4.
        rows: (1, 11 + 7 room) written.
    Returns: Whether the pole has fallen, and whether the ticks are used up.
    """
    ended = play_lane(worlds[0], lanes[0], balls[0], due, contacts, forces, action)
    observe(worlds, lanes, balls, rows)
    return ended


@compiled
def play_lane(world, lane, balls, due, contacts, forces, action):
    """Play one action of a lane.

    Args:
        world: Its numbers.
        lane: Changed in place.
        balls: (slots,) changed in place.
        due: (laws, ticks + 2) where balls arrive.
        contacts: Room for a lane's contacts.
        forces: (slots, 3) room.
        action: 0 to 4.
    Returns: Whether the pole has fallen, and whether the ticks are used up.
    """
    push = _PUSHES[action]
    x, y = world.push * push[0], world.push * push[1]
    _tick(world, lane, balls, due, contacts, forces, x, y)
    lane.ticks += 1
    q = lane.seen_pole if world.lag else lane.pole
    fallen = _has_fallen((q[0], q[1], q[2], q[3]), world.sine, world.tangent)
    return fallen, lane.ticks >= world.ticks


@compiled
def play_hidden_tick(worlds, lanes, balls, due, contacts, forces):
    """Play the tick before an episode: the start's own push and no action.

    Args:
        worlds: (1,) the world.
        lanes: (n,) changed in place.
        balls: (n, slots) changed in place.
        due: (laws, ticks + 2) where balls arrive.
        contacts: Room for a lane's contacts.
        forces: (slots, 3) room.
    """
    for i in range(lanes.shape[0]):
        lane = lanes[i]
        x, y = lane.push[0], lane.push[1]
        _tick(worlds[0], lane, balls[i], due, contacts, forces, x, y)
        lane.age += 1


# --- balls that arrive ----------------------------------------------------------------


@compiled
def _arrive(world, lane, balls, law, seed):
    """Put one ball into a lane, if there is a place for it."""
    cart = lane.seen_cart if world.lag else lane.cart
    ahead = world.arrival_ahead[law] == 1
    if ahead:
        x, y, free = _place_ahead(world, lane, balls, law, seed, cart)
        lane.travel[0], lane.travel[1] = cart[0], cart[1]
        if not free:
            return
    else:
        off = lane.first if world.arrival_start[law] == 1 else cart
        x = y = 0.0
        for k in range(_PLACES):
            u, v = uniform(seed, _SPAWNS + k), uniform(seed, _SPAWNS + _PLACES + k)
            a, b = (world.start_ball * (2.0 * u - 1.0), world.start_ball * (2.0 * v - 1.0))
            square = (a - off[0]) ** 2 + (b - off[1]) ** 2
            clear = square >= world.clearance * world.clearance
            if k == 0 or clear:
                x, y = a, b
            if clear:
                break
    ball = balls[min(lane.arrived, balls.shape[0] - 1)]
    lane.arrived += 1
    ball.moving, ball.there = 1.0, 1
    ball.place[0], ball.place[1], ball.place[2] = x, y, _HEIGHT
    if not ahead:
        rise = uniform(seed, _SPAWNS + 2 * _PLACES)
        ball.place[2] = world.lowest + (world.highest - world.lowest) * rise
    slow, fast = world.arrival_slowest[law], world.arrival_fastest[law]
    for k in range(3):
        size = slow + (fast - slow) * uniform(seed, _SPEEDS + k)
        back = uniform(seed, _SPEEDS + 3 + k) >= 0.5
        ball.rail[k] = 0.0
        ball.speed[k] = 0.0 if ahead else (-size if back else size)


@compiled
def _place_ahead(world, lane, balls, law, seed, cart):
    """Return a place along the cart's travel, and whether there is a free one."""
    u, v = cart[0] - lane.travel[0], cart[1] - lane.travel[1]
    norm = math.sqrt(u * u + v * v)
    if norm == 0.0:
        return 0.0, 0.0, False
    by_cart = world.arrival_cart[law] == 1
    near = cart if by_cart else lane.first
    base_x, base_y = (cart[0], cart[1]) if by_cart else (0.0, 0.0)
    low, high = world.arrival_nearest[law], world.arrival_furthest[law]
    least = world.arrival_clearance[law]
    for k in range(_TRIES):
        reach = (low + (high - low) * uniform(seed, _SPAWNS + k)) / norm
        x, y = base_x + reach * u, base_y + reach * v
        if abs(x) > _REACH or abs(y) > _REACH:
            continue
        if (x - near[0]) ** 2 + (y - near[1]) ** 2 < least * least:
            continue
        free = True
        for i in range(lane.arrived):
            at = balls[i].place
            gap = (x - at[0]) ** 2 + (y - at[1]) ** 2 + (_HEIGHT - at[2]) ** 2
            if gap < _APART * _APART:
                free = False
                break
        if free:
            return x, y, True
    return 0.0, 0.0, False


# --- what agents see ------------------------------------------------------------------


@compiled
def observe(worlds, lanes, balls, rows):
    """Write the observations: cart and pole, then the balls that are shown.

    Of more balls than there is room for the nearest to the pole's centre of mass.

    Args:
        worlds: (1,) the world.
        lanes: (n,).
        balls: (n, slots).
        rows: (n, 11 + 7 room) written.
    """
    world = worlds[0]
    for i in range(lanes.shape[0]):
        lane, row = lanes[i], rows[i]
        cart = lane.seen_cart if world.lag else lane.cart
        pole = lane.seen_pole if world.lag else lane.pole
        row[0], row[1] = cart[0], cart[1]
        row[2], row[3] = lane.seen_velocity[0], lane.seen_velocity[1]
        for k in range(4):
            row[4 + k] = pole[k]
        for k in range(3):
            row[8 + k] = lane.spin[k]
        if row.size > _CORE:
            d, up = direction(pole), world.centre
            x, y, z = cart[0] + up * d[0], cart[1] + up * d[1], world.joint + up * d[2]
            _observe_balls(lane, balls[i], row, x, y, z)


@compiled
def _observe_balls(lane, balls, row, x, y, z):
    """Write the balls that are shown, by distance where there is no room for all."""
    room, many = (row.size - _CORE) // _PER_BALL, lane.arrived
    last, chosen = -1.0, -1
    for place in range(room):
        at = _CORE + _PER_BALL * place
        if place >= many:
            row[at : at + _PER_BALL] = 0.0
            continue
        if many <= room:
            chosen = place
        else:
            chosen, last = _next_nearest(balls, many, x, y, z, last, chosen)
        ball = balls[chosen]
        row[at] = 1.0
        for k in range(3):
            row[at + 1 + k] = ball.place[k]
            row[at + 4 + k] = ball.speed[k]


@compiled
def _next_nearest(balls, many, x, y, z, last, taken):
    """Return the ball that comes after `taken` by distance, and its squared gap."""
    best, chosen = math.inf, 0
    for j in range(many):
        at = balls[j].place
        gap = (at[0] - x) ** 2 + (at[1] - y) ** 2 + (at[2] - z) ** 2
        if (gap > last or (gap == last and j > taken)) and gap < best:
            best, chosen = gap, j
    return chosen, best


@compiled
def child_seeds(seeds, paths, made):
    """Write each seed's child at its path.

    Args:
        seeds: (n,) of 64 bits.
        paths: (n,) numbers.
        made: (n,) written.
    """
    for i in range(seeds.size):
        made[i] = child_seed(seeds[i], paths[i])


# --- control rules --------------------------------------------------------------------


@compiled
def random_actions(lanes, actions):
    """Write an action drawn uniformly by each lane's own seed and tick.

    Args:
        lanes: (n,).
        actions: (n,) written.
    """
    for i in range(lanes.shape[0]):
        seed = child_seed(lanes[i].seed, lanes[i].ticks)
        actions[i] = int(5.0 * uniform(seed, _RANDOM))


@compiled
def pd_actions(rows, actions):
    """Write pushes along the axis with the larger error, towards the lean.

    Args:
        rows: (n, 11 or more) observations.
        actions: (n,) written.
    """
    for i in range(rows.shape[0]):
        actions[i] = pd_action(rows[i], 0.0, 0.0, 1.0)
