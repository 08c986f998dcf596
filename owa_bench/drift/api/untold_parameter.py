"""Drift: a list comes to require a query parameter, and nobody says so."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld
from owa_bench.worlds.api_edits import live_resources, locate_resource


class UntoldParameter:
    """Require one query parameter of one collection's list, undocumented.

    Changes: lists without the parameter answer 400, which names it and its value.
    Leaves alone: documents, rows, paths, fields, paging, writes.
    Announcement: D2 (undocumented; a 400 shows it). Weight: 0.4.
    Errors: DriftError if `target` names no resource, or one without a parameter to
        come.
    Source: `suites.md` section 1, operators (required parameter; its weight of 0.8 is
        shared with required_parameter, one class each).
    """

    name = "untold_parameter"
    version = 1
    announcement: Announcement = "D2"
    weight = 0.4
    held_out = True

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider/resource the task rests on that could require one."""
        return tuple(
            f"{provider.key}/{resource.key}"
            for provider, resource in live_resources(world)
            if set(resource.other_parameters) - set(resource.required)
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the requirement; `intensity` has no part in it."""
        provider, resource = locate_resource(world, target)
        options = [p for p in resource.other_parameters if p not in resource.required]
        if not options:
            raise DriftError(f"`{target}` must have a parameter to come, got none.")
        parameter = options[int(rng.integers(len(options)))]

        required = (*resource.required, parameter)
        new = msgspec.structs.replace(resource, required=required)
        served = provider.contract.with_resource(new)
        return world.with_provider(msgspec.structs.replace(provider, contract=served))


OPERATOR = UntoldParameter()
