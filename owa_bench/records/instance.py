"""Instances of tasks, changes of a world, timelines of worlds and their clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from owa_bench.errors import InstanceError

Announcement = Literal["D0", "D1", "D2", "D3"]
ANNOUNCEMENTS: tuple[Announcement, ...] = ("D0", "D1", "D2", "D3")
SEED_LIMIT = 1 << 63


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """One task, exactly: the same instance is the same timeline, byte for byte.

    `repeat` chooses the noise stream; `drift_step` is a calendar index, the number of entries of
    the instance's drift order that have been applied. Delta is derived.
    """

    suite: str
    version: int
    family: str
    tier: int
    seed: int
    repeat: int = 0
    drift_step: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers outside their range."""
        if not 0 <= self.seed < SEED_LIMIT:
            raise InstanceError("seed", self.seed, "must be a 63-bit integer >= 0")
        for name in ("repeat", "drift_step"):
            value = getattr(self, name)
            if value < 0:
                raise InstanceError(name, value, "must be at least 0")


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One drift operator applied to one target of a world.

    `announcement` is the operator's class; `effective` is the class that the change has in this
    world, by what the world tells an agent afterwards.
    """

    operator: str
    version: int
    target: str
    intensity: float
    announcement: Announcement
    effective: Announcement
    weight: float
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The worlds of one episode in order of simulated time.

    `starts` are simulated milliseconds, the first 0; `worlds[i]` holds from `starts[i]`;
    `changes[i]` are those that led into `worlds[i]`. `realised` is the weight share of the applied
    changes in all that could have been applied.
    """

    instance: Instance
    starts: tuple[int, ...]
    worlds: tuple[Any, ...]
    changes: tuple[tuple[Change, ...], ...]
    realised: float


class SimulatedClock:
    """Simulated milliseconds since reset, and which world of a timeline holds now.

    `starts` are the timeline's; nothing sleeps and the clock never runs back.
    """

    def __init__(self, starts: Sequence[int]) -> None:
        self._starts = tuple(starts)
        self.now_ms = 0
        self.world = 0

    def advance(self, elapsed_ms: int) -> range:
        """Move on and return the indices of the worlds whose start was passed."""
        self.now_ms += elapsed_ms
        before = self.world
        later = self._starts[before + 1 :]
        self.world += sum(start <= self.now_ms for start in later)
        return range(before + 1, self.world + 1)
