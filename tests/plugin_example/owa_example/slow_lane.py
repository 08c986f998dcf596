"""Drift: a vendor's rate window gets longer."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld

LARGEST = 4  # intensity 1 makes the window this many times as long


class SlowLane:
    """Stretch one vendor's rate window; the documents say nothing.

    Changes: the length of the window in which requests are counted.
    Leaves alone: how many requests fit, documents, auth, resources, rows.
    Announcement: D2 (a 429 shows it). Weight: 0.5.
    Errors: DriftError if `target` names no provider.
    Source: an example.
    """

    name = "slow_lane"
    version = 1
    announcement: Announcement = "D2"
    weight = 0.5

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider."""
        return tuple(provider.key for provider in world.providers)

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the window stretched by `intensity`."""
        try:
            provider = world.provider(target)
        except KeyError as error:
            msg = f"`target` must name a provider of this world, got {target!r}."
            raise DriftError(msg) from error
        replace = msgspec.structs.replace
        limit = provider.contract.limit
        factor = 1 + round((LARGEST - 1) * intensity)
        slower = replace(limit, window_ms=limit.window_ms * factor)
        contract = replace(provider.contract, limit=slower)
        return world.with_provider(replace(provider, contract=contract))


OPERATOR = SlowLane()
