"""Drift order and magnitude: which changes an instance can undergo, in its own order.

Every instance has one drift order: all (operator, target) pairs of its base world, shuffled with
its drift stream, each with an intensity drawn once. Drift step d is the first d of these, and
magnitude delta is the longest prefix whose weight share is at most delta. So drift at 0.3 is part
of drift at 0.7, and comparisons across delta are paired.

Source: docs/suites.md#drift
"""

import math
from collections.abc import Sequence

from owa_bench.discovery import find, get
from owa_bench.interfaces import DriftEvent, Operator, World
from owa_bench.records.events import fixed
from owa_bench.records.instance import Instance
from owa_bench.seeding import is_practice, stream

TOLERANCE = 1e-9  # of a sum of weights
_LEAST_INTENSITY = 0.25


def drift_order(instance: Instance, world: World, domain: str) -> tuple[DriftEvent, ...]:
    """Return every (operator, target) of a base world in the instance's own order.

    A target that an operator cannot change has no event, so weight shares are exact. Operators that
    are `held_out` never act on an instance of practice.

    Args:
        instance: its seed names the drift stream.
        world: its base world.
        domain: the operators' domain.
    Returns: The events, before the episode and at their drawn intensities.
    """
    practice = is_practice(instance.seed)
    pairs = [
        (name, target)
        for name, entry in find("operators").items()
        if name.startswith(f"{domain}/") and not (practice and entry.plugin.held_out)
        for target in sorted(entry.plugin.targets(world))
    ]
    rng = stream(instance.seed, "drift", "order")
    shuffled = rng.permutation(len(pairs)).tolist()
    spread = 1.0 - _LEAST_INTENSITY
    intensities = (_LEAST_INTENSITY + spread * rng.random(len(pairs))).tolist()
    return tuple(
        DriftEvent(0, pairs[i][0], pairs[i][1], fixed(intensity))
        for i, intensity in zip(shuffled, intensities, strict=True)
    )


def groups(domain: str) -> dict[str, tuple[str, ...]]:
    """Return the operators of each group of a domain, by the group's name."""
    names: dict[str, list[str]] = {}
    for name, entry in find("operators").items():
        group = entry.plugin.group
        if group and name.startswith(f"{domain}/"):
            names.setdefault(group, []).append(name)
    return {group: tuple(members) for group, members in sorted(names.items())}


def weight(events: Sequence[DriftEvent]) -> float:
    """Return the summed weight of the events' operators."""
    return math.fsum(_weight(event) for event in events)


def share(applied: Sequence[DriftEvent], possible: Sequence[DriftEvent]) -> float:
    """Return the realised magnitude, which is reported beside the nominal one.

    Args:
        applied: events in force.
        possible: every event that the calendar could give.
    Returns: The weight share of `applied` in `possible`; 0 where nothing is possible.
    """
    total = weight(possible)
    return fixed(weight(applied) / total) if total else 0.0


def longest_prefix(events: Sequence[DriftEvent], delta: float) -> int:
    """Return the length of the longest prefix within a magnitude.

    Args:
        events: in drift order.
        delta: share of their whole weight, in [0, 1].
    Returns: How many first events weigh at most `delta` of all.
    """
    limit = delta * weight(events) + TOLERANCE
    running = 0.0
    for count, event in enumerate(events):
        running += _weight(event)
        if running > limit:
            return count
    return len(events)


def _weight(event: DriftEvent) -> float:
    operator: Operator = get("operators", event.operator)
    return operator.weight
