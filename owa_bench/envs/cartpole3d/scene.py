"""Scene in the physics engine: bodies are built once, episodes begin by moving them.

Gravity of the engine is off and the pole's weight is one force, unless balls weigh too; so no ball
needs a force against gravity. Positions of balls are read from their bounding boxes, velocities are
differences of positions (exact: the engine moves a body by its new velocity). The box of a link is
one tick late, so a ball on a rail is read from its joint where nothing is to lag. Client ids go by
position: keywords cost as much as the call.
"""

from collections.abc import Iterable
from typing import NamedTuple

from owa_bench.envs.cartpole3d import bodies
from owa_bench.envs.cartpole3d.bodies import BASE, CART, FREE, POLE, RAIL
from owa_bench.envs.cartpole3d.rules import point_on_pole, rotated, rotation_to, turned
from owa_bench.envs.cartpole3d.start import BallState, Quaternion, SceneState, Vector2, Vector3
from owa_bench.envs.cartpole3d.world import PhysicsWorld

_ITERATIONS = 50  # of the contact solver
_ZERO: Vector3 = (0.0, 0.0, 0.0)
_LEAST_SWERVE = 1e-5  # rad a tick, below which no hit has turned the cart
_LEVEL: Quaternion = (0.0, 0.0, 0.0, 1.0)
_LINKS = (CART, POLE)
_SLIDES = (bodies.SLIDE_X, bodies.SLIDE_Y)
_JOINTS = (*_SLIDES, CART, POLE)


class BallBody(NamedTuple):
    """A ball in the engine; one on a rail has an axis and an origin."""

    body: int
    link: int
    kind: str
    rail: Vector2 | None = None
    origin: Vector3 = _ZERO


class Scene:
    """One engine client with the bodies of one shape of world.

    After `set_state` and each `tick`: `cart` and `centre` are the positions of cart and of the
    pole's centre of mass, `velocity` the cart's, `pole` the pole's quaternion, `spin` its angular
    velocity in the world, `lows` the low corners of the balls' boxes and `before` those one tick
    earlier.
    """

    def __init__(self, world: PhysicsWorld, *, window: bool = False) -> None:
        self._window = window
        self.engine = bodies.Client(window=window)
        self._bullet = bullet = self.engine.bullet
        self.client = self.engine.id
        self._apply = bullet.applyExternalForce
        self._run = bullet.stepSimulation
        self._links = bullet.getLinkStates
        self._box = bullet.getAABB
        self._move = bullet.resetBasePositionAndOrientation
        self._throw = bullet.resetBaseVelocity
        self._shape: PhysicsWorld | None = None
        self.cart = self.velocity = self.centre = self.spin = _ZERO
        self.pole = _LEVEL
        self._extra: Vector3 | None = None  # force on the cart, until the next tick
        self.enter(world)

    # --- worlds ---------------------------------------------------------------------

    def enter(self, world: PhysicsWorld) -> bool:
        """Take on a world.

        Args:
            world: the world to play from now on.
        Returns: True where bodies were built anew: a state must be set then.
        """
        shape = bodies.shape_of(world)
        fresh = shape != self._shape
        self.world = world
        if fresh:
            self._shape = shape
            self._show(on=False)
            self._build(world)
            self._show(on=True)
        bodies.set_inertia(self.engine, self._body, CART, world.cart)
        weighs = world.ball.weighs
        self.engine.setGravity(0.0, 0.0, -world.gravity if weighs else 0.0)
        weight = 0.0 if weighs else -world.pole.mass * world.gravity
        self._weight = (0.0, 0.0, weight)
        self._weighed = weight != 0.0
        self._lags = world.lag
        self._fresh = 0 if world.lag else 1
        self._span, self.rate = world.tick, 1.0 / world.tick
        return fresh

    def _build(self, world: PhysicsWorld) -> None:
        engine = self.engine
        engine.resetSimulation()
        engine.setPhysicsEngineParameter(
            fixedTimeStep=world.tick,
            numSubSteps=0,
            numSolverIterations=_ITERATIONS,
            deterministicOverlappingPairs=1,
        )
        self._arena = bodies.build_arena(engine, world.arena)
        self._body = bodies.build_cart_pole(engine, world.cart, world.pole)
        self.radius = world.ball.radius
        self._restitution = 1.0
        self._pools: dict[str, list[BallBody]] = {}
        self._idle: dict[str, list[BallBody]] = {}
        self._homes: dict[int, Vector3] = {}
        self.live: list[BallBody] = []
        self._railed = False
        self.lows: list[Vector3] = []
        self.before: list[Vector3] = []
        for kind in (FREE, *sorted(bodies.kinds_of(world))):
            self._grow(kind)

    def _show(self, *, on: bool) -> None:
        """Let the window follow the scene: else each new body waits for a picture."""
        if self._window:
            rendering = self._bullet.COV_ENABLE_RENDERING
            self.engine.configureDebugVisualizer(rendering, int(on))

    def _grow(self, kind: str) -> None:
        """Build some more balls of a kind, each of which is parked."""
        pool = self._pools.setdefault(kind, [])
        idle = self._idle.setdefault(kind, [])
        grown = []
        for _ in range(bodies.POOL):
            home = bodies.parking_place(len(self._homes))
            ball = bodies.build_ball(self.engine, self.world.ball, kind, home)
            link = 0 if kind == RAIL else BASE
            self._homes[ball] = home
            self._set_body_restitution(ball, link)
            grown.append(BallBody(ball, link, kind))
        pool += grown
        idle[:0] = reversed(grown)

    # --- an episode -----------------------------------------------------------------

    def set_state(self, state: SceneState) -> None:
        """Put every body where `state` has it; `spin` is not known before a tick."""
        bullet, client, body = self._bullet, self.client, self._body
        (x, y), (u, v), (yaw, turn) = state.cart, state.velocity, state.yaw
        # lists on the outside: the engine reads freed memory for tuples of tuples
        bullet.resetJointStatesMultiDof(
            body,
            _JOINTS,
            [(x,), (y,), (yaw,), state.pole],
            [(u,), (v,), (turn,), state.rates],
            client,
        )
        self.cart, self.velocity = (x, y, 0.0), (u, v, 0.0)
        self.pole = turned(state.pole, yaw)
        world = self.world
        joint, reach = world.cart.joint, world.pole.centre
        self.centre = point_on_pole(self.pole, state.cart, joint, reach)
        self._cart_at, self._pole_at, self._turn = self.cart, self.centre, turn
        if state.restitution != self._restitution:
            self._set_restitution(state.restitution)
        gone, self.live = self.live, []
        self.lows, self.before = [], []
        for kind, pool in self._pools.items():
            self._idle[kind] = pool[::-1]
        self._railed, self._extra = False, None
        for ball in state.balls:
            self.add(ball)
        if len(gone) > len(self.live) or len(self._pools) > 1:
            staying = {ball.body for ball in self.live}
            for ball_body in gone:
                if ball_body.body not in staying:
                    self._park(ball_body)

    def read_poses(self) -> None:
        """Read cart and pole as they are now, without any lag."""
        # the engine has worked out already what `set_state` has set
        cart, pole = self._links(self._body, _LINKS, 1, 0, self.client)
        self.cart, self.velocity = cart[0], cart[6]
        self.centre, self.pole, self.spin = pole[0], pole[1], pole[7]

    def add(self, ball: BallState) -> None:
        """Let a ball take part, from a pool that grows where it is empty."""
        at, velocity, fixed, rail = ball
        one = self._next(bodies.FIXED if fixed else FREE if rail is None else RAIL)
        if rail is not None:
            one = BallBody(one.body, one.link, RAIL, rail, at)
            self._set_on_rail(one, rail, velocity)
            self._railed = True
        else:
            self._move(one.body, at, _LEVEL, self.client)
            if not fixed:
                self._throw(one.body, velocity, _ZERO, self.client)
        self.live.append(one)
        r, t, (x, y, z), (u, v, w) = self.radius, self._span, at, velocity
        x, y, z = x - r, y - r, z - r
        self.lows.append((x, y, z))
        self.before.append((x - u * t, y - v * t, z - w * t))

    def tick(self, push: Vector3 | None) -> None:
        """Let one tick pass.

        Args:
            push: force on the cart in the world, N; None for none.
        """
        client, body, apply, box = self.client, self._body, self._apply, self._box
        if self._weighed:
            apply(body, POLE, self._weight, self._pole_at, 2, client)
        if self._extra is not None:
            (x, y, z), (u, v, w) = self._extra, push or _ZERO
            push, self._extra = (x + u, y + v, z + w), None
        if push is not None:
            apply(body, CART, push, self._cart_at, 2, client)
        self._run(client)
        cart, pole = self._links(body, _LINKS, 1, self._fresh, client)
        self.cart, self.velocity = cart[0], cart[6]
        self.centre, self.pole, self.spin = pole[0], pole[1], pole[7]
        self._cart_at, self._pole_at = cart[0], pole[0]
        turn = cart[7][2]
        if turn != self._turn:
            if self._lags and abs(turn - self._turn) > _LEAST_SWERVE * self.rate:
                self._swerve((turn - self._turn) * self._span)
            self._turn = turn
        self.before = self.lows
        self.lows = [box(ball[0], ball[1], client)[0] for ball in self.live]
        if self._railed and self._fresh:
            self._read_rails(self.lows)

    # --- forces ---------------------------------------------------------------------

    def push_balls(self, forces: Iterable[Vector3]) -> None:
        """Push each ball's centre during the next tick; one that is fixed stays.

        Args:
            forces: one a ball, in the world, N.
        """
        apply, client = self._apply, self.client
        pairs = zip(self.live, forces)  # noqa: B905 (each check costs 0.1 us)
        for (body, link, kind, _, at), force in pairs:
            if kind == FREE:  # it never turns, so its own frame is the world's
                apply(body, BASE, force, _ZERO, 1, client)
            elif kind == RAIL:  # its joint takes what is along it, wherever it acts
                apply(body, link, force, at, 2, client)

    def push_cart(self, force: Vector3) -> None:
        """Push the cart during the next tick, beside what `tick` is given.

        Args:
            force: in the world, N.
        """
        self._extra = force

    def push_pole(self, force: Vector3, at: Vector3) -> None:
        """Push the pole during the next tick.

        Args:
            force: in the world, N.
            at: the point in the world on which it acts, m.
        """
        self._apply(self._body, POLE, force, at, 2, self.client)

    @property
    def places(self) -> list[Vector3]:
        """The centres of the balls that take part."""
        r = self.radius
        return [(x + r, y + r, z + r) for x, y, z in self.lows]

    @property
    def speeds(self) -> list[Vector3]:
        """The velocities of the balls that take part."""
        k = self.rate
        return [
            ((x - a) * k, (y - b) * k, (z - c) * k)
            for (x, y, z), (a, b, c) in zip(self.lows, self.before, strict=True)
        ]

    # --- state ----------------------------------------------------------------------

    def state(self) -> SceneState:
        """Return the complete state as it is now, without any lag."""
        bullet, client, body = self._bullet, self.client, self._body
        along, across, yaw = bullet.getJointStates(body, _JOINTS[:3], client)
        pole = bullet.getJointStateMultiDof(body, POLE, client)
        lows = self.lows.copy()
        self._read_rails(lows)
        r = self.radius
        places = [(x + r, y + r, z + r) for x, y, z in lows]
        balls = zip(self.live, places, self._velocities(), strict=True)
        return SceneState(
            cart=(along[0], across[0]),
            velocity=(along[1], across[1]),
            pole=pole[0],
            rates=pole[1],
            yaw=(yaw[0], yaw[1]),
            balls=tuple(
                BallState(at, speed, fixed=live.kind == bodies.FIXED, rail=live.rail)
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

    def _swerve(self, angle: float) -> None:
        """Turn the cart's velocity as the released generator's joint does after a hit.

        That joint keeps the velocity in the cart's own frame, so a hit that sets the cart turning
        turns its velocity too, by what it turns within the tick; and the velocity that is read is
        behind by that turn.

        Args:
            angle: what the change of the turning rate makes in a tick, rad.
        """
        bullet, client, body = self._bullet, self.client, self._body
        (x, u, *_), (y, v, *_) = bullet.getJointStates(body, _SLIDES, client)
        p, q = rotated(u, v, angle)
        x, y = x + (p - u) * self._span, y + (q - v) * self._span
        bullet.resetJointStatesMultiDof(body, _SLIDES, [(x,), (y,)], [(p,), (q,)], client)
        # the engine's cached places are those of now, on which forces act
        cart, pole = self._links(body, _LINKS, 1, 1, client)
        self._cart_at, self._pole_at = cart[0], pole[0]
        self.velocity = (*rotated(p, q, -cart[7][2] * self._span), 0.0)

    def _velocities(self) -> list[Vector3]:
        """Return the balls' velocities as the engine holds them."""
        bullet, client = self._bullet, self.client
        velocities: list[Vector3] = []
        for ball in self.live:
            velocity = _ZERO
            if ball.kind == FREE:
                velocity = bullet.getBaseVelocity(ball.body, client)[0]
            elif ball.rail is not None:
                speed = bullet.getJointState(ball.body, 0, client)[1]
                velocity = (ball.rail[0] * speed, ball.rail[1] * speed, 0.0)
            velocities.append(velocity)
        return velocities

    def _next(self, kind: str) -> BallBody:
        """Return a ball of a kind that takes no part yet."""
        idle = self._idle.setdefault(kind, [])
        if not idle:
            self._grow(kind)
        return idle.pop()

    def _set_on_rail(self, ball: BallBody, rail: Vector2, velocity: Vector3) -> None:
        bullet, client = self._bullet, self.client
        bullet.resetBasePositionAndOrientation(ball.body, ball.origin, rotation_to(rail), client)
        speed = velocity[0] * rail[0] + velocity[1] * rail[1]
        bullet.resetJointState(ball.body, 0, 0.0, speed, client)

    def _read_rails(self, lows: list[Vector3]) -> None:
        """Put in the low corners of balls on rails as their joints have them."""
        r, client = self.radius, self.client
        for number, (body, link, _, rail, (x, y, z)) in enumerate(self.live):
            if rail is not None:
                gone = self._bullet.getJointState(body, link, client)[0]
                lows[number] = (x + gone * rail[0] - r, y + gone * rail[1] - r, z - r)

    def _park(self, ball: BallBody) -> None:
        bullet, client = self._bullet, self.client
        home = self._homes[ball.body]
        bullet.resetBasePositionAndOrientation(ball.body, home, _LEVEL, client)
        if ball.kind == FREE:
            bullet.resetBaseVelocity(ball.body, _ZERO, _ZERO, client)
        elif ball.kind == RAIL:
            bullet.resetJointState(ball.body, 0, 0.0, 0.0, client)

    def _set_restitution(self, restitution: float) -> None:
        self._restitution = restitution
        self._set_body_restitution(self._arena, BASE)
        for pool in self._pools.values():
            for ball in pool:
                self._set_body_restitution(ball.body, ball.link)

    def _set_body_restitution(self, body: int, link: int) -> None:
        self.engine.changeDynamics(body, link, restitution=self._restitution)
