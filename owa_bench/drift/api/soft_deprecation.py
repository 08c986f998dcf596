"""Drift: a collection is announced to be switched off some day."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, Contract
from owa_bench.worlds.api_edits import announce, live_resources, locate_resource


class SoftDeprecation:
    """Mark one collection as deprecated; it works on.

    Changes: replies carry Deprecation and Sunset; the documents mark it.
    Leaves alone: everything that is served.
    Announcement: D0 (announced, compatible). Weight: 0.3.
    Errors: DriftError if `target` names no resource, or one that is deprecated already.
    Source: `suites.md` section 1, operators (soft deprecation).
    """

    name = "soft_deprecation"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.3

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider/resource the task rests on that is not deprecated."""
        return tuple(
            f"{provider.key}/{resource.key}"
            for provider, resource in live_resources(world)
            if not resource.sunset
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the notice; `intensity` has no part in it."""
        provider, resource = locate_resource(world, target)
        if resource.sunset:
            raise DriftError(
                f"`{target}` must not be deprecated yet, got {resource.sunset!r}."
            )
        sunset = f"2032-{int(rng.integers(1, 13)):02d}-01"

        def change(contract: Contract) -> Contract:
            old = contract.resource(resource.key)
            return contract.with_resource(msgspec.structs.replace(old, sunset=sunset))

        note = f"{resource.path} is deprecated and will be switched off on {sunset}."
        return announce(world, provider, change, note)


OPERATOR = SoftDeprecation()
