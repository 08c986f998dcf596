"""Drift: a list is cut into pages another way."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import PAGERS, ApiWorld, Contract, Pager
from owa_bench.worlds.api_edits import announce, live_resources, locate_resource


class PagerSwap:
    """Replace the paging of one collection by another kind, page size kept.

    Changes: the resource's pager kind; the documents follow.
    Leaves alone: rows, fields, path, wrapper, page size, auth. A bare list never gets a
        cursor, which would have no place in the reply.
    Announcement: D1 (documented, breaking). Weight: 1.
    Errors: DriftError if `target` names no resource, or one that has no pages.
    Source: `suites.md` section 1, operators (pager swap).
    """

    name = "pager_swap"
    version = 1
    announcement: Announcement = "D1"
    weight = 1.0

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every paged provider/resource the task rests on."""
        return tuple(
            f"{provider.key}/{resource.key}"
            for provider, resource in live_resources(world)
            if resource.pager.kind != "none"
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the pager replaced; `intensity` has no part in it."""
        provider, resource = locate_resource(world, target)
        if resource.pager.kind == "none":
            raise DriftError(
                f"`{target}` must be a paged collection, got one without pages."
            )
        options = [
            kind
            for kind in resource.other_pagers or PAGERS
            if kind != resource.pager.kind and (kind != "cursor" or resource.wrapper)
        ]
        kind = options[int(rng.integers(len(options)))]
        pager = Pager(kind=kind, size=resource.pager.size)

        def change(contract: Contract) -> Contract:
            old = contract.resource(resource.key)
            return contract.with_resource(msgspec.structs.replace(old, pager=pager))

        note = f"{resource.path}: pages are now asked for by {kind}."
        return announce(world, provider, change, note)


OPERATOR = PagerSwap()
