"""Drift events of an episode: what is recorded of each change of a world."""

import msgspec

from owa_bench.records import events
from owa_bench.records.instance import Timeline


def drift_events(timeline: Timeline, index: int) -> list[events.Event]:
    """Return the events of the changes that lead into a world.

    Args:
        timeline: The episode's.
        index: Of the world.

    Returns:
        One Drift per change, in order.
    """
    return [
        events.Drift(at_ms=timeline.starts[index], **msgspec.structs.asdict(change))
        for change in timeline.changes[index]
    ]
