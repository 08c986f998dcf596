"""Drift: a vendor closes and another one takes over."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, FormerHost
from owa_bench.worlds.api_edits import (
    fresh_secret,
    live_providers,
    locate_provider,
    reissued,
)


class ProviderRetired:
    """Move a vendor's business to a successor with its own title, host and credential.

    Changes: title, host and family of the vendor; the old host answers 301, 308 or 410
        with a Link; its home page and the registry name the successor; the vault has a
        new credential.
    Leaves alone: contract, rows. The goal still names the old vendor.
    Announcement: D1 (documented, breaking). Weight: 1.
    Errors: DriftError if `target` names no provider, or one without a successor.
    Source: `suites.md` section 1, operators (provider retired and replaced).
    """

    name = "provider_retired"
    version = 1
    announcement: Announcement = "D1"
    weight = 1.0

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider the task rests on that has a successor."""
        return tuple(
            provider.key for provider in live_providers(world) if provider.successors
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the vendor replaced; `intensity` has no part in it."""
        provider = locate_provider(world, target)
        if not provider.successors:
            raise DriftError(f"`{target}` must have a successor, got none.")
        options = provider.successors
        successor = options[int(rng.integers(len(options)))]
        status = _STATUSES[int(rng.integers(len(_STATUSES)))]
        former = FormerHost(host=provider.host, title=provider.title, status=status)
        moved = msgspec.structs.replace(
            provider,
            title=successor.title,
            host=successor.host,
            family=successor.family,
            successors=(),
            former_hosts=(*provider.former_hosts, former),
        )
        secret = fresh_secret(moved, provider.contract.auth.kind, rng)
        return world.with_provider(
            msgspec.structs.replace(moved, secrets=reissued(moved, secret))
        )


_STATUSES = (301, 308, 410)


OPERATOR = ProviderRetired()
