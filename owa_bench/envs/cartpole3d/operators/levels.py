"""Operators on physics worlds: the sixteen novelty levels of the AIQ paper, Table 1."""

from msgspec.structs import replace

from owa_bench.drift.operator import operator
from owa_bench.envs.cartpole3d.world import (
    DECIMALS,
    BallLaw,
    PhysicsWorld,
    Pull,
    Spawn,
    Target,
    Wind,
    graded,
    spread,
)


def _with_law(world: PhysicsWorld, law: BallLaw) -> PhysicsWorld:
    """Return `world` with one more start law for balls, unless its share is 0."""
    return replace(world, laws=(*world.laws, law)) if law.share else world


def _with_pull(world: PhysicsWorld, pull: Pull) -> PhysicsWorld:
    """Return `world` with one more force on its balls, unless its size is 0."""
    return replace(world, pulls=(*world.pulls, pull)) if any(pull.size) else world


def _ticks(rate: float) -> float:
    """Return the ticks between two balls at `rate` balls a tick, to six decimals."""
    return round(1.0 / rate, 6)


@operator(announcement="D3", weight=1.0, targets="balls/radius")
def ball_size(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Enlarge the balls: radius 2/3, 5/6, 1 m (released: 1 m at every grade).

    Changes: the radius; in table1 also where balls may start, so that none begins in a
        wall or on the cart.
    Leaves alone: the balls' mass and speed.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 4; docs/cartpole3d.md#operators.
    """
    released = world.spec == "released"
    grades = (1.0, 1.0, 1.0) if released else (2 / 3, 5 / 6, 1.0)
    radius = graded(intensity, 0.5, *grades)
    ball = replace(world.ball, radius=radius)
    if released:
        return replace(world, ball=ball)
    start = replace(
        world.start,
        clearance=round(world.start.clearance + radius - 0.5, DECIMALS),
        ball=min(world.start.ball, round(world.arena.half - radius, DECIMALS)),
    )
    return replace(world, ball=ball, start=start)


@operator(announcement="D3", weight=1.0, targets="balls/apart")
def balls_apart(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Push balls away from their centroid by up to 2, 4, 6 N, redrawn every tick.

    Changes: a force on every ball; released: towards the centroid, up to 6 N at every
        grade.
    Leaves alone: starts, masses, cart, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 5; docs/cartpole3d.md#operators.
    """
    if world.spec == "released":
        size = (0.0, graded(intensity, 0.0, 6.0, 6.0, 6.0))
    else:
        size = (-graded(intensity, 0.0, 2.0, 4.0, 6.0), 0.0)
    return _with_pull(world, Pull(target="centroid", size=size))


@operator(announcement="D3", weight=1.0, targets="balls/fixed")
def balls_fixed(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Fix a share of the balls in the cart's plane (released: all, anywhere).

    Changes: the start of a third, two thirds or all balls: unmovable, their centres at
        height 0.5; released: every ball, heights as at level 0.
    Leaves alone: sizes, masses, cart, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 2; docs/cartpole3d.md#operators.
    """
    released = world.spec == "released"
    grades = (1.0, 1.0, 1.0) if released else (1 / 3, 2 / 3, 1.0)
    heights = world.start.heights if released else (0.5, 0.5)
    share = graded(intensity, 0.0, *grades)
    return _with_law(world, BallLaw(kind="fixed", share=share, heights=heights))


@operator(announcement="D3", weight=1.0, targets="balls/rail")
def balls_on_rails(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Put every ball on a horizontal axis that passes the cart at 3-4, 2-3, 1.5-2 m.

    Changes: the balls' start and freedom: an axis in the pole's plane of height, 6 to
        10 m/s, no drag; released: heading and height distorted, most above the box.
    Leaves alone: cart, pole, sizes.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 10; docs/cartpole3d.md#operators.
    """
    released = world.spec == "released"
    law = BallLaw(
        kind="rail",
        share=graded(intensity, 0.0, 1.0, 1.0, 1.0),
        speeds=world.start.speeds,
        heights=(0.5, 1.5) if released else (0.5, 1.25),
        distances=spread(intensity, (3, 4), (3, 4), (2, 3), (1.5, 2)),
        bent=released,
    )
    return _with_law(world, law)


@operator(announcement="D3", weight=1.0, targets="balls/cart")
def balls_to_cart(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Start a quarter, a half, three quarters of the balls towards the cart.

    Changes: the start velocity of a share of the balls: up to 10 m/s to the cart at
        height 0.5.
    Leaves alone: places, sizes, forces.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 11; docs/cartpole3d.md#operators.
    """
    share = graded(intensity, 0.0, 0.25, 0.5, 0.75)
    law = BallLaw(kind="cart", share=share, speeds=(0.0, 10.0), aim=0.5)
    return _with_law(world, law)


@operator(announcement="D3", weight=1.0, targets="balls/point")
def balls_to_point(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Start a share of the balls towards one random point (released: all).

    Changes: the start velocity of a third, two thirds or all balls: up to 10 m/s
        towards a point common to the episode; released: of every ball, at one speed.
    Leaves alone: places, sizes, forces.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 3; docs/cartpole3d.md#operators.
    """
    released = world.spec == "released"
    grades = (1.0, 1.0, 1.0) if released else (1 / 3, 2 / 3, 1.0)
    law = BallLaw(
        kind="point",
        share=graded(intensity, 0.0, *grades),
        speeds=(0.0, 10.0),
        heights=world.start.heights,
        alike=released,
    )
    return _with_law(world, law)


@operator(announcement="D3", weight=1.0, targets="balls/together")
def balls_together(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Pull balls to their centroid with a constant 1, 3, 5 N.

    Changes: a force on every ball; released: away from the centroid.
    Leaves alone: starts, masses, cart, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 13; docs/cartpole3d.md#operators.
    """
    size = graded(intensity, 0.0, 1.0, 3.0, 5.0)
    if world.spec == "released":
        size = -size
    return _with_pull(world, Pull(target="centroid", size=(size, size)))


@operator(announcement="D3", weight=1.0, targets="balls/restitution")
def bounce(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Draw the restitution per episode from 1.05-1.15, 1.20-1.30, 1.35-1.45.

    Changes: the restitution of balls and of walls (the engine multiplies them).
    Leaves alone: drag, starts, cart, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 12; docs/cartpole3d.md#operators.
    """
    bands = ((1.0, 1.0), (1.05, 1.15), (1.2, 1.3), (1.35, 1.45))
    ball = replace(world.ball, restitution=spread(intensity, *bands))
    return replace(world, ball=ball)


@operator(announcement="D3", weight=1.0, targets="cart/mass")
def cart_mass(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Make the cart heavier: 5, 10, 50 kg (released: 10 kg at every grade).

    Changes: the cart's mass.
    Leaves alone: its shape and the push, balls, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 1; docs/cartpole3d.md#operators.
    """
    grades = (10.0, 10.0, 10.0) if world.spec == "released" else (5.0, 10.0, 50.0)
    mass = graded(intensity, 1.0, *grades)
    return replace(world, cart=replace(world.cart, mass=mass))


@operator(announcement="D3", weight=1.0, targets="gravity")
def gravity(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Raise gravity to 20, 30, 40 m/s2, on balls too (released: 9.8, on balls too).

    Changes: gravity on cart-pole and balls.
    Leaves alone: starts, masses.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 6; docs/cartpole3d.md#operators.
    """
    grades = (9.8, 9.8, 9.8) if world.spec == "released" else (20.0, 30.0, 40.0)
    ball = replace(world.ball, weighs=intensity > 0)
    return replace(world, gravity=graded(intensity, 9.8, *grades), ball=ball)


@operator(announcement="D3", weight=1.0, targets="balls/more")
def more_balls(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Add a flying ball every 3, 2, 1 ticks, without end.

    Changes: balls come during the episode, placed as at reset, components of 3 to 5
        m/s; kept off the cart's place (released: off its first place).
    Leaves alone: the balls of the start.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 16; docs/cartpole3d.md#operators.
    """
    rate = graded(intensity, 0.0, 1 / 3, 1 / 2, 1.0)
    if not rate:
        return world
    spawn = Spawn(
        every=_ticks(rate),
        placement="reset",
        around="start" if world.spec == "released" else "cart",
        speeds=(3.0, 5.0),
    )
    return replace(world, spawns=(*world.spawns, spawn))


@operator(announcement="D3", weight=1.0, targets="pole/length")
def pole_length(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Lengthen the pole to 3, 5, 8 m.

    Changes: the pole's length, its centre of mass in proportion; released: the centre
        stays at 1 m, only shape and inertia grow.
    Leaves alone: mass, start, fall limit.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 9; docs/cartpole3d.md#operators.
    """
    length = graded(intensity, 1.0, 3.0, 5.0, 8.0)
    centre = 1.0 if world.spec == "released" else length
    return replace(world, pole=replace(world.pole, length=length, centre=centre))


@operator(announcement="D3", weight=1.0, targets="balls/origin")
def pull_to_origin(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Pull every ball to (0, 0, 0) with a constant 15, 25, 35 N.

    Changes: a force on every ball.
    Leaves alone: starts, masses, cart, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 7; docs/cartpole3d.md#operators.
    """
    size = graded(intensity, 0.0, 15.0, 25.0, 35.0)
    return _with_pull(world, Pull(target="origin", size=(size, size)))


@operator(announcement="D3", weight=1.0, targets="balls/pole")
def pull_to_pole(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Pull every ball to the pole's tip with a constant 10, 20, 30 N.

    Changes: a force on every ball; released: towards half a metre above the cart.
    Leaves alone: starts, masses, cart, pole.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 15; docs/cartpole3d.md#operators.
    """
    size = graded(intensity, 0.0, 10.0, 20.0, 30.0)
    goal: Target = "middle" if world.spec == "released" else "tip"
    return _with_pull(world, Pull(target=goal, size=(size, size)))


@operator(announcement="D3", weight=1.0, targets="balls/stopped")
def stopped_balls(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Add a resting ball every 50, 15, 7 ticks, ahead of the cart.

    Changes: balls come during the episode, at height 1 along the cart's recent travel,
        1.5 to 5 m from it; released: up to 10 m from the world's origin.
    Leaves alone: the balls of the start.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 8; docs/cartpole3d.md#operators.
    """
    rate = graded(intensity, 0.0, 1 / 50, 1 / 15, 1 / 7)
    if not rate:
        return world
    released = world.spec == "released"
    spawn = Spawn(
        every=_ticks(rate),
        placement="ahead",
        around="origin" if released else "cart",
        distances=(0.0, 10.0) if released else (1.5, 5.0),
        clearance=0.75 if released else 1.0,
    )
    return replace(world, spawns=(*world.spawns, spawn))


@operator(announcement="D3", weight=1.0, targets="wind")
def wind(world: PhysicsWorld, intensity: float) -> PhysicsWorld:
    """Let a wind of 1, 2, 3 m/s blow from a heading drawn per episode.

    Changes: drag forces on cart, pole and balls; released: 16, 18, 20 m/s, forces as
        measured there (cart along x only, pole none, balls into one corner).
    Leaves alone: starts, masses.
    Announcement: D3 (silent: only what the world does shows it). Weight: 1.0.
    Raises: DriftError if `target` is another; FieldError if `intensity` is not in [0, 1].
    Source: AIQ paper Table 1, novelty level 14; docs/cartpole3d.md#operators.
    """
    released = world.spec == "released"
    grades = (16.0, 18.0, 20.0) if released else (1.0, 2.0, 3.0)
    speed = graded(intensity, 0.0, *grades)
    if not speed:
        return world
    return replace(world, wind=Wind(speed=speed, bent=released))
