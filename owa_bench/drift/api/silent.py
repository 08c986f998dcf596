"""Operators on a vendor's contract that no document announces."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.errors import DriftError
from owa_bench.interfaces import operator
from owa_bench.seeding import pick
from owa_bench.worlds.api import OTHER_UNITS, ApiWorld, Field
from owa_bench.worlds.api_edits import (
    fields_where,
    locate_field,
    locate_resource,
    parameters_to_come,
    resources_where,
    serve_field,
)


def _other_names(field: Field) -> list[str]:
    """Return the names that the first choice of an enum could go by."""
    if not field.choices:
        return []
    names = {choice.name for choice in field.choices}
    return [name for name in field.choices[0].aliases if name not in names]


@operator(
    announcement="D3",
    weight=0.5,
    held_out=True,
    targets=fields_where(lambda field: field.bound and not field.shift),
)
def date_bound(world: ApiWorld, target: str) -> ApiWorld:
    """Serve the bound of one date field a day early.

    Changes: every value of the field on the wire.
    Leaves alone: documents, names, types, rows, the flag that says whether the bound is
        included. Rows no longer meet without a gap, so looking at two neighbours shows
        it.
    Announcement: D3 (silent). Weight: 0.5.
    Raises: DriftError if `target` names no field, or one that is no bound.
    Source: docs/toolquest.md#operators (date bound off by one).
    """
    _, _, field = locate_field(world, target)
    if not field.bound or field.shift:
        raise DriftError(
            f"`{target}` must be a bound served as it is, got {field.key!r}."
        )
    return serve_field(world, target, replace(field, shift=-1))


@operator(announcement="D3", weight=0.5, targets=fields_where(_other_names))
def enum_rename(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Serve the value of an enum that matters most under another name.

    Changes: the first choice of the field on the wire, in replies and filters.
    Leaves alone: documents, the other choices, rows. The old name is no longer served
        and the new one is not documented, so looking at the values shows it.
    Announcement: D3 (silent). Weight: 0.5.
    Raises: DriftError if `target` names no field, or an enum whose first choice has no
        other name.
    Source: docs/toolquest.md#operators (enum rename).
    """
    _, _, field = locate_field(world, target)
    options = _other_names(field)
    if not options:
        raise DriftError(
            f"`{target}` must be an enum with a free name, got {field.choices!r}."
        )
    first, *rest = field.choices
    choices = (replace(first, name=pick(options, rng)), *rest)
    return serve_field(world, target, replace(field, choices=choices))


@operator(
    announcement="D3",
    weight=0.7,
    targets=fields_where(lambda field: field.unit in OTHER_UNITS),
)
def silent_units(world: ApiWorld, target: str) -> ApiWorld:
    """Serve (and accept) one money field in the other unit.

    Changes: the unit of the field on the wire, cents to dollars or back.
    Leaves alone: documents, names, types, rows, and the vendor's control totals, which
        are always in cents and so show the change to whoever adds up.
    Announcement: D3 (silent). Weight: 0.7.
    Raises: DriftError if `target` names no field, or one that is not money.
    Source: docs/toolquest.md#operators (silent units).
    """
    _, _, field = locate_field(world, target)
    if field.unit not in OTHER_UNITS:
        raise DriftError(f"`{target}` must be a money field, got kind {field.kind!r}.")
    return serve_field(world, target, replace(field, unit=OTHER_UNITS[field.unit]))


@operator(
    announcement="D2",
    weight=0.4,
    held_out=True,
    targets=resources_where(parameters_to_come),
)
def untold_parameter(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Require one query parameter of one collection's list, undocumented.

    Changes: lists without the parameter answer 400, which names it and its value.
    Leaves alone: documents, rows, paths, fields, paging, writes.
    Announcement: D2 (undocumented; a 400 shows it). Weight: 0.4.
    Raises: DriftError if `target` names no resource, or one without a parameter to
        come.
    Source: docs/toolquest.md#operators (required parameter; its weight of 0.8 is
        shared with required_parameter, one class each).
    """
    provider, resource = locate_resource(world, target)
    options = parameters_to_come(resource)
    if not options:
        raise DriftError(f"`{target}` must have a parameter to come, got none.")
    required = (*resource.required, pick(options, rng))
    served = provider.contract.with_resource(replace(resource, required=required))
    return world.with_provider(replace(provider, contract=served))
