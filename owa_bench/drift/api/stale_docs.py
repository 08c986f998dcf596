"""Drift: a vendor's documents fall back and stay behind."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, Provider, Resource
from owa_bench.worlds.api_edits import live_providers, live_resources, locate_provider


class StaleDocs:
    """Put back a vendor's first documents, freeze them, and falsify one path.

    Changes: `documented` is the original contract again and no longer follows; the path
        of one collection that the task rests on is false in it, so that the operator
        bites alone.
    Leaves alone: everything that is served.
    Announcement: D2 (undocumented; a 404 shows it). Weight: 1.
    Errors: DriftError if `target` names no provider, or one whose documents are frozen
        or whose collections the task does not need.
    Source: `suites.md` section 1, operators (stale docs).
    """

    name = "stale_docs"
    version = 1
    announcement: Announcement = "D2"
    weight = 1.0

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider the task rests on whose documents still follow."""
        return tuple(
            provider.key
            for provider in live_providers(world)
            if not provider.docs_frozen and _candidates(world, provider)
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the documents stale; `intensity` has no part in it."""
        provider = locate_provider(world, target)
        candidates = _candidates(world, provider)
        if provider.docs_frozen or not candidates:
            raise DriftError(
                f"`{target}` must have documents that follow it, got frozen ones."
            )
        resource = candidates[int(rng.integers(len(candidates)))]
        paths = _free_paths(provider, resource)
        false = paths[int(rng.integers(len(paths)))]
        stale = provider.original.with_resource(
            msgspec.structs.replace(
                provider.original.resource(resource.key), path=false
            )
        )
        return world.with_provider(
            msgspec.structs.replace(provider, documented=stale, docs_frozen=True)
        )


def _candidates(world: ApiWorld, provider: Provider) -> list[Resource]:
    return [
        resource
        for owner, resource in live_resources(world)
        if owner.key == provider.key and _free_paths(provider, resource)
    ]


def _free_paths(provider: Provider, resource: Resource) -> list[str]:
    """Return the paths at which this provider has never served anything."""
    taken = {
        other.path
        for side in (provider.contract, provider.original)
        for other in side.resources
    }
    return [path for path in resource.other_paths if path not in taken]


OPERATOR = StaleDocs()
