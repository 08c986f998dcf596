"""Drift: a value of an enum goes by another name, and nobody says so."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, Field
from owa_bench.worlds.api_edits import live_resources, locate_field, with_field


class EnumRename:
    """Serve the value of an enum that matters most under another name.

    Changes: the first choice of the field on the wire, in replies and filters.
    Leaves alone: documents, the other choices, rows. The old name is no longer served
        and the new one is not documented, so looking at the values shows it.
    Announcement: D3 (silent). Weight: 0.5.
    Errors: DriftError if `target` names no field, or an enum whose first choice has no
        other name.
    Source: `suites.md` section 1, operators (enum rename).
    """

    name = "enum_rename"
    version = 1
    announcement: Announcement = "D3"
    weight = 0.5

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider/resource/field whose first choice has another name."""
        return tuple(
            f"{provider.key}/{resource.key}/{field.key}"
            for provider, resource in live_resources(world)
            for field in resource.fields
            if _free(field)
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the value renamed; `intensity` has no part in it."""
        provider, resource, field = locate_field(world, target)
        options = _free(field)
        if not options:
            raise DriftError(
                f"`{target}` must be an enum with a free name, got {field.choices!r}."
            )
        first, *rest = field.choices
        name = options[int(rng.integers(len(options)))]
        choices = (msgspec.structs.replace(first, name=name), *rest)
        served = with_field(
            provider.contract,
            resource.key,
            msgspec.structs.replace(field, choices=choices),
        )
        return world.with_provider(msgspec.structs.replace(provider, contract=served))


def _free(field: Field) -> list[str]:
    """Return the names that the first choice could go by."""
    if not field.choices:
        return []
    taken = {choice.name for choice in field.choices}
    return [name for name in field.choices[0].aliases if name not in taken]


OPERATOR = EnumRename()
