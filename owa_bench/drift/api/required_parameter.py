"""Drift: a list comes to require a query parameter, as documented."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, Contract
from owa_bench.worlds.api_edits import announce, live_resources, locate_resource


class RequiredParameter:
    """Require one query parameter of one collection's list.

    Changes: lists without the parameter answer 400; the documents follow.
    Leaves alone: rows, paths, fields, paging, writes.
    Announcement: D1 (documented, breaking). Weight: 0.4.
    Errors: DriftError if `target` names no resource, or one without a parameter to
        come.
    Source: `suites.md` section 1, operators (required parameter; its weight of 0.8 is
        shared with untold_parameter, one class each).
    """

    name = "required_parameter"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.4

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

        def change(contract: Contract) -> Contract:
            old = contract.resource(resource.key)
            required = (*old.required, parameter)
            return contract.with_resource(
                msgspec.structs.replace(old, required=required)
            )

        note = f"{resource.path}: `{parameter.name}` is required from now on."
        return announce(world, provider, change, note)


OPERATOR = RequiredParameter()
