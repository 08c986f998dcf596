"""The cell as a MuJoCo model: the arm, the table, what lies and stands on it.

`Cell` is the raw body: it takes joint targets and says what is true. What a device does with a
command on the way, and what it shows of the truth, is `device`'s.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.arm import JOINTS
from owa_bench.envs.robosim2real.world import Body, Obstacle, RobotWorld, Slider
from owa_bench.errors import extra, needs
from owa_bench.records.observables import Floats

TABLE = (0.55, 0.0)  # m, its middle
TABLE_HALF = (0.35, 0.5, 0.2)
STEP, COARSE_STEP = 0.002, 0.005  # s of the engine, in simulation and on the surrogate
_GAINS = np.array([4500.0, 4500.0, 3500.0, 3500.0, 2000.0, 2000.0, 2000.0])
_RATES = np.array([450.0, 450.0, 350.0, 350.0, 200.0, 200.0, 200.0])
_SHARE = np.array([1.0, 1.0, 1.0, 1.0, 0.4, 0.4, 0.4])  # of friction by hinge
_ARMATURE, _DAMPING = 0.1, 1.0
_GRIP, _GRIP_RATE, _GRIP_FORCE = 1000.0, 30.0, 20.0
_SLOW = 0.05  # rad/s above which stiction is gone
_NO_SLIP = 2  # iterations, without which a held thing creeps under pyramidal cones
_FIRM = 0.01  # s, time constant of contacts on the surrogate: a held cylinder creeps in softer ones
_SLIDER_DAMPING = 10.0  # N s/m
_HOLDS = (0.99, 0.995, 0.001, 0.5, 2.0)  # a drawer that friction holds does not creep
_HARD = {"priority": 1, "solref": (0.01, 1.0), "solimp": _HOLDS}  # though it is light
_PARTS = 5  # of a tick, after which forces that fade are set anew


def load_engine() -> Any:
    """Return MuJoCo, which writes no log file: a cell reads its warnings after each tick.

    Raises: MissingPartError: neither of its packages is installed.
    """
    with needs("MuJoCo", extra("robot")):
        import mujoco
    mujoco.set_mju_user_warning(_ignore)
    return mujoco


def _ignore(_message: str) -> None:
    """Take a warning of the engine."""


class Layout(NamedTuple):
    """What a model is made for: the shapes of things, fixed blocks, and what slides."""

    shapes: tuple[tuple[str, tuple[float, float, float]], ...]
    blocks: tuple[Obstacle, ...]
    sliders: tuple[Slider, ...]
    coarse: bool


def layout_of(world: RobotWorld, *, coarse: bool) -> Layout:
    """Return the layout of a world.

    Args:
        world: The world.
        coarse: Whether the engine is set up as the device's.
    """
    return Layout(
        tuple((thing.shape, thing.size) for thing in world.things),
        world.blocks,
        world.sliders,
        coarse,
    )


def _add_arm(spec: Any, mj: Any) -> None:
    """Add the table of `arm` to the model."""
    body = spec.worldbody
    for number, link in enumerate(arm.LINKS):
        turn = arm.QUARTERS[number] * math.pi / 4
        body = body.add_body(
            name=f"link{number}",
            pos=arm.OFFSETS[number],
            quat=[math.cos(turn), math.sin(turn), 0, 0],
            gravcomp=1,
        )
        body.add_joint(
            name=f"joint{number}",
            type=mj.mjtJoint.mjJNT_HINGE,
            axis=[0, 0, 1],
            range=[arm.LOW[number], arm.HIGH[number]],
            limited=1,
            armature=_ARMATURE,
            damping=[_DAMPING, 0, 0],
        )
        body.add_geom(
            type=mj.mjtGeom.mjGEOM_CAPSULE,
            fromto=[*link.start, *link.end],
            size=[link.radius, 0, 0],
            mass=link.mass,
        )
    eighth = -math.pi / 8
    hand = body.add_body(
        name="hand", pos=[0, 0, 0.107], quat=[math.cos(eighth), 0, 0, math.sin(eighth)], gravcomp=1
    )
    hand.add_geom(type=mj.mjtGeom.mjGEOM_BOX, pos=[0, 0, 0.03], size=[0.03, 0.1, 0.03], mass=0.73)
    for name, side in (("left", 1.0), ("right", -1.0)):
        finger = hand.add_body(name=name, pos=[0, 0, 0.0584], gravcomp=1)
        finger.add_joint(
            name=name,
            type=mj.mjtJoint.mjJNT_SLIDE,
            axis=[0, side, 0],
            range=[0, arm.OPEN / 2],
            limited=1,
        )
        finger.add_geom(
            type=mj.mjtGeom.mjGEOM_BOX,
            pos=[0, side * 0.008, 0.035],
            size=[0.01, 0.0075, 0.02],
            mass=0.05,
            friction=[1.2, 0.005, 0.0001],
            condim=4,
        )
    for geom in spec.geoms:
        geom.contype, geom.conaffinity = 1, 0  # the arm does not meet itself


def _add_scene(spec: Any, mj: Any, layout: Layout) -> None:
    """Add the table, the blocks, what slides and the things."""
    kinds = {"box": mj.mjtGeom.mjGEOM_BOX, "cylinder": mj.mjtGeom.mjGEOM_CYLINDER}
    common = {"contype": 2, "conaffinity": 3}
    world = spec.worldbody
    world.add_geom(
        name="table",
        type=mj.mjtGeom.mjGEOM_BOX,
        pos=[*TABLE, -TABLE_HALF[2]],
        size=TABLE_HALF,
        friction=[1.0, 0.005, 0.0001],
        **common,
    )
    for number, block in enumerate(layout.blocks):
        world.add_geom(
            name=f"block{number}",
            type=mj.mjtGeom.mjGEOM_BOX,
            pos=block.place,
            size=block.size,
            quat=block.turn,
            friction=[block.grip, 0.005, 0.0001],
            **common,
        )
    for number, slider in enumerate(layout.sliders):
        body = world.add_body(name=f"slider{number}", pos=slider.place)
        body.add_joint(
            name=f"slider{number}",
            type=mj.mjtJoint.mjJNT_SLIDE,
            axis=slider.axis,
            range=[0, slider.travel],
            limited=1,
            damping=[_SLIDER_DAMPING, 0, 0],
            solimp_friction=_HOLDS,
        )
        size = slider.size
        body.add_geom(
            name=f"slider{number}",
            type=kinds[slider.shape],
            size=size if slider.shape == "box" else (size[0], size[2], 0),
            mass=slider.mass,
            **_HARD,
            contype=4,  # a handle meets the arm, things and other handles
            conaffinity=7,
        )
        for panel in slider.panels:
            body.add_geom(
                type=mj.mjtGeom.mjGEOM_BOX,
                pos=np.subtract(panel.place, slider.place),
                size=panel.size,
                mass=0.0,
                **_HARD,
                contype=0,  # a panel meets the arm alone, not the case that it slides in
                conaffinity=1,
            )
    for number, (shape, size) in enumerate(layout.shapes):
        body = world.add_body(name=f"thing{number}", pos=[0.5, 0.0, 0.1 + 0.1 * number])
        body.add_freejoint()
        sizes = size if shape == "box" else (size[0], size[2], 0)
        body.add_geom(
            name=f"thing{number}", type=kinds[shape], size=sizes, mass=0.1, condim=4, **common
        )


@lru_cache(maxsize=64)
def _compiled(layout: Layout) -> Any:
    """Return the model of a layout with the drawing's numbers."""
    mj = load_engine()
    spec = mj.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep = COARSE_STEP if layout.coarse else STEP
    spec.option.integrator = mj.mjtIntegrator.mjINT_IMPLICITFAST
    cone = mj.mjtCone
    spec.option.cone = cone.mjCONE_PYRAMIDAL if layout.coarse else cone.mjCONE_ELLIPTIC
    spec.option.impratio = 1 if layout.coarse else 10
    spec.option.noslip_iterations = _NO_SLIP if layout.coarse else 0
    _add_arm(spec, mj)
    _add_scene(spec, mj, layout)
    for number in range(JOINTS):
        actuator = spec.add_actuator(
            name=f"drive{number}", target=f"joint{number}", trntype=mj.mjtTrn.mjTRN_JOINT
        )
        actuator.set_to_position(kp=float(_GAINS[number]), kv=float(_RATES[number]))
        actuator.forcerange = [-arm.TORQUE[number], arm.TORQUE[number]]
        actuator.forcelimited = 1
    for name in ("left", "right"):
        actuator = spec.add_actuator(name=name, target=name, trntype=mj.mjtTrn.mjTRN_JOINT)
        actuator.set_to_position(kp=_GRIP, kv=_GRIP_RATE)
        actuator.forcerange, actuator.forcelimited = [-_GRIP_FORCE, _GRIP_FORCE], 1
    if layout.coarse:
        for geom in spec.geoms:
            geom.solref[0] = _FIRM
    return spec.compile()


class Truth(NamedTuple):
    """What is so at the end of a tick.

    `things` are the handles of what slides, and then the things. `table_force` is the greatest
    force of the arm on the table, a block or what slides during the tick, `grip_force` that of the
    arm on a thing, N. `blew_up`: the engine lost the state.
    """

    joints: Floats
    speeds: Floats
    width: float
    tool: Floats
    rotation: Floats
    things: Floats
    turns: Floats
    velocities: Floats
    table_force: float
    grip_force: float
    blew_up: bool


class Cell:
    """One body in one world, tick by tick.

    Args:
        world: The task.
        body: Its numbers, the unit's included.
        coarse: Whether the engine takes the steps and the friction cones of a device's model.
    """

    def __init__(self, world: RobotWorld, body: Body, *, coarse: bool = False) -> None:
        mj = load_engine()
        self._mj, self._body = mj, body
        compiled = _compiled(layout_of(world, coarse=coarse))
        self.model = model = mj.MjModel.__copy__(compiled)
        self.data = data = mj.MjData(model)
        self.steps = round(1.0 / arm.HERTZ / (COARSE_STEP if coarse else STEP))
        self._sliders = len(world.sliders)
        self._hinges = [model.joint(f"joint{n}").dofadr[0] for n in range(JOINTS)]
        self._hand = model.body("hand").id
        arm_geoms = {n for n in range(model.ngeom) if model.geom_contype[n] == 1}
        loose = {model.geom(f"thing{n}").id for n in range(len(world.things))}
        self._fixed, self._arm = {*range(model.ngeom)} - arm_geoms - loose, arm_geoms
        self._force = np.zeros(6)
        self._sag = np.zeros(JOINTS)
        # Views of the engine's own memory, which stays where it is.
        self._speed, self._load = data.qvel[:JOINTS], data.actuator_force[:JOINTS]
        self._applied, self._targets = data.qfrc_applied[:JOINTS], data.ctrl[:JOINTS]
        self._stiction = -self._body.stiction * _SHARE
        first, count = JOINTS + 2 + self._sliders, len(world.things)
        self._joints = data.qpos[:JOINTS]
        self._slid, self._sliding = data.qpos[JOINTS + 2 : first], data.qvel[JOINTS + 2 : first]
        self._axes = np.array([slider.axis for slider in world.sliders])
        self._shut = np.array([slider.place for slider in world.sliders])
        self._poses = data.qpos[first : first + 7 * count].reshape(count, 7)
        self._moving = data.qvel[first : first + 6 * count].reshape(count, 6)
        self._hand_place = data.xpos[self._hand]
        self._hand_turn = data.xmat[self._hand].reshape(3, 3)
        self._set_numbers(world)
        self._place(world)
        mj.mj_forward(model, data)

    def _set_numbers(self, world: RobotWorld) -> None:
        model, body = self.model, self._body
        model.actuator_gainprm[:JOINTS, 0] *= body.stiffness
        model.actuator_biasprm[:JOINTS, 1:3] *= body.stiffness
        model.dof_frictionloss[self._hinges] = body.friction * _SHARE
        for number in range(JOINTS):
            model.body_pos[model.body(f"link{number}").id] += body.links[number]
        if body.payload:
            mass = model.body_mass[self._hand]
            model.body_mass[self._hand] = mass + body.payload
            model.body_gravcomp[self._hand] = mass / (mass + body.payload)
        for number, slider in enumerate(world.sliders):
            place, joint = model.body(f"slider{number}").id, model.joint(f"slider{number}")
            model.body_mass[place] *= body.mass
            model.body_inertia[place] *= body.mass
            model.dof_frictionloss[joint.dofadr[0]] = slider.drag * body.grip
        for number, thing in enumerate(world.things):
            place, geom = model.body(f"thing{number}").id, model.geom(f"thing{number}").id
            factor = thing.mass * body.mass / model.body_mass[place]
            model.body_mass[place] *= factor
            model.body_inertia[place] *= factor
            model.geom_friction[geom, 0] = thing.grip * body.grip
        self._mj.mj_setConst(model, self.data)

    def _place(self, world: RobotWorld) -> None:
        data = self.data
        self._mj.mj_resetData(self.model, data)
        start = np.array(world.start)
        data.qpos[:JOINTS] = start
        data.qpos[JOINTS : JOINTS + 2] = arm.OPEN / 2
        data.ctrl[:JOINTS], data.ctrl[JOINTS:] = start, arm.OPEN / 2
        for number, thing in enumerate(world.things):
            first = JOINTS + 2 + self._sliders + 7 * number
            half = thing.yaw / 2
            data.qpos[first : first + 7] = (*thing.place, math.cos(half), 0, 0, math.sin(half))

    def tick(self, targets: Floats, width: float) -> Truth:
        """Drive the hinges to targets for one tick.

        Args:
            targets: (7,) rad, true angles.
            width: Between the fingers, m.
        Returns: What is so at the end of the tick.
        """
        data, body = self.data, self._body
        data.ctrl[JOINTS:] = width / 2
        parts = _PARTS if body.stiction or body.sag else 1
        table = grip = 0.0
        for _ in range(parts):
            self._targets[:] = targets - self._sag
            if parts > 1:
                self._fade()
            self._mj.mj_step(self.model, data, nstep=self.steps // parts)
            first, second = self._forces()
            table, grip = max(table, first), max(grip, second)
        # A step ends with an integration: places are those before it until they are made anew.
        self._mj.mj_kinematics(self.model, data)
        return self.truth(table, grip)

    def _fade(self) -> None:
        """Set what fades: stiction with speed, sag with time."""
        share = self._speed / _SLOW
        held = np.minimum(np.maximum(share, -1.0), 1.0)
        self._applied[:] = self._stiction * held * np.exp(-np.abs(share))
        self._sag += 0.02 * (self._body.sag * self._load - self._sag)

    def _forces(self) -> tuple[float, float]:
        """Return the greatest force of the arm on what is fixed, and on a thing, N."""
        table = grip = 0.0
        pairs = self.data.contact.geom.tolist() if self.data.ncon else ()
        for number, (first, second) in enumerate(pairs):
            if first in self._arm or second in self._arm:
                self._mj.mj_contactForce(self.model, self.data, number, self._force)
                size = abs(float(self._force[0]))
                if first in self._fixed or second in self._fixed:
                    table = max(table, size)
                else:
                    grip = max(grip, size)
        return table, grip

    def truth(self, table: float = 0.0, grip: float = 0.0) -> Truth:
        """Return what is so now.

        Args:
            table: Greatest force on the table or a fixture, N.
            grip: That on a thing.
        """
        data = self.data
        rotation, poses, moving = self._hand_turn, self._poses, self._moving[:, :3]
        if self._sliders:
            poses, moving = self._with_sliders()
        tool = self._hand_place + rotation[:, 2] * (arm.TOOL - 0.107)
        return Truth(
            joints=self._joints.copy(),
            speeds=self._speed.copy(),
            width=float(data.qpos[JOINTS] + data.qpos[JOINTS + 1]),
            tool=tool,
            rotation=rotation.copy(),
            things=poses[:, :3].copy(),
            turns=poses[:, 3:].copy(),
            velocities=moving.copy(),
            table_force=table,
            grip_force=grip,
            blew_up=bool(data.warning.number.any()),
        )

    def _with_sliders(self) -> tuple[Floats, Floats]:
        """Return the poses and velocities of handles and things, (n, 7) and (n, 3)."""
        handles = np.zeros((self._sliders, 7))
        handles[:, :3], handles[:, 3] = self._shut + self._slid[:, None] * self._axes, 1.0
        speeds = self._sliding[:, None] * self._axes
        return np.concatenate((handles, self._poses)), np.concatenate((speeds, self._moving[:, :3]))
