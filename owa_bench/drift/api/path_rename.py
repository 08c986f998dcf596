"""Drift: a collection moves to another path."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, Contract
from owa_bench.worlds.api_edits import announce, live_resources, locate_resource


class PathRename:
    """Serve one collection under another path; the old one answers 404.

    Changes: the resource's path; the documents follow.
    Leaves alone: rows, fields, wrapper, paging, auth, every other resource.
    Announcement: D1 (documented, breaking). Weight: 1.
    Errors: DriftError if `target` names no resource, or one with nowhere to go.
    Source: `suites.md` section 1, operators (path rename).
    """

    name = "path_rename"
    version = 1
    announcement: Announcement = "D1"
    weight = 1.0

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider/resource the task rests on and that may move."""
        return tuple(
            f"{provider.key}/{resource.key}"
            for provider, resource in live_resources(world)
            if resource.other_paths
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the resource moved; `intensity` has no part in it."""
        provider, resource = locate_resource(world, target)
        taken = {
            other.path
            for side in (provider.contract, provider.documented)
            for other in side.resources
        }
        options = [path for path in resource.other_paths if path not in taken]
        if not options:
            raise DriftError(
                f"`{target}` must have a free path, got {resource.other_paths!r}."
            )
        path = options[int(rng.integers(len(options)))]

        def change(contract: Contract) -> Contract:
            moved = msgspec.structs.replace(contract.resource(resource.key), path=path)
            return contract.with_resource(moved)

        note = f"`{resource.path}` has moved to `{path}`; the old path is gone."
        return announce(world, provider, change, note)


OPERATOR = PathRename()
