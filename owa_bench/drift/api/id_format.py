"""Drift: identifiers are written another way."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import STYLES, ApiWorld, Contract
from owa_bench.worlds.api_edits import (
    announce,
    live_resources,
    locate_field,
    with_field,
)


class IdFormat:
    """Serve the identifiers of one field in another format.

    Changes: how the field is written on the wire; the documents follow.
    Leaves alone: rows, names, other fields: references to the rows keep the format they
        had.
    Announcement: D1 (documented, breaking). Weight: 0.4.
    Errors: DriftError if `target` names no field, or one that is no identifier.
    Source: `suites.md` section 1, operators (id format).
    """

    name = "id_format"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.4
    held_out = True

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider/resource/field of identifiers that nobody writes."""
        return tuple(
            f"{provider.key}/{resource.key}/{field.key}"
            for provider, resource in live_resources(world)
            for field in resource.fields
            if field.identifier and not field.writable
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the format changed; `intensity` has no part in it."""
        provider, resource, field = locate_field(world, target)
        if not field.identifier or field.writable:
            raise DriftError(
                f"`{target}` must be an identifier only read, got {field.key!r}."
            )
        options = [style for style in STYLES if style != field.style]
        style = options[int(rng.integers(len(options)))]

        def change(contract: Contract) -> Contract:
            old = contract.resource(resource.key).field(field.key)
            return with_field(
                contract, resource.key, msgspec.structs.replace(old, style=style)
            )

        note = f"{resource.path}: the format of `{field.name}` has changed."
        return announce(world, provider, change, note)


OPERATOR = IdFormat()
