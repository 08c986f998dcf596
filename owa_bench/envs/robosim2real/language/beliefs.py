"""Propositions on the unit: what an agent can measure and state before it finishes.

Each threshold is the median of the law that units are drawn from, so that no constant knows more
than a coin (`tests/envs/robosim2real/test_language_beliefs.py` holds the shares).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.engine import Cell
from owa_bench.envs.robosim2real.language.corrections import MM
from owa_bench.envs.robosim2real.language.world import ArmToolWorld
from owa_bench.interfaces import PropositionTruth


class UnitClaim(NamedTuple):
    """A proposition: its text, its threshold, and the number that it is about."""

    text: str
    above: float
    number: Callable[[ArmToolWorld], float]


def delay_ms(world: ArmToolWorld) -> float:
    """Return the way of a command, ms: dead time, and what smoothing keeps back."""
    body = world.whole_body
    return MM * (body.dead_time + (1.0 - body.filter) / body.filter / arm.HERTZ)


def camera_mm(world: ArmToolWorld) -> float:
    """Return the length of the camera's offset at the middle of the table, mm."""
    return arm.length(np.array(world.whole_body.camera)) * MM


def encoders_mm(world: ArmToolWorld) -> float:
    """Return how far the encoders' place of the tool is from the true one at the start, mm."""
    truth = Cell(world, world.whole_body, coarse=True).truth()
    shown = truth.joints + np.array(world.whole_body.zeros)
    return arm.length(arm.forward(shown)[0] - truth.tool) * MM


CLAIMS: Mapping[str, UnitClaim] = {
    "delay": UnitClaim(
        "Dead time and smoothing together delay a command by more than {:g} ms on average: what "
        "`calibrate` reads as delay.",
        110.0,
        delay_ms,
    ),
    "camera": UnitClaim(
        "At x 550, y 0 the camera is off by more than {:g} mm, x, y and z taken together.",
        13.0,
        camera_mm,
    ),
    "encoders": UnitClaim(
        "At the start pose the encoders place the tool more than {:g} mm from its true place.",
        8.1,
        encoders_mm,
    ),
}
KINDS = tuple(CLAIMS)
TEXTS = {name: claim.text.format(claim.above) for name, claim in CLAIMS.items()}


def truths(world: ArmToolWorld) -> tuple[PropositionTruth, ...]:
    """Return every proposition with its truth in a world, drift included."""
    return tuple(
        PropositionTruth(name, name, claim.number(world) > claim.above)
        for name, claim in CLAIMS.items()
    )
