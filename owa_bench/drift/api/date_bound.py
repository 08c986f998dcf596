"""Drift: the end of a period is served a day off, and nobody says so."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld
from owa_bench.worlds.api_edits import live_resources, locate_field, with_field


class DateBound:
    """Serve the bound of one date field a day early.

    Changes: every value of the field on the wire.
    Leaves alone: documents, names, types, rows, the flag that says whether the bound is
        included. Rows no longer meet without a gap, so looking at two neighbours shows
        it.
    Announcement: D3 (silent). Weight: 0.5.
    Errors: DriftError if `target` names no field, or one that is no bound.
    Source: `suites.md` section 1, operators (date bound off by one).
    """

    name = "date_bound"
    version = 1
    announcement: Announcement = "D3"
    weight = 0.5
    held_out = True

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider/resource/field that is a bound served as it is."""
        return tuple(
            f"{provider.key}/{resource.key}/{field.key}"
            for provider, resource in live_resources(world)
            for field in resource.fields
            if field.bound and not field.shift
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the bound moved; `intensity` has no part in it."""
        provider, resource, field = locate_field(world, target)
        if not field.bound or field.shift:
            raise DriftError(
                f"`{target}` must be a bound served as it is, got {field.key!r}."
            )
        moved = msgspec.structs.replace(field, shift=-1)
        served = with_field(provider.contract, resource.key, moved)
        return world.with_provider(msgspec.structs.replace(provider, contract=served))


OPERATOR = DateBound()
