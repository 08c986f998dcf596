"""The calendar of a project: the nested drift order, each change on a day of its own.

Source: docs/projforge.md#operators
"""

from msgspec.structs import replace

from owa_bench.calendars import drift_order, longest_prefix
from owa_bench.interfaces import DriftEvent
from owa_bench.records.instance import Announcement, Instance
from owa_bench.seeding import derive
from owa_bench.worlds.project import DAY_MS, Library, ProjectWorld

DOMAIN = "project"
_FIRST, _LAST = 2, 3  # no change before this day, or so many days before the end


class ProjectSchedule:
    """Changes strike in the mornings of drawn days, at any magnitude on the same."""

    def __call__(
        self, instance: Instance, world: ProjectWorld
    ) -> tuple[DriftEvent, ...]:
        """Return the changes of the instance's drift step.

        Args:
            instance: Its seed and drift step.
            world: Its base world.
        Returns: The changes, in drift order.
        """
        return self.possible(instance, world)[: instance.drift_step]

    def possible(
        self, instance: Instance, world: ProjectWorld
    ) -> tuple[DriftEvent, ...]:
        """Return every change that may strike.

        Args:
            instance: Its seed.
            world: Its base world.
        Returns: The changes, in drift order.
        """
        plain = replace(instance, drift_step=0)
        return tuple(
            event._replace(at_ms=_day(instance.seed, event, world.days) * DAY_MS)
            for event in drift_order(plain, world, DOMAIN)
        )

    def steps_for(self, instance: Instance, world: ProjectWorld, delta: float) -> int:
        """Return the drift step of a nominal magnitude.

        Args:
            instance: Its seed.
            world: Its base world.
            delta: In [0, 1].
        Returns: The greatest drift step within `delta`.
        """
        return longest_prefix(self.possible(instance, world), delta)


def _day(seed: int, event: DriftEvent, days: int) -> int:
    span = max(days - _FIRST - _LAST, 1)
    return _FIRST + derive(seed, "drift", "day", event.operator, event.target) % span


def effective_class(before: ProjectWorld, after: ProjectWorld) -> Announcement:
    """Return what a change shows of itself: a changelog may say nothing.

    Args:
        before: The world before one change.
        after: The world after it.
    Returns: D0 compatible, D1 told, D2 an error shows it, D3 silent.
    """
    for old, new in zip(before.libraries, after.libraries, strict=True):
        if old != new:
            return _library_class(old, new)
    revoked = before.secret != after.secret
    if revoked or (before.image, before.index) != (after.image, after.index):
        return "D2"
    changed = (before.lock, before.protocol) != (after.lock, after.protocol)
    return "D1" if changed else "D0"


def _library_class(old: Library, new: Library) -> Announcement:
    names = [{e.name for e in library.exports} for library in (old, new)]
    told = new.changelog[-1:] != old.changelog[-1:] and "- " in new.changelog[-1]
    if old.exports == new.exports:
        return "D2"
    if names[0] < names[1]:
        return "D0"
    if names[0] != names[1]:
        return "D1" if told else "D2"
    return "D1" if told else "D3"
