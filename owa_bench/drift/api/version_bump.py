"""Drift: the next version of an API replaces the old one."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, Contract
from owa_bench.worlds.api_edits import (
    announce,
    live_providers,
    locate_provider,
    next_version,
)


class VersionBump:
    """Move every collection of a vendor one version on; old paths are gone.

    Changes: the version in every path; old paths answer 410 with a Link to their
        successor; the documents follow.
    Leaves alone: rows, fields, wrappers, paging, auth.
    Announcement: D1 (documented, breaking). Weight: 0.25.
    Errors: DriftError if `target` names no provider.
    Source: `suites.md` section 1, operators (version bump; its weight of 0.5 is shared
        by version_bump and version_added, one class each).
    """

    name = "version_bump"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.25

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider the task rests on."""
        return tuple(provider.key for provider in live_providers(world))

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the version moved on; `intensity` has no part in it."""
        provider = locate_provider(world, target)
        note = "The API is now at its next version; the old paths are gone."

        def change(contract: Contract) -> Contract:
            return next_version(contract, 410)

        return announce(world, provider, change, note)


OPERATOR = VersionBump()
