"""What a drift operator is, and who says when and where operators act."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from owa_bench.records.instance import Announcement, Instance, Timeline

World = Any
Source = Callable[[Instance], Timeline]


class Operator(Protocol):
    """One kind of drift: a pure function from world to world."""

    name: str
    version: int
    announcement: Announcement
    weight: float

    def targets(self, world: World) -> tuple[str, ...]:
        """Return what may be changed, by names that no other operator changes."""

    def apply(
        self, world: World, target: str, intensity: float, *, rng: np.random.Generator
    ) -> World:
        """Return the changed world; DriftError if `target` cannot be changed."""


class DriftEvent(NamedTuple):
    """One entry of a schedule: at `at_ms`, `operator` acts on `target`."""

    at_ms: int
    operator: str
    target: str
    intensity: float


Schedule = Callable[[Instance, World], tuple[DriftEvent, ...]]


class EnumerableSchedule(Protocol):
    """A schedule that knows all it could ever do, and the step of a magnitude.

    A suite with a `schedule` of this kind has it in place of the nested calendar.
    """

    def __call__(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        """Return the strikes of the instance's drift step, in order."""

    def whole(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        """Return every strike that it could ever make, in order."""

    def steps_for(self, instance: Instance, world: World, delta: float) -> int:
        """Return the drift step of nominal magnitude `delta`."""
