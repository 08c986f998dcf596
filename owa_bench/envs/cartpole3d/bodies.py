"""Bodies of the scene, built from shapes: no file is read, none is our model's.

Only `build_arena`, `build_cart_pole` and `build_ball` make bodies; an episode's reset moves those
there are. The cart slides on two joints along x and y and turns on a third, the first two links
massless: joint states of such joints can be set exactly, those of one planar joint cannot.
"""

import importlib
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from owa_bench.envs.cartpole3d import world as physics
from owa_bench.errors import MissingPartError, extra

FREE, FIXED, RAIL = "free", "fixed", "rail"
POOL = 4  # balls of a kind that are built at once
SLIDE_X, SLIDE_Y, CART, POLE = 0, 1, 2, 3  # links of the cart-pole
BASE = -1
IMAGE_SIZE = 240  # pixels, both sides
_EYE = (-4.6, -4.6, 3.2)  # m, in a corner of the box
_AIM = (0.0, 0.0, 1.0)
_FIELD = 75.0  # degrees of view
_NEAR, _DISTANT = 0.05, 40.0  # m, nothing else is drawn
_WINDOW = "--width=640 --height=480"
_ORIGIN = (0.0, 0.0, 0.0)
_UP = (0.0, 0.0, 1.0)
_LEVEL = (0.0, 0.0, 0.0, 1.0)
_FAR = -1000.0  # m, where balls are parked that take no part
_GAP = 10.0  # m between parked balls
SIDES = 32  # of cart and pole, as the released model is imported
_FRICTION = 0.5  # of cart and pole; balls and walls have none
_COLOURS = {
    "cart": (0.25, 0.35, 0.45, 1.0),
    "pole": (0.85, 0.55, 0.15, 1.0),
    FREE: (0.75, 0.2, 0.2, 1.0),
    FIXED: (0.35, 0.35, 0.35, 1.0),
    RAIL: (0.2, 0.5, 0.3, 1.0),
}


def load_engine() -> Any:
    """Return the module pybullet.

    Raises: MissingPartError: it is not installed.
    """
    known = sys.modules.get("pybullet")
    if known is not None:
        return known
    try:
        with _silenced_stderr():
            return importlib.import_module("pybullet")
    except ImportError as error:
        raise MissingPartError("pybullet", extra("physics")) from error


@contextmanager
def _silenced_stderr() -> Iterator[None]:
    """Discard what a C library writes to the standard error.

    The engine announces its build time when it is loaded.
    """
    sys.stderr.flush()
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


class Client:
    """A connection to the engine: its functions with the client's id filled in.

    Each call costs an attribute lookup more than the engine's own, so a tick calls the functions of
    `bullet` with `id` in its place.

    Args:
        window: whether the scene is shown on a screen.
    Raises: MissingPartError: the engine is not installed, or there is no screen.
    """

    def __init__(self, *, window: bool) -> None:
        self.bullet = bullet = load_engine()
        if window and not has_screen():
            raise MissingPartError("A screen (X display)", "render_mode='rgb_array'")
        if not window:
            self.id: int = bullet.connect(bullet.DIRECT)
            return
        self.id = bullet.connect(bullet.GUI, options=_WINDOW)
        for part in (bullet.COV_ENABLE_GUI, bullet.COV_ENABLE_SHADOWS):
            self.configureDebugVisualizer(part, 0)

    def __getattr__(self, name: str) -> Any:
        return partial(getattr(self.bullet, name), physicsClientId=self.id)


def kinds_of(world: physics.PhysicsWorld) -> set[Literal["fixed", "rail"]]:
    """Return the kinds of balls that a world's start laws need beside free ones."""
    both: tuple[Literal["fixed", "rail"], ...] = ("fixed", "rail")
    return {kind for kind in both if any(law.kind == kind for law in world.laws)}


def shape_of(world: physics.PhysicsWorld) -> physics.PhysicsWorld:
    """Return what bodies are built from, the rest of a world put back to level 0.

    A world of another shape needs a scene built anew; the cart's mass, forces, starts and
    restitution do not.
    """
    return physics.PhysicsWorld(
        tick=world.tick,
        damping=world.damping,
        cart=msgspec.structs.replace(world.cart, mass=1.0),
        pole=world.pole,
        ball=msgspec.structs.replace(
            world.ball, restitution=(1.0, 1.0), weighs=False, fewest=0, most=0
        ),
        arena=world.arena,
        laws=tuple(physics.BallLaw(kind=kind, share=1.0) for kind in sorted(kinds_of(world))),
    )


def build_arena(client: Client, arena: physics.Arena) -> int:
    """Return a static body of six boxes, each offset from the body's origin.

    Args:
        client: connection to the engine.
        arena: sizes of the box.
    Returns: The engine's number of the body.
    """
    half, thick = arena.half, 0.5 * arena.thickness
    tall = 0.5 * (arena.ceiling - arena.floor)
    middle = arena.floor + tall
    wide = half + arena.thickness
    side = half + thick
    boxes = [
        ((thick, wide, tall), (side, 0.0, middle)),
        ((thick, wide, tall), (-side, 0.0, middle)),
        ((wide, thick, tall), (0.0, side, middle)),
        ((wide, thick, tall), (0.0, -side, middle)),
        ((wide, wide, thick), (0.0, 0.0, arena.ceiling + thick)),
        ((wide, wide, thick), (0.0, 0.0, arena.floor - thick)),
    ]
    shape = client.createCollisionShapeArray(
        [client.bullet.GEOM_BOX] * len(boxes),
        halfExtents=[box[0] for box in boxes],
        collisionFramePositions=[box[1] for box in boxes],
    )
    body: int = client.createMultiBody(0, shape, useMaximalCoordinates=1)
    _make_elastic(client, body, BASE)
    client.changeVisualShape(body, BASE, rgbaColor=(0.6, 0.65, 0.7, 1.0))
    return body


def build_cart_pole(client: Client, cart: physics.Cart, pole: physics.Pole) -> int:
    """Return the cart with its pole, without motors, at the origin.

    Args:
        client: connection to the engine.
        cart: sizes and mass of the cart.
        pole: sizes and mass of the pole.
    Returns: The engine's number of the body.
    """
    bullet = client.bullet
    shapes, visuals = [-1] * 4, [-1] * 4
    parts = (
        (CART, "cart", cart.radius, cart.height, cart.bottom + 0.5 * cart.height),
        (POLE, "pole", pole.radius, pole.length, pole.foot + 0.5 * pole.length),
    )
    for link, name, radius, height, middle in parts:
        at = (0.0, 0.0, middle)
        shapes[link] = client.createCollisionShape(
            bullet.GEOM_MESH, vertices=prism(radius, height), collisionFramePosition=at
        )
        visuals[link] = client.createVisualShape(
            bullet.GEOM_CYLINDER,
            radius=radius,
            length=height,
            visualFramePosition=at,
            rgbaColor=_COLOURS[name],
        )
    body: int = client.createMultiBody(
        0,
        linkMasses=[0.0, 0.0, cart.mass, pole.mass],
        linkCollisionShapeIndices=shapes,
        linkVisualShapeIndices=visuals,
        linkPositions=[_ORIGIN] * 3 + [(0.0, 0.0, cart.joint)],
        linkOrientations=[_LEVEL] * 4,
        linkInertialFramePositions=[_ORIGIN] * 3 + [(0.0, 0.0, pole.centre)],
        linkInertialFrameOrientations=[_LEVEL] * 4,
        linkParentIndices=[0, 1, 2, 3],
        linkJointTypes=[
            bullet.JOINT_PRISMATIC,
            bullet.JOINT_PRISMATIC,
            bullet.JOINT_REVOLUTE,
            bullet.JOINT_SPHERICAL,
        ],
        linkJointAxis=[(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), _UP, _UP],
    )
    _stop_motors(client, body)
    for link in (CART, POLE):
        client.changeDynamics(body, link, restitution=0.0, lateralFriction=_FRICTION)
    set_inertia(client, body, POLE, pole)
    set_inertia(client, body, CART, cart)
    return body


def set_inertia(client: Client, body: int, link: int, part: physics.Cart | physics.Pole) -> None:
    """Give a link the mass and the moments of its part.

    Args:
        client: connection to the engine.
        body: the engine's number of the cart-pole.
        link: CART or POLE.
        part: the mass and moments.
    """
    across, axial = part.inertia
    client.changeDynamics(body, link, mass=part.mass)  # the engine's own moments
    client.changeDynamics(body, link, localInertiaDiagonal=(across, across, axial))


def prism(radius: float, height: float) -> list[tuple[float, float, float]]:
    """Return the corners of a regular prism about the z axis.

    Args:
        radius: from the axis to an edge, m.
        height: from face to face, m.
    Returns: Corners in m, those of each edge one after the other.
    """
    corners = []
    for side in range(SIDES):
        angle = 2.0 * math.pi * side / SIDES
        x, y = radius * math.sin(angle), radius * math.cos(angle)
        corners += [(x, y, 0.5 * height), (x, y, -0.5 * height)]
    return corners


def build_ball(
    client: Client, ball: physics.Ball, kind: str, at: tuple[float, float, float]
) -> int:
    """Return a ball at a place.

    Args:
        client: connection to the engine.
        ball: radius and mass.
        kind: FREE, FIXED or RAIL.
        at: the place, m.
    Returns: The engine's number of the body.
    """
    sphere = client.bullet.GEOM_SPHERE
    shape = client.createCollisionShape(sphere, radius=ball.radius)
    visual = client.createVisualShape(sphere, radius=ball.radius, rgbaColor=_COLOURS[kind])
    if kind == RAIL:
        return _build_railed(client, ball.mass, shape, visual, at)
    mass = ball.mass if kind == FREE else 0.0
    body: int = client.createMultiBody(mass, shape, visual, at)
    _make_elastic(client, body, BASE)
    return body


def parking_place(number: int) -> tuple[float, float, float]:
    """Return the place where ball `number` is while it takes no part."""
    return _GAP * number, 0.0, _FAR


def has_screen() -> bool:
    """Return whether a window can be opened."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY"))


def render_image(client: Client, size: int = IMAGE_SIZE) -> npt.NDArray[np.uint8]:
    """Return a picture seen from a corner of the box, by the software renderer.

    Args:
        client: connection to the engine.
        size: pixels of each side.
    Returns: (size, size, 3) red, green and blue.
    """
    bullet = client.bullet
    view = bullet.computeViewMatrix(_EYE, _AIM, (0.0, 0.0, 1.0))
    lens = bullet.computeProjectionMatrixFOV(_FIELD, 1.0, _NEAR, _DISTANT)
    pixels = client.getCameraImage(size, size, view, lens, renderer=bullet.ER_TINY_RENDERER)[2]
    image = np.asarray(pixels, dtype=np.uint8).reshape(size, size, 4)
    return np.ascontiguousarray(image[:, :, :3])


def _build_railed(
    client: Client, mass: float, shape: int, visual: int, at: tuple[float, float, float]
) -> int:
    """Return a ball on an axis: a fixed point and a sphere that slides along its x."""
    bullet = client.bullet
    body: int = client.createMultiBody(
        0,
        basePosition=at,
        linkMasses=[mass],
        linkCollisionShapeIndices=[shape],
        linkVisualShapeIndices=[visual],
        linkPositions=[_ORIGIN],
        linkOrientations=[_LEVEL],
        linkInertialFramePositions=[_ORIGIN],
        linkInertialFrameOrientations=[_LEVEL],
        linkParentIndices=[0],
        linkJointTypes=[bullet.JOINT_PRISMATIC],
        linkJointAxis=[(1.0, 0.0, 0.0)],
    )
    client.setJointMotorControl2(body, 0, bullet.VELOCITY_CONTROL, force=0.0)
    client.changeDynamics(body, 0, linearDamping=0.0, angularDamping=0.0)
    _make_elastic(client, body, 0)
    return body


def _stop_motors(client: Client, body: int) -> None:
    """Switch off the motors that the engine gives every joint."""
    bullet = client.bullet
    for link in (SLIDE_X, SLIDE_Y, CART):
        client.setJointMotorControl2(body, link, bullet.VELOCITY_CONTROL, force=0.0)
    client.setJointMotorControlMultiDof(
        body,
        POLE,
        bullet.POSITION_CONTROL,
        targetPosition=list(_LEVEL),
        positionGain=0.0,
        velocityGain=0.0,
        force=[0.0, 0.0, 0.0],
    )


def _make_elastic(client: Client, body: int, link: int) -> None:
    """Make a body elastic and without friction."""
    client.changeDynamics(
        body, link, restitution=1.0, lateralFriction=0.0, spinningFriction=0.0, rollingFriction=0.0
    )
