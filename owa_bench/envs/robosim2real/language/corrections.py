"""Corrections that an agent sets: they turn readings into places, and wishes into commands."""

import math

import msgspec
import numpy as np

from owa_bench.envs.robosim2real.engine import TABLE
from owa_bench.envs.robosim2real.world import Vector
from owa_bench.records.observables import Floats

MM = 1000.0
_MIDDLE = np.array([*TABLE, 0.0])


class Corrections(msgspec.Struct, frozen=True, kw_only=True):
    """The corrections in force; the defaults change nothing.

    An offset is what is shown less what is so, mm. `camera_turn_deg` is how far the camera's
    picture is turned about the middle of the table, counter-clockwise from above. `delay_ms` is the
    way of a command. The last three undo what firmware does: x and y exchanged, open and shut
    exchanged, a share of the asked speed.
    """

    camera_offset_mm: Vector = (0.0, 0.0, 0.0)
    camera_turn_deg: float = 0.0
    encoder_offset_mm: Vector = (0.0, 0.0, 0.0)
    delay_ms: float = 0.0
    swap_xy: bool = False
    reverse_gripper: bool = False
    speed_share: float = 1.0

    def places(self, points: Floats) -> Floats:
        """Return where points are that the camera shows.

        Args:
            points: (n, 3) m.
        Returns: (n, 3) m.
        """
        angle = math.radians(self.camera_turn_deg)
        cosine, sine = math.cos(angle), math.sin(angle)
        turn = np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
        offset = np.array(self.camera_offset_mm) / MM
        places: Floats = (points - _MIDDLE - offset) @ turn + _MIDDLE
        return places

    def tool_place(self, tool: Floats) -> Floats:
        """Return where the tool is that the encoders show.

        Args:
            tool: (3,) m, by nominal kinematics.
        Returns: (3,) m.
        """
        place: Floats = tool - np.array(self.encoder_offset_mm) / MM
        return place

    def command(self, velocity: Floats, *, is_open: bool, recover: bool) -> Floats:
        """Return the device's command for a wish.

        Args:
            velocity: (3,) of the tool along x, y, z, as shares of the full speed.
            is_open: What the gripper is to be.
            recover: Whether to ask to go on after a stop.
        Returns: (6,) in [-1, 1].
        """
        x, y, z = (velocity / self.speed_share).tolist()
        if self.swap_xy:
            x, y = y, x
        gripper = 1.0 if is_open != self.reverse_gripper else -1.0
        command: Floats = np.array([x, y, z, 0.0, gripper, 1.0 if recover else 0.0])
        return np.clip(command, -1.0, 1.0)


def camera_error(marks: Floats, known: Floats) -> tuple[Vector, float]:
    """Return what the camera gets wrong, from the table's two marks.

    Args:
        marks: (2, 3) m, where the camera shows them.
        known: (2, 3) m, where they are.
    Returns: Offset at the middle of the table, mm, and turn, degrees.
    """
    way, drawn = marks[1] - marks[0], known[1] - known[0]
    turn = math.atan2(way[1], way[0]) - math.atan2(drawn[1], drawn[0])
    offset = (marks.mean(axis=0) - known.mean(axis=0)) * MM
    x, y, z = (round(value, 1) for value in offset.tolist())
    return (x, y, z), round(math.degrees(turn), 2)
