"""Drift: money on the wire changes between cents and dollars, as announced."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, Contract, Unit
from owa_bench.worlds.api_edits import (
    announce,
    live_resources,
    locate_field,
    with_field,
)


class Units:
    """Serve (and accept) one money field in the other unit, and say so.

    Changes: the unit of the field on the wire, cents to dollars or back; the documents
        switch theirs too.
    Leaves alone: names, types, rows, control totals.
    Announcement: D1 (documented, breaking). Weight: 0.7.
    Errors: DriftError if `target` names no field, or one that is not money.
    Source: `suites.md` section 1, operators (units).
    """

    name = "units"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.7

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider/resource/field of money that the task rests on."""
        return tuple(
            f"{provider.key}/{resource.key}/{field.key}"
            for provider, resource in live_resources(world)
            for field in resource.fields
            if field.unit in _OTHER
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the unit switched; `intensity` has no part in it."""
        provider, resource, field = locate_field(world, target)
        if field.unit not in _OTHER:
            raise DriftError(
                f"`{target}` must be a money field, got kind {field.kind!r}."
            )

        def change(contract: Contract) -> Contract:
            old = contract.resource(resource.key).field(field.key)
            new = msgspec.structs.replace(old, unit=_OTHER[old.unit])
            return with_field(contract, resource.key, new)

        note = f"{resource.path}: the unit of `{field.name}` has changed."
        return announce(world, provider, change, note)


_OTHER: dict[str, Unit] = {"cents": "dollars", "dollars": "cents"}


OPERATOR = Units()
