"""The scene in the physics engine: bodies made once, episodes begun by moving them.

Gravity of the engine is off and the pole's weight is one force, unless balls weigh too;
so no ball needs a force against gravity. Positions of balls are read from their
bounding boxes, velocities are differences of positions (exact: the engine moves a body
by its new velocity). The box of a link is one tick late, so a ball on a rail is read
from its joint where nothing is to lag. Client ids go by position: keywords cost as much
as the call.
"""

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from owa_bench.envs.cartpole3d.bodies import (
    BASE,
    CART,
    FIXED,
    FREE,
    POLE,
    POOL,
    RAIL,
    SLIDE_X,
    build_arena,
    build_ball,
    build_cart_pole,
    connect,
    draw,
    engine,
    waiting,
)
from owa_bench.envs.cartpole3d.rules import along
from owa_bench.envs.cartpole3d.start import Ball, Pair, Quaternion, State, Triple
from owa_bench.worlds.physics import BallLaw, PhysicsWorld

_ITERATIONS = 50  # of the contact solver
_NOWHERE: Triple = (0.0, 0.0, 0.0)
_LEVEL: Quaternion = (0.0, 0.0, 0.0, 1.0)
_LINKS = (CART, POLE)
_JOINTS = (SLIDE_X, CART, POLE)


class Live(NamedTuple):
    """A ball: body, link, kind; one on a rail has an axis and where it began."""

    body: int
    link: int
    kind: str
    rail: Pair | None = None
    origin: Triple = _NOWHERE


def kinds_of(world: PhysicsWorld) -> set[Literal["fixed", "rail"]]:
    """Return the kinds of balls that a world's start laws need beside free ones."""
    found: set[Literal["fixed", "rail"]] = set()
    for law in world.laws:
        if law.kind == "fixed" or law.kind == "rail":
            found.add(law.kind)
    return found


def shape_of(world: PhysicsWorld) -> PhysicsWorld:
    """Return what bodies are built from, the rest of a world put back to level 0.

    A world of another shape needs a scene built anew; the cart's mass, forces, starts
    and restitution do not.
    """
    return PhysicsWorld(
        tick=world.tick,
        damping=world.damping,
        cart=msgspec.structs.replace(world.cart, mass=1.0),
        pole=world.pole,
        ball=msgspec.structs.replace(
            world.ball, restitution=(1.0, 1.0), weighs=False, fewest=0, most=0
        ),
        arena=world.arena,
        laws=tuple(BallLaw(kind=kind, share=1.0) for kind in sorted(kinds_of(world))),
    )


class Scene:
    """One engine client with the bodies of one shape of world.

    After `begin` and after each `tick`: `cart` and `centre` are the positions of cart
    and of the pole's centre of mass, `velocity` the cart's, `pole` the pole's
    quaternion, `spin` its angular velocity in the world, `lows` the low corners of the
    balls' boxes and `before` those one tick earlier.
    """

    def __init__(self, world: PhysicsWorld, *, window: bool = False) -> None:
        self._bullet = bullet = engine()
        self._window = window
        self.client: int = connect(bullet, window=window)
        self._apply = bullet.applyExternalForce
        self._run = bullet.stepSimulation
        self._links = bullet.getLinkStates
        self._box = bullet.getAABB
        self._move = bullet.resetBasePositionAndOrientation
        self._throw = bullet.resetBaseVelocity
        self._shape: PhysicsWorld | None = None
        self.cart = self.velocity = self.centre = self.spin = _NOWHERE
        self.pole = _LEVEL
        self._gust: Triple | None = None  # on the cart, till the next tick
        self.enter(world)

    # --- worlds ---------------------------------------------------------------------

    def enter(self, world: PhysicsWorld) -> bool:
        """Take on a world; return whether bodies were built anew (then `begin`)."""
        shape = shape_of(world)
        fresh = shape != self._shape
        self.world = world
        if fresh:
            self._shape = shape
            self._draw(on=False)
            self._build(world)
            self._draw(on=True)
        bullet, client = self._bullet, self.client
        bullet.changeDynamics(
            self._body, CART, mass=world.cart.mass, physicsClientId=client
        )
        weighs = world.ball.weighs
        bullet.setGravity(0.0, 0.0, -world.gravity if weighs else 0.0, client)
        weight = 0.0 if weighs else -world.pole.mass * world.gravity
        self._weight = (0.0, 0.0, weight)
        self._weighed = weight != 0.0
        self._fresh = 0 if world.lag else 1
        self._span, self.rate = world.tick, 1.0 / world.tick
        return fresh

    def _build(self, world: PhysicsWorld) -> None:
        bullet, client = self._bullet, self.client
        bullet.resetSimulation(physicsClientId=client)
        bullet.setPhysicsEngineParameter(
            fixedTimeStep=world.tick,
            numSubSteps=0,
            numSolverIterations=_ITERATIONS,
            deterministicOverlappingPairs=1,
            physicsClientId=client,
        )
        self._arena = build_arena(bullet, client, world.arena)
        self._body = build_cart_pole(bullet, client, world.cart, world.pole)
        self.radius = world.ball.radius
        self._restitution = 1.0
        self._pools: dict[str, list[Live]] = {}
        self._idle: dict[str, list[Live]] = {}
        self._homes: dict[int, Triple] = {}
        self.live: list[Live] = []
        self._railed = False
        self.lows: list[Triple] = []
        self.before: list[Triple] = []
        for kind in (FREE, *sorted(kinds_of(world))):
            self._grow(kind)

    def _draw(self, *, on: bool) -> None:
        if self._window:
            draw(self._bullet, self.client, on=on)

    def _grow(self, kind: str) -> None:
        """Build some more balls of a kind, each of which waits."""
        pool = self._pools.setdefault(kind, [])
        idle = self._idle.setdefault(kind, [])
        grown = []
        for _ in range(POOL):
            home = waiting(len(self._homes))
            ball = build_ball(self._bullet, self.client, self.world.ball, kind, home)
            link = 0 if kind == RAIL else BASE
            self._homes[ball] = home
            self._bounce(ball, link)
            grown.append(Live(ball, link, kind))
        pool += grown
        idle[:0] = reversed(grown)

    # --- an episode -----------------------------------------------------------------

    def begin(self, state: State) -> None:
        """Put every body where `state` has it; `spin` is not known before a tick."""
        bullet, client, body = self._bullet, self.client, self._body
        (x, y), (u, v) = state.cart, state.velocity
        # lists on the outside: the engine reads freed memory for tuples of tuples
        bullet.resetJointStatesMultiDof(
            body, _JOINTS, [(x,), (y,), state.pole], [(u,), (v,), state.rates], client
        )
        self.cart, self.velocity, self.pole = (x, y, 0.0), (u, v, 0.0), state.pole
        world = self.world
        self.centre = along(state.pole, state.cart, world.cart.joint, world.pole.centre)
        if state.restitution != self._restitution:
            self._set_restitution(state.restitution)
        gone, self.live = self.live, []
        self.lows, self.before = [], []
        for kind, pool in self._pools.items():
            self._idle[kind] = pool[::-1]
        self._railed, self._gust = False, None
        for ball in state.balls:
            self.add(ball)
        if len(gone) > len(self.live) or len(self._pools) > 1:
            staying = {ball.body for ball in self.live}
            for left in gone:
                if left.body not in staying:
                    self._send_away(left)

    def look(self) -> None:
        """Read cart and pole as they are now, their pose without any lag."""
        # the engine has worked out already what `begin` has set
        cart, pole = self._links(self._body, _LINKS, 1, 0, self.client)
        self.cart, self.velocity = cart[0], cart[6]
        self.centre, self.pole, self.spin = pole[0], pole[1], pole[7]

    def add(self, ball: Ball) -> None:
        """Let a ball take part, from a pool that grows if need be."""
        at, velocity, fixed, rail = ball
        one = self._next(FIXED if fixed else FREE if rail is None else RAIL)
        if rail is not None:
            one = Live(one.body, one.link, RAIL, rail, at)
            self._set_on_rail(one, rail, velocity)
            self._railed = True
        else:
            self._move(one.body, at, _LEVEL, self.client)
            if not fixed:
                self._throw(one.body, velocity, _NOWHERE, self.client)
        self.live.append(one)
        r, t, (x, y, z), (u, v, w) = self.radius, self._span, at, velocity
        x, y, z = x - r, y - r, z - r
        self.lows.append((x, y, z))
        self.before.append((x - u * t, y - v * t, z - w * t))

    def tick(self, push: Triple | None) -> None:
        """Let one tick pass with a force on the cart, or with none."""
        client, body, apply, box = self.client, self._body, self._apply, self._box
        if self._weighed:
            apply(body, POLE, self._weight, self.centre, 2, client)
        if self._gust is not None:
            (x, y, z), (u, v, w) = self._gust, push or _NOWHERE
            push, self._gust = (x + u, y + v, z + w), None
        if push is not None:
            apply(body, CART, push, _NOWHERE, 1, client)
        self._run(client)
        cart, pole = self._links(body, _LINKS, 1, self._fresh, client)
        self.cart, self.velocity = cart[0], cart[6]
        self.centre, self.pole, self.spin = pole[0], pole[1], pole[7]
        self.before = self.lows
        self.lows = [box(ball[0], ball[1], client)[0] for ball in self.live]
        if self._railed and self._fresh:
            self._read_rails(self.lows)

    # --- forces ---------------------------------------------------------------------

    def push_balls(self, forces: Iterable[Triple]) -> None:
        """Push each ball's centre during the next tick; one that is fixed stays."""
        apply, client = self._apply, self.client
        pairs = zip(self.live, forces)  # noqa: B905 (each check costs 0.1 us)
        for (body, link, kind, _, at), force in pairs:
            if kind == FREE:  # it never turns, so its own frame is the world's
                apply(body, BASE, force, _NOWHERE, 1, client)
            elif kind == RAIL:  # its joint takes what is along it, wherever it acts
                apply(body, link, force, at, 2, client)

    def push_cart(self, force: Triple) -> None:
        """Push the cart during the next tick, beside what `tick` is given."""
        self._gust = force

    def push_pole(self, force: Triple, at: Triple) -> None:
        """Push the pole at a place in the world during the next tick."""
        self._apply(self._body, POLE, force, at, 2, self.client)

    @property
    def places(self) -> list[Triple]:
        """The centres of the balls that take part."""
        r = self.radius
        return [(x + r, y + r, z + r) for x, y, z in self.lows]

    @property
    def speeds(self) -> list[Triple]:
        """The velocities of the balls that take part."""
        k = self.rate
        return [
            ((x - a) * k, (y - b) * k, (z - c) * k)
            for (x, y, z), (a, b, c) in zip(self.lows, self.before, strict=True)
        ]

    # --- state ----------------------------------------------------------------------

    def state(self) -> State:
        """Return the whole state as it is now, without any lag."""
        bullet, client, body = self._bullet, self.client, self._body
        along, across = bullet.getJointStates(body, (SLIDE_X, CART), client)
        pole = bullet.getJointStateMultiDof(body, POLE, client)
        lows = self.lows.copy()
        self._read_rails(lows)
        r = self.radius
        places = [(x + r, y + r, z + r) for x, y, z in lows]
        balls = zip(self.live, places, self._velocities(), strict=True)
        return State(
            cart=(along[0], across[0]),
            velocity=(along[1], across[1]),
            pole=pole[0],
            rates=pole[1],
            balls=tuple(
                Ball(at, speed, fixed=live.kind == FIXED, rail=live.rail)
                for live, at, speed in balls
            ),
            restitution=self._restitution,
        )

    def close(self) -> None:
        """Release the engine's client; a second call does nothing."""
        if self.client >= 0:
            self._bullet.disconnect(self.client)
            self.client = -1

    # --- inside ---------------------------------------------------------------------

    def _velocities(self) -> list[Triple]:
        """Return the balls' velocities as the engine holds them."""
        found: list[Triple] = []
        for ball in self.live:
            if ball.kind == FREE:
                found.append(self._bullet.getBaseVelocity(ball.body, self.client)[0])
            elif ball.rail is not None:
                speed = self._bullet.getJointState(ball.body, 0, self.client)[1]
                found.append((ball.rail[0] * speed, ball.rail[1] * speed, 0.0))
            else:
                found.append(_NOWHERE)
        return found

    def _next(self, kind: str) -> Live:
        """Return a ball of a kind that takes no part yet."""
        idle = self._idle.setdefault(kind, [])
        if not idle:
            self._grow(kind)
        return idle.pop()

    def _set_on_rail(self, ball: Live, rail: Pair, velocity: Triple) -> None:
        bullet, client = self._bullet, self.client
        bullet.resetBasePositionAndOrientation(
            ball.body, ball.origin, turned(rail), client
        )
        speed = velocity[0] * rail[0] + velocity[1] * rail[1]
        bullet.resetJointState(ball.body, 0, 0.0, speed, client)

    def _read_rails(self, lows: list[Triple]) -> None:
        """Put in the low corners of balls on rails as their joints have them."""
        r, client = self.radius, self.client
        for number, (body, link, _, rail, (x, y, z)) in enumerate(self.live):
            if rail is not None:
                gone = self._bullet.getJointState(body, link, client)[0]
                lows[number] = (x + gone * rail[0] - r, y + gone * rail[1] - r, z - r)

    def _send_away(self, ball: Live) -> None:
        bullet, client = self._bullet, self.client
        home = self._homes[ball.body]
        bullet.resetBasePositionAndOrientation(ball.body, home, _LEVEL, client)
        if ball.kind == FREE:
            bullet.resetBaseVelocity(ball.body, _NOWHERE, _NOWHERE, client)
        elif ball.kind == RAIL:
            bullet.resetJointState(ball.body, 0, 0.0, 0.0, client)

    def _set_restitution(self, restitution: float) -> None:
        self._restitution = restitution
        self._bounce(self._arena, BASE)
        for pool in self._pools.values():
            for ball in pool:
                self._bounce(ball.body, ball.link)

    def _bounce(self, body: int, link: int) -> None:
        self._bullet.changeDynamics(
            body, link, restitution=self._restitution, physicsClientId=self.client
        )


def turned(axis: Pair) -> Quaternion:
    """Return the turn about z that takes the x axis to a unit vector."""
    half = math.sqrt(max(0.0, 0.5 * (1.0 + axis[0])))
    if half < 1e-9:
        return 0.0, 0.0, 1.0, 0.0
    return 0.0, 0.0, 0.5 * axis[1] / half, half
