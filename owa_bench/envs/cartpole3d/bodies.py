"""The bodies of the scene, built from shapes: no file is read, none is our model's.

Only `build` and `grow` make bodies; an episode's reset moves those there are. The cart
slides on two joints along x and y, the first link massless: joint states of such joints
can be set exactly, those of one planar joint cannot.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from owa_bench.errors import MissingPartError
from owa_bench.worlds.physics import Arena, Ball, Cart, Pole

INSTALL = "pip install 'owa_bench[physics]'"
FREE, FIXED, RAIL = "free", "fixed", "rail"
POOL = 4  # balls of a kind that are built at once
SLIDE_X, CART, POLE = 0, 1, 2  # links of the cart-pole
BASE = -1
_WINDOW = "--width=640 --height=480"
_LEVEL = (0.0, 0.0, 0.0, 1.0)
_FAR = -1000.0  # m, where balls wait that take no part
_GAP = 10.0  # m between waiting balls
_FRICTION = 0.5  # of cart and pole; balls and walls have none
_COLOURS = {
    "cart": (0.25, 0.35, 0.45, 1.0),
    "pole": (0.85, 0.55, 0.15, 1.0),
    FREE: (0.75, 0.2, 0.2, 1.0),
    FIXED: (0.35, 0.35, 0.35, 1.0),
    RAIL: (0.2, 0.5, 0.3, 1.0),
}


def engine() -> Any:
    """Return the module pybullet. Errors: MissingPartError if it is not installed."""
    known = sys.modules.get("pybullet")
    if known is not None:
        return known
    try:
        with _hushed():
            return importlib.import_module("pybullet")
    except ImportError as error:
        raise MissingPartError("pybullet", INSTALL) from error


def connect(bullet: Any, *, window: bool) -> int:
    """Return a new client of the engine. Errors: MissingPartError without a screen."""
    if window and sys.platform == "linux" and not os.environ.get("DISPLAY"):
        raise MissingPartError("A screen (X display)", "render_mode='rgb_array'")
    if not window:
        client: int = bullet.connect(bullet.DIRECT)
        return client
    client = bullet.connect(bullet.GUI, options=_WINDOW)
    for part in (bullet.COV_ENABLE_GUI, bullet.COV_ENABLE_SHADOWS):
        bullet.configureDebugVisualizer(part, 0, physicsClientId=client)
    return client


def draw(bullet: Any, client: int, *, on: bool) -> None:
    """Let the window follow the scene, or not: each new body waits for a picture."""
    bullet.configureDebugVisualizer(
        bullet.COV_ENABLE_RENDERING, int(on), physicsClientId=client
    )


@contextmanager
def _hushed() -> Iterator[None]:
    """Send what a C library writes to the standard error to nowhere.

    The engine announces its build time when it is loaded.
    """
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def build_arena(bullet: Any, client: int, arena: Arena) -> int:
    """Return a static body of six boxes, each offset from the body's origin."""
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
    shape = bullet.createCollisionShapeArray(
        [bullet.GEOM_BOX] * len(boxes),
        halfExtents=[box[0] for box in boxes],
        collisionFramePositions=[box[1] for box in boxes],
        physicsClientId=client,
    )
    body: int = bullet.createMultiBody(
        0, shape, useMaximalCoordinates=1, physicsClientId=client
    )
    _smooth(bullet, client, body, BASE)
    bullet.changeVisualShape(
        body, BASE, rgbaColor=(0.6, 0.65, 0.7, 1.0), physicsClientId=client
    )
    return body


def build_cart_pole(bullet: Any, client: int, cart: Cart, pole: Pole) -> int:
    """Return the cart with its pole, without motors, at the origin."""
    cart_at = (0.0, 0.0, cart.bottom + 0.5 * cart.height)
    pole_at = (0.0, 0.0, pole.foot + 0.5 * pole.length)
    shapes = [-1, -1, -1]
    visuals = [-1, -1, -1]
    rounds = ((CART, cart, cart.height, cart_at), (POLE, pole, pole.length, pole_at))
    for link, part, height, at in rounds:
        shapes[link] = bullet.createCollisionShape(
            bullet.GEOM_CYLINDER,
            radius=part.radius,
            height=height,
            collisionFramePosition=at,
            physicsClientId=client,
        )
        visuals[link] = bullet.createVisualShape(
            bullet.GEOM_CYLINDER,
            radius=part.radius,
            length=height,
            visualFramePosition=at,
            rgbaColor=_COLOURS["cart" if link == CART else "pole"],
            physicsClientId=client,
        )
    body: int = bullet.createMultiBody(
        0,
        linkMasses=[0.0, cart.mass, pole.mass],
        linkCollisionShapeIndices=shapes,
        linkVisualShapeIndices=visuals,
        linkPositions=[(0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, cart.joint)],
        linkOrientations=[_LEVEL] * 3,
        linkInertialFramePositions=[
            (0.0, 0.0, 0.0),
            (0.0, 0.0, 0.0),
            (0.0, 0.0, pole.centre),
        ],
        linkInertialFrameOrientations=[_LEVEL] * 3,
        linkParentIndices=[0, 1, 2],
        linkJointTypes=[
            bullet.JOINT_PRISMATIC,
            bullet.JOINT_PRISMATIC,
            bullet.JOINT_SPHERICAL,
        ],
        linkJointAxis=[(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)],
        physicsClientId=client,
    )
    _stop_motors(bullet, client, body)
    for link in (CART, POLE):
        bullet.changeDynamics(
            body,
            link,
            restitution=0.0,
            lateralFriction=_FRICTION,
            physicsClientId=client,
        )
    across, axial = pole.inertia
    bullet.changeDynamics(
        body, POLE, localInertiaDiagonal=(across, across, axial), physicsClientId=client
    )
    return body


def build_ball(
    bullet: Any, client: int, ball: Ball, kind: str, at: tuple[float, float, float]
) -> int:
    """Return a ball of a kind at a place."""
    shape = bullet.createCollisionShape(
        bullet.GEOM_SPHERE, radius=ball.radius, physicsClientId=client
    )
    visual = bullet.createVisualShape(
        bullet.GEOM_SPHERE,
        radius=ball.radius,
        rgbaColor=_COLOURS[kind],
        physicsClientId=client,
    )
    if kind == RAIL:
        return _build_railed(bullet, client, ball.mass, shape, visual, at)
    mass = ball.mass if kind == FREE else 0.0
    body: int = bullet.createMultiBody(mass, shape, visual, at, physicsClientId=client)
    _smooth(bullet, client, body, BASE)
    return body


def waiting(number: int) -> tuple[float, float, float]:
    """Return the place where ball `number` waits."""
    return _GAP * number, 0.0, _FAR


def _build_railed(
    bullet: Any,
    client: int,
    mass: float,
    shape: int,
    visual: int,
    at: tuple[float, float, float],
) -> int:
    """Return a ball on an axis: a fixed point and a sphere that slides along its x."""
    body: int = bullet.createMultiBody(
        0,
        basePosition=at,
        linkMasses=[mass],
        linkCollisionShapeIndices=[shape],
        linkVisualShapeIndices=[visual],
        linkPositions=[(0.0, 0.0, 0.0)],
        linkOrientations=[_LEVEL],
        linkInertialFramePositions=[(0.0, 0.0, 0.0)],
        linkInertialFrameOrientations=[_LEVEL],
        linkParentIndices=[0],
        linkJointTypes=[bullet.JOINT_PRISMATIC],
        linkJointAxis=[(1.0, 0.0, 0.0)],
        physicsClientId=client,
    )
    bullet.setJointMotorControl2(
        body, 0, bullet.VELOCITY_CONTROL, force=0.0, physicsClientId=client
    )
    bullet.changeDynamics(
        body, 0, linearDamping=0.0, angularDamping=0.0, physicsClientId=client
    )
    _smooth(bullet, client, body, 0)
    return body


def _stop_motors(bullet: Any, client: int, body: int) -> None:
    """Switch off the motors that the engine gives every joint."""
    for link in (SLIDE_X, CART):
        bullet.setJointMotorControl2(
            body, link, bullet.VELOCITY_CONTROL, force=0.0, physicsClientId=client
        )
    bullet.setJointMotorControlMultiDof(
        body,
        POLE,
        bullet.POSITION_CONTROL,
        targetPosition=list(_LEVEL),
        positionGain=0.0,
        velocityGain=0.0,
        force=[0.0, 0.0, 0.0],
        physicsClientId=client,
    )


def _smooth(bullet: Any, client: int, body: int, link: int) -> None:
    """Make a body elastic and without friction."""
    bullet.changeDynamics(
        body,
        link,
        restitution=1.0,
        lateralFriction=0.0,
        spinningFriction=0.0,
        rollingFriction=0.0,
        physicsClientId=client,
    )
