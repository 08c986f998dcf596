"""Operators on the body: its sensors, its drives, its firmware, and what wears out."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.envs.robosim2real.world import RobotWorld

_SIDES = (-1.0, 1.0)


def _either(rng: Generator) -> float:
    return _SIDES[int(rng.integers(2))]


def _with_notice(world: RobotWorld, notice: str) -> RobotWorld:
    return replace(world, notices=(*world.notices, notice))


# --- sensors --------------------------------------------------------------------------


@operator(announcement="D3", weight=1.0, targets="camera", group="sensor")
def camera_moved(world: RobotWorld, intensity: float, rng: Generator) -> RobotWorld:
    """Move and turn the camera: up to 25 mm along x and y, and 2 degrees.

    Changes: what the camera shows, the marks too.
    Leaves alone: encoders. Announcement: D3. Weight: 1.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    x, y = (round(0.025 * intensity * _either(rng), 4) for _ in range(2))
    yaw = round(0.035 * intensity * _either(rng), 4)
    body = world.body
    return world.with_body(
        camera=(body.camera[0] + x, body.camera[1] + y, body.camera[2]),
        camera_yaw=body.camera_yaw + yaw,
    )


@operator(announcement="D3", weight=0.5, targets="noise", group="sensor")
def camera_noise(world: RobotWorld, intensity: float) -> RobotWorld:
    """Let what the camera shows jump, by up to 8 mm.

    Changes: each view of things and marks. Leaves alone: encoders.
    Announcement: D3. Weight: 0.5.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    return world.with_body(noise=world.body.noise + round(0.008 * intensity, 4))


@operator(announcement="D3", weight=0.5, targets="encoders", group="sensor")
def coarse_encoders(world: RobotWorld, intensity: float) -> RobotWorld:
    """Read the joints in steps, of up to .3 degrees.

    Changes: what the encoders say. Leaves alone: the camera.
    Announcement: D3. Weight: 0.5.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    return world.with_body(quantum=world.body.quantum + round(0.005 * intensity, 5))


@operator(announcement="D2", weight=0.5, targets="view", group="sensor")
def view_dropouts(world: RobotWorld, intensity: float) -> RobotWorld:
    """Lose up to six of ten views of the camera.

    Changes: how often it shows something new; the age of the view tells it.
    Leaves alone: encoders. Announcement: D2. Weight: 0.5.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    return world.with_body(dropout=world.body.dropout + round(0.6 * intensity, 3))


# --- drives ---------------------------------------------------------------------------


@operator(announcement="D3", weight=0.7, targets="friction", group="dynamics")
def joint_friction(world: RobotWorld, intensity: float) -> RobotWorld:
    """Make the joints harder to turn, by up to 4 Nm.

    Changes: where the arm comes to rest, and how late.
    Leaves alone: sensors. Announcement: D3. Weight: 0.7.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    return world.with_body(friction=world.body.friction + round(4.0 * intensity, 3))


@operator(announcement="D3", weight=0.7, targets="stiffness", group="dynamics")
def weak_drives(world: RobotWorld, intensity: float) -> RobotWorld:
    """Take up to half of the stiffness of the drives.

    Changes: how closely joints follow. Leaves alone: sensors.
    Announcement: D3. Weight: 0.7.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    return world.with_body(stiffness=world.body.stiffness * round(1.0 - 0.5 * intensity, 3))


@operator(announcement="D1", weight=0.5, targets="payload", group="dynamics")
def flange_payload(world: RobotWorld, intensity: float) -> RobotWorld:
    """Mount a device of up to .8 kg on the flange.

    Changes: the load of the joints; a work order names the mass.
    Leaves alone: sensors. Announcement: D1. Weight: 0.5.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    mass = round(0.8 * intensity, 3)
    after = world.with_body(payload=world.body.payload + mass)
    return _with_notice(after, f"Work order: a device of {mass:g} kg is mounted on the flange.")


# --- firmware -------------------------------------------------------------------------


@operator(announcement="D3", weight=1.0, targets="dead_time", group="firmware")
def longer_dead_time(world: RobotWorld, intensity: float) -> RobotWorld:
    """Let commands take up to .15 s more to arrive.

    Changes: when the arm moves. Leaves alone: where it goes.
    Announcement: D3. Weight: 1.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    return world.with_body(dead_time=world.body.dead_time + round(0.15 * intensity, 3))


@operator(announcement="D3", weight=0.7, targets="filter", group="firmware")
def smoother_motion(world: RobotWorld, intensity: float) -> RobotWorld:
    """Keep up to half of the command before, each tick.

    Changes: how soon the arm follows. Leaves alone: where it goes.
    Announcement: D3. Weight: 0.7.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    return world.with_body(filter=world.body.filter * round(1.0 - 0.5 * intensity, 3))


@operator(announcement="D1", weight=0.7, targets="pace", group="firmware")
def rate_limit(world: RobotWorld, intensity: float) -> RobotWorld:
    """Move the tool with a share of the asked speed: down to half.

    Changes: velocities; a release note says the share.
    Leaves alone: turn and gripper. Announcement: D1. Weight: 0.7.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    share = round(1.0 - 0.5 * intensity, 3)
    after = world.with_body(pace=world.body.pace * share)
    return _with_notice(after, f"Release note: full command is {share:g} of the speed it was.")


@operator(announcement="D1", weight=1.0, targets="gripper", group="firmware")
def gripper_reversed(world: RobotWorld) -> RobotWorld:
    """Exchange the two commands of the gripper.

    Changes: below 0 opens, above 0 shuts; a release note says it.
    Leaves alone: the arm. Announcement: D1. Weight: 1.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    after = world.with_body(reversed=1.0 - world.body.reversed)
    return _with_notice(after, "Release note: the gripper opens below 0 and shuts above 0.")


@operator(announcement="D1", weight=1.0, targets="axes", group="firmware")
def axes_exchanged(world: RobotWorld) -> RobotWorld:
    """Exchange the commands along x and y.

    Changes: the first number moves along y, the second along x; a release note says it.
    Leaves alone: observations. Announcement: D1. Weight: 1.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    after = world.with_body(exchanged=1.0 - world.body.exchanged)
    notice = "Release note: the first number of a command is now y, the second x."
    return _with_notice(after, notice)


# --- wear, which no practice shows ----------------------------------------------------


@operator(announcement="D3", weight=0.7, targets="zero", group="wear", held_out=True)
def encoder_slip(world: RobotWorld, intensity: float, rng: Generator) -> RobotWorld:
    """Turn an encoder on its shaft, by up to 2 degrees.

    Changes: what one joint is said to be. Leaves alone: the camera.
    Announcement: D3. Weight: 0.7.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    joint, slip = int(rng.integers(4)), round(0.035 * intensity * _either(rng), 4)
    zeros = [*world.body.zeros]
    zeros[joint] += slip
    return world.with_body(zeros=tuple(zeros))


@operator(announcement="D3", weight=0.5, targets="cable", group="wear", held_out=True)
def cable_drag(world: RobotWorld, intensity: float) -> RobotWorld:
    """Let a cable drag at the joints: up to 2 Nm at rest, less in motion.

    Changes: how joints start. Leaves alone: sensors.
    Announcement: D3. Weight: 0.5.
    Raises: DriftError for another target.
    Source: docs/robosim2real.md#drift.
    """
    return world.with_body(stiction=world.body.stiction + round(2.0 * intensity, 3))
