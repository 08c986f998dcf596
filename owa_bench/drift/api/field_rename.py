"""Drift: a field goes by another name; values stay."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, Contract, Field, Provider, Resource
from owa_bench.worlds.api_edits import (
    announce,
    documented_resource,
    live_resources,
    locate_field,
)


class FieldRename:
    """Rename one field of one resource.

    Changes: the field's name in requests and replies; the documents follow.
    Leaves alone: rows, descriptions, units, paths, auth, paging, every other field.
    Announcement: D1 (documented, breaking). Weight: 1.
    Errors: DriftError if `target` names no field, or one without another name.
    Source: `suites.md` section 1, operators (field rename).
    """

    name = "field_rename"
    version = 1
    announcement: Announcement = "D1"
    weight = 1.0

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider/resource/field of the task that has a free alias."""
        return tuple(
            f"{provider.key}/{resource.key}/{field.key}"
            for provider, resource in live_resources(world)
            for field in resource.fields
            if _free(provider, resource, field)
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the field renamed; `intensity` has no part in it."""
        provider, resource, field = locate_field(world, target)
        options = _free(provider, resource, field)
        if not options:
            raise DriftError(
                f"`{target}` must have a free alias, got {field.aliases!r}."
            )
        name = options[int(rng.integers(len(options)))]

        def change(contract: Contract) -> Contract:
            old = contract.resource(resource.key)
            fields = tuple(
                msgspec.structs.replace(f, name=name) if f.key == field.key else f
                for f in old.fields
            )
            return contract.with_resource(msgspec.structs.replace(old, fields=fields))

        note = f"{resource.path}: field `{field.name}` is now called `{name}`."
        return announce(world, provider, change, note)


def _free(provider: Provider, resource: Resource, field: Field) -> list[str]:
    """Return the aliases that nothing of the resource is called, served or told."""
    shown = documented_resource(provider, resource)
    taken = {other.name for other in (*resource.fields, *shown.fields)}
    return [name for name in field.aliases if name not in taken]


OPERATOR = FieldRename()
