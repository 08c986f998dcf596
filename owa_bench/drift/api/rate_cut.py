"""Drift: a vendor allows fewer requests per window."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, Contract, Limit
from owa_bench.worlds.api_edits import announce, live_providers, locate_provider

_LARGEST_CUT = 0.75  # share of the requests that intensity 1 takes away
_FEWEST = 2  # requests per window that are always left


class RateCut:
    """Cut a vendor's requests per window, by up to three quarters.

    Changes: the limit; the documents follow.
    Leaves alone: the window, auth, resources, rows.
    Announcement: D0 (announced, compatible: 429 and Retry-After say when). Weight: 0.5.
    Errors: DriftError if `target` names no provider, or one at the least limit.
    Source: `suites.md` section 1, operators (rate cut).
    """

    name = "rate_cut"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.5

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider the task rests on whose limit can still fall."""
        return tuple(
            provider.key
            for provider in live_providers(world)
            if provider.contract.limit.requests > _FEWEST
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the limit cut; intensity 1 takes the largest cut."""
        provider = locate_provider(world, target)
        old = provider.contract.limit
        if old.requests <= _FEWEST:
            raise DriftError(
                f"`{target}` must allow more than {_FEWEST}, got {old.requests}."
            )
        cut = max(1, int(old.requests * _LARGEST_CUT * intensity))
        limit = Limit(
            requests=max(_FEWEST, old.requests - cut), window_ms=old.window_ms
        )

        def change(contract: Contract) -> Contract:
            return msgspec.structs.replace(contract, limit=limit)

        seconds = limit.window_ms // 1000
        note = f"At most {limit.requests} requests per {seconds} s from now on."
        return announce(world, provider, change, note)


OPERATOR = RateCut()
