"""Drift: the list lies elsewhere in the reply."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import WRAPPERS, ApiWorld, Contract
from owa_bench.worlds.api_edits import announce, live_resources, locate_resource


class WrapperSwap:
    """Put the list of one collection under another key of the reply.

    Changes: the resource's wrapper; the documents follow.
    Leaves alone: rows, fields, path, paging, auth. A list paged by cursor is never left
        bare, since its cursor would have no place.
    Announcement: D1 (documented, breaking). Weight: 0.7.
    Errors: DriftError if `target` names no resource.
    Source: `suites.md` section 1, operators (wrapper swap).
    """

    name = "wrapper_swap"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.7

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider/resource the task rests on."""
        return tuple(
            f"{provider.key}/{resource.key}"
            for provider, resource in live_resources(world)
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the list re-wrapped; `intensity` has no part in it."""
        provider, resource = locate_resource(world, target)
        bare = resource.pager.kind != "cursor"
        pool = resource.other_wrappers or WRAPPERS
        options = [w for w in pool if w != resource.wrapper and (w or bare)]
        wrapper = options[int(rng.integers(len(options)))]

        def change(contract: Contract) -> Contract:
            old = contract.resource(resource.key)
            return contract.with_resource(msgspec.structs.replace(old, wrapper=wrapper))

        place = f"under `{wrapper}`" if wrapper else "as a bare array"
        note = f"{resource.path}: the list is now returned {place}."
        return announce(world, provider, change, note)


OPERATOR = WrapperSwap()
