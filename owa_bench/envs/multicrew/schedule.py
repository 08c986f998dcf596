"""The suite's own drift schedule: each strike at a tick within the first half."""

from owa_bench.calendars import drift_order, longest_prefix
from owa_bench.envs.multicrew.state import TICK_MS
from owa_bench.interfaces import DriftEvent
from owa_bench.records.instance import Instance
from owa_bench.seeding import stream
from owa_bench.worlds.crew import CrewWorld

_FIRST, _LAST = 0.15, 0.4  # of T


class CrewSchedule:
    """The domain's drift order, each event at a time of its own."""

    def __call__(self, instance: Instance, world: CrewWorld) -> tuple[DriftEvent, ...]:
        """Return the events of the instance's drift step, in order.

        Args:
            instance: Has the drift step.
            world: Its base world.
        Returns: The events.
        """
        if instance.drift_step == 0:
            return ()
        return self.possible(instance, world)[: instance.drift_step]

    def possible(self, instance: Instance, world: CrewWorld) -> tuple[DriftEvent, ...]:
        """Return the events of every drift step, in order.

        Args:
            instance: Its drift step plays no part.
            world: Its base world.
        Returns: The events, none at reset.
        """
        first, last = round(_FIRST * world.deadline), round(_LAST * world.deadline)

        def tick(event: DriftEvent) -> int:
            rng = stream(instance.seed, "strike", event.operator, event.target)
            return int(rng.integers(first, last + 1))

        order = drift_order(instance, world, "crew")
        return tuple(event._replace(at_ms=tick(event) * TICK_MS) for event in order)

    def steps_for(self, instance: Instance, world: CrewWorld, delta: float) -> int:
        """Return the drift step of a nominal magnitude.

        Args:
            instance: Its drift step plays no part.
            world: Its base world.
            delta: The magnitude, in [0, 1].
        Returns: The greatest drift step within `delta`.
        """
        return longest_prefix(self.possible(instance, world), delta)
