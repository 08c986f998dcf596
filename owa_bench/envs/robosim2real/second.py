"""The second surrogate: the same cell in PyBullet, to see whether the first one ranks agents right.

It shares the table of the arm and the law of the units with the first, and no code of the engine:
another solver, motors that are constraints on speed, another model of contact. Of a unit's numbers
it knows friction (as damping), stiffness, payload, offsets of links and zeros, mass and grip;
stiction and sag it has not. A fresh client an episode: Bullet keeps hidden state between resets.
"""

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.arm import JOINTS
from owa_bench.envs.robosim2real.engine import TABLE, TABLE_HALF, Truth
from owa_bench.envs.robosim2real.world import Body, BoxTurn, RobotWorld, Slider
from owa_bench.errors import extra, needs
from owa_bench.records.observables import Floats

_STEP, _STEPS = 1.0 / 240.0, 12  # s, a tick
_GAIN = 0.2  # share of a joint's error that is made good in a step
_SMALL = np.array([1.0, 1.0, 1.0, 1.0, 0.4, 0.4, 0.4])
_DAMPING = 0.2  # N m s per rad for a N m of friction
_FINGER_FORCE, _FINGER_GAIN = 20.0, 0.2
_HAND = 0.107  # m from the last hinge to the hand
_LOW = -1e3
_INERTIA = 0.01  # kg m2 a kg, where a shape does not say


def _link(name: str, mass: float, geometry: str) -> str:
    """Return a link of a URDF."""
    size = max(1e-3, _INERTIA * mass)
    return (
        f'<link name="{name}"><inertial><mass value="{mass:.6g}"/><inertia ixx="{size:.6g}" '
        f'iyy="{size:.6g}" izz="{size:.6g}" ixy="0" ixz="0" iyz="0"/></inertial>{geometry}</link>'
    )


def _capsule(link: arm.Capsule) -> str:
    start, end = np.array(link.start), np.array(link.end)
    way, middle = end - start, (start + end) / 2
    length = float(np.linalg.norm(way))
    z = way / length
    pitch, yaw = math.acos(max(-1.0, min(1.0, z[2]))), math.atan2(z[1], z[0])
    place = " ".join(f"{value:.6g}" for value in middle)
    return (
        f'<collision><origin xyz="{place}" rpy="0 {pitch:.9g} {yaw:.9g}"/><geometry>'
        f'<capsule radius="{link.radius:.6g}" length="{length:.6g}"/></geometry></collision>'
    )


def _box(place: tuple[float, float, float], half: tuple[float, float, float]) -> str:
    at = " ".join(f"{value:.6g}" for value in place)
    size = " ".join(f"{2 * value:.6g}" for value in half)
    return f'<collision><origin xyz="{at}"/><geometry><box size="{size}"/></geometry></collision>'


def urdf(body: Body) -> str:
    """Return the arm of a unit as a URDF, of primitives alone."""
    parts = ['<?xml version="1.0"?><robot name="arm7">', _link("base", 3.0, "")]
    above = "base"
    for number, link in enumerate(arm.LINKS):
        name = f"link{number}"
        place = arm.OFFSETS[number] + np.array(body.links[number])
        at = " ".join(f"{value:.9g}" for value in place)
        roll = arm.QUARTERS[number] * math.pi / 2
        parts.append(_link(name, link.mass, _capsule(link)))
        parts.append(
            f'<joint name="joint{number}" type="revolute">'
            f'<origin xyz="{at}" rpy="{roll:.12g} 0 0"/>'
            f'<parent link="{above}"/><child link="{name}"/><axis xyz="0 0 1"/>'
            f'<limit lower="{arm.LOW[number]:.6g}" upper="{arm.HIGH[number]:.6g}" '
            f'effort="{arm.TORQUE[number]:.6g}" velocity="{arm.FASTEST[number]:.6g}"/></joint>'
        )
        above = name
    hand = _box((0.0, 0.0, 0.03), (0.03, 0.1, 0.03))
    parts.append(_link("hand", 0.73 + body.payload, hand))
    parts.append(
        '<joint name="wrist" type="fixed">'
        f'<origin xyz="0 0 {_HAND}" rpy="0 0 {-math.pi / 4:.12g}"/>'
        f'<parent link="{above}"/><child link="hand"/></joint>'
    )
    for name, side in (("left", 1), ("right", -1)):
        parts.append(_link(name, 0.05, _box((0.0, side * 0.008, 0.035), (0.01, 0.0075, 0.02))))
        parts.append(
            f'<joint name="{name}" type="prismatic"><origin xyz="0 0 0.0584"/>'
            f'<parent link="hand"/><child link="{name}"/><axis xyz="0 {side} 0"/>'
            f'<limit lower="0" upper="{arm.OPEN / 2}" effort="20" velocity="0.2"/></joint>'
        )
    return "".join((*parts, "</robot>"))


def slider_urdf(slider: Slider, mass: float) -> str:
    """Return what slides as a URDF whose only joint is its rail.

    Args:
        slider: The part.
        mass: Of it, kg.
    """
    if slider.shape == "box":
        handle = _box((0.0, 0.0, 0.0), slider.size)
    else:
        radius, length = slider.size[0], 2 * slider.size[2]
        handle = (
            f'<collision><geometry><cylinder radius="{radius:.6g}" length="{length:.6g}"/>'
            "</geometry></collision>"
        )
    for panel in slider.panels:
        x, y, z = (a - b for a, b in zip(panel.place, slider.place, strict=True))
        handle += _box((x, y, z), panel.size)
    axis = " ".join(f"{value:.6g}" for value in slider.axis)
    return (
        f'<?xml version="1.0"?><robot name="slider">{_link("rail", 1.0, "")}'
        f"{_link('part', mass, handle)}"
        '<joint name="slide" type="prismatic"><parent link="rail"/><child link="part"/>'
        f'<axis xyz="{axis}"/><limit lower="0" upper="{slider.travel:.6g}" effort="1000" '
        'velocity="10"/></joint></robot>'
    )


class SecondCell:
    """One body in one world, tick by tick, in PyBullet.

    Args:
        world: The task.
        body: Its numbers, the unit's included.
    """

    def __init__(self, world: RobotWorld, body: Body) -> None:
        self._client = -1
        with needs("PyBullet", extra("physics")):
            import pybullet
        self._engine, self._body = pybullet, body
        self._client = pybullet.connect(pybullet.DIRECT)
        self._here = {"physicsClientId": self._client}
        pybullet.setTimeStep(_STEP, **self._here)
        pybullet.setGravity(0.0, 0.0, -9.81, **self._here)
        self._add_arm(body)
        self._fixed = [self._add_box((*TABLE, -TABLE_HALF[2]), TABLE_HALF)]
        for block in world.blocks:
            made = self._add_box(block.place, block.size, block.turn)
            pybullet.changeDynamics(made, -1, lateralFriction=block.grip, **self._here)
            self._fixed.append(made)
        self._axes = [slider.axis for slider in world.sliders]
        self._sliders = [self._add_slider(slider, body) for slider in world.sliders]
        self._fixed += self._sliders
        self._things = [self._add_thing(thing, body) for thing in world.things]
        for number, angle in enumerate(world.start):
            pybullet.resetJointState(self._arm, self._hinges[number], angle, **self._here)
        for finger in self._fingers:
            pybullet.resetJointState(self._arm, finger, arm.OPEN / 2, **self._here)

    def close(self) -> None:
        """Release the engine's client."""
        if self._client >= 0:
            self._engine.disconnect(**self._here)
            self._client = -1

    def __del__(self) -> None:
        self.close()

    def _add_arm(self, body: Body) -> None:
        engine, here = self._engine, self._here
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "arm.urdf"
            path.write_text(urdf(body))
            self._arm = engine.loadURDF(str(path), useFixedBase=True, **here)
        names: dict[str, int] = {}
        for number in range(engine.getNumJoints(self._arm, **here)):
            names[engine.getJointInfo(self._arm, number, **here)[1].decode()] = number
        self._hinges = [names[f"joint{n}"] for n in range(JOINTS)]
        self._fingers = [names["left"], names["right"]]
        self._hand = names["wrist"]
        for number, hinge in enumerate(self._hinges):
            damping = _DAMPING * body.friction * float(_SMALL[number])
            engine.changeDynamics(self._arm, hinge, jointDamping=damping, **here)
        for finger in self._fingers:
            engine.changeDynamics(
                self._arm, finger, lateralFriction=1.2, spinningFriction=0.01, **here
            )

    def _add_box(self, place: Any, half: Any, turn: BoxTurn = (1.0, 0.0, 0.0, 0.0)) -> int:
        engine, here = self._engine, self._here
        shape = engine.createCollisionShape(engine.GEOM_BOX, halfExtents=list(half), **here)
        w, x, y, z = turn
        made: int = engine.createMultiBody(
            0, shape, basePosition=list(place), baseOrientation=[x, y, z, w], **here
        )
        engine.changeDynamics(made, -1, lateralFriction=1.0, **here)
        return made

    def _add_slider(self, slider: Slider, body: Body) -> int:
        """Add a part that slides: its handle and panels are one link on a rail."""
        engine, here = self._engine, self._here
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "slider.urdf"
            path.write_text(slider_urdf(slider, slider.mass * body.mass))
            made: int = engine.loadURDF(
                str(path), basePosition=list(slider.place), useFixedBase=True, **here
            )
        engine.setJointMotorControl2(
            made,
            0,
            engine.VELOCITY_CONTROL,
            targetVelocity=0.0,
            force=slider.drag * body.grip,
            **here,
        )
        for fixed in self._fixed:  # the case guides the drawer, it does not meet it
            engine.setCollisionFilterPair(made, fixed, 0, -1, 0, **here)
        return made

    def _add_thing(self, thing: Any, body: Body) -> int:
        engine, here = self._engine, self._here
        if thing.shape == "box":
            shape = engine.createCollisionShape(
                engine.GEOM_BOX, halfExtents=list(thing.size), **here
            )
        else:
            shape = engine.createCollisionShape(
                engine.GEOM_CYLINDER, radius=thing.size[0], height=2 * thing.size[2], **here
            )
        half = thing.yaw / 2
        made: int = engine.createMultiBody(
            thing.mass * body.mass,
            shape,
            basePosition=list(thing.place),
            baseOrientation=[0.0, 0.0, math.sin(half), math.cos(half)],
            **here,
        )
        engine.changeDynamics(
            made, -1, lateralFriction=thing.grip * body.grip, spinningFriction=0.002, **here
        )
        return made

    def tick(self, targets: Floats, width: float) -> Truth:
        """Drive the hinges to targets for one tick.

        Args:
            targets: (7,) rad, true angles.
            width: Between the fingers, m.
        Returns: What is so at the end of the tick.
        """
        engine, here = self._engine, self._here
        engine.setJointMotorControlArray(
            self._arm,
            self._hinges,
            engine.POSITION_CONTROL,
            targetPositions=targets.tolist(),
            positionGains=[_GAIN * self._body.stiffness] * JOINTS,
            velocityGains=[1.0] * JOINTS,
            forces=arm.TORQUE.tolist(),
            **here,
        )
        engine.setJointMotorControlArray(
            self._arm,
            self._fingers,
            engine.POSITION_CONTROL,
            targetPositions=[width / 2] * 2,
            positionGains=[_FINGER_GAIN] * 2,
            forces=[_FINGER_FORCE] * 2,
            **here,
        )
        table = grip = 0.0
        for _ in range(_STEPS):
            engine.stepSimulation(**here)
        for other in self._fixed:
            table = max(table, self._force(other))
        for other in self._things:
            grip = max(grip, self._force(other))
        return self.truth(table, grip)

    def _force(self, other: int) -> float:
        """Return the greatest normal force of the arm on another body, N."""
        points = self._engine.getContactPoints(bodyA=self._arm, bodyB=other, **self._here)
        return max((float(point[9]) for point in points), default=0.0)

    def _handles(self) -> tuple[list[Any], list[Any]]:
        """Return the poses and the velocities of what slides."""
        poses: list[Any] = []
        moving: list[Any] = []
        for made, axis in zip(self._sliders, self._axes, strict=True):
            base = self._engine.getBasePositionAndOrientation(made, **self._here)[0]
            slid, speed, *_ = self._engine.getJointState(made, 0, **self._here)
            place = [a + slid * b for a, b in zip(base, axis, strict=True)]
            poses.append((place, (0.0, 0.0, 0.0, 1.0)))
            moving.append([speed * value for value in axis])
        return poses, moving

    def truth(self, table: float = 0.0, grip: float = 0.0) -> Truth:
        """Return what is so now.

        Args:
            table: Greatest force on the table or a fixture, N.
            grip: That on a thing.
        """
        engine, here = self._engine, self._here
        states = engine.getJointStates(self._arm, self._hinges + self._fingers, **here)
        joints = np.array([state[0] for state in states])
        hand = engine.getLinkState(self._arm, self._hand, computeForwardKinematics=1, **here)
        rotation = np.array(engine.getMatrixFromQuaternion(hand[5])).reshape(3, 3)
        tool = np.array(hand[4]) + rotation[:, 2] * (arm.TOOL - _HAND)
        poses, moving = self._handles()
        poses += [engine.getBasePositionAndOrientation(n, **here) for n in self._things]
        moving += [engine.getBaseVelocity(n, **here)[0] for n in self._things]
        things = np.array([pose[0] for pose in poses]).reshape(-1, 3)
        finite = bool(np.isfinite(joints).all() and np.isfinite(things).all())
        return Truth(
            joints=joints[:JOINTS],
            speeds=np.array([state[1] for state in states[:JOINTS]]),
            width=float(joints[JOINTS] + joints[JOINTS + 1]),
            tool=tool,
            rotation=rotation,
            things=things,
            turns=np.array([np.roll(pose[1], 1) for pose in poses]).reshape(-1, 4),
            velocities=np.array(moving).reshape(-1, 3),
            table_force=table,
            grip_force=grip,
            blew_up=not finite or bool((things < _LOW).any()),
        )
