"""Drift: money on the wire changes between cents and dollars, and nobody says so."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, Unit
from owa_bench.worlds.api_edits import live_resources, locate_field

_OTHER: dict[str, Unit] = {"cents": "dollars", "dollars": "cents"}


class SilentUnits:
    """Serve (and accept) one money field in the other unit.

    Changes: the unit of the field on the wire, cents to dollars or back.
    Leaves alone: documents, names, types, rows, and the vendor's control totals, which
        are always in cents and so show the change to whoever adds up.
    Announcement: D3 (silent). Weight: 0.7.
    Errors: DriftError if `target` names no field, or one that is not money.
    Source: `suites.md` section 1, operators (silent units).
    """

    name = "silent_units"
    version = 1
    announcement: Announcement = "D3"
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
        fields = tuple(
            msgspec.structs.replace(f, unit=_OTHER[f.unit]) if f.key == field.key else f
            for f in resource.fields
        )
        served = provider.contract.with_resource(
            msgspec.structs.replace(resource, fields=fields)
        )
        return world.with_provider(msgspec.structs.replace(provider, contract=served))


OPERATOR = SilentUnits()
