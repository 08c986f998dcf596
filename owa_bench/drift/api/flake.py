"""Drift: a vendor fails in bursts."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld
from owa_bench.worlds.api_edits import live_providers, locate_provider


class Flake:
    """Let requests meet bursts of 503, by the noise stream.

    Changes: up to a quarter of the requests begin a burst of some seconds; a record may
        be made although its answer is lost.
    Leaves alone: documents, contract otherwise, rows.
    Announcement: D2 (undocumented; 503 and Retry-After show it). Weight: 0.6.
    Errors: DriftError if `target` names no provider, or one that fails already.
    Source: `suites.md` section 1, operators (flake).
    """

    name = "flake"
    version = 1
    announcement: Announcement = "D2"
    weight = 0.6

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider the task rests on that does not fail yet."""
        return tuple(
            provider.key
            for provider in live_providers(world)
            if not provider.contract.outages
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with outages; intensity 1 makes the most."""
        provider = locate_provider(world, target)
        if provider.contract.outages:
            raise DriftError(f"`{target}` must not fail yet, got one that does.")
        share = max(1, int(_MOST * intensity))
        served = msgspec.structs.replace(provider.contract, outages=share)
        return world.with_provider(msgspec.structs.replace(provider, contract=served))


_MOST = 25  # of 100 requests that begin a burst at intensity 1


OPERATOR = Flake()
