"""Operator of another package: a vendor's rate window gets longer."""

from msgspec.structs import replace

from owa_bench.drift.operator import operator
from owa_bench.envs.toolquest.world import ApiWorld
from owa_bench.envs.toolquest.world_edits import locate_provider, providers_where

SMALLEST, LARGEST = 2, 4  # times as long as the window was, from intensity 0 to 1


@operator(announcement="D2", weight=0.5, targets=providers_where())
def slow_lane(world: ApiWorld, target: str, intensity: float) -> ApiWorld:
    """Stretch one vendor's rate window; the documents say nothing.

    Changes: the length of the window in which requests are counted.
    Leaves alone: how many requests fit, documents, auth, resources, rows.
    Announcement: D2 (a 429 shows it). Weight: 0.5.
    Raises: DriftError if `target` names no provider.
    Source: an example.
    """
    provider = locate_provider(world, target)
    limit = provider.contract.limit
    factor = SMALLEST + round((LARGEST - SMALLEST) * intensity)
    slower = replace(limit, window_ms=limit.window_ms * factor)
    contract = replace(provider.contract, limit=slower)
    return world.with_provider(replace(provider, contract=contract))
