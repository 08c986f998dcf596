"""Faults that a run injects into a device: each episode may have some, by a published law.

A fault begins once in an episode and ends by itself. The agent is not told; it sees what the fault
does. Recovery (RA) is the share of episodes with a fault that end in success, so a family has only
the faults that its task feels.
"""

from typing import NamedTuple

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.world import RobotWorld
from owa_bench.seeding import stream

OCCLUDED, LINK_LOST, GRIPPER_STUCK = "camera occluded", "link lost", "gripper stuck"
# Kind: the chance that an episode has it, and how long it lasts, s. [D]
LAW = {OCCLUDED: (0.05, 2.0), LINK_LOST: (0.05, 0.4), GRIPPER_STUCK: (0.05, 1.5)}
_NOT_FELT = {  # the families that need no camera, and those that hold nothing
    OCCLUDED: ("reach",),
    GRIPPER_STUCK: ("reach", "push", "drawer"),
}
_EARLIEST = 1.0  # s after the episode began
_LATEST = 0.5  # share of the episode's limit


class InjectedFault(NamedTuple):
    """A fault of an episode, from tick `first` to before tick `end`."""

    kind: str
    first: int
    end: int


def schedule(world: RobotWorld, seed: int) -> tuple[InjectedFault, ...]:
    """Return the faults of an episode.

    Args:
        world: Its task.
        seed: Of the episode.
    """
    rng = stream(seed, "faults")
    found: list[InjectedFault] = []
    for kind, (chance, seconds) in LAW.items():
        happens, place = rng.random(2).tolist()
        if happens < chance and world.family not in _NOT_FELT.get(kind, ()):
            at = _EARLIEST + place * max(0.0, _LATEST * world.limit - _EARLIEST)
            first = round(at * arm.HERTZ)
            found.append(InjectedFault(kind, first, first + round(seconds * arm.HERTZ)))
    return tuple(found)
