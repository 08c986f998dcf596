"""The state of an episode of the language view, as the answer key reads it."""

from typing import Any

import msgspec
import numpy as np

from owa_bench.envs.robosim2real.episode import RobotEpisode
from owa_bench.envs.robosim2real.language.corrections import MM, Corrections
from owa_bench.envs.robosim2real.language.motion import ArmMotion
from owa_bench.envs.robosim2real.world import Vector
from owa_bench.records.observables import Floats

RIGHT_MM = 5.0  # a correction is right if no more is left
# Places over the table at which a camera's correction is tried, m.
_TRIED = np.array([[0.4, -0.2, 0.0], [0.4, 0.2, 0.0], [0.62, -0.2, 0.1], [0.62, 0.2, 0.1]])
_LIFTED = 0.03  # m that a held thing is above its start


def _vector(place: Floats) -> Vector:
    x, y, z = place.tolist()
    return x, y, z


class ArmToolState(msgspec.Struct, frozen=True, kw_only=True):
    """Where an episode stands: the truth, what the arm says, and what was measured and set.

    Places are metres. `tool` is true, `shown` what the corrected encoders say. `readings` are the
    last results of calibrations. `right` names the corrections that were right when they were set,
    `lifted` says whether the first thing was held above the table.
    """

    ticks: int
    tool: Vector
    shown: Vector
    things: tuple[Vector, ...]
    width: float
    is_open: bool
    stopped: bool
    over: str
    ended: bool
    done: int
    success: bool
    quality: float
    corrections: Corrections
    readings: dict[str, Any] = {}
    right: frozenset[str] = frozenset()
    lifted: bool = False


def read_state(motion: ArmMotion, before: ArmToolState | None) -> ArmToolState:
    """Return the state after a call.

    Args:
        motion: The arm.
        before: The state before; None at the start.
    """
    episode, truth = motion.episode, motion.episode.truth
    held = episode.judge.quality if not episode.guard.ended else 0.0
    return ArmToolState(
        ticks=episode.ticks,
        tool=_vector(truth.tool),
        shown=_vector(motion.tool),
        things=tuple(map(_vector, truth.things)),
        width=truth.width,
        is_open=motion.is_open,
        stopped=episode.guard.stopped,
        over=episode.over,
        ended=bool(episode.guard.ended),
        done=episode.judge.done,
        success=episode.success,
        quality=held,
        corrections=motion.corrections,
        readings=before.readings if before else {},
        right=before.right if before else frozenset(),
        lifted=bool(before and before.lifted) or _is_lifted(episode),
    )


def _is_lifted(episode: RobotEpisode) -> bool:
    truth, things = episode.truth, episode.world.things
    if not things or truth.grip_force <= 0.0:
        return False
    return float(truth.things[0][2]) > things[0].place[2] + _LIFTED


def right_corrections(motion: ArmMotion) -> frozenset[str]:
    """Return which of the corrections in force are right: "camera", "encoders"."""
    episode, set_now = motion.episode, motion.corrections
    body = episode.body
    inverse = Corrections(
        camera_offset_mm=_vector(np.array(body.camera) * MM),
        camera_turn_deg=float(np.degrees(body.camera_yaw)),
    )
    # Where the camera shows a point is found from the point by the two corrections' difference.
    gap = np.linalg.norm(set_now.places(_TRIED) - inverse.places(_TRIED), axis=1).max() * MM
    left = float(np.linalg.norm(motion.tool - episode.truth.tool)) * MM
    names = (("camera", float(gap)), ("encoders", left))
    return frozenset(name for name, value in names if value <= RIGHT_MM)
